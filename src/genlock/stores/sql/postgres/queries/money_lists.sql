-- Lists of ledger entries and payments for operators, newest first. `at` and `key` are a place in a list: the time, in
-- microseconds since 1970, and the key of the last row that was shown.

-- name: account_ledger
-- use: operator
-- Return the ledger entries of an account before a place, with what the account has available now.
SELECT l.*, (SELECT available FROM accounts a WHERE a.id = l.account_id) AS available_now FROM ledger l
WHERE account_id = :account_id AND at <= timestamptz 'epoch' + :at::bigint * interval '1 microsecond'
    AND (at, key) < (timestamptz 'epoch' + :at::bigint * interval '1 microsecond', :key::text)
ORDER BY at DESC, key DESC LIMIT :limit;

-- name: ledger_moves
-- use: operator
-- Return the ledger entries of a kind that belongs to no order, before a place and not before a time.
SELECT * FROM ledger
WHERE kind = :kind AND kind NOT IN ('hold', 'capture', 'release')
    AND (at, key) < (timestamptz 'epoch' + :at::bigint * interval '1 microsecond', :key::text)
    AND at >= timestamptz 'epoch' + :since::bigint * interval '1 microsecond'
ORDER BY at DESC, key DESC LIMIT :limit;

-- name: order_ledger_between
-- use: operator
-- Return the holds, captures and releases of the jobs within a range of ids, the newest job first.
SELECT j.id AS order_id, l.* FROM (
    SELECT id FROM jobs
    WHERE id >= :floor AND id < :before AND hold_state = ANY(:hold_states::text[]) ORDER BY id DESC LIMIT :limit
) j LEFT JOIN ledger l ON l.key IN ('hold:' || j.id, 'settle:' || j.id) AND l.kind = ANY(:kinds::text[])
ORDER BY j.id DESC, l.at DESC, l.key DESC;

-- name: job_created_from
-- use: operator
-- Return the first job with at least this id, and when it was ordered.
SELECT id, created_at FROM jobs WHERE id >= :id ORDER BY id LIMIT 1;

-- name: payments_before
-- use: operator
-- Return payments before a place and not before a time.
SELECT * FROM payments
WHERE at <= timestamptz 'epoch' + :at::bigint * interval '1 microsecond'
    AND (at, charge) < (timestamptz 'epoch' + :at::bigint * interval '1 microsecond', :key::text)
    AND at >= timestamptz 'epoch' + :since::bigint * interval '1 microsecond'
ORDER BY at DESC, charge DESC LIMIT :limit;

-- name: payments_in_state
-- use: operator
-- Return payments whose refund has begun or is done, before a place and not before a time. An array as in `account_jobs`; the
-- state is compared together with the time, so that the planner does not read all payments of that time.
SELECT * FROM payments
WHERE state = ANY (ARRAY[:state::text]) AND state <> 'paid'
    AND (state, at, charge) < (:state, timestamptz 'epoch' + :at::bigint * interval '1 microsecond', :key::text)
    AND (state, at) >= (:state, timestamptz 'epoch' + :since::bigint * interval '1 microsecond')
ORDER BY state DESC, at DESC, charge DESC LIMIT :limit;

-- name: external_refunds
-- use: operator
-- Return payments that were refunded without us, before a place and not before a time; the time is that of the booking.
SELECT * FROM payments
WHERE external_refund_at <= timestamptz 'epoch' + :at::bigint * interval '1 microsecond'
    AND (external_refund_at, charge) < (timestamptz 'epoch' + :at::bigint * interval '1 microsecond', :key::text)
    AND external_refund_at >= timestamptz 'epoch' + :since::bigint * interval '1 microsecond'
ORDER BY external_refund_at DESC, charge DESC LIMIT :limit;

-- name: account_payments
-- use: operator
-- Return the payments of an account before a place. An array as in `account_jobs`.
SELECT * FROM payments
WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND at <= timestamptz 'epoch' + :at::bigint * interval '1 microsecond'
    AND (at, charge) < (timestamptz 'epoch' + :at::bigint * interval '1 microsecond', :key::text)
ORDER BY account_id DESC, at DESC, charge DESC LIMIT :limit;
