-- name: api_jobs_by_id
-- Return jobs that were ordered with an API key.
SELECT j.*, :now AS read_at FROM unnest(:job_id::bigint[]) AS i (job_id) JOIN jobs j ON j.id = i.job_id
WHERE j.api_key_id IS NOT NULL;

-- name: api_job_versions
-- Return what clients see change of jobs that were ordered with an API key.
SELECT j.id, j.state, j.delivery, j.hold_state, j.late FROM unnest(:job_id::bigint[]) AS i (job_id) JOIN jobs j ON j.id = i.job_id
WHERE j.api_key_id IS NOT NULL;

-- name: account_api_jobs
-- Return the jobs that an account ordered with its API keys, newest first. An array as in `account_jobs`.
SELECT *, :now AS read_at FROM jobs
WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND id < :before AND api_key_id IS NOT NULL
ORDER BY account_id DESC, id DESC LIMIT :limit;

-- name: account_api_jobs_without_end
-- Return what clients see change of an account's jobs of API keys whose end they cannot see yet, newest first: those that
-- have not ended, or whose result is not delivered.
SELECT id, state, delivery, hold_state, late FROM (
    SELECT id, api_key_id, state, delivery, hold_state, late FROM jobs WHERE account_id = :account_id AND ended_at IS NULL
    UNION ALL
    SELECT id, api_key_id, state, delivery, hold_state, late FROM jobs
    WHERE account_id = :account_id AND api_key_id IS NOT NULL AND ended_at IS NOT NULL
        AND (due_at IS NOT NULL OR attention_reason IS NOT NULL)
        AND state = 'succeeded' AND delivery IN ('pending', 'sending')
) j
WHERE api_key_id IS NOT NULL ORDER BY id DESC LIMIT :limit;

-- name: newest_api_job_between
-- Return the job of an account with the greatest request key between two. coalesce keeps the planner from reading all
-- jobs of API keys of the account.
SELECT *, :now AS read_at FROM jobs
WHERE account_id = :account_id AND request_key > :first AND request_key < :last AND coalesce(api_key_id, 0) > 0
ORDER BY account_id DESC, request_key DESC LIMIT 1;

-- name: api_jobs_after
-- Return the jobs of API keys that several accounts ordered after a job, oldest first.
SELECT j.*, :now AS read_at FROM unnest(:account_id::bigint[], :after::bigint[]) AS i (account_id, after)
CROSS JOIN LATERAL (
    SELECT * FROM jobs j
    WHERE j.account_id = ANY (ARRAY[i.account_id]) AND j.id > i.after AND j.api_key_id IS NOT NULL
    ORDER BY j.account_id, j.id LIMIT :limit) j;
