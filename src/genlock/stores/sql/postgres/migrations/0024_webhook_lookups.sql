-- concurrently
-- Deliveries of an endpoint by state, and its tests, whatever waits for it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS webhook_deliveries_state ON webhook_deliveries (webhook_id, state, event_at, id);
-- A disabled endpoint gets tests only: they are found without reading the events that wait for it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS webhook_deliveries_test ON webhook_deliveries (webhook_id, due_at, id)
    WHERE due_at IS NOT NULL AND event = 'webhook.test';
