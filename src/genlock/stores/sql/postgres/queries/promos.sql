-- name: take_free_run
-- Take one of today's free runs, or one from a promo code, for an order; the same key again takes none. A run whose job
-- failed does not count, and one that was cancelled counts only after its submit. `free_run_count` is compared again
-- when the row is locked: if another transaction took a run meanwhile, the caller retries.
WITH me AS MATERIALIZED (
    SELECT id AS account_id, free_run_count, gift_runs_used FROM accounts WHERE id = :account_id
), used AS MATERIALIZED (
    SELECT count(*) AS today FROM (  -- ordered as in `free_runs`
        SELECT * FROM free_runs WHERE account_id = :account_id AND source = 'day' AND at >= date_trunc('day', :now, 'UTC')
        ORDER BY at OFFSET 0) f
    LEFT JOIN LATERAL (
        SELECT state, submitted_at FROM jobs WHERE account_id = f.account_id AND request_key = f.request_key LIMIT 1) j ON true
    WHERE (coalesce(j.state, '') NOT IN ('failed', 'cancelled', 'expired')
        OR j.state = 'cancelled' AND j.submitted_at IS NOT NULL)
), given AS MATERIALIZED (
    SELECT coalesce(sum(p.runs), 0) AS runs FROM promo_uses u JOIN promos p ON p.code = u.code
    WHERE u.account_id = :account_id
), same AS MATERIALIZED (
    SELECT request_key FROM (
        SELECT request_key FROM free_runs WHERE account_id = :account_id AND request_key >= :request_key
        ORDER BY request_key LIMIT 1) f
    WHERE request_key = :request_key
), due AS MATERIALIZED (
    SELECT me.account_id, me.free_run_count, CASE WHEN used.today < :per_day::int THEN 'day' ELSE 'gift' END AS source
    FROM me, used, given
    WHERE NOT EXISTS (SELECT FROM same) AND (used.today < :per_day OR me.gift_runs_used < given.runs)
), counted AS (
    UPDATE accounts a SET free_run_count = a.free_run_count + 1
    FROM due WHERE a.id = due.account_id AND a.free_run_count = due.free_run_count
    RETURNING a.id AS account_id, due.source
), taken AS (
    INSERT INTO free_runs (account_id, request_key, source, at)
    SELECT account_id, :request_key::text, source, :now FROM counted
    RETURNING request_key
)
SELECT EXISTS (SELECT FROM taken) OR EXISTS (SELECT FROM same) AS taken,
    EXISTS (SELECT FROM due) AND NOT EXISTS (SELECT FROM taken) AS retry;

-- name: return_free_run
-- Return the free run of an order that was not accepted. An order that is accepted changes the account: if another
-- transaction changed it since this statement began, the caller retries.
WITH me AS MATERIALIZED (
    SELECT id, xmin AS version FROM accounts WHERE id = :account_id
), run AS MATERIALIZED (
    SELECT account_id, request_key FROM (  -- found as in `take_free_run`
        SELECT account_id, request_key FROM free_runs WHERE account_id = :account_id AND request_key >= :request_key
        ORDER BY request_key LIMIT 1) f
    WHERE request_key = :request_key
        AND NOT EXISTS (SELECT FROM jobs WHERE account_id = f.account_id AND request_key = f.request_key)
), unchanged AS MATERIALIZED (
    SELECT a.id FROM accounts a JOIN me ON me.id = a.id AND me.version = a.xmin FOR NO KEY UPDATE OF a
), returned AS (
    DELETE FROM free_runs f USING run, unchanged
    WHERE f.account_id = run.account_id AND f.request_key = run.request_key
    RETURNING f.account_id, f.source
), counted AS (
    UPDATE accounts a SET gift_runs_used = a.gift_runs_used - 1
    FROM returned WHERE a.id = returned.account_id AND returned.source = 'gift'
)
SELECT EXISTS (SELECT FROM run) AND NOT EXISTS (SELECT FROM unchanged) AS retry;

-- name: free_runs
-- use: screen
-- Count the free runs used today and those left from promo codes, not counting the run of one order. An account has one
-- run on the average: with equal costs, ORDER BY makes the planner use the index that fits an account with thousands.
SELECT
    (SELECT count(*) FROM (
        SELECT * FROM free_runs WHERE account_id = :account_id AND source = 'day' AND at >= date_trunc('day', :now, 'UTC')
        ORDER BY at OFFSET 0) f
     LEFT JOIN LATERAL (
        SELECT state, submitted_at FROM jobs WHERE account_id = f.account_id AND request_key = f.request_key LIMIT 1) j ON true
     WHERE f.request_key <> :ignore_key
        AND (coalesce(j.state, '') NOT IN ('failed', 'cancelled', 'expired')
            OR j.state = 'cancelled' AND j.submitted_at IS NOT NULL)) AS used,
    (SELECT coalesce(sum(p.runs), 0)::bigint FROM promo_uses u JOIN promos p ON p.code = u.code
     WHERE u.account_id = :account_id)
    - coalesce((SELECT gift_runs_used FROM accounts WHERE id = :account_id), 0)
    + (SELECT count(*) FROM (
        SELECT * FROM free_runs WHERE account_id = :account_id AND request_key >= :ignore_key
        ORDER BY request_key LIMIT 1) f
       LEFT JOIN LATERAL (
        SELECT state, submitted_at FROM jobs WHERE account_id = f.account_id AND request_key = f.request_key LIMIT 1) j ON true
       WHERE f.request_key = :ignore_key AND f.source = 'gift' AND (coalesce(j.state, '') NOT IN ('failed', 'cancelled', 'expired')
              OR j.state = 'cancelled' AND j.submitted_at IS NOT NULL)) AS gifts;

-- name: create_promo
-- Create a promo code.
INSERT INTO promos (code, bot, amount, runs, uses_max, per_account, until_at, author, created_at)
VALUES (
    :code, :bot, :amount, :runs, :uses_max, :per_account, :now + make_interval(secs => :lasting::float8), :author, :now)
ON CONFLICT (code) DO NOTHING RETURNING code;

-- name: close_promo
-- Close a promo code.
UPDATE promos SET closed_at = :now
WHERE code = :code AND bot IN ('', :bot) AND closed_at IS NULL RETURNING code;

-- name: promos
-- use: operator
-- Return promo codes, newest first, with their number of uses.
SELECT * FROM promos WHERE :bot::text IS NULL OR bot IN ('', :bot) ORDER BY created_at DESC, code DESC LIMIT :limit;

-- name: promos_before
-- use: operator
-- Return the promo codes that were created before one, newest first.
SELECT * FROM promos
WHERE (created_at, code) < (SELECT created_at, code FROM promos WHERE code = :before_code)
    AND (:bot::text IS NULL OR bot IN ('', :bot))
ORDER BY created_at DESC, code DESC LIMIT :limit;

-- name: promo
-- use: operator
-- Return one promo code.
SELECT * FROM promos WHERE code = :code;

-- name: use_promo
-- Use a code within its limits; the same key again finds the same use. `used` is compared again when the row is locked:
-- if another transaction used the code meanwhile, the caller retries.
WITH promo AS MATERIALIZED (
    SELECT * FROM promos
    WHERE code = :code AND bot IN ('', (SELECT bot FROM accounts WHERE id = :account_id))
), own AS MATERIALIZED (
    SELECT count(*) AS uses, max(number) FILTER (WHERE request_key = :request_key) AS same
    FROM promo_uses WHERE code = :code AND account_id = :account_id
), due AS MATERIALIZED (
    SELECT p.code, p.used, own.uses FROM promo p, own
    WHERE own.same IS NULL AND p.closed_at IS NULL AND (p.until_at IS NULL OR p.until_at > :now)
        AND (p.uses_max IS NULL OR p.used < p.uses_max) AND own.uses < p.per_account
), counted AS (
    UPDATE promos p SET used = p.used + 1 FROM due WHERE p.code = due.code AND p.used = due.used
    RETURNING p.code, due.uses
), added AS (
    INSERT INTO promo_uses (code, account_id, number, request_key, at)
    SELECT code, :account_id::bigint, uses + 1, :request_key::text, :now FROM counted
    RETURNING number
)
SELECT p.amount, p.runs, coalesce((SELECT number FROM added), own.same) AS number, own.uses >= p.per_account AS spent,
    EXISTS (SELECT FROM due) AND NOT EXISTS (SELECT FROM added) AS retry
FROM promo p, own;

-- name: is_promo_used
-- Return the code that was used under a key.
SELECT code FROM promo_uses WHERE account_id = :account_id AND request_key = :request_key;

-- name: rewards_due
-- use: periodic
-- Return the next invited users after an account whose inviters were not rewarded yet, and whether they are of a bot, have
-- paid and have bought a first result. Results paid with gifts alone do not count, so that gifts cannot multiply.
-- OFFSET 0: a look into the index for each user, instead of a list of all users who have paid or ordered.
WITH invited AS MATERIALIZED (
    SELECT account_id, referred_by FROM profiles
    WHERE referred_by IS NOT NULL AND rewarded_at IS NULL AND account_id > :after ORDER BY account_id LIMIT :limit
)
SELECT p.account_id, p.referred_by,
    EXISTS (SELECT FROM accounts a WHERE a.id = p.account_id AND a.bot = :bot OFFSET 0)
    AND EXISTS (SELECT FROM payments y WHERE y.account_id = p.account_id AND y.state = 'paid' OFFSET 0)
    AND EXISTS (SELECT FROM jobs j WHERE j.account_id = p.account_id AND j.hold_state = 'captured' OFFSET 0) AS due
FROM invited p ORDER BY p.account_id;

-- name: mark_rewarded
-- Record that an invitation was rewarded.
UPDATE profiles SET rewarded_at = :now WHERE account_id = :account_id AND rewarded_at IS NULL RETURNING account_id;
