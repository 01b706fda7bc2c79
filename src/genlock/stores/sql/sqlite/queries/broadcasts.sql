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
-- Advance a broadcast to its next recipient before anything is sent: only the caller that advanced it sends. At most
-- `window` profiles are read; if none of them is a recipient, the broadcast advances behind them.
UPDATE broadcasts SET reached = coalesce((
    SELECT p.account_id
    FROM (SELECT account_id, language, blocked_at, banned_at, seen_at FROM profiles
          WHERE account_id > broadcasts.reached ORDER BY account_id LIMIT :window) p
    JOIN accounts a ON a.id = p.account_id AND a.bot = broadcasts.bot
    WHERE p.blocked_at IS NULL AND p.banned_at IS NULL
        AND (broadcasts.language = '' OR p.language = broadcasts.language)
        AND (broadcasts.silent_since IS NULL OR p.seen_at < broadcasts.silent_since)
        AND (broadcasts.paid IS NULL OR EXISTS (SELECT 1 FROM payments y WHERE y.account_id = p.account_id) = broadcasts.paid)
    ORDER BY p.account_id LIMIT 1), (
    SELECT max(account_id) FROM (
        SELECT account_id FROM profiles WHERE account_id > broadcasts.reached ORDER BY account_id LIMIT :window)))
WHERE id = :broadcast_id AND state = 'running' AND EXISTS (
    SELECT 1 FROM profiles WHERE account_id > broadcasts.reached);
SELECT CASE WHEN a.bot = b.bot AND p.blocked_at IS NULL AND p.banned_at IS NULL
        AND (b.language = '' OR p.language = b.language) AND (b.silent_since IS NULL OR p.seen_at < b.silent_since)
        AND (b.paid IS NULL OR EXISTS (SELECT 1 FROM payments y WHERE y.account_id = p.account_id) = b.paid) THEN p.account_id END AS account_id,
    p.language, a.external_id, a.address, 1 AS moved
FROM broadcasts b JOIN profiles p ON p.account_id = b.reached JOIN accounts a ON a.id = p.account_id
WHERE b.id = :broadcast_id AND changes() = 1;

-- name: count_broadcast_message
-- Count one message of a broadcast as sent or failed.
UPDATE broadcasts SET sent = sent + CASE WHEN :sent THEN 1 ELSE 0 END,
    failed = failed + CASE WHEN :sent THEN 0 ELSE 1 END
WHERE id = :broadcast_id;

-- name: end_broadcast
-- End a running broadcast: it is done, or an operator stopped it.
UPDATE broadcasts SET state = :state WHERE id = :broadcast_id AND state = 'running' RETURNING id;
