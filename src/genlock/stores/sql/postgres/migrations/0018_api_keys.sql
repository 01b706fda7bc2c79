-- Keys of API clients, and which key an order was made with.

-- Keys of API clients. `spent` is what the orders of `spent_day` (days since 1970, UTC) cost that were not refunded.
CREATE TABLE api_keys (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id    bigint NOT NULL,
    name          text NOT NULL,
    -- separated by spaces
    scopes        text NOT NULL,
    -- the start of the secret
    shown         text NOT NULL,
    secret_hash   text NOT NULL,
    spend_limit   bigint,
    spent         bigint NOT NULL DEFAULT 0,
    spent_day     bigint NOT NULL DEFAULT 0,
    request_key   text NOT NULL,
    author        text NOT NULL,
    created_at    timestamptz NOT NULL,
    last_used_at  timestamptz,
    revoked_at    timestamptz,
    CONSTRAINT api_keys_secret_once UNIQUE (secret_hash),
    CONSTRAINT api_keys_request_once UNIQUE (request_key),
    CONSTRAINT api_keys_spent_not_negative CHECK (spent >= 0)
) WITH (fillfactor = 50);

CREATE INDEX api_keys_account ON api_keys (account_id, id);

ALTER TABLE jobs ADD COLUMN api_key_id bigint;

CREATE OR REPLACE FUNCTION record_spend_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    UPDATE api_keys
    SET spent = greatest(spent + CASE WHEN NEW.hold_state = 'released' THEN -NEW.price ELSE NEW.price END, 0)
    WHERE id = NEW.api_key_id AND spent_day = floor(date_part('epoch', NEW.created_at) / 86400);
    RETURN NULL;
END $$;

-- What an order cost counts against its key's limit only while it is held or charged.
CREATE TRIGGER jobs_spend_changed AFTER UPDATE OF hold_state ON jobs FOR EACH ROW
WHEN (NEW.api_key_id IS NOT NULL AND (OLD.hold_state = 'released') <> (NEW.hold_state = 'released'))
EXECUTE FUNCTION record_spend_change();
