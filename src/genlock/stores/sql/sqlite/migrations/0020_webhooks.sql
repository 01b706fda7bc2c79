-- Webhooks of API clients, and the outbox of what is sent to them.

CREATE TABLE webhooks (
    id                     INTEGER PRIMARY KEY,
    account_id             INTEGER NOT NULL,
    public_id              TEXT NOT NULL,
    url                    TEXT NOT NULL,
    -- separated by spaces, with a space at both ends; a single space means all
    events                 TEXT NOT NULL,
    description            TEXT NOT NULL,
    enabled                INTEGER NOT NULL DEFAULT 1,
    disabled_reason        TEXT NOT NULL DEFAULT '',
    secret_number          INTEGER NOT NULL DEFAULT 1,
    previous_secret_until  INTEGER,
    -- an instance sends its events until then, or it waits until then after a failure
    held_until             INTEGER NOT NULL,
    created_at             INTEGER NOT NULL,
    CONSTRAINT webhooks_public_id_once UNIQUE (public_id)
) STRICT;
CREATE INDEX webhooks_account ON webhooks (account_id, id);

CREATE TABLE webhook_deliveries (
    id            INTEGER PRIMARY KEY,
    public_id     TEXT NOT NULL,
    webhook_id    INTEGER NOT NULL,
    job_id        INTEGER,
    event         TEXT NOT NULL,
    event_at      INTEGER NOT NULL,
    state         TEXT NOT NULL DEFAULT 'pending',
    attempts      INTEGER NOT NULL DEFAULT 0,
    due_at        INTEGER,
    last_status   INTEGER,
    last_error    TEXT NOT NULL DEFAULT '',
    delivered_at  INTEGER,
    CONSTRAINT webhook_deliveries_public_id_once UNIQUE (public_id),
    CONSTRAINT webhook_deliveries_state_known CHECK (state IN ('pending', 'delivered', 'failed')),
    CONSTRAINT webhook_deliveries_pending_means_due CHECK ((state = 'pending') = (due_at IS NOT NULL))
) STRICT;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_job ON webhook_deliveries (webhook_id, job_id, id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook_id, id);

CREATE TRIGGER jobs_webhook_event AFTER UPDATE OF state, delivery ON jobs FOR EACH ROW
WHEN NEW.api_key_id IS NOT NULL AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = NEW.account_id AND enabled)
BEGIN
    INSERT INTO webhook_deliveries (public_id, webhook_id, job_id, event, event_at, due_at)
    SELECT 'msg_' || lower(hex(randomblob(16))), w.id, NEW.id, e.happened, e.at, e.at
    FROM (
        SELECT happened, earlier,
            coalesce(CASE WHEN happened = 'job.started' THEN NEW.submitted_at
                ELSE coalesce(NEW.delivered_at, NEW.ended_at) END, NEW.created_at) AS at
        FROM (
            SELECT CASE
                    WHEN NEW.state = 'running' THEN 'job.started'
                    WHEN NEW.state = 'failed' THEN 'job.failed'
                    WHEN NEW.state = 'cancelled' THEN 'job.canceled'
                    WHEN NEW.state = 'expired' THEN 'job.expired'
                    WHEN NEW.state = 'succeeded' AND NEW.delivery = 'delivered' THEN 'job.succeeded'
                    WHEN NEW.state = 'succeeded' AND NEW.delivery IN ('undeliverable', 'unknown') THEN 'job.failed'
                END AS happened,
                CASE
                    WHEN OLD.state = 'running' THEN 'job.started'
                    WHEN OLD.state = 'failed' THEN 'job.failed'
                    WHEN OLD.state = 'cancelled' THEN 'job.canceled'
                    WHEN OLD.state = 'expired' THEN 'job.expired'
                    WHEN OLD.state = 'succeeded' AND OLD.delivery = 'delivered' THEN 'job.succeeded'
                    WHEN OLD.state = 'succeeded' AND OLD.delivery IN ('undeliverable', 'unknown') THEN 'job.failed'
                END AS earlier
        )
    ) e JOIN webhooks w ON w.account_id = NEW.account_id AND w.enabled
        AND (w.events = ' ' OR instr(w.events, ' ' || e.happened || ' ') > 0)
    WHERE e.happened IS NOT NULL AND e.happened IS NOT e.earlier;
END;
