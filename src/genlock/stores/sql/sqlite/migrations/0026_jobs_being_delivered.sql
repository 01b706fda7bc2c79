-- An account's jobs whose result is being delivered, for clients that begin to watch them then.
CREATE INDEX jobs_being_delivered ON jobs (account_id, id) WHERE state = 'succeeded' AND delivery IN ('pending', 'sending');
