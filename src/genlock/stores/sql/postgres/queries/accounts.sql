-- name: ensure_account
-- Return the account that a bot knows by an external id; create it if it is new.
WITH added AS (
    INSERT INTO accounts (channel, bot, external_id, created_at)
    VALUES (:channel, :bot, :external_id, :now)
    ON CONFLICT (channel, bot, external_id) DO NOTHING
    RETURNING id
)
SELECT id FROM added
UNION ALL
SELECT id FROM accounts WHERE channel = :channel AND bot = :bot AND external_id = :external_id
LIMIT 1;

-- name: account
-- Return one account.
SELECT id, channel, bot, external_id, address FROM accounts WHERE id = :account_id;

-- name: set_account_address
-- Set where the channel reaches the user of an account.
UPDATE accounts SET address = :address WHERE id = :account_id AND address <> :address;

-- name: wallet
-- Return the balances of an account, and what it owes.
SELECT id AS account_id, available, held, debt FROM accounts WHERE id = :account_id;

-- name: transfer
-- Move money between an account and the house, once per key. No row: the key was used before, or the balance is too
-- low. With `repays`, a debt of the account is repaid from the amount in the same commit. A
-- message is queued in it, too.
WITH locked AS MATERIALIZED (
    SELECT id, available, CASE WHEN :repays::boolean THEN least(debt, :amount::bigint) ELSE 0 END AS repaid
    FROM accounts WHERE id = :account_id FOR NO KEY UPDATE
), line AS (
    INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
    SELECT :key, id, :kind, :debit, :credit, :amount::bigint, :reason, :now FROM locked
    WHERE :debit <> 'available' OR available >= :amount
    ON CONFLICT (key) DO NOTHING
    RETURNING account_id, credit, amount
), repayment AS (
    INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
    SELECT 'repay:' || :key, locked.id, 'repay', 'available', 'house', repaid, :reason, :now FROM locked, line
    WHERE repaid > 0
), queued AS (
    INSERT INTO kv (key, bot, value, at) SELECT :message_key, '', :message, :now FROM line
    WHERE :message_key::text IS NOT NULL
)
UPDATE accounts wallet
SET available = wallet.available + CASE WHEN line.credit = 'available' THEN line.amount ELSE -line.amount END
        - locked.repaid,
    debt = wallet.debt - locked.repaid
FROM line, locked WHERE wallet.id = line.account_id
RETURNING wallet.id;

-- name: ledger_entry
-- Return the ledger entry with a key.
SELECT * FROM ledger WHERE key = :key;

-- name: ledger_entries
-- use: screen
-- Return the latest ledger entries of an account, newest first.
SELECT * FROM ledger
WHERE account_id = :account_id ORDER BY at DESC, key DESC LIMIT :limit;
