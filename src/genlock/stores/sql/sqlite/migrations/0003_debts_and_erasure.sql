-- What users owe after a refund that Telegram made without us.

-- credits that were refunded in Stars after they had been spent; the next paid top-up repays them
ALTER TABLE accounts ADD COLUMN debt INTEGER NOT NULL DEFAULT 0
    CONSTRAINT accounts_debt_not_negative CHECK (debt >= 0);
-- the part of the amount that the user no longer had when Telegram refunded the payment
ALTER TABLE payments ADD COLUMN owed INTEGER NOT NULL DEFAULT 0
    CONSTRAINT payments_owed_within_amount CHECK (owed BETWEEN 0 AND amount);
-- when a refund that was not made by an operator of ours was booked
ALTER TABLE payments ADD COLUMN external_refund_at INTEGER;

CREATE INDEX accounts_debt ON accounts (id) WHERE debt > 0;
CREATE INDEX payments_owed ON payments (account_id) WHERE owed > 0;
CREATE INDEX payments_external_refund ON payments (external_refund_at) WHERE external_refund_at IS NOT NULL;
