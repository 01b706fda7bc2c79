-- name: open_limit
-- Create the row of a limit before its first use.
INSERT INTO limits (key, next_at) VALUES (:key, :now - interval '1 day')
ON CONFLICT (key) DO NOTHING;

-- name: reserve
-- Reserve permits of a limit, `interval` apart, at most `horizon` seconds ahead; unused permits add up to a burst. Two
-- rows: the seconds until the next permit, before and after.
WITH free AS MATERIALIZED (
    SELECT key,
        greatest(next_at, :now - make_interval(secs => (:burst::int - 1) * :interval::float8)) AS first
    FROM limits WHERE key = :key FOR NO KEY UPDATE
), granted AS (
    SELECT key, first, greatest(0, least(:count::int, 1 + floor(
        extract(epoch FROM :now + make_interval(secs => :horizon::float8) - first) / :interval::float8
    ))) AS count FROM free
), moved AS (
    UPDATE limits l SET next_at = g.first + make_interval(secs => g.count * :interval::float8)
    FROM granted g WHERE l.key = g.key
    RETURNING g.first, l.next_at
)
SELECT extract(epoch FROM first - :now)::float8 AS wait FROM moved
UNION ALL
SELECT extract(epoch FROM next_at - :now)::float8 FROM moved;

-- name: take_permits
-- Take a permit of each limit that has had one free for `spare` seconds. Returns the denied keys with the seconds until
-- a permit is free, and the taken keys with 0. No row: another transaction took it during the statement.
WITH taken AS (
    INSERT INTO limits AS l (key, next_at)
    SELECT i.key, :now - make_interval(secs => (:burst::int - 2) * :interval::float8)
    FROM unnest(:keys::text[]) AS i (key) ORDER BY i.key
    ON CONFLICT (key) DO UPDATE
    SET next_at = greatest(l.next_at, :now - make_interval(secs => (:burst::int - 1) * :interval::float8))
        + make_interval(secs => :interval::float8)
    WHERE l.next_at <= :now - make_interval(secs => :spare::float8)
    RETURNING key
)
SELECT key, 0::float8 AS wait FROM taken
UNION ALL
SELECT key, extract(epoch FROM next_at - :now + make_interval(secs => :spare::float8))::float8 FROM limits
WHERE key = ANY (:keys::text[]) AND next_at > :now - make_interval(secs => :spare::float8);

-- name: block
-- Give no permit of a limit for some time.
INSERT INTO limits AS l (key, next_at) VALUES (:key, :now + make_interval(secs => :seconds::float8))
ON CONFLICT (key) DO UPDATE SET next_at = greatest(l.next_at, excluded.next_at);
