-- concurrently
-- What users keep besides their orders: the gallery of results, favourite models, the last settings of each model.

-- when the user removed the result from the gallery and the history
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS hidden_at timestamptz;

-- The gallery: delivered results by model. Only the commit of a delivery and its user's removal write to it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_results ON jobs (account_id, model, id)
    WHERE delivered_at IS NOT NULL AND hidden_at IS NULL AND (hold_state <> 'released' OR late);

CREATE TABLE IF NOT EXISTS favourites (
    account_id  bigint NOT NULL,
    model       text NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (account_id, model)
);

-- The settings that an account last ordered a model with, JSON.
CREATE TABLE IF NOT EXISTS model_settings (
    account_id  bigint NOT NULL,
    model       text NOT NULL,
    body        text NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (account_id, model)
);
