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
-- Return the payments of an account, newest first.
SELECT * FROM payments WHERE account_id = :account_id ORDER BY at DESC LIMIT :limit;

-- name: begin_refund
-- Debit the credits of a payment and record that its refund is asked for. No row: it is not in the state `paid`, or the
-- balance is too low.
INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
SELECT 'unstars:' || p.charge || ':' || p.refunds, p.account_id, 'debit', 'available', 'house', p.amount, :reason, :now
FROM payments p JOIN accounts a ON a.id = p.account_id
WHERE p.charge = :charge AND p.state = 'paid' AND a.available >= p.amount;
UPDATE accounts SET available = available - p.amount
FROM payments p WHERE p.charge = :charge AND accounts.id = p.account_id AND changes() = 1;
UPDATE payments SET state = 'refunding', refunds = refunds + 1 WHERE charge = :charge AND changes() = 1
RETURNING *;

-- name: undo_refund
-- Return the credits of a refund attempt that the channel refused, once; a debt is repaid from them.
INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
SELECT 'restars:' || charge || ':' || refunds, account_id, 'refund', 'house', 'available', amount, :reason, :now
FROM payments WHERE charge = :charge AND state = 'refunding' AND refunds = :refunds;
UPDATE payments SET state = 'paid' WHERE charge = :charge AND changes() = 1;
UPDATE accounts SET available = available + p.amount
FROM payments p WHERE p.charge = :charge AND accounts.id = p.account_id AND changes() = 1
RETURNING accounts.id;
INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
SELECT 'repay:restars:' || p.charge || ':' || p.refunds, a.id, 'repay', 'available', 'house', min(a.debt, p.amount),
    :reason, :now
FROM payments p JOIN accounts a ON a.id = p.account_id
WHERE p.charge = :charge AND changes() = 1 AND a.debt > 0;
UPDATE accounts SET available = available - min(debt, p.amount), debt = debt - min(debt, p.amount)
FROM payments p WHERE p.charge = :charge AND accounts.id = p.account_id AND changes() = 1;

-- name: finish_refund
-- Record that the channel has refunded a payment, and that its user is to be told: the mark of the open refund becomes
-- that of an ended one.
UPDATE payments SET state = 'refunded' WHERE charge = :charge AND state = 'refunding' RETURNING charge;
INSERT INTO kv (key, bot, value, at)
SELECT 'chat:refunded:' || p.charge, a.bot, coalesce(k.value, ''), :now
FROM payments p JOIN accounts a ON a.id = p.account_id LEFT JOIN kv k ON k.key = 'chat:refund:' || p.charge AND k.bot = a.bot
WHERE p.charge = :charge AND changes() = 1;
DELETE FROM kv
WHERE key = 'chat:refund:' || :charge AND changes() = 1
    AND bot = (SELECT a.bot FROM payments p JOIN accounts a ON a.id = p.account_id WHERE p.charge = :charge);

-- name: book_external_refund
-- Book a refund that the channel made: take the credits that are there and record the rest as a debt. If our own refund
-- of this payment is under way, its credits were debited already. That the user is to be told is recorded as in
-- `finish_refund`. No row: the payment is unknown or was refunded before.
INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
SELECT 'chargeback:' || p.charge, p.account_id, 'debit', 'available', 'house', min(a.available, p.amount), :reason, :now
FROM payments p JOIN accounts a ON a.id = p.account_id
WHERE p.charge = :charge AND p.state = 'paid' AND a.available > 0;
UPDATE payments
SET state = 'refunded', owed = amount - min(amount, a.available), external_refund_at = :now
FROM accounts a WHERE payments.charge = :charge AND payments.state = 'paid' AND a.id = payments.account_id;
UPDATE accounts SET available = available - (p.amount - p.owed), debt = debt + p.owed
FROM payments p WHERE p.charge = :charge AND accounts.id = p.account_id AND changes() = 1;
UPDATE payments SET state = 'refunded' WHERE charge = :charge AND (state = 'refunding' OR changes() = 1)
RETURNING *;
INSERT INTO kv (key, bot, value, at)
SELECT 'chat:refunded:' || p.charge, a.bot, coalesce(k.value, ''), :now
FROM payments p JOIN accounts a ON a.id = p.account_id LEFT JOIN kv k ON k.key = 'chat:refund:' || p.charge AND k.bot = a.bot
WHERE p.charge = :charge AND changes() = 1;
DELETE FROM kv
WHERE key = 'chat:refund:' || :charge AND changes() = 1
    AND bot = (SELECT a.bot FROM payments p JOIN accounts a ON a.id = p.account_id WHERE p.charge = :charge);
