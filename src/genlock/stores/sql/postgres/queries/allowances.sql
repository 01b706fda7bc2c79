-- name: transfer_within_allowance
-- Move money between an account and the house, once per key, if the total that an operator has moved today stays within
-- a limit. The total is compared again when its row is locked: if another transaction changed it, the caller retries.
-- A message is queued in the same commit.
WITH before AS MATERIALIZED (
    SELECT (SELECT value FROM kv WHERE key = :allowance AND bot = '') AS value,
        floor(extract(epoch FROM :now) / 86400)::bigint::text AS today
), total AS MATERIALIZED (
    SELECT value, today,
        CASE WHEN split_part(value, ':', 1) = today THEN split_part(value, ':', 2)::bigint ELSE 0 END AS used
    FROM before
), wallet AS MATERIALIZED (
    SELECT id, available FROM accounts WHERE id = :account_id FOR NO KEY UPDATE
), due AS MATERIALIZED (
    SELECT wallet.id, total.value, total.today, total.used FROM wallet, total
    WHERE NOT EXISTS (SELECT FROM ledger WHERE key = :key) AND total.used + :amount::bigint <= :most::bigint
        AND (:debit <> 'available' OR wallet.available >= :amount)
), counted AS (
    INSERT INTO kv AS k (key, bot, value, at) SELECT :allowance, '', today || ':' || (used + :amount), :now FROM due
    ON CONFLICT (key, bot) DO UPDATE SET value = excluded.value, at = excluded.at
    WHERE k.value = (SELECT value FROM due)
    RETURNING k.key
), line AS (
    INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
    SELECT :key, due.id, :kind, :debit, :credit, :amount, :reason, :now FROM due, counted
    RETURNING account_id, credit, amount
), queued AS (
    INSERT INTO kv (key, bot, value, at) SELECT :message_key, '', :message, :now FROM line
    WHERE :message_key::text IS NOT NULL
), moved AS (
    UPDATE accounts a SET available = a.available + CASE WHEN line.credit = 'available' THEN line.amount ELSE -line.amount END
    FROM line WHERE a.id = line.account_id
    RETURNING a.id
)
SELECT EXISTS (SELECT FROM moved) AS moved, total.used, (SELECT available FROM wallet) AS available,
    EXISTS (SELECT FROM due) AND NOT EXISTS (SELECT FROM moved) AS retry
FROM total;

-- name: use_allowance
-- Count an amount as moved by an operator today, if the total stays within a limit. A negative amount is taken back. If
-- another transaction changed the total meanwhile, the caller retries.
WITH before AS MATERIALIZED (
    SELECT (SELECT value FROM kv WHERE key = :allowance AND bot = '') AS value,
        floor(extract(epoch FROM :now) / 86400)::bigint::text AS today
), total AS MATERIALIZED (
    SELECT value, today,
        CASE WHEN split_part(value, ':', 1) = today THEN split_part(value, ':', 2)::bigint ELSE 0 END AS used
    FROM before
), counted AS (
    INSERT INTO kv AS k (key, bot, value, at)
    SELECT :allowance, '', today || ':' || greatest(0, used + :amount::bigint), :now FROM total
    WHERE used + :amount <= :most::bigint
    ON CONFLICT (key, bot) DO UPDATE SET value = excluded.value, at = excluded.at
    WHERE k.value = (SELECT value FROM total)
    RETURNING k.key
)
SELECT EXISTS (SELECT FROM counted) AS counted, used,
    used + :amount <= :most AND NOT EXISTS (SELECT FROM counted) AS retry
FROM total;

-- name: allowance_used
-- Return what an operator has moved today.
SELECT value, floor(extract(epoch FROM :now) / 86400)::bigint::text AS today FROM kv WHERE key = :allowance AND bot = '';
