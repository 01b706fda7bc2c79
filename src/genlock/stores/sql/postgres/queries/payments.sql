-- name: add_payment
-- Record a payment. The column `stars` has what was paid, in the smallest unit of the currency.
INSERT INTO payments (charge, account_id, stars, amount, state, at)
VALUES (:charge, :account_id, :paid_amount, :amount, 'paid', :now)
ON CONFLICT (charge) DO NOTHING RETURNING charge;

-- name: payment
-- Return one payment.
SELECT * FROM payments WHERE charge = :charge;

-- name: payments
-- use: operator
-- Return the payments of an account, newest first. An array as in `account_jobs`.
SELECT * FROM payments WHERE account_id = ANY (ARRAY[:account_id::bigint]) ORDER BY account_id DESC, at DESC LIMIT :limit;

-- name: begin_refund
-- Debit the credits of a payment and record that its refund is asked for. No row: it is not in the state `paid`, or the
-- balance is too low.
WITH payment AS MATERIALIZED (
    SELECT * FROM payments WHERE charge = :charge AND state = 'paid' FOR NO KEY UPDATE
), wallet AS MATERIALIZED (
    SELECT id, available FROM accounts WHERE id = (SELECT account_id FROM payment) FOR NO KEY UPDATE
), line AS (
    INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
    SELECT 'unstars:' || p.charge || ':' || p.refunds, p.account_id, 'debit', 'available', 'house', p.amount, :reason,
        :now
    FROM payment p, wallet w WHERE w.available >= p.amount
    RETURNING account_id, amount
), debited AS (
    UPDATE accounts a SET available = a.available - line.amount FROM line WHERE a.id = line.account_id
)
UPDATE payments p SET state = 'refunding', refunds = p.refunds + 1 FROM line WHERE p.charge = :charge
RETURNING p.*;

-- name: undo_refund
-- Return the credits of a refund attempt that the channel refused, once; a debt is repaid from them.
WITH payment AS MATERIALIZED (
    SELECT * FROM payments WHERE charge = :charge AND state = 'refunding' AND refunds = :refunds FOR NO KEY UPDATE
), wallet AS MATERIALIZED (
    SELECT a.id, least(a.debt, p.amount) AS repaid FROM accounts a JOIN payment p ON p.account_id = a.id
    FOR NO KEY UPDATE OF a
), line AS (
    INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
    SELECT 'restars:' || charge || ':' || refunds, account_id, 'refund', 'house', 'available', amount, :reason, :now
    FROM payment
), repayment AS (
    INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
    SELECT 'repay:restars:' || charge || ':' || refunds, account_id, 'repay', 'available', 'house', w.repaid, :reason,
        :now
    FROM payment, wallet w WHERE w.repaid > 0
), undone AS (
    UPDATE payments p SET state = 'paid' FROM payment WHERE p.charge = payment.charge
)
UPDATE accounts a SET available = a.available + p.amount - w.repaid, debt = a.debt - w.repaid
FROM payment p, wallet w WHERE a.id = w.id
RETURNING a.id;

-- name: finish_refund
-- Record that the channel has refunded a payment, and that its user is to be told: the mark of the open refund becomes
-- that of an ended one.
WITH refunded AS (
    UPDATE payments p SET state = 'refunded' FROM accounts a
    WHERE p.charge = :charge AND p.state = 'refunding' AND a.id = p.account_id
    RETURNING p.charge, a.bot
), mark AS (
    DELETE FROM kv USING refunded r WHERE kv.key = 'chat:refund:' || r.charge AND kv.bot = r.bot RETURNING kv.value
)
INSERT INTO kv (key, bot, value, at)
SELECT 'chat:refunded:' || charge, bot, coalesce((SELECT value FROM mark), ''), :now FROM refunded
RETURNING key;

-- name: book_external_refund
-- Book a refund that the channel made: take the credits that are there and record the rest as a debt. If our own refund
-- of this payment is under way, its credits were debited already. That the user is to be told is recorded as in
-- `finish_refund`. No row: the payment is unknown or was refunded before.
WITH payment AS MATERIALIZED (
    SELECT * FROM payments WHERE charge = :charge AND state IN ('paid', 'refunding') FOR NO KEY UPDATE
), wallet AS MATERIALIZED (
    SELECT a.id, least(a.available, p.amount) AS taken, p.amount - least(a.available, p.amount) AS owed
    FROM accounts a JOIN payment p ON p.account_id = a.id AND p.state = 'paid' FOR NO KEY UPDATE OF a
), line AS (
    INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
    SELECT 'chargeback:' || :charge, w.id, 'debit', 'available', 'house', w.taken, :reason, :now FROM wallet w
    WHERE w.taken > 0
), debited AS (
    UPDATE accounts a SET available = a.available - w.taken, debt = a.debt + w.owed FROM wallet w WHERE a.id = w.id
), refunded AS (
    SELECT p.charge, a.bot FROM payment p JOIN accounts a ON a.id = p.account_id
), mark AS (
    DELETE FROM kv USING refunded r WHERE kv.key = 'chat:refund:' || r.charge AND kv.bot = r.bot RETURNING kv.value
), untold AS (
    INSERT INTO kv (key, bot, value, at)
    SELECT 'chat:refunded:' || charge, bot, coalesce((SELECT value FROM mark), ''), :now FROM refunded
)
UPDATE payments p
SET state = 'refunded', owed = coalesce(w.owed, 0),
    external_refund_at = CASE WHEN w.id IS NOT NULL THEN :now END
FROM payment LEFT JOIN wallet w ON true WHERE p.charge = payment.charge
RETURNING p.*;
