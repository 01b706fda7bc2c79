-- name: api_jobs_by_id
-- reads by key
-- Return jobs that were ordered with an API key.
SELECT j.*, :now AS read_at FROM json_each(:items) i JOIN jobs j ON j.id = i.value ->> 'job_id'
WHERE j.api_key_id IS NOT NULL;

-- name: api_job_versions
-- Return what clients see change of jobs that were ordered with an API key.
SELECT j.id, j.state, j.delivery, j.hold_state, j.late FROM json_each(:items) i JOIN jobs j ON j.id = i.value ->> 'job_id'
WHERE j.api_key_id IS NOT NULL;

-- name: account_api_jobs
-- Return the jobs that an account ordered with its API keys, newest first.
SELECT *, :now AS read_at FROM jobs
WHERE account_id = :account_id AND id < :before AND api_key_id IS NOT NULL ORDER BY account_id DESC, id DESC LIMIT :limit;

-- name: account_api_jobs_without_end
-- Return what clients see change of an account's jobs of API keys whose end they cannot see yet, newest first: those that
-- have not ended, or whose result is not delivered. The + keeps the planner from reading all jobs of API keys of the account.
SELECT id, state, delivery, hold_state, late FROM (
    SELECT id, api_key_id, state, delivery, hold_state, late FROM jobs WHERE account_id = :account_id AND ended_at IS NULL
    UNION ALL
    SELECT id, api_key_id, state, delivery, hold_state, late FROM jobs
    WHERE account_id = :account_id AND api_key_id IS NOT NULL AND ended_at IS NOT NULL
        AND (due_at IS NOT NULL OR attention_reason IS NOT NULL)
        AND state = 'succeeded' AND delivery IN ('pending', 'sending')
) j
WHERE +api_key_id IS NOT NULL ORDER BY id DESC LIMIT :limit;

-- name: newest_api_job_between
-- Return the job of an account with the greatest request key between two.
SELECT *, :now AS read_at FROM jobs
WHERE account_id = :account_id AND request_key > :first AND request_key < :last AND api_key_id IS NOT NULL
ORDER BY account_id DESC, request_key DESC LIMIT 1;

-- name: api_jobs_after
-- Return the jobs of API keys that an account ordered after a job, oldest first.
SELECT *, :now AS read_at FROM jobs
WHERE account_id = :account_id AND id > :after AND api_key_id IS NOT NULL ORDER BY account_id, id LIMIT :limit;
