-- name: step_profiles
-- use: operator
-- Return the last account of the next profiles.
SELECT max(account_id) AS until
FROM (SELECT account_id FROM profiles WHERE account_id > :after ORDER BY account_id LIMIT :size) step;

-- name: count_reachable
-- use: operator
-- Count the users whom a broadcast of a bot would go to, after one account up to another. OFFSET 0 as in next_recipient.
SELECT count(*) AS count FROM profiles p JOIN accounts a ON a.id = p.account_id
WHERE p.account_id > :after AND p.account_id <= :until AND a.bot = :bot AND p.blocked_at IS NULL AND p.banned_at IS NULL
    AND (:language::text = '' OR p.language = :language) AND (:paid::boolean IS NULL OR EXISTS (SELECT 1 FROM payments y WHERE y.account_id = p.account_id OFFSET 0) = :paid)
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
-- Take the next recipient of a broadcast before anything is sent: only the caller that took it sends. At most `window`
-- profiles are read; if none of them is a recipient, the broadcast advances behind them. OFFSET 0: a look into the index
-- for each user, instead of a list of all users who have paid.
WITH next AS MATERIALIZED (
    SELECT p.account_id, p.language, owner.external_id, owner.address
    FROM (SELECT account_id, language, blocked_at, banned_at, seen_at FROM profiles
          WHERE account_id > (SELECT reached FROM broadcasts WHERE id = :broadcast_id)
          ORDER BY account_id LIMIT :window) p
    JOIN accounts owner ON owner.id = p.account_id JOIN broadcasts b ON b.id = :broadcast_id
    WHERE owner.bot = b.bot AND p.blocked_at IS NULL AND p.banned_at IS NULL
        AND (b.language = '' OR p.language = b.language) AND (b.silent_since IS NULL OR p.seen_at < b.silent_since)
        AND (b.paid IS NULL OR EXISTS (SELECT 1 FROM payments y WHERE y.account_id = p.account_id OFFSET 0) = b.paid)
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
), taken AS (
    INSERT INTO broadcast_recipients (broadcast_id, account_id, due_at)
    SELECT moved.id, next.account_id, :now + make_interval(secs => :seconds::float8) FROM moved, next
    RETURNING token
)
SELECT next.*, EXISTS (SELECT FROM moved) AS moved, (SELECT token FROM taken) AS token
FROM goal LEFT JOIN next ON true WHERE goal.reached IS NOT NULL;

-- name: retake_recipient
-- use: periodic
-- Take a recipient of a running broadcast whose message was not sent: its sender gave it back, or crashed before.
WITH due AS MATERIALIZED (
    SELECT r.account_id FROM broadcast_recipients r JOIN broadcasts b ON b.id = r.broadcast_id
    WHERE r.broadcast_id = :broadcast_id AND r.due_at <= :now AND NOT r.sending AND b.state = 'running'
    ORDER BY r.due_at LIMIT 1 FOR UPDATE OF r SKIP LOCKED
), taken AS (
    UPDATE broadcast_recipients r
    SET token = r.token + 1, due_at = :now + make_interval(secs => :seconds::float8)
    FROM due WHERE r.broadcast_id = :broadcast_id AND r.account_id = due.account_id
    RETURNING r.account_id, r.token
)
SELECT t.account_id, t.token, p.language, a.address
FROM taken t JOIN profiles p ON p.account_id = t.account_id JOIN accounts a ON a.id = t.account_id;

-- name: begin_broadcast_message
-- Record that the call to a recipient is made next, unless another sender took the recipient or the broadcast ended.
UPDATE broadcast_recipients SET sending = true, due_at = :now + make_interval(secs => :seconds::float8)
WHERE broadcast_id = :broadcast_id AND account_id = :account_id AND token = :token AND NOT sending AND EXISTS (
    SELECT 1 FROM broadcasts WHERE id = :broadcast_id AND state = 'running')
RETURNING account_id;

-- name: return_recipient
-- Give a recipient back whose message was certainly not sent.
UPDATE broadcast_recipients SET sending = false, due_at = :now + make_interval(secs => :after::float8)
WHERE broadcast_id = :broadcast_id AND account_id = :account_id AND token = :token
RETURNING account_id;

-- name: count_broadcast_message
-- Count the outcome of a message, once for each recipient.
WITH ended AS (
    DELETE FROM broadcast_recipients
    WHERE broadcast_id = :broadcast_id AND account_id = :account_id AND token = :token
    RETURNING broadcast_id
)
UPDATE broadcasts b SET sent = b.sent + (:outcome::text = 'sent')::int, failed = b.failed + (:outcome = 'failed')::int,
    unknown = b.unknown + (:outcome = 'unknown')::int
FROM ended WHERE b.id = ended.broadcast_id;

-- name: expire_recipients
-- use: periodic
-- Count messages as of unknown outcome whose sender crashed during the call, and drop the recipients whom an ended
-- broadcast does not go to any more.
WITH expired AS (
    DELETE FROM broadcast_recipients r USING broadcasts b
    WHERE r.due_at <= :now AND b.id = r.broadcast_id AND (r.sending OR b.state <> 'running')
    RETURNING r.broadcast_id, r.sending
), counted AS (
    SELECT broadcast_id, count(*) AS count FROM expired WHERE sending GROUP BY broadcast_id
)
UPDATE broadcasts b SET unknown = b.unknown + c.count FROM counted c WHERE b.id = c.broadcast_id;

-- name: end_broadcast
-- End a running broadcast: an operator stopped it, or it is done, unless a recipient is still open.
UPDATE broadcasts SET state = :state::text
WHERE id = :broadcast_id AND state = 'running' AND (:state <> 'done' OR NOT EXISTS (
    SELECT 1 FROM broadcast_recipients WHERE broadcast_id = :broadcast_id))
RETURNING id;
