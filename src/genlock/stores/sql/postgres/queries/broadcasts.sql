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
    AND (:language::text = '' OR p.language = :language) AND (:paid::boolean IS NULL OR EXISTS (SELECT 1 FROM payments y WHERE y.account_id = p.account_id) = :paid)
    AND (:silent_days::integer = 0 OR p.seen_at < :now - make_interval(days => :silent_days));

-- name: begin_broadcast
-- Start a broadcast to the reachable users of a bot; the same key again is the same broadcast.
WITH added AS (
    INSERT INTO broadcasts (
        bot, text, content, author, request_key, state, total, created_at, language, paid, silent_since)
    SELECT :bot::text, :text, :content, :author, :request_key::text, 'running',
        :total::bigint, :now, :language::text, :paid::boolean,
        CASE WHEN :silent_days::integer > 0 THEN :now - make_interval(days => :silent_days) END
    ON CONFLICT (bot, request_key) DO NOTHING
    RETURNING *
)
SELECT * FROM added
UNION ALL
SELECT * FROM broadcasts WHERE bot = :bot AND request_key = :request_key
LIMIT 1;

-- name: broadcast
-- use: operator
-- Return one broadcast.
SELECT * FROM broadcasts WHERE id = :broadcast_id;

-- name: newest_broadcasts
-- use: operator
-- Return broadcasts before an id, newest first.
SELECT * FROM broadcasts WHERE id < :before_id AND (:bot::text IS NULL OR bot = :bot) ORDER BY id DESC LIMIT :limit;

-- name: running_broadcast
-- use: periodic
-- Return the oldest running broadcast, of one bot or of all.
SELECT * FROM broadcasts WHERE state = 'running' AND (:bot::text IS NULL OR bot = :bot) ORDER BY id LIMIT 1;

-- name: next_recipient
-- use: periodic
-- Advance a broadcast to its next recipient before anything is sent: only the caller that advanced it sends. At most
-- `window` profiles are read; if none of them is a recipient, the broadcast advances behind them.
WITH next AS MATERIALIZED (
    SELECT p.account_id, p.language, owner.external_id, owner.address
    FROM (SELECT account_id, language, blocked_at, banned_at, seen_at FROM profiles
          WHERE account_id > (SELECT reached FROM broadcasts WHERE id = :broadcast_id)
          ORDER BY account_id LIMIT :window) p
    JOIN accounts owner ON owner.id = p.account_id JOIN broadcasts b ON b.id = :broadcast_id
    WHERE owner.bot = b.bot AND p.blocked_at IS NULL AND p.banned_at IS NULL
        AND (b.language = '' OR p.language = b.language) AND (b.silent_since IS NULL OR p.seen_at < b.silent_since)
        AND (b.paid IS NULL OR EXISTS (SELECT 1 FROM payments y WHERE y.account_id = p.account_id) = b.paid)
    ORDER BY p.account_id LIMIT 1
), goal AS MATERIALIZED (
    SELECT coalesce((SELECT account_id FROM next), (
        SELECT max(account_id) FROM (
            SELECT account_id FROM profiles
            WHERE account_id > (SELECT reached FROM broadcasts WHERE id = :broadcast_id)
            ORDER BY account_id LIMIT :window) p)) AS reached
), moved AS (
    UPDATE broadcasts b SET reached = goal.reached
    FROM goal WHERE b.id = :broadcast_id AND b.state = 'running' AND b.reached < goal.reached
    RETURNING b.id
)
SELECT next.*, EXISTS (SELECT FROM moved) AS moved
FROM goal LEFT JOIN next ON true WHERE goal.reached IS NOT NULL;

-- name: count_broadcast_message
-- Count one message of a broadcast as sent or failed.
UPDATE broadcasts SET sent = sent + CASE WHEN :sent::boolean THEN 1 ELSE 0 END,
    failed = failed + CASE WHEN :sent THEN 0 ELSE 1 END
WHERE id = :broadcast_id;

-- name: end_broadcast
-- End a running broadcast: it is done, or an operator stopped it.
UPDATE broadcasts SET state = :state WHERE id = :broadcast_id AND state = 'running' RETURNING id;
