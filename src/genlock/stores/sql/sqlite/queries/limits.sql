-- name: open_limit
-- Create the row of a limit before its first use.
INSERT INTO limits (key, next_at) VALUES (:key, :now - 86400000000) ON CONFLICT (key) DO NOTHING;

-- name: reserve_permits
-- Reserve permits of a limit, `interval` apart, at most `horizon` seconds ahead; unused permits add up to a burst. Two
-- rows: the seconds until the next permit, before and after.
UPDATE limits SET next_at = max(next_at, :now - CAST((:burst - 1) * :interval * 1000000 AS INTEGER))
WHERE key = :key
RETURNING (next_at - :now) / 1000000.0 AS wait;
UPDATE limits
SET next_at = next_at + CAST(:interval * 1000000 * CASE
    WHEN next_at > :now + :horizon * 1000000 THEN 0
    ELSE min(:count, 1 + CAST((:now + :horizon * 1000000 - next_at) / (:interval * 1000000) AS INTEGER))
    END AS INTEGER)
WHERE key = :key
RETURNING (next_at - :now) / 1000000.0 AS wait;

-- name: take_permits
-- Take a permit of each limit that has had one free for `spare` seconds. Returns the denied keys with the seconds until
-- a permit is free, and the taken keys with 0.
SELECT key, (next_at - :now) / 1000000.0 + :spare AS wait FROM limits
WHERE key IN (SELECT value FROM json_each(:keys)) AND next_at > :now - CAST(:spare * 1000000 AS INTEGER);
INSERT INTO limits (key, next_at)
SELECT value, :now - CAST((:burst - 2) * :interval * 1000000 AS INTEGER) FROM json_each(:keys) WHERE true
ON CONFLICT (key) DO UPDATE
SET next_at = max(next_at, :now - CAST((:burst - 1) * :interval * 1000000 AS INTEGER))
    + CAST(:interval * 1000000 AS INTEGER)
WHERE next_at <= :now - CAST(:spare * 1000000 AS INTEGER)
RETURNING key, 0.0 AS wait;

-- name: take_call_permits
-- Take a permit of each limit that has one now, together with one of a limit that they share, as long as that one has
-- permits within `horizon` seconds. The first row is the shared limit with the seconds until its first permit and the
-- number of its permits. The others are as in `take_permits`, without the keys that got no permit of the shared limit.
UPDATE limits
SET next_at = max(next_at, :now - CAST((:shared_burst - 1) * :shared_interval * 1000000 AS INTEGER))
WHERE key = :shared_key
RETURNING key, (next_at - :now) / 1000000.0 AS wait, 0 AS room;  -- unused: there is one writer
INSERT INTO permit_item
SELECT i.value FROM json_each(:keys) i LEFT JOIN limits k ON k.key = i.value
WHERE k.next_at IS NULL OR k.next_at <= :now
ORDER BY i.key LIMIT (
    SELECT CASE
        WHEN next_at > :now + :horizon * 1000000 THEN 0
        ELSE 1 + CAST((:now + :horizon * 1000000 - next_at) / (:shared_interval * 1000000) AS INTEGER) END
    FROM limits WHERE key = :shared_key);
SELECT key, (next_at - :now) / 1000000.0 AS wait, 0 AS room FROM limits
WHERE key IN (SELECT value FROM json_each(:keys)) AND next_at > :now;
INSERT INTO limits (key, next_at)
SELECT key, :now - CAST((:burst - 2) * :interval * 1000000 AS INTEGER) FROM permit_item WHERE true
ON CONFLICT (key) DO UPDATE
SET next_at = max(next_at, :now - CAST((:burst - 1) * :interval * 1000000 AS INTEGER))
    + CAST(:interval * 1000000 AS INTEGER)
WHERE next_at <= :now
RETURNING key, 0.0 AS wait, 0 AS room;
UPDATE limits SET next_at = next_at + changes() * CAST(:shared_interval * 1000000 AS INTEGER) WHERE key = :shared_key;
DELETE FROM permit_item;

-- name: block_limit
-- Give no permit of a limit for some time.
INSERT INTO limits (key, next_at) VALUES (:key, :now + CAST(:seconds * 1000000 AS INTEGER))
ON CONFLICT (key) DO UPDATE SET next_at = max(next_at, excluded.next_at);
