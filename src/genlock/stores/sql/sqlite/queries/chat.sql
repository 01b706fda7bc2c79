-- name: see_profile
-- A person wrote: make their profile on first sight, else bring it up to date where that is worth a write.
INSERT INTO profiles (account_id, language, name, username, referred_by, created_at, seen_at)
SELECT :account_id, :language, :name, :username,
    (SELECT host.id FROM accounts host JOIN accounts guest ON guest.channel = host.channel AND guest.bot = host.bot
     WHERE host.id = :referred_by AND host.id < :account_id AND guest.id = :account_id), :now, :now
WHERE true
ON CONFLICT (account_id) DO UPDATE
SET name = excluded.name, username = excluded.username, seen_at = excluded.seen_at, blocked_at = NULL
WHERE name <> excluded.name OR username <> excluded.username OR blocked_at IS NOT NULL
    OR seen_at < :now - 600000000;
SELECT p.*, p.created_at = :now AS fresh, (SELECT external_id FROM accounts o WHERE o.id = p.account_id) AS external_id
FROM profiles p WHERE p.account_id = :account_id;

-- name: profile
-- One profile.
SELECT p.*, (SELECT external_id FROM accounts o WHERE o.id = p.account_id) AS external_id
FROM profiles p WHERE p.account_id = :account_id;

-- name: find_profiles
-- Profiles by our number, the channel's, a username or a part of the name, however it is capitalised.
SELECT p.*, o.external_id FROM profiles p JOIN accounts o ON o.id = p.account_id
WHERE CAST(o.id AS TEXT) = :text OR o.external_id = :text OR p.username = lower(:text)
    OR p.name LIKE '%' || :text || '%' OR p.name LIKE '%' || :titled || '%' OR p.name LIKE '%' || :lowered || '%'
ORDER BY (CAST(o.id AS TEXT) = :text OR o.external_id = :text OR p.username = lower(:text)) DESC, p.account_id DESC
LIMIT :limit;

-- name: account_summaries
-- People with what they have, the newest first; all, or by our number, the channel's, a username or a part of the name.
SELECT o.id, o.channel, o.external_id, o.available, o.held, o.created_at,
    coalesce(p.name, '') AS name, coalesce(p.username, '') AS username
FROM accounts o LEFT JOIN profiles p ON p.account_id = o.id
WHERE :text IS NULL OR CAST(o.id AS TEXT) = :text OR o.external_id = :text OR p.username = lower(:text)
    OR p.name LIKE '%' || :text || '%' OR p.name LIKE '%' || :titled || '%' OR p.name LIKE '%' || :lowered || '%'
ORDER BY o.id DESC LIMIT :limit;

-- name: newest_profiles
-- Who came last.
SELECT p.*, o.external_id FROM profiles p JOIN accounts o ON o.id = p.account_id ORDER BY p.account_id DESC LIMIT :limit;

-- name: set_language
-- The language a person has chosen.
UPDATE profiles SET language = :language WHERE account_id = :account_id;

-- name: set_last_model
-- The model a person has ordered last.
UPDATE profiles SET last_model = :model WHERE account_id = :account_id;

-- name: set_ban
-- Shut a person out, or let them in again.
UPDATE profiles SET banned_at = CASE WHEN :banned THEN :now END, ban_reason = :reason
WHERE account_id = :account_id RETURNING account_id;

-- name: set_blocked
-- A person has blocked the bot, or has come back.
UPDATE profiles SET blocked_at = CASE WHEN :blocked THEN :now END WHERE account_id = :account_id;

-- name: draft
-- What a person has begun in a chat.
SELECT version, message, body FROM drafts WHERE account_id = :account_id AND chat = :chat;

-- name: save_draft
-- Write a draft, if nobody else has changed it meanwhile; gives the new version.
INSERT INTO drafts (account_id, chat, version, message, body, uploads, updated_at)
VALUES (:account_id, :chat, :version + 1, :message, :body, :uploads, :now)
ON CONFLICT (account_id, chat) DO UPDATE
SET version = version + 1, message = excluded.message, body = excluded.body, uploads = excluded.uploads,
    updated_at = excluded.updated_at
WHERE version = :version
RETURNING version;

-- name: show_draft
-- Which message shows the draft; its version stays.
UPDATE drafts SET message = :message WHERE account_id = :account_id AND chat = :chat;

-- name: is_of_order
-- Whether a message shows an order of an account: as its placeholder or as one of its parts.
SELECT id FROM jobs
WHERE account_id = :account_id AND (placeholder = :message OR EXISTS (
    SELECT 1 FROM json_each(jobs.parts) AS part WHERE part.value ->> 'message' = :message))
LIMIT 1;

-- name: draft_owner
-- Whose draft a message shows.
SELECT account_id FROM drafts WHERE chat = :chat AND message = :message LIMIT 1;

-- name: keep_upload
-- A file was handed to the provider.
INSERT INTO uploads (address, account_id, file, kind, seconds, at, ordered)
VALUES (:address, :account_id, :file, :kind, :seconds, :now, 0)
ON CONFLICT (address) DO UPDATE SET at = excluded.at;

-- name: use_upload
-- An order is about to be made of a file: from now on it is kept as long as the order.
UPDATE uploads SET ordered = 1 WHERE address = :address AND ordered = 0;

-- name: upload
-- The file behind an address.
SELECT *, (:now - at) / 1000000.0 AS age_seconds FROM uploads WHERE address = :address;

-- name: uploads_wait
-- How many files a person has sent in an hour, and when the oldest of them falls out of it.
SELECT count(*) AS hour, coalesce((min(at) + 3600000000 - :now) / 1000000.0, 0.0) AS hour_wait
FROM uploads WHERE account_id = :account_id AND at > :now - 3600000000;

-- name: activity
-- What a person has in the works and has ordered of late.
SELECT count(*) FILTER (WHERE state IN ('queued', 'submitting', 'running')) AS running,
    count(*) FILTER (WHERE created_at > :now - 60000000) AS minute,
    coalesce((min(created_at) FILTER (WHERE created_at > :now - 60000000)
        + 60000000 - :now) / 1000000.0, 0.0) AS minute_wait,
    count(*) FILTER (WHERE created_at > :now - 3600000000) AS hour,
    coalesce((min(created_at) FILTER (WHERE created_at > :now - 3600000000)
        + 3600000000 - :now) / 1000000.0, 0.0) AS hour_wait
FROM jobs WHERE account_id = :account_id
    AND (created_at > :now - 3600000000 OR state IN ('queued', 'submitting', 'running'));

-- name: late_cancels
-- How many orders of a person were cancelled within a day after the provider was asked for them.
SELECT count(*) AS cancels FROM jobs
WHERE account_id = :account_id AND state = 'cancelled' AND submitted_at IS NOT NULL AND ended_at > :now - 86400000000;

-- name: keep_payment
-- A payment has arrived.
INSERT INTO payments (charge, account_id, stars, amount, state, at)
VALUES (:charge, :account_id, :stars, :amount, 'paid', :now)
ON CONFLICT (charge) DO NOTHING RETURNING charge;

-- name: payment
-- One payment.
SELECT * FROM payments WHERE charge = :charge;

-- name: payments
-- A person's payments, newest first.
SELECT * FROM payments WHERE account_id = :account_id ORDER BY at DESC LIMIT :limit;

-- name: move_payment
-- The next step of a refund, from a state that must still hold. A try that took nothing does not count.
UPDATE payments SET state = :state,
    refunds = refunds + CASE WHEN :state = 'refunding' THEN 1 WHEN :untaken THEN -1 ELSE 0 END
WHERE charge = :charge AND state = :before AND refunds = coalesce(:refunds, refunds) RETURNING refunds;

-- name: take_free_run
-- Take one of today's free runs, or one that was given, for an order's key; the same key again takes none.
-- A run that brought nothing does not count, unless it was cancelled when the provider had it already.
INSERT INTO free_runs (account_id, request_key, source, at)
SELECT :account_id, :request_key, CASE WHEN used.today < :per_day THEN 'day' ELSE 'gift' END, :now
FROM (
    SELECT count(*) FILTER (WHERE f.source = 'day' AND f.at >= :now - :now % 86400000000) AS today,
        count(*) FILTER (WHERE f.source = 'gift') AS gifts
    FROM free_runs f LEFT JOIN jobs j ON j.account_id = f.account_id AND j.request_key = f.request_key
    WHERE f.account_id = :account_id AND (coalesce(j.state, '') NOT IN ('failed', 'cancelled', 'expired')
        OR j.state = 'cancelled' AND j.submitted_at IS NOT NULL)) used, (
    SELECT coalesce(sum(p.runs), 0) AS runs FROM promo_uses u JOIN promos p ON p.code = u.code
    WHERE u.account_id = :account_id) given
WHERE used.today < :per_day OR used.gifts < given.runs
ON CONFLICT (account_id, request_key) DO NOTHING;
UPDATE profiles SET free_run_count = free_run_count + 1 WHERE account_id = :account_id AND changes() = 1;
SELECT EXISTS (SELECT 1 FROM free_runs WHERE account_id = :account_id AND request_key = :request_key) AS taken,
    0 AS retry;

-- name: free_runs
-- How many free runs a person has used today, and how many of those given are left; one order's own is not counted.
SELECT
    (SELECT count(*) FROM free_runs f LEFT JOIN jobs j ON j.account_id = f.account_id AND j.request_key = f.request_key
     WHERE f.account_id = :account_id AND f.request_key <> :but
        AND f.source = 'day' AND f.at >= :now - :now % 86400000000
        AND (coalesce(j.state, '') NOT IN ('failed', 'cancelled', 'expired')
            OR j.state = 'cancelled' AND j.submitted_at IS NOT NULL)) AS used,
    (SELECT coalesce(sum(p.runs), 0) FROM promo_uses u JOIN promos p ON p.code = u.code
     WHERE u.account_id = :account_id)
    - (SELECT count(*) FROM free_runs f LEFT JOIN jobs j ON j.account_id = f.account_id AND j.request_key = f.request_key
       WHERE f.account_id = :account_id AND f.request_key <> :but AND f.source = 'gift'
          AND (coalesce(j.state, '') NOT IN ('failed', 'cancelled', 'expired')
              OR j.state = 'cancelled' AND j.submitted_at IS NOT NULL)) AS gifts;

-- name: make_promo
-- A new promo code.
INSERT INTO promos (code, bot, amount, runs, uses_max, per_account, until_at, author, created_at)
VALUES (:code, :bot, :amount, :runs, :uses_max, :per_account, :now + CAST(:lasting * 1000000 AS INTEGER), :author, :now)
ON CONFLICT (code) DO NOTHING RETURNING code;

-- name: close_promo
-- Nobody can use the code any more.
UPDATE promos SET closed_at = :now
WHERE code = :code AND bot IN ('', :bot) AND closed_at IS NULL RETURNING code;

-- name: promos
-- Promo codes, newest first, with how often they were used.
SELECT * FROM promos WHERE :bot IS NULL OR bot IN ('', :bot) ORDER BY created_at DESC LIMIT :limit;

-- name: use_promo
-- Use a code, within its limits; the same key again finds the same use.
INSERT INTO promo_uses (code, account_id, number, request_key, at)
SELECT p.code, :account_id, own.uses + 1, :request_key, :now FROM promos p, (
    SELECT count(*) AS uses FROM promo_uses WHERE code = :code AND account_id = :account_id) own
WHERE p.code = :code AND p.bot IN ('', (SELECT bot FROM accounts WHERE id = :account_id)) AND p.closed_at IS NULL AND (p.until_at IS NULL OR p.until_at > :now)
    AND (p.uses_max IS NULL OR p.used < p.uses_max) AND own.uses < p.per_account
ON CONFLICT DO NOTHING;
UPDATE promos SET used = used + 1 WHERE code = :code AND changes() = 1;
SELECT p.amount, p.runs,
    (SELECT number FROM promo_uses u WHERE u.code = p.code AND u.account_id = :account_id
     AND u.request_key = :request_key) AS number,
    (SELECT count(*) FROM promo_uses u WHERE u.code = p.code AND u.account_id = :account_id) >= p.per_account AS spent,
    0 AS retry
FROM promos p WHERE p.code = :code AND p.bot IN ('', (SELECT bot FROM accounts WHERE id = :account_id));

-- name: promo_used
-- The code that was used under a key.
SELECT code FROM promo_uses WHERE account_id = :account_id AND request_key = :request_key;

-- name: rewards_due
-- People who came by invitation, have paid with money of their own and have bought a first result, for which nobody
-- was rewarded yet. What gifts have paid for does not count: gifts would bring gifts.
SELECT p.account_id, p.referred_by FROM profiles p JOIN accounts a ON a.id = p.account_id AND a.bot = :bot
WHERE p.referred_by IS NOT NULL AND p.rewarded_at IS NULL
    AND EXISTS (SELECT 1 FROM jobs j WHERE j.account_id = p.account_id AND j.hold_state = 'captured')
    AND EXISTS (SELECT 1 FROM payments y WHERE y.account_id = p.account_id AND y.state = 'paid')
ORDER BY p.account_id LIMIT :limit;

-- name: set_rewarded
-- Both have their reward.
UPDATE profiles SET rewarded_at = :now WHERE account_id = :account_id AND rewarded_at IS NULL RETURNING account_id;

-- name: reachable
-- How many people a broadcast would go to.
SELECT count(*) AS count FROM profiles p JOIN accounts a ON a.id = p.account_id
WHERE a.bot = :bot AND p.blocked_at IS NULL AND p.banned_at IS NULL;

-- name: begin_broadcast
-- A message to everybody who can be reached; the same key again is the same broadcast.
INSERT INTO broadcasts (bot, text, content, author, request_key, state, total, created_at)
SELECT :bot, :text, :content, :author, :request_key, 'running',
    (SELECT count(*) FROM profiles p JOIN accounts a ON a.id = p.account_id
     WHERE a.bot = :bot AND p.blocked_at IS NULL AND p.banned_at IS NULL), :now
WHERE true
ON CONFLICT (bot, request_key) DO NOTHING;
SELECT * FROM broadcasts WHERE bot = :bot AND request_key = :request_key;

-- name: broadcast
-- One broadcast.
SELECT * FROM broadcasts WHERE id = :broadcast_id;

-- name: running_broadcast
-- The oldest broadcast that is not finished.
SELECT * FROM broadcasts WHERE state = 'running' AND (:bot IS NULL OR bot = :bot) ORDER BY id LIMIT 1;

-- name: reach_next
-- Move a broadcast on to the next person, before anything is sent: whoever moved it there, and nobody else, sends.
UPDATE broadcasts SET reached = (
    SELECT p.account_id FROM profiles p JOIN accounts a ON a.id = p.account_id AND a.bot = broadcasts.bot
    WHERE p.account_id > broadcasts.reached AND p.blocked_at IS NULL AND p.banned_at IS NULL
    ORDER BY p.account_id LIMIT 1)
WHERE id = :broadcast_id AND state = 'running' AND EXISTS (
    SELECT 1 FROM profiles p JOIN accounts a ON a.id = p.account_id AND a.bot = broadcasts.bot
    WHERE p.account_id > broadcasts.reached AND p.blocked_at IS NULL AND p.banned_at IS NULL);
SELECT p.account_id, p.language, o.external_id, 1 AS moved
FROM broadcasts b JOIN profiles p ON p.account_id = b.reached JOIN accounts o ON o.id = p.account_id
WHERE b.id = :broadcast_id AND changes() = 1;

-- name: count_broadcast
-- What became of one message of a broadcast.
UPDATE broadcasts SET sent = sent + CASE WHEN :sent THEN 1 ELSE 0 END,
    failed = failed + CASE WHEN :sent THEN 0 ELSE 1 END
WHERE id = :broadcast_id;

-- name: end_broadcast
-- A broadcast is done, or an operator stopped it.
UPDATE broadcasts SET state = :state WHERE id = :broadcast_id AND state = 'running' RETURNING id;

-- name: add_audit
-- An operator did something; the same key again is the same deed.
INSERT INTO audit (at, bot, key, actor, action, subject, detail)
VALUES (:now, :bot, :key, :actor, :action, :subject, :detail)
ON CONFLICT (bot, key) DO NOTHING;

-- name: audit
-- What operators did, newest first.
SELECT * FROM audit WHERE :bot IS NULL OR bot = :bot ORDER BY id DESC LIMIT :limit;

-- name: figures
-- The last so many seconds in numbers. Jobs are numbered in the order of time, so only the newest are looked at.
SELECT j.*, p.*, m.* FROM (
    SELECT count(*) AS orders, count(*) FILTER (WHERE delivery = 'delivered' AND state = 'succeeded') AS delivered,
        count(*) FILTER (WHERE state IN ('failed', 'expired')) AS failed, count(DISTINCT account_id) AS users,
        coalesce(sum(price) FILTER (WHERE hold_state = 'captured'), 0) AS revenue,
        coalesce(sum(cost) FILTER (WHERE hold_state <> 'captured'), 0) AS loss
    FROM jobs WHERE bot = :bot AND id > coalesce((SELECT id FROM jobs WHERE created_at < :now - CAST(:seconds * 1000000 AS INTEGER)
                                   ORDER BY id DESC LIMIT 1), 0)) j, (
    SELECT count(*) AS newcomers FROM profiles f JOIN accounts a ON a.id = f.account_id AND a.bot = :bot
    WHERE f.created_at >= :now - CAST(:seconds * 1000000 AS INTEGER)) p, (
    SELECT coalesce(sum(amount), 0) AS topups, coalesce(sum(stars), 0) AS stars
    FROM payments y JOIN accounts a ON a.id = y.account_id AND a.bot = :bot
    WHERE y.at >= :now - CAST(:seconds * 1000000 AS INTEGER) AND y.state = 'paid') m;

-- name: check_payments
-- Every payment is in the ledger for what it was worth.
SELECT p.charge AS subject, printf('credited %s, ledger %s', p.amount, l.amount) AS detail
FROM payments p LEFT JOIN ledger l ON l.key = 'stars:' || p.charge
WHERE l.amount IS NOT p.amount;
