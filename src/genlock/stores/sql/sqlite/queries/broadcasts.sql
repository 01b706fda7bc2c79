-- name: reachable
-- Count the users whom a broadcast of a bot would go to.
SELECT count(*) AS count FROM profiles p JOIN accounts a ON a.id = p.account_id
WHERE a.bot = :bot AND p.blocked_at IS NULL AND p.banned_at IS NULL;

-- name: begin_broadcast
-- Start a broadcast to all reachable users of a bot; the same key again is the same broadcast.
INSERT INTO broadcasts (bot, text, content, author, request_key, state, total, created_at)
SELECT :bot, :text, :content, :author, :request_key, 'running',
    (SELECT count(*) FROM profiles p JOIN accounts a ON a.id = p.account_id
     WHERE a.bot = :bot AND p.blocked_at IS NULL AND p.banned_at IS NULL), :now
WHERE true
ON CONFLICT (bot, request_key) DO NOTHING;
SELECT * FROM broadcasts WHERE bot = :bot AND request_key = :request_key;

-- name: broadcast
-- Return one broadcast.
SELECT * FROM broadcasts WHERE id = :broadcast_id;

-- name: running_broadcast
-- Return the oldest running broadcast, of one bot or of all.
SELECT * FROM broadcasts WHERE state = 'running' AND (:bot IS NULL OR bot = :bot) ORDER BY id LIMIT 1;

-- name: reach_next
-- Advance a broadcast to its next recipient before anything is sent: only the caller that advanced it sends.
UPDATE broadcasts SET reached = (
    SELECT p.account_id FROM profiles p JOIN accounts a ON a.id = p.account_id AND a.bot = broadcasts.bot
    WHERE p.account_id > broadcasts.reached AND p.blocked_at IS NULL AND p.banned_at IS NULL
    ORDER BY p.account_id LIMIT 1)
WHERE id = :broadcast_id AND state = 'running' AND EXISTS (
    SELECT 1 FROM profiles p JOIN accounts a ON a.id = p.account_id AND a.bot = broadcasts.bot
    WHERE p.account_id > broadcasts.reached AND p.blocked_at IS NULL AND p.banned_at IS NULL);
SELECT p.account_id, p.language, owner.external_id, 1 AS moved
FROM broadcasts b JOIN profiles p ON p.account_id = b.reached JOIN accounts owner ON owner.id = p.account_id
WHERE b.id = :broadcast_id AND changes() = 1;

-- name: count_broadcast
-- Count one message of a broadcast as sent or failed.
UPDATE broadcasts SET sent = sent + CASE WHEN :sent THEN 1 ELSE 0 END,
    failed = failed + CASE WHEN :sent THEN 0 ELSE 1 END
WHERE id = :broadcast_id;

-- name: end_broadcast
-- End a running broadcast: it is done, or an operator stopped it.
UPDATE broadcasts SET state = :state WHERE id = :broadcast_id AND state = 'running' RETURNING id;
