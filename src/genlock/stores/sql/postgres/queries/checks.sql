-- name: check_wallets
-- Every balance equals the sum of its ledger entries.
SELECT wallet.id::text AS subject,
    format('available %s, ledger %s; held %s, ledger %s', wallet.available, l.available, wallet.held, l.held) AS detail
FROM accounts wallet
CROSS JOIN LATERAL (
    SELECT coalesce(sum(CASE 'available' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS available,
           coalesce(sum(CASE 'held' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS held
    FROM ledger WHERE account_id = wallet.id
) l
WHERE (wallet.available <> l.available OR wallet.held <> l.held);

-- name: check_zero_sum
-- The balances of all accounts and of the house add up to zero.
SELECT 'all' AS subject, format('accounts %s, house %s', accounts, house) AS detail
FROM (SELECT coalesce(sum(available + held), 0) AS accounts FROM accounts) p,
     (SELECT coalesce(sum(CASE 'house' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS house FROM ledger) h
WHERE accounts + house <> 0;

-- name: check_hold_states
-- Every job's hold state agrees with the ledger: held once, settled at most once, for its price.
SELECT j.id::text AS subject,
    format('hold_state %s, price %s, hold %s, %s %s', j.hold_state, j.price, h.amount, s.kind, s.amount) AS detail
FROM jobs j
LEFT JOIN ledger h ON h.key = 'hold:' || j.id
LEFT JOIN ledger s ON s.key = 'settle:' || j.id
WHERE NOT CASE j.hold_state
    WHEN 'free' THEN j.price = 0 AND h.key IS NULL AND s.key IS NULL
    WHEN 'held' THEN h.amount = j.price AND s.key IS NULL
    WHEN 'captured' THEN h.amount = j.price AND s.amount = j.price AND s.kind = 'capture'
    ELSE h.amount = j.price AND s.amount = j.price AND s.kind = 'release' END IS TRUE;

-- name: check_ends
-- Money is held only while a job is open or its result is being delivered, and captured only for a success.
SELECT id::text AS subject, format('state %s, delivery %s, hold_state %s', state, delivery, hold_state) AS detail
FROM jobs
WHERE (
    hold_state = 'held' AND (state IN ('failed', 'cancelled', 'expired')
                        OR delivery IN ('delivered', 'undeliverable', 'unknown'))
    OR hold_state = 'captured' AND state <> 'succeeded'
    OR hold_state = 'released' AND state IN ('queued', 'submitting', 'running'));

-- name: check_due
-- Every unfinished job is due at some time or on the operator's list.
SELECT id::text AS subject, format('state %s, delivery %s, notice %s', state, delivery, notice) AS detail
FROM jobs
WHERE due_at IS NULL AND attention_reason IS NULL
    AND (state IN ('queued', 'submitting', 'running') OR delivery IN ('pending', 'sending') OR notice = 'due');

-- name: check_payments
-- Every payment is in the ledger with its amount.
SELECT p.charge AS subject, format('credited %s, ledger %s', p.amount, l.amount) AS detail
FROM payments p LEFT JOIN ledger l ON l.key = 'stars:' || p.charge
WHERE l.amount IS DISTINCT FROM p.amount;

-- name: check_update_queues
-- Every update queue counts its waiting updates correctly.
SELECT q.id::text AS subject, format('waiting %s, new updates %s', q.waiting, n.count) AS detail
FROM update_queues q CROSS JOIN LATERAL (
    SELECT count(*) AS count FROM updates u WHERE u.bot = q.bot AND u.ordering_key = q.name AND u.state = 'new'
) n
WHERE q.waiting <> n.count;

-- name: settled_jobs
-- When no work is in progress, no job is leased, and none is due but to put its message again after late progress.
SELECT id::text AS subject, format('state %s, delivery %s, lease %s', state, delivery, lease_owner) AS detail
FROM jobs
WHERE (lease_owner IS NOT NULL OR due_at IS NOT NULL AND (
    delivery IN ('none', 'pending', 'sending') OR notice = 'due' OR progress_message IS NULL));

-- name: settled_inbox
-- When no work is in progress, every callback is settled.
SELECT id::text AS subject, format('state %s', state) AS detail
FROM inbox WHERE due_at IS NOT NULL;

-- name: settled_update_queues
-- When no work is in progress, no update waits.
SELECT id::text AS subject, format('waiting %s, lease %s', waiting, lease_owner) AS detail
FROM update_queues WHERE due_at IS NOT NULL;
