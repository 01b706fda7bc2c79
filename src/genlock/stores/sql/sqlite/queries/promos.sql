-- name: take_free_run
-- Take one of today's free runs, or one from a promo code, for an order; the same key again takes none. A run whose job
-- failed does not count, and one that was cancelled counts only after its submit.
INSERT INTO free_runs (account_id, request_key, source, at)
SELECT :account_id, :request_key, CASE WHEN used.today < :per_day THEN 'day' ELSE 'gift' END, :now
FROM (
    SELECT count(*) AS today FROM free_runs f
    LEFT JOIN jobs j ON j.account_id = f.account_id AND j.request_key = f.request_key
    WHERE f.account_id = :account_id AND f.source = 'day' AND f.at >= :now - :now % 86400000000
        AND (coalesce(j.state, '') NOT IN ('failed', 'cancelled', 'expired')
        OR j.state = 'cancelled' AND j.submitted_at IS NOT NULL)) used, (
    SELECT coalesce(sum(p.runs), 0) AS runs FROM promo_uses u JOIN promos p ON p.code = u.code
    WHERE u.account_id = :account_id) given, (SELECT gift_runs_used FROM accounts WHERE id = :account_id) me
WHERE used.today < :per_day OR me.gift_runs_used < given.runs
ON CONFLICT (account_id, request_key) DO NOTHING;
UPDATE accounts SET free_run_count = free_run_count + 1 WHERE id = :account_id AND changes() = 1;
SELECT EXISTS (SELECT 1 FROM free_runs WHERE account_id = :account_id AND request_key = :request_key) AS taken,
    0 AS retry;

-- name: return_free_run
-- Return the free run of an order that was not accepted.
UPDATE accounts SET gift_runs_used = gift_runs_used - 1
WHERE id = :account_id
    AND EXISTS (SELECT 1 FROM free_runs WHERE account_id = :account_id AND request_key = :request_key AND source = 'gift')
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE account_id = :account_id AND request_key = :request_key);
DELETE FROM free_runs
WHERE account_id = :account_id AND request_key = :request_key
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE account_id = :account_id AND request_key = :request_key);
SELECT 0 AS retry;

-- name: free_runs
-- use: screen
-- Count the free runs used today and those left from promo codes, not counting the run of one order.
SELECT
    (SELECT count(*) FROM free_runs f LEFT JOIN jobs j ON j.account_id = f.account_id AND j.request_key = f.request_key
     WHERE f.account_id = :account_id AND f.request_key <> :ignore_key
        AND f.source = 'day' AND f.at >= :now - :now % 86400000000
        AND (coalesce(j.state, '') NOT IN ('failed', 'cancelled', 'expired')
            OR j.state = 'cancelled' AND j.submitted_at IS NOT NULL)) AS used,
    (SELECT coalesce(sum(p.runs), 0) FROM promo_uses u JOIN promos p ON p.code = u.code
     WHERE u.account_id = :account_id)
    - coalesce((SELECT gift_runs_used FROM accounts WHERE id = :account_id), 0)
    + (SELECT count(*) FROM free_runs f
       LEFT JOIN jobs j ON j.account_id = f.account_id AND j.request_key = f.request_key
       WHERE f.account_id = :account_id AND f.request_key = :ignore_key AND f.source = 'gift'
          AND (coalesce(j.state, '') NOT IN ('failed', 'cancelled', 'expired')
              OR j.state = 'cancelled' AND j.submitted_at IS NOT NULL)) AS gifts;

-- name: create_promo
-- Create a promo code.
INSERT INTO promos (code, bot, amount, runs, uses_max, per_account, until_at, author, created_at)
VALUES (
    :code, :bot, :amount, :runs, :uses_max, :per_account, :now + CAST(:lasting * 1000000 AS INTEGER), :author, :now)
ON CONFLICT (code) DO NOTHING RETURNING code;

-- name: close_promo
-- Close a promo code.
UPDATE promos SET closed_at = :now
WHERE code = :code AND bot IN ('', :bot) AND closed_at IS NULL RETURNING code;

-- name: promos
-- use: operator
-- Return promo codes, newest first, with their number of uses.
SELECT * FROM promos WHERE :bot IS NULL OR bot IN ('', :bot) ORDER BY created_at DESC, code DESC LIMIT :limit;

-- name: promos_before
-- use: operator
-- Return the promo codes that were created before one, newest first.
SELECT * FROM promos
WHERE (created_at, code) < (SELECT created_at, code FROM promos WHERE code = :before_code)
    AND (:bot IS NULL OR bot IN ('', :bot))
ORDER BY created_at DESC, code DESC LIMIT :limit;

-- name: promo
-- use: operator
-- Return one promo code.
SELECT * FROM promos WHERE code = :code;

-- name: use_promo
-- Use a code within its limits; the same key again finds the same use.
INSERT INTO promo_uses (code, account_id, number, request_key, at)
SELECT p.code, :account_id, own.uses + 1, :request_key, :now FROM promos p, (
    SELECT count(*) AS uses FROM promo_uses WHERE code = :code AND account_id = :account_id) own
WHERE p.code = :code AND p.bot IN ('', (SELECT bot FROM accounts WHERE id = :account_id))
    AND p.closed_at IS NULL AND (p.until_at IS NULL OR p.until_at > :now)
    AND (p.uses_max IS NULL OR p.used < p.uses_max) AND own.uses < p.per_account
ON CONFLICT DO NOTHING;
UPDATE promos SET used = used + 1 WHERE code = :code AND changes() = 1;
SELECT p.amount, p.runs,
    (SELECT number FROM promo_uses u WHERE u.code = p.code AND u.account_id = :account_id
     AND u.request_key = :request_key) AS number,
    (SELECT count(*) FROM promo_uses u WHERE u.code = p.code AND u.account_id = :account_id) >= p.per_account AS spent,
    0 AS retry
FROM promos p WHERE p.code = :code AND p.bot IN ('', (SELECT bot FROM accounts WHERE id = :account_id));

-- name: is_promo_used
-- Return the code that was used under a key.
SELECT code FROM promo_uses WHERE account_id = :account_id AND request_key = :request_key;

-- name: rewards_due
-- use: periodic
-- Return the next invited users after an account whose inviters were not rewarded yet, and whether they are of a bot, have
-- paid and have bought a first result. Results paid with gifts alone do not count, so that gifts cannot multiply.
WITH invited AS MATERIALIZED (
    SELECT account_id, referred_by FROM profiles
    WHERE referred_by IS NOT NULL AND rewarded_at IS NULL AND account_id > :after ORDER BY account_id LIMIT :limit
)
SELECT p.account_id, p.referred_by,
    EXISTS (SELECT 1 FROM accounts a WHERE a.id = p.account_id AND a.bot = :bot)
    AND EXISTS (SELECT 1 FROM payments y WHERE y.account_id = p.account_id AND y.state = 'paid')
    AND EXISTS (SELECT 1 FROM jobs j WHERE j.account_id = p.account_id AND j.hold_state = 'captured') AS due
FROM invited p ORDER BY p.account_id;

-- name: mark_rewarded
-- Record that an invitation was rewarded.
UPDATE profiles SET rewarded_at = :now WHERE account_id = :account_id AND rewarded_at IS NULL RETURNING account_id;
