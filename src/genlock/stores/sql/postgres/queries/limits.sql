-- name: take_permits
-- A turn of each of these limits, if it has been free for `spare` seconds: the keys taken, with 0, and those denied,
-- with the seconds until they are free. No row: somebody else took it in this moment.
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
-- No turn of this limit for so long.
INSERT INTO limits AS l (key, next_at) VALUES (:key, :now + make_interval(secs => :seconds::float8))
ON CONFLICT (key) DO UPDATE SET next_at = greatest(l.next_at, excluded.next_at);

-- name: prune_limits
-- Limits that nobody has used for long; only the holder of the active role, in its own epoch, may say so.
DELETE FROM limits
WHERE next_at < :now - make_interval(secs => :idle_seconds::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING key;
