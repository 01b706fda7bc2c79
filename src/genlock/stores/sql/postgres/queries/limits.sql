-- name: open_limit
-- Create the row of a limit before its first use.
INSERT INTO limits (key, next_at) VALUES (:key, :now - interval '1 day')
ON CONFLICT (key) DO NOTHING;

-- name: reserve_permits
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

-- name: take_call_permits
-- Take a permit of each limit that has one now, together with one of a limit that they share, as long as that one has
-- permits within `horizon` seconds. The first row is the shared limit with the seconds until its first permit and the
-- number of its permits. The others are as in `take_permits`, without the keys that got no permit of the shared limit.
-- The commit does not wait for the disk: a permit that a crash of the server loses would be free again after it anyway.
WITH shared AS MATERIALIZED (
    SELECT key,
        greatest(next_at, :now - make_interval(secs => (:shared_burst::int - 1) * :shared_interval::float8)) AS first
    FROM limits WHERE key = :shared_key FOR NO KEY UPDATE
), room AS MATERIALIZED (
    SELECT key, first, greatest(0, 1 + floor(
        extract(epoch FROM :now + make_interval(secs => :horizon::float8) - first) / :shared_interval::float8
    ))::int AS count FROM shared
), taken AS (
    INSERT INTO limits AS l (key, next_at)
    SELECT c.key, :now - make_interval(secs => (:burst::int - 2) * :interval::float8)
    FROM (SELECT i.key, row_number() OVER (ORDER BY i.nth) AS place
          FROM unnest(:keys::text[]) WITH ORDINALITY AS i (key, nth) LEFT JOIN limits k ON k.key = i.key
          WHERE k.next_at IS NULL OR k.next_at <= :now) c
    WHERE c.place <= (SELECT count FROM room) ORDER BY c.key
    ON CONFLICT (key) DO UPDATE
    SET next_at = greatest(l.next_at, :now - make_interval(secs => (:burst::int - 1) * :interval::float8))
        + make_interval(secs => :interval::float8)
    WHERE l.next_at <= :now
    RETURNING key
), moved AS (
    UPDATE limits l
    SET next_at = r.first + make_interval(secs => (SELECT count(*) FROM taken) * :shared_interval::float8)
    FROM room r WHERE l.key = r.key
)
SELECT key, extract(epoch FROM first - :now)::float8 AS wait, count AS room FROM room
WHERE set_config('synchronous_commit', 'off', true) = 'off'
UNION ALL
SELECT key, 0::float8, 0 FROM taken
UNION ALL
SELECT key, extract(epoch FROM next_at - :now)::float8, 0 FROM limits
WHERE key = ANY (:keys::text[]) AND next_at > :now;

-- name: block_limit
-- Give no permit of a limit for some time.
INSERT INTO limits AS l (key, next_at) VALUES (:key, :now + make_interval(secs => :seconds::float8))
ON CONFLICT (key) DO UPDATE SET next_at = greatest(l.next_at, excluded.next_at);
