-- Which instance sends the events of an endpoint, and which endpoints are slow or failing.

ALTER TABLE webhooks ADD COLUMN held_by text NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN failures integer NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN failing_since timestamptz;
ALTER TABLE webhooks ADD COLUMN slow boolean NOT NULL DEFAULT false;
CREATE INDEX webhooks_held ON webhooks (held_by) WHERE held_by <> '';
