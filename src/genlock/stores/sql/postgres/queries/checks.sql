-- The invariants are checked in steps: each `check_` statement takes the rows after one key up to another, and a
-- `step_` statement returns the key of the last of the next `size` rows.

-- name: check_wallets
-- use: check
-- Every balance equals the sum of its ledger entries.
SELECT wallet.id::text AS subject,
    format('available %s, ledger %s; held %s, ledger %s', wallet.available, l.available, wallet.held, l.held) AS detail
FROM accounts wallet
LEFT JOIN LATERAL (SELECT * FROM ledger_checkpoints WHERE account_id = wallet.id OFFSET 0) c ON NOT :whole::boolean
CROSS JOIN LATERAL (
    SELECT coalesce(c.available, 0)
               + coalesce(sum(CASE 'available' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS available,
           coalesce(c.held, 0) + coalesce(sum(CASE 'held' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS held
    FROM ledger WHERE account_id = wallet.id AND at > coalesce(c.at, '-infinity')
) l
WHERE wallet.id > :after AND wallet.id <= :until
    AND (wallet.available <> l.available OR wallet.held <> l.held);

-- name: check_ledger_entries
-- use: check
-- Every ledger entry belongs to an account, so that the balances of all accounts and of the house add up to zero.
SELECT key AS subject, 'account ' || account_id AS detail FROM ledger
WHERE key > :after AND key <= :until AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = ledger.account_id);

-- name: check_hold_states
-- use: check
-- Every job's hold state agrees with the ledger: held once, settled at most once, for its price.
SELECT j.id::text AS subject,
    format('hold_state %s, price %s, hold %s, %s %s', j.hold_state, j.price, h.amount, s.kind, s.amount) AS detail
FROM jobs j
LEFT JOIN ledger h ON h.key = 'hold:' || j.id
LEFT JOIN ledger s ON s.key = 'settle:' || j.id
WHERE j.id > :after AND j.id <= :until AND NOT CASE j.hold_state
    WHEN 'free' THEN j.price = 0 AND h.key IS NULL AND s.key IS NULL
    WHEN 'held' THEN h.amount = j.price AND s.key IS NULL
    WHEN 'captured' THEN h.amount = j.price AND s.amount = j.price AND s.kind = 'capture'
    ELSE h.amount = j.price AND s.amount = j.price AND s.kind = 'release' END IS TRUE;

-- name: check_ends
-- use: check
-- Money is held only while a job is open or its result is being delivered, and captured only for a success.
SELECT id::text AS subject, format('state %s, delivery %s, hold_state %s', state, delivery, hold_state) AS detail
FROM jobs
WHERE id > :after AND id <= :until AND (
    hold_state = 'held' AND (state IN ('failed', 'cancelled', 'expired')
                        OR delivery IN ('delivered', 'undeliverable', 'unknown'))
    OR hold_state = 'captured' AND state <> 'succeeded'
    OR hold_state = 'released' AND state IN ('queued', 'submitting', 'running'));

-- name: check_due
-- use: check
-- Every unfinished job is due at some time or on the operator's list.
SELECT id::text AS subject, format('state %s, delivery %s, notice %s', state, delivery, notice) AS detail
FROM jobs
WHERE id > :after AND id <= :until AND due_at IS NULL AND attention_reason IS NULL
    AND (state IN ('queued', 'submitting', 'running') OR delivery IN ('pending', 'sending') OR notice = 'due');

-- name: check_open_api_jobs
-- use: check
-- Every account's count of open API jobs equals the number of its jobs of API keys that have not ended.
SELECT wallet.id::text AS subject, format('counted %s, open %s', wallet.open_api_jobs, o.jobs) AS detail
FROM accounts wallet
CROSS JOIN LATERAL (
    -- coalesce keeps the planner from using the index of all jobs of API keys
    SELECT count(*) AS jobs FROM jobs j
    WHERE j.account_id = wallet.id AND j.ended_at IS NULL AND coalesce(j.api_key_id, 0) > 0
) o
WHERE wallet.id > :after AND wallet.id <= :until AND wallet.open_api_jobs <> o.jobs;

-- name: check_gift_runs
-- use: check
-- Every account's count of used free runs from promo codes equals the number of those whose job did not fail.
SELECT wallet.id::text AS subject, format('counted %s, used %s', wallet.gift_runs_used, g.used) AS detail
FROM accounts wallet
CROSS JOIN LATERAL (
    SELECT count(*) AS used FROM free_runs f
    LEFT JOIN LATERAL (
        SELECT state, submitted_at FROM jobs WHERE account_id = f.account_id AND request_key = f.request_key LIMIT 1) j ON true
    WHERE f.account_id = wallet.id AND f.source = 'gift' AND (coalesce(j.state, '') NOT IN ('failed', 'cancelled', 'expired')
        OR j.state = 'cancelled' AND j.submitted_at IS NOT NULL)
) g
WHERE wallet.id > :after AND wallet.id <= :until AND wallet.gift_runs_used <> g.used;

-- name: check_payments
-- use: check
-- Every payment is in the ledger with its amount.
SELECT p.charge AS subject, format('credited %s, ledger %s', p.amount, l.amount) AS detail
FROM payments p LEFT JOIN ledger l ON l.key = 'stars:' || p.charge
WHERE p.charge > :after AND p.charge <= :until AND l.amount IS DISTINCT FROM p.amount;

-- name: check_debts
-- use: check
-- Every debt is what was refunded from outside after it was spent, less what was repaid since.
SELECT id::text AS subject, format('debt %s, owed %s, repaid %s', debt, owed, repaid) AS detail
FROM (
    SELECT a.id, a.debt,
        (SELECT coalesce(sum(owed), 0) FROM payments WHERE account_id = a.id AND owed > 0) AS owed,
        (SELECT coalesce(sum(amount), 0) FROM ledger WHERE account_id = a.id AND kind = 'repay') AS repaid
    FROM accounts a
    WHERE a.id IN (
        SELECT id FROM accounts WHERE debt > 0 AND id > :after AND id <= :until
        UNION SELECT account_id FROM payments WHERE owed > 0 AND account_id > :after AND account_id <= :until)
) d WHERE debt <> owed - repaid;

-- name: check_update_queues
-- use: check
-- Every update queue counts its waiting updates correctly.
SELECT q.id::text AS subject, format('waiting %s, new updates %s', q.waiting, n.count) AS detail
FROM update_queues q CROSS JOIN LATERAL (
    SELECT count(*) AS count FROM updates u WHERE u.bot = q.bot AND u.ordering_key = q.name AND u.state = 'new'
) n
WHERE q.id > :after AND q.id <= :until AND q.waiting <> n.count;

-- name: settled_jobs
-- When no work is in progress, no job is leased, and none is due but to put its message again after late progress.
SELECT id::text AS subject, format('state %s, delivery %s, lease %s', state, delivery, lease_owner) AS detail
FROM jobs
WHERE due_at IS NOT NULL AND (  -- a leased job is always due
    lease_owner IS NOT NULL OR delivery IN ('none', 'pending', 'sending') OR notice = 'due' OR progress_message IS NULL);

-- name: settled_inbox
-- When no work is in progress, every callback is settled.
SELECT id::text AS subject, format('state %s', state) AS detail
FROM inbox WHERE due_at IS NOT NULL;

-- name: settled_update_queues
-- When no work is in progress, no update waits.
SELECT id::text AS subject, format('waiting %s, lease %s', waiting, lease_owner) AS detail
FROM update_queues WHERE due_at IS NOT NULL;

-- name: step_accounts
-- use: check
-- Return the last id and the number of the next rows of the table accounts.
SELECT max(id) AS until, count(*) AS rows FROM (SELECT id FROM accounts WHERE id > :after ORDER BY id LIMIT :size) step;

-- name: step_jobs
-- use: check
-- Return the last id and the number of the next rows of the table jobs.
SELECT max(id) AS until, count(*) AS rows FROM (SELECT id FROM jobs WHERE id > :after ORDER BY id LIMIT :size) step;

-- name: step_ledger
-- use: check
-- Return the last key and the number of the next rows of the table ledger.
SELECT max(key) AS until, count(*) AS rows FROM (SELECT key FROM ledger WHERE key > :after ORDER BY key LIMIT :size) step;

-- name: step_payments
-- use: check
-- Return the last charge and the number of the next rows of the table payments.
SELECT max(charge) AS until, count(*) AS rows FROM (SELECT charge FROM payments WHERE charge > :after ORDER BY charge LIMIT :size) step;

-- name: step_update_queues
-- use: check
-- Return the last id and the number of the next rows of the table update_queues.
SELECT max(id) AS until, count(*) AS rows FROM (SELECT id FROM update_queues WHERE id > :after ORDER BY id LIMIT :size) step;

-- name: aged_jobs
-- use: periodic
-- Return, of the next jobs after an id, those that are old enough to have ended.
SELECT id, account_id FROM (
    SELECT id, account_id, created_at FROM jobs WHERE id > :after ORDER BY id LIMIT :limit
) next WHERE created_at < :now - make_interval(secs => :older_than::float8) ORDER BY id;

-- name: save_ledger_checkpoints
-- use: periodic
-- Store the sums of all entries that are old enough to be final, for accounts with many entries since their last
-- checkpoint: the next check of these accounts begins there.
INSERT INTO ledger_checkpoints AS old (account_id, at, available, held)
SELECT wallet.id, :now - interval '1 hour', l.available, l.held
FROM accounts wallet
LEFT JOIN LATERAL (SELECT * FROM ledger_checkpoints WHERE account_id = wallet.id OFFSET 0) c ON true
CROSS JOIN LATERAL (
    SELECT count(*) AS entries,
        coalesce(c.available, 0)
            + coalesce(sum(CASE 'available' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS available,
        coalesce(c.held, 0) + coalesce(sum(CASE 'held' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS held
    FROM ledger
    WHERE account_id = wallet.id AND at > coalesce(c.at, '-infinity') AND at <= :now - interval '1 hour'
) l
WHERE wallet.id > :after AND wallet.id <= :until AND l.entries >= :entries_min::bigint
ON CONFLICT (account_id) DO UPDATE SET at = excluded.at, available = excluded.available, held = excluded.held
WHERE old.at < excluded.at;
