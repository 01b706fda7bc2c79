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
SELECT min(id) AS first, max(id) AS last FROM audit;

-- name: audit_between
-- use: operator
-- Return the lines of a bot within a range of ids, newest first.
SELECT * FROM audit WHERE id >= :floor AND id < :before AND bot = :bot ORDER BY id DESC LIMIT :limit;
