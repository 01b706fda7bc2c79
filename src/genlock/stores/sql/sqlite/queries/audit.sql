-- name: add_audit
-- Add a line to the audit log; the same key again adds nothing.
INSERT INTO audit (at, bot, key, actor, action, subject, detail)
VALUES (:now, :bot, :key, :actor, :action, :subject, :detail)
ON CONFLICT (bot, key) DO NOTHING;

-- name: newest_audit
-- use: operator
-- Return the newest lines of the audit log.
SELECT * FROM audit ORDER BY id DESC LIMIT :limit;

-- name: audit_id_range
-- use: operator
-- Return the lowest and the highest id of the audit log.
SELECT (SELECT min(id) FROM audit) AS first, (SELECT max(id) FROM audit) AS last;

-- name: audit_between
-- use: operator
-- Return the lines of a bot within a range of ids, newest first. The + keeps SQLite from reading all lines of the bot.
SELECT * FROM audit WHERE id >= :floor AND id < :before AND +bot = :bot ORDER BY id DESC LIMIT :limit;

-- name: search_audit
-- use: operator
-- Return the lines within a range of ids that match every filter that is set, newest first.
SELECT * FROM audit
WHERE id >= :floor AND id < :before
    AND (:actor = '' OR actor = :actor) AND (:action = '' OR action = :action)
    AND at >= :since_us AND at < :until_us
ORDER BY id DESC LIMIT :limit;

-- name: audit_of_subject
-- use: operator
-- Return the lines about a subject within a range of ids, newest first.
SELECT * FROM audit WHERE subject = :subject AND id >= :floor AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: first_audit_since
-- use: operator
-- Return the id from which on lines were written at a time or later, by halving the range of ids: they follow the order
-- of time.
WITH RECURSIVE search (low, high) AS (
    SELECT coalesce((SELECT min(id) FROM audit), 0), coalesce((SELECT max(id) FROM audit), -1) + 1
    UNION ALL
    SELECT CASE WHEN (SELECT a.at < :at_us FROM audit a WHERE a.id >= (s.low + s.high) / 2 ORDER BY a.id LIMIT 1)
            THEN (s.low + s.high) / 2 + 1 ELSE s.low END,
        CASE WHEN (SELECT a.at < :at_us FROM audit a WHERE a.id >= (s.low + s.high) / 2 ORDER BY a.id LIMIT 1)
            THEN s.high ELSE (s.low + s.high) / 2 END
    FROM search s WHERE s.low < s.high
)
SELECT low AS id FROM search WHERE low >= high LIMIT 1;
