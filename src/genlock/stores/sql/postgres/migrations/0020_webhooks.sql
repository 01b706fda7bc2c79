-- Webhooks of API clients, and the outbox of what is sent to them.

CREATE TABLE webhooks (
    id                     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id             bigint NOT NULL,
    public_id              text NOT NULL,
    url                    text NOT NULL,
    -- separated by spaces, with a space at both ends; a single space means all
    events                 text NOT NULL,
    description            text NOT NULL,
    enabled                boolean NOT NULL DEFAULT true,
    disabled_reason        text NOT NULL DEFAULT '',
    secret_number          integer NOT NULL DEFAULT 1,
    previous_secret_until  timestamptz,
    -- an instance sends its events until then, or it waits until then after a failure
    held_until             timestamptz NOT NULL,
    created_at             timestamptz NOT NULL,
    CONSTRAINT webhooks_public_id_once UNIQUE (public_id)
);
CREATE INDEX webhooks_account ON webhooks (account_id, id);

CREATE TABLE webhook_deliveries (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id     text NOT NULL,
    webhook_id    bigint NOT NULL,
    job_id        bigint,
    event         text NOT NULL,
    event_at      timestamptz NOT NULL,
    state         text NOT NULL DEFAULT 'pending',
    attempts      integer NOT NULL DEFAULT 0,
    due_at        timestamptz,
    last_status   integer,
    last_error    text NOT NULL DEFAULT '',
    delivered_at  timestamptz,
    CONSTRAINT webhook_deliveries_public_id_once UNIQUE (public_id),
    CONSTRAINT webhook_deliveries_state_known CHECK (state IN ('pending', 'delivered', 'failed')),
    CONSTRAINT webhook_deliveries_pending_means_due CHECK ((state = 'pending') = (due_at IS NOT NULL))
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_job ON webhook_deliveries (webhook_id, job_id, id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook_id, id);

CREATE OR REPLACE FUNCTION webhook_event(state text, delivery text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE
    WHEN state = 'running' THEN 'job.started'
    WHEN state = 'failed' THEN 'job.failed'
    WHEN state = 'cancelled' THEN 'job.canceled'
    WHEN state = 'expired' THEN 'job.expired'
    WHEN state = 'succeeded' AND delivery = 'delivered' THEN 'job.succeeded'
    WHEN state = 'succeeded' AND delivery IN ('undeliverable', 'unknown') THEN 'job.failed' END $$;

CREATE OR REPLACE FUNCTION record_webhook_event() RETURNS trigger LANGUAGE plpgsql AS
$$ DECLARE
    happened text := webhook_event(NEW.state, NEW.delivery);
    happened_at timestamptz := CASE WHEN happened = 'job.started' THEN NEW.submitted_at
        ELSE coalesce(NEW.delivered_at, NEW.ended_at) END;
BEGIN
    IF happened IS NOT NULL AND happened IS DISTINCT FROM webhook_event(OLD.state, OLD.delivery) THEN
        INSERT INTO webhook_deliveries (public_id, webhook_id, job_id, event, event_at, due_at)
        SELECT 'msg_' || replace(gen_random_uuid()::text, '-', ''), w.id, NEW.id, happened,
            coalesce(happened_at, NEW.created_at), coalesce(happened_at, NEW.created_at)
        FROM webhooks w
        WHERE w.account_id = NEW.account_id AND w.enabled
            AND (w.events = ' ' OR strpos(w.events, ' ' || happened || ' ') > 0);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER jobs_webhook_event AFTER UPDATE OF state, delivery ON jobs FOR EACH ROW
WHEN (NEW.api_key_id IS NOT NULL)
EXECUTE FUNCTION record_webhook_event();
