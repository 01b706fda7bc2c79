-- name: take_permits
-- A turn of each of these limits, if it has been free for `spare` seconds: first those denied, with the seconds until
-- they are free, then the keys taken, with 0.
SELECT key, (next_at - :now) / 1000000.0 + :spare AS wait FROM limits
WHERE key IN (SELECT value FROM json_each(:keys)) AND next_at > :now - CAST(:spare * 1000000 AS INTEGER);
INSERT INTO limits (key, next_at)
SELECT value, :now - CAST((:burst - 2) * :interval * 1000000 AS INTEGER) FROM json_each(:keys) WHERE true
ON CONFLICT (key) DO UPDATE
SET next_at = max(next_at, :now - CAST((:burst - 1) * :interval * 1000000 AS INTEGER))
    + CAST(:interval * 1000000 AS INTEGER)
WHERE next_at <= :now - CAST(:spare * 1000000 AS INTEGER)
RETURNING key, 0.0 AS wait;

-- name: block
-- No turn of this limit for so long.
INSERT INTO limits (key, next_at) VALUES (:key, :now + CAST(:seconds * 1000000 AS INTEGER))
ON CONFLICT (key) DO UPDATE SET next_at = max(next_at, excluded.next_at);

-- name: prune_limits
-- Limits that nobody has used for long; only the holder of the active role, in its own epoch, may say so.
DELETE FROM limits
WHERE next_at < :now - CAST(:idle_seconds * 1000000 AS INTEGER)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING key;
