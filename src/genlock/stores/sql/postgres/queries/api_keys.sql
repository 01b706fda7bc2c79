-- name: add_api_key
-- use: operator
-- Store a key of an account, once per request key. Returns the key that is stored under it.
WITH added AS (
    INSERT INTO api_keys (
        account_id, name, scopes, shown, secret_hash, spend_limit, request_key, author, created_at)
    VALUES (:account_id, :name, :scopes, :shown, :secret_hash, :spend_limit, :request_key, :author, :now)
    ON CONFLICT (request_key) DO NOTHING
    RETURNING *
), k AS (
    SELECT * FROM added UNION ALL SELECT * FROM api_keys WHERE request_key = :request_key
)
SELECT
    k.id, k.account_id, k.name, k.scopes, k.shown, k.secret_hash, k.spend_limit,
    CASE WHEN k.spent_day = floor(extract(epoch FROM :now) / 86400) THEN k.spent ELSE 0 END AS spent_today, k.author,
    k.created_at, k.last_used_at, k.revoked_at, p.banned_at IS NOT NULL AS banned, :now AS read_at
FROM k LEFT JOIN profiles p ON p.account_id = k.account_id;

-- name: api_keys_by_secret
-- Return the keys with these secrets that are not revoked.
SELECT
    k.id, k.account_id, k.name, k.scopes, k.shown, k.secret_hash, k.spend_limit,
    CASE WHEN k.spent_day = floor(extract(epoch FROM :now) / 86400) THEN k.spent ELSE 0 END AS spent_today, k.author,
    k.created_at, k.last_used_at, k.revoked_at, p.banned_at IS NOT NULL AS banned, :now AS read_at
FROM unnest(:secret_hash::text[]) AS i (secret_hash) JOIN api_keys k ON k.secret_hash = i.secret_hash
LEFT JOIN profiles p ON p.account_id = k.account_id
WHERE k.revoked_at IS NULL;

-- name: api_keys_with_jobs
-- Return keys that are not revoked, each with a job of its account that was ordered with an API key.
SELECT
    k.id AS key_id, k.account_id AS key_account_id, k.name AS key_name, k.scopes AS key_scopes, k.shown AS key_shown,
    k.secret_hash AS key_secret_hash, k.spend_limit AS key_spend_limit,
    CASE WHEN k.spent_day = floor(extract(epoch FROM :now) / 86400) THEN k.spent ELSE 0 END AS key_spent_today,
    k.author AS key_author, k.created_at AS key_created_at, k.last_used_at AS key_last_used_at,
    k.revoked_at AS key_revoked_at, p.banned_at IS NOT NULL AS key_banned, :now AS read_at,
    i.job_id AS wanted, j.*
FROM unnest(:secret_hash::text[], :job_id::bigint[]) AS i (secret_hash, job_id)
JOIN api_keys k ON k.secret_hash = i.secret_hash
LEFT JOIN profiles p ON p.account_id = k.account_id
LEFT JOIN jobs j ON j.id = i.job_id AND j.account_id = k.account_id AND j.api_key_id IS NOT NULL
WHERE k.revoked_at IS NULL;

-- name: api_keys_with_orders
-- Return keys that are not revoked, each with what an order needs: the balance of its account, its number of open jobs of
-- API keys, and the job that the idempotency key was used for.
SELECT
    k.id AS key_id, k.account_id AS key_account_id, k.name AS key_name, k.scopes AS key_scopes, k.shown AS key_shown,
    k.secret_hash AS key_secret_hash, k.spend_limit AS key_spend_limit,
    CASE WHEN k.spent_day = floor(extract(epoch FROM :now) / 86400) THEN k.spent ELSE 0 END AS key_spent_today,
    k.author AS key_author, k.created_at AS key_created_at, k.last_used_at AS key_last_used_at,
    k.revoked_at AS key_revoked_at, p.banned_at IS NOT NULL AS key_banned, :now AS read_at,
    i.request_key AS wanted, wallet.available, wallet.open_api_jobs,
    j.*
FROM unnest(:secret_hash::text[], :request_key::text[]) AS i (secret_hash, request_key)
JOIN api_keys k ON k.secret_hash = i.secret_hash
JOIN accounts wallet ON wallet.id = k.account_id
LEFT JOIN profiles p ON p.account_id = k.account_id
LEFT JOIN jobs j ON j.account_id = k.account_id AND j.request_key = i.request_key
WHERE k.revoked_at IS NULL;

-- name: touch_api_key
-- Record that a key is used, if that was not recorded within the last minute.
UPDATE api_keys SET last_used_at = :now WHERE id = :id AND (last_used_at IS NULL OR last_used_at <= :now - interval '1 minute');

-- name: api_key
-- use: operator
-- Return one key. What it has spent today counts as in `accept_job`.
SELECT
    k.id, k.account_id, k.name, k.scopes, k.shown, k.secret_hash, k.spend_limit,
    CASE WHEN k.spent_day - floor(extract(epoch FROM :now) / 86400) IN (0, 1) THEN k.spent ELSE 0 END AS spent_today, k.author,
    k.created_at, k.last_used_at, k.revoked_at, p.banned_at IS NOT NULL AS banned, :now AS read_at
FROM api_keys k LEFT JOIN profiles p ON p.account_id = k.account_id WHERE k.id = :id;

-- name: newest_api_keys
-- use: operator
-- Return the keys of all accounts, newest first.
SELECT
    k.id, k.account_id, k.name, k.scopes, k.shown, k.secret_hash, k.spend_limit,
    CASE WHEN k.spent_day = floor(extract(epoch FROM :now) / 86400) THEN k.spent ELSE 0 END AS spent_today, k.author,
    k.created_at, k.last_used_at, k.revoked_at, p.banned_at IS NOT NULL AS banned, :now AS read_at
FROM api_keys k LEFT JOIN profiles p ON p.account_id = k.account_id WHERE k.id < :before ORDER BY k.id DESC LIMIT :limit;

-- name: account_api_keys
-- use: screen
-- Return the keys of an account, newest first. An array as in `account_jobs`.
SELECT
    k.id, k.account_id, k.name, k.scopes, k.shown, k.secret_hash, k.spend_limit,
    CASE WHEN k.spent_day = floor(extract(epoch FROM :now) / 86400) THEN k.spent ELSE 0 END AS spent_today, k.author,
    k.created_at, k.last_used_at, k.revoked_at, p.banned_at IS NOT NULL AS banned, :now AS read_at
FROM api_keys k LEFT JOIN profiles p ON p.account_id = k.account_id
WHERE k.account_id = ANY (ARRAY[:account_id::bigint]) AND k.id < :before ORDER BY k.account_id DESC, k.id DESC LIMIT :limit;

-- name: revoke_api_key
-- use: screen
-- Revoke a key, if it is not revoked and, where an account is given, belongs to it.
UPDATE api_keys SET revoked_at = :now
WHERE id = :id AND revoked_at IS NULL AND account_id = coalesce(:account_id::bigint, account_id)
RETURNING id, account_id, name, scopes, shown, secret_hash, spend_limit,
    CASE WHEN spent_day = floor(extract(epoch FROM :now) / 86400) THEN spent ELSE 0 END AS spent_today, author,
    created_at, last_used_at, revoked_at, false AS banned, :now AS read_at;
