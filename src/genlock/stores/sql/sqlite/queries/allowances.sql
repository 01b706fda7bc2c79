-- name: transfer_within_allowance
-- Move money between an account and the house, once per key, if the total that an operator has moved today stays within
-- a limit. A message is queued in the same commit.
INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
SELECT :key, a.id, :kind, :debit, :credit, :amount, :reason, :now
FROM accounts a LEFT JOIN kv k ON k.key = :allowance AND k.bot = ''
WHERE a.id = :account_id AND (:debit <> 'available' OR a.available >= :amount)
    AND :amount + CASE WHEN k.value LIKE (:now / 86400000000) || ':%'
        THEN CAST(substr(k.value, instr(k.value, ':') + 1) AS INTEGER) ELSE 0 END <= :most
ON CONFLICT (key) DO NOTHING;
UPDATE accounts SET available = available + CASE WHEN :credit = 'available' THEN :amount ELSE -:amount END
WHERE id = :account_id AND changes() = 1;  -- only if the entry was inserted
INSERT INTO kv (key, bot, value, at)
SELECT :allowance, '', (:now / 86400000000) || ':' || (:amount + coalesce((
    SELECT CAST(substr(value, instr(value, ':') + 1) AS INTEGER) FROM kv
    WHERE key = :allowance AND bot = '' AND value LIKE (:now / 86400000000) || ':%'), 0)), :now
WHERE changes() = 1
UNION ALL SELECT :message_key, '', :message, :now WHERE changes() = 1 AND :message_key IS NOT NULL
ON CONFLICT (key, bot) DO UPDATE SET value = excluded.value, at = excluded.at;
SELECT changes() > 0 AS moved, 0 AS retry, (SELECT available FROM accounts WHERE id = :account_id) AS available,
    coalesce((SELECT CAST(substr(value, instr(value, ':') + 1) AS INTEGER) FROM kv
              WHERE key = :allowance AND bot = '' AND value LIKE (:now / 86400000000) || ':%'), 0) AS used;

-- name: use_allowance
-- Count an amount as moved by an operator today, if the total stays within a limit. A negative amount is taken back.
INSERT INTO kv (key, bot, value, at)
SELECT :allowance, '', (:now / 86400000000) || ':' || max(0, :amount + used), :now
FROM (SELECT coalesce((
    SELECT CAST(substr(value, instr(value, ':') + 1) AS INTEGER) FROM kv
    WHERE key = :allowance AND bot = '' AND value LIKE (:now / 86400000000) || ':%'), 0) AS used)
WHERE :amount + used <= :most
ON CONFLICT (key, bot) DO UPDATE SET value = excluded.value, at = excluded.at;
SELECT changes() = 1 AS counted, coalesce((
    SELECT CAST(substr(value, instr(value, ':') + 1) AS INTEGER) FROM kv
    WHERE key = :allowance AND bot = '' AND value LIKE (:now / 86400000000) || ':%'), 0) AS used, 0 AS retry;

-- name: allowance_used
-- Return what an operator has moved today.
SELECT value, CAST(:now / 86400000000 AS TEXT) AS today FROM kv WHERE key = :allowance AND bot = '';
