-- name: add_favourite
-- Add a favourite model unless the account has as many as it may have; return it if it is one now.
INSERT INTO favourites (account_id, model, at)
SELECT :account_id::bigint, :model::text, :now
WHERE (SELECT count(*) FROM favourites WHERE account_id = :account_id AND model <> :model) < :limit
ON CONFLICT (account_id, model) DO UPDATE SET model = excluded.model
RETURNING model;

-- name: remove_favourite
-- Remove a favourite model.
DELETE FROM favourites WHERE account_id = :account_id AND model = :model;

-- name: favourites
-- use: screen
-- Return the favourite models of an account, in the order in which they were added.
SELECT model FROM favourites WHERE account_id = :account_id ORDER BY at, model;

-- name: wallet_and_favourites
-- use: screen
-- Return the balances of an account, what it owes, and its favourite models in the order in which they were added.
SELECT a.id AS account_id, a.available, a.held, a.debt,
    ARRAY(SELECT f.model FROM favourites f WHERE f.account_id = a.id ORDER BY f.at, f.model) AS favourites
FROM accounts a WHERE a.id = :account_id;

-- name: save_model_settings
-- Write the settings that an account last ordered a model with; those of the models used least lately are deleted.
WITH saved AS (
    INSERT INTO model_settings (account_id, model, body, at) VALUES (:account_id, :model, :body, :now)
    ON CONFLICT (account_id, model) DO UPDATE SET body = excluded.body, at = excluded.at
)
DELETE FROM model_settings WHERE account_id = :account_id AND model IN (
    SELECT model FROM model_settings WHERE account_id = :account_id AND model <> :model
    ORDER BY at DESC, model OFFSET :limit::bigint - 1);

-- name: model_settings
-- use: screen
-- Return the settings that an account last ordered a model with.
SELECT body FROM model_settings WHERE account_id = :account_id AND model = :model;

-- name: delete_model_settings
-- Delete the settings of a model.
DELETE FROM model_settings WHERE account_id = :account_id AND model = :model;
