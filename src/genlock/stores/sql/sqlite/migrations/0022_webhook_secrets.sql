-- Secrets of webhooks as they are sealed with a key of the settings, and what endpoints answered.

-- '' in a row of an earlier version: the secret is derived from the bot's token until it is sealed.
ALTER TABLE webhooks ADD COLUMN secret TEXT NOT NULL DEFAULT '';
-- the one before the last rotation
ALTER TABLE webhooks ADD COLUMN previous_secret TEXT NOT NULL DEFAULT '';

-- the start of the last answer's body
ALTER TABLE webhook_deliveries ADD COLUMN last_answer TEXT NOT NULL DEFAULT '';

-- A later event of a job is due not before an earlier one, so that those that wait for another are not read in vain.
DROP TRIGGER jobs_webhook_event;
CREATE TRIGGER jobs_webhook_event AFTER UPDATE OF state, delivery ON jobs FOR EACH ROW
WHEN NEW.api_key_id IS NOT NULL AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = NEW.account_id AND enabled)
BEGIN
    INSERT INTO webhook_deliveries (public_id, webhook_id, job_id, event, event_at, due_at)
    SELECT 'msg_' || lower(hex(randomblob(16))), w.id, NEW.id, e.happened, e.at,
        -- not before an earlier event of the job that is still to be sent
        max(e.at, coalesce((SELECT max(d.due_at) FROM webhook_deliveries d
            WHERE d.webhook_id = w.id AND d.job_id = NEW.id AND d.due_at IS NOT NULL), e.at))
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
