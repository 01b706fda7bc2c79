-- Secrets of webhooks as they are sealed with a key of the settings, and what endpoints answered.

-- '' in a row of an earlier version: the secret is derived from the bot's token until it is sealed.
ALTER TABLE webhooks ADD COLUMN secret text NOT NULL DEFAULT '';
-- the one before the last rotation
ALTER TABLE webhooks ADD COLUMN previous_secret text NOT NULL DEFAULT '';

-- the start of the last answer's body
ALTER TABLE webhook_deliveries ADD COLUMN last_answer text NOT NULL DEFAULT '';

-- A later event of a job is due not before an earlier one, so that those that wait for another are not read in vain.
CREATE OR REPLACE FUNCTION record_webhook_event() RETURNS trigger LANGUAGE plpgsql AS
$$ DECLARE
    happened text := webhook_event(NEW.state, NEW.delivery);
    happened_at timestamptz := CASE WHEN happened = 'job.started' THEN NEW.submitted_at
        ELSE coalesce(NEW.delivered_at, NEW.ended_at) END;
BEGIN
    IF happened IS NOT NULL AND happened IS DISTINCT FROM webhook_event(OLD.state, OLD.delivery) THEN
        INSERT INTO webhook_deliveries (public_id, webhook_id, job_id, event, event_at, due_at)
        SELECT 'msg_' || replace(gen_random_uuid()::text, '-', ''), w.id, NEW.id, happened,
            coalesce(happened_at, NEW.created_at),
            -- not before an earlier event of the job that is still to be sent
            greatest(coalesce(happened_at, NEW.created_at), (
                SELECT max(d.due_at) FROM webhook_deliveries d
                WHERE d.webhook_id = w.id AND d.job_id = NEW.id AND d.due_at IS NOT NULL))
        FROM webhooks w
        WHERE w.account_id = NEW.account_id AND w.enabled
            AND (w.events = ' ' OR strpos(w.events, ' ' || happened || ' ') > 0);
    END IF;
    RETURN NULL;
END $$;
