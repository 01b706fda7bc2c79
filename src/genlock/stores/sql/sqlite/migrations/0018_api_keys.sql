-- Keys of API clients, and which key an order was made with.

-- Keys of API clients. `spent` is what the orders of `spent_day` (days since 1970, UTC) cost that were not refunded.
CREATE TABLE api_keys (
    id            INTEGER PRIMARY KEY,
    account_id    INTEGER NOT NULL,
    name          TEXT NOT NULL,
    -- separated by spaces
    scopes        TEXT NOT NULL,
    -- the start of the secret
    shown         TEXT NOT NULL,
    secret_hash   TEXT NOT NULL,
    spend_limit   INTEGER,
    spent         INTEGER NOT NULL DEFAULT 0,
    spent_day     INTEGER NOT NULL DEFAULT 0,
    request_key   TEXT NOT NULL,
    author        TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    last_used_at  INTEGER,
    revoked_at    INTEGER,
    CONSTRAINT api_keys_secret_once UNIQUE (secret_hash),
    CONSTRAINT api_keys_request_once UNIQUE (request_key),
    CONSTRAINT api_keys_spent_not_negative CHECK (spent >= 0)
) STRICT;

CREATE INDEX api_keys_account ON api_keys (account_id, id);

ALTER TABLE jobs ADD COLUMN api_key_id INTEGER;

-- What an order cost counts against its key's limit only while it is held or charged.
CREATE TRIGGER jobs_spend_changed AFTER UPDATE OF hold_state ON jobs FOR EACH ROW
WHEN NEW.api_key_id IS NOT NULL AND (OLD.hold_state = 'released') <> (NEW.hold_state = 'released')
BEGIN
    UPDATE api_keys
    SET spent = max(spent + CASE WHEN NEW.hold_state = 'released' THEN -NEW.price ELSE NEW.price END, 0)
    WHERE id = NEW.api_key_id AND spent_day = NEW.created_at / 86400000000;
END;
