-- concurrently
-- An account's jobs of API keys by id.
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_api ON jobs (account_id, id) WHERE api_key_id IS NOT NULL;
