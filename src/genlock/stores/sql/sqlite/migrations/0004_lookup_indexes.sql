-- Indexes for lists that would otherwise scan all jobs.

-- An account's jobs by id: its history.
CREATE INDEX jobs_account ON jobs (account_id, id);
-- The few jobs that have not ended. `ended_at` is written once, so that no update of an open job touches this index.
CREATE INDEX jobs_open ON jobs (account_id, id) WHERE ended_at IS NULL;
CREATE INDEX jobs_cancelled ON jobs (account_id, ended_at) WHERE cancelled_by <> '';
CREATE INDEX accounts_external_id ON accounts (external_id);
CREATE INDEX free_runs_account ON free_runs (account_id, source, at);
CREATE INDEX profiles_created_at ON profiles (created_at);
