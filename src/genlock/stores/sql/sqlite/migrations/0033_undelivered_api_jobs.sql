-- The index of results that are being delivered is for clients of the API, so it has only their jobs. It no longer depends
-- on `state` and `delivery`: an update that changes nothing else of an indexed job writes to no index.
CREATE INDEX jobs_api_undelivered ON jobs (account_id, id) WHERE api_key_id IS NOT NULL AND ended_at IS NOT NULL AND (due_at IS NOT NULL OR attention_reason IS NOT NULL);
DROP INDEX jobs_being_delivered;
