-- name: ensure_account
-- Return the account that a bot knows by an external id; create it if it is new.
INSERT INTO accounts (channel, bot, external_id, created_at) VALUES (:channel, :bot, :external_id, :now)
ON CONFLICT (channel, bot, external_id) DO NOTHING;
SELECT id FROM accounts WHERE channel = :channel AND bot = :bot AND external_id = :external_id;

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
-- low. With `repays`, a debt of the account is repaid from the amount in the same commit. A message is queued if the
-- entry will be inserted.
INSERT INTO kv (key, bot, value, at)
SELECT :message_key, '', :message, :now FROM accounts
WHERE id = :account_id AND (:debit <> 'available' OR available >= :amount) AND :message_key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM ledger WHERE key = :key);
INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
SELECT :key, id, :kind, :debit, :credit, :amount, :reason, :now FROM accounts
WHERE id = :account_id AND (:debit <> 'available' OR available >= :amount)
ON CONFLICT (key) DO NOTHING;
UPDATE accounts SET available = available + CASE WHEN :credit = 'available' THEN :amount ELSE -:amount END
WHERE id = :account_id AND changes() = 1  -- only if the entry was inserted
RETURNING id;
INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
SELECT 'repay:' || :key, id, 'repay', 'available', 'house', min(debt, :amount), :reason, :now FROM accounts
WHERE id = :account_id AND changes() = 1 AND :repays AND debt > 0;
UPDATE accounts SET available = available - min(debt, :amount), debt = debt - min(debt, :amount)
WHERE id = :account_id AND changes() = 1;

-- name: ledger_entry
-- Return the ledger entry with a key.
SELECT * FROM ledger WHERE key = :key;

-- name: ledger_entries
-- use: screen
-- Return the latest ledger entries of an account, newest first.
SELECT * FROM ledger WHERE account_id = :account_id ORDER BY at DESC, key DESC LIMIT :limit;
