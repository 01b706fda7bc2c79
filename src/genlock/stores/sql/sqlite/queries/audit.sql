-- name: add_audit
-- Add a line to the audit log; the same key again adds nothing.
INSERT INTO audit (at, bot, key, actor, action, subject, detail)
VALUES (:now, :bot, :key, :actor, :action, :subject, :detail)
ON CONFLICT (bot, key) DO NOTHING;

-- name: newest_audit
-- use: operator
-- Return the newest lines of the audit log.
SELECT * FROM audit ORDER BY id DESC LIMIT :limit;

-- name: bot_audit
-- use: operator
-- Return the newest lines of the audit log of a bot.
SELECT * FROM audit WHERE bot = :bot ORDER BY id DESC LIMIT :limit;
