-- name: reachable
-- Count the users whom a broadcast of a bot would go to.
SELECT count(*) AS count FROM profiles p JOIN accounts a ON a.id = p.account_id
WHERE a.bot = :bot AND p.blocked_at IS NULL AND p.banned_at IS NULL;

-- name: begin_broadcast
-- Start a broadcast to all reachable users of a bot; the same key again is the same broadcast.
WITH added AS (
    INSERT INTO broadcasts (bot, text, content, author, request_key, state, total, created_at)
    SELECT :bot::text, :text, :content, :author, :request_key::text, 'running',
        (SELECT count(*) FROM profiles p JOIN accounts a ON a.id = p.account_id
         WHERE a.bot = :bot AND p.blocked_at IS NULL AND p.banned_at IS NULL), :now
    ON CONFLICT (bot, request_key) DO NOTHING
    RETURNING *
)
SELECT * FROM added
UNION ALL
SELECT * FROM broadcasts WHERE bot = :bot AND request_key = :request_key
LIMIT 1;

-- name: broadcast
-- Return one broadcast.
SELECT * FROM broadcasts WHERE id = :broadcast_id;

-- name: running_broadcast
-- Return the oldest running broadcast, of one bot or of all.
SELECT * FROM broadcasts WHERE state = 'running' AND (:bot::text IS NULL OR bot = :bot) ORDER BY id LIMIT 1;

-- name: reach_next
-- Advance a broadcast to its next recipient before anything is sent: only the caller that advanced it sends.
WITH next AS (
    SELECT p.account_id, p.language, owner.external_id
    FROM broadcasts b JOIN profiles p ON p.account_id > b.reached JOIN accounts owner ON owner.id = p.account_id
    WHERE b.id = :broadcast_id AND owner.bot = b.bot AND p.blocked_at IS NULL AND p.banned_at IS NULL
    ORDER BY p.account_id LIMIT 1
), moved AS (
    UPDATE broadcasts b SET reached = next.account_id
    FROM next WHERE b.id = :broadcast_id AND b.state = 'running' AND b.reached < next.account_id
    RETURNING b.id
)
SELECT next.*, EXISTS (SELECT FROM moved) AS moved FROM next;

-- name: count_broadcast
-- Count one message of a broadcast as sent or failed.
UPDATE broadcasts SET sent = sent + CASE WHEN :sent::boolean THEN 1 ELSE 0 END,
    failed = failed + CASE WHEN :sent THEN 0 ELSE 1 END
WHERE id = :broadcast_id;

-- name: end_broadcast
-- End a running broadcast: it is done, or an operator stopped it.
UPDATE broadcasts SET state = :state WHERE id = :broadcast_id AND state = 'running' RETURNING id;
