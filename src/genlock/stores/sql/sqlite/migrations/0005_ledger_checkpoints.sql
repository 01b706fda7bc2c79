-- The sums of an account's ledger entries up to a time, so that the check of an account with many entries reads only
-- the newer ones.
CREATE TABLE ledger_checkpoints (
    account_id  INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    available   INTEGER NOT NULL,
    held        INTEGER NOT NULL
);
