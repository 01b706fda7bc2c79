-- name: api_jobs_by_id
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

-- name: newest_api_job_between
-- Return the job of an account with the greatest request key between two.
SELECT *, :now AS read_at FROM jobs
WHERE account_id = :account_id AND request_key > :first AND request_key < :last AND api_key_id IS NOT NULL
ORDER BY account_id DESC, request_key DESC LIMIT 1;

-- name: api_jobs_after
-- Return the jobs of API keys that an account ordered after a job, oldest first.
SELECT *, :now AS read_at FROM jobs
WHERE account_id = :account_id AND id > :after AND api_key_id IS NOT NULL ORDER BY account_id, id LIMIT :limit;

-- name: count_open_jobs
-- Count the jobs of an account that have not ended, up to a limit.
SELECT count(*) AS jobs FROM (SELECT 1 FROM jobs WHERE account_id = :account_id AND ended_at IS NULL LIMIT :limit);
