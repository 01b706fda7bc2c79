-- name: add_audit
-- Add a line to the audit log; the same key again adds nothing.
INSERT INTO audit (at, bot, key, actor, action, subject, detail)
VALUES (:now, :bot, :key, :actor, :action, :subject, :detail)
ON CONFLICT (bot, key) DO NOTHING;

-- name: audit
-- Return the newest lines of the audit log.
SELECT * FROM audit WHERE :bot::text IS NULL OR bot = :bot ORDER BY id DESC LIMIT :limit;
