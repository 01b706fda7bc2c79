-- name: add_payment
-- Record a payment.
INSERT INTO payments (charge, account_id, stars, amount, state, at)
VALUES (:charge, :account_id, :stars, :amount, 'paid', :now)
ON CONFLICT (charge) DO NOTHING RETURNING charge;

-- name: payment
-- Return one payment.
SELECT * FROM payments WHERE charge = :charge;

-- name: payments
-- use: operator
-- Return the payments of an account, newest first.
SELECT * FROM payments WHERE account_id = :account_id ORDER BY at DESC LIMIT :limit;

-- name: change_payment_state
-- Change the state of a payment, from a given state. A refund that has debited nothing is not counted.
UPDATE payments SET state = :state,
    refunds = refunds + CASE WHEN :state = 'refunding' THEN 1 WHEN :untaken THEN -1 ELSE 0 END
WHERE charge = :charge AND state = :before AND refunds = coalesce(:refunds, refunds) RETURNING refunds;
