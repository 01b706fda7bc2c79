-- Edits of models by operators. The newest change of a model decides; the others are its history.
CREATE TABLE catalog_changes (
    id           INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    model        TEXT NOT NULL,
    -- what is changed in the model, in the form of its table in the overlay file, as JSON
    before       TEXT NOT NULL,
    after        TEXT NOT NULL,
    author       TEXT NOT NULL,
    request_key  TEXT NOT NULL,
    -- the change that this one takes back
    undoes       INTEGER,
    CONSTRAINT catalog_changes_request_once UNIQUE (request_key)
) STRICT;

CREATE INDEX catalog_changes_model ON catalog_changes (model, id);

-- The list of promo codes.
CREATE INDEX promos_created ON promos (created_at, code);
