-- What users keep besides their orders: the gallery of results, favourite models, the last settings of each model.

-- when the user removed the result from the gallery and the history
ALTER TABLE jobs ADD COLUMN hidden_at INTEGER;

-- The gallery: delivered results by model. Only the commit of a delivery and its user's removal write to it.
CREATE INDEX jobs_results ON jobs (account_id, model, id)
    WHERE delivered_at IS NOT NULL AND hidden_at IS NULL AND (hold_state <> 'released' OR late = 1);

CREATE TABLE favourites (
    account_id  INTEGER NOT NULL,
    model       TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (account_id, model)
) STRICT;

-- The settings that an account last ordered a model with, JSON.
CREATE TABLE model_settings (
    account_id  INTEGER NOT NULL,
    model       TEXT NOT NULL,
    body        TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (account_id, model)
) STRICT;
