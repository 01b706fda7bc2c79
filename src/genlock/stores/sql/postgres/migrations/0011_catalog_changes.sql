-- Edits of models by operators. The newest change of a model decides; the others are its history.
CREATE TABLE catalog_changes (
    id           bigint PRIMARY KEY,
    at           timestamptz NOT NULL,
    model        text NOT NULL,
    -- what is changed in the model, in the form of its table in the overlay file, as JSON
    before       text NOT NULL,
    after        text NOT NULL,
    author       text NOT NULL,
    request_key  text NOT NULL,
    -- the change that this one takes back
    undoes       bigint,
    CONSTRAINT catalog_changes_request_once UNIQUE (request_key)
);

CREATE INDEX catalog_changes_model ON catalog_changes (model, id);

-- The list of promo codes.
CREATE INDEX promos_created ON promos (created_at, code);
