-- name: step_profiles
-- use: operator
-- Return the last account of the next profiles.
SELECT max(account_id) AS until
FROM (SELECT account_id FROM profiles WHERE account_id > :after ORDER BY account_id LIMIT :size) step;

-- name: count_reachable
-- use: operator
-- Count the users whom a broadcast of a bot would go to, after one account up to another.
SELECT count(*) AS count FROM profiles p JOIN accounts a ON a.id = p.account_id
WHERE p.account_id > :after AND p.account_id <= :until AND a.bot = :bot AND p.blocked_at IS NULL AND p.banned_at IS NULL
    AND (:language = '' OR p.language = :language) AND (:paid IS NULL OR EXISTS (SELECT 1 FROM payments y WHERE y.account_id = p.account_id) = :paid)
    AND (:silent_days = 0 OR p.seen_at < :now - :silent_days * 86400000000);

-- name: begin_broadcast
-- Start a broadcast to the reachable users of a bot; the same key again is the same broadcast.
INSERT INTO broadcasts (
    bot, text, content, author, request_key, state, total, created_at, language, paid, silent_since)
SELECT :bot, :text, :content, :author, :request_key, 'running',
    :total, :now, :language, :paid, CASE WHEN :silent_days > 0 THEN :now - :silent_days * 86400000000 END
WHERE true
ON CONFLICT (bot, request_key) DO NOTHING;
SELECT * FROM broadcasts WHERE bot = :bot AND request_key = :request_key;

-- name: broadcast
-- use: operator
-- Return one broadcast.
SELECT * FROM broadcasts WHERE id = :broadcast_id;

-- name: newest_broadcasts
-- use: operator
-- Return broadcasts before an id, newest first.
SELECT * FROM broadcasts WHERE id < :before_id AND (:bot IS NULL OR bot = :bot) ORDER BY id DESC LIMIT :limit;

-- name: running_broadcast
-- use: periodic
-- Return the oldest running broadcast, of one bot or of all.
SELECT * FROM broadcasts WHERE state = 'running' AND (:bot IS NULL OR bot = :bot) ORDER BY id LIMIT 1;

-- name: next_recipient
-- use: periodic
-- Take the next recipient of a broadcast before anything is sent: only the caller that took it sends. At most `window`
-- profiles are read; if none of them is a recipient, the broadcast advances behind them.
INSERT INTO broadcast_recipients (broadcast_id, account_id, due_at)
SELECT b.id, p.account_id, :now + CAST(:seconds * 1000000 AS INTEGER)
FROM broadcasts b
JOIN profiles p ON p.account_id IN (
    SELECT account_id FROM profiles WHERE account_id > b.reached ORDER BY account_id LIMIT :window)
JOIN accounts a ON a.id = p.account_id AND a.bot = b.bot
WHERE b.id = :broadcast_id AND b.state = 'running' AND p.blocked_at IS NULL AND p.banned_at IS NULL
    AND (b.language = '' OR p.language = b.language) AND (b.silent_since IS NULL OR p.seen_at < b.silent_since)
    AND (b.paid IS NULL OR EXISTS (SELECT 1 FROM payments y WHERE y.account_id = p.account_id) = b.paid)
ORDER BY p.account_id LIMIT 1;
UPDATE broadcasts SET reached = coalesce((
    SELECT r.account_id FROM broadcast_recipients r
    WHERE r.broadcast_id = broadcasts.id AND r.account_id > broadcasts.reached), (
    SELECT max(account_id) FROM (
        SELECT account_id FROM profiles WHERE account_id > broadcasts.reached ORDER BY account_id LIMIT :window)))
WHERE id = :broadcast_id AND state = 'running' AND EXISTS (
    SELECT 1 FROM profiles WHERE account_id > broadcasts.reached);
SELECT r.account_id, r.token, p.language, a.address, 1 AS moved
FROM broadcasts b JOIN profiles p ON p.account_id = b.reached JOIN accounts a ON a.id = p.account_id
LEFT JOIN broadcast_recipients r ON r.broadcast_id = b.id AND r.account_id = b.reached
WHERE b.id = :broadcast_id AND changes() = 1;

-- name: retake_recipient
-- use: periodic
-- Take a recipient of a running broadcast whose message was not sent: its sender gave it back, or crashed before.
UPDATE broadcast_recipients SET token = token + 1, due_at = :now + CAST(:seconds * 1000000 AS INTEGER)
WHERE broadcast_id = :broadcast_id AND account_id = (
    SELECT r.account_id FROM broadcast_recipients r JOIN broadcasts b ON b.id = r.broadcast_id
    WHERE r.broadcast_id = :broadcast_id AND r.due_at <= :now AND NOT r.sending AND b.state = 'running'
    ORDER BY r.due_at LIMIT 1)
RETURNING account_id, token,
    (SELECT language FROM profiles p WHERE p.account_id = broadcast_recipients.account_id) AS language,
    (SELECT address FROM accounts a WHERE a.id = broadcast_recipients.account_id) AS address;

-- name: begin_broadcast_message
-- Record that the call to a recipient is made next, unless another sender took the recipient or the broadcast ended.
UPDATE broadcast_recipients SET sending = 1, due_at = :now + CAST(:seconds * 1000000 AS INTEGER)
WHERE broadcast_id = :broadcast_id AND account_id = :account_id AND token = :token AND NOT sending AND EXISTS (
    SELECT 1 FROM broadcasts WHERE id = :broadcast_id AND state = 'running')
RETURNING account_id;

-- name: return_recipient
-- Give a recipient back whose message was certainly not sent.
UPDATE broadcast_recipients SET sending = 0, due_at = :now + CAST(:after * 1000000 AS INTEGER)
WHERE broadcast_id = :broadcast_id AND account_id = :account_id AND token = :token
RETURNING account_id;

-- name: count_broadcast_message
-- Count the outcome of a message, once for each recipient.
UPDATE broadcasts SET sent = sent + (:outcome = 'sent'), failed = failed + (:outcome = 'failed'),
    unknown = unknown + (:outcome = 'unknown')
WHERE id = :broadcast_id AND EXISTS (
    SELECT 1 FROM broadcast_recipients
    WHERE broadcast_id = :broadcast_id AND account_id = :account_id AND token = :token);
DELETE FROM broadcast_recipients
WHERE broadcast_id = :broadcast_id AND account_id = :account_id AND token = :token;

-- name: expire_recipients
-- use: periodic
-- Count messages as of unknown outcome whose sender crashed during the call, and drop the recipients whom an ended
-- broadcast does not go to any more.
UPDATE broadcasts SET unknown = unknown + r.count
FROM (SELECT broadcast_id, count(*) AS count FROM broadcast_recipients
      WHERE due_at <= :now AND sending GROUP BY broadcast_id) r
WHERE broadcasts.id = r.broadcast_id;
DELETE FROM broadcast_recipients
WHERE due_at <= :now AND (sending OR broadcast_id IN (SELECT id FROM broadcasts WHERE state <> 'running'));

-- name: end_broadcast
-- End a running broadcast: an operator stopped it, or it is done, unless a recipient is still open.
UPDATE broadcasts SET state = :state
WHERE id = :broadcast_id AND state = 'running' AND (:state <> 'done' OR NOT EXISTS (
    SELECT 1 FROM broadcast_recipients WHERE broadcast_id = :broadcast_id))
RETURNING id;
