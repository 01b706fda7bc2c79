-- Which instance sends the events of an endpoint, and which endpoints are slow or failing.

ALTER TABLE webhooks ADD COLUMN held_by TEXT NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN failing_since INTEGER;
ALTER TABLE webhooks ADD COLUMN slow INTEGER NOT NULL DEFAULT 0;
CREATE INDEX webhooks_held ON webhooks (held_by) WHERE held_by <> '';
