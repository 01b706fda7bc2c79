-- Which instance sends the events of an endpoint, and which endpoints are slow or failing; indexes for lists by time and
-- state, and for the tests of disabled endpoints.

ALTER TABLE webhooks ADD COLUMN held_by TEXT NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN failing_since INTEGER;
ALTER TABLE webhooks ADD COLUMN slow INTEGER NOT NULL DEFAULT 0;
CREATE INDEX webhooks_held ON webhooks (held_by) WHERE held_by <> '';

CREATE INDEX webhook_deliveries_test ON webhook_deliveries (webhook_id, due_at)
    WHERE due_at IS NOT NULL AND event = 'webhook.test';
CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (webhook_id, event_at, id);
CREATE INDEX webhook_deliveries_state ON webhook_deliveries (webhook_id, state, event_at, id);
DROP INDEX webhook_deliveries_webhook;
