-- name: job
-- Return one job.
SELECT *, :now AS read_at FROM jobs WHERE id = :job_id;

-- name: jobs
-- Return jobs, newest first, filtered by state and account, and below an id.
SELECT *, :now AS read_at FROM jobs
WHERE (:state::text IS NULL OR state = :state) AND (:account_id::bigint IS NULL OR account_id = :account_id)
    AND (:before::bigint IS NULL OR id < :before)
ORDER BY id DESC LIMIT :limit;

-- name: jobs_needing_attention
-- Return the operator's list, oldest first.
SELECT *, :now AS read_at FROM jobs WHERE attention_reason IS NOT NULL ORDER BY id LIMIT :limit;

-- name: is_of_order
-- Whether a message shows a job of an account: as its placeholder or as one of its parts.
SELECT id FROM jobs
WHERE account_id = :account_id AND (placeholder = :message OR EXISTS (
    SELECT FROM json_array_elements(jobs.parts::json) AS part (value) WHERE part.value ->> 'message' = :message))
LIMIT 1;

-- name: activity
-- Count the jobs that an account has running and has ordered lately, with the seconds until the oldest leaves its
-- window.
SELECT count(*) FILTER (WHERE state IN ('queued', 'submitting', 'running')) AS running,
    count(*) FILTER (WHERE created_at > :now - interval '1 minute') AS minute,
    coalesce(extract(epoch FROM min(created_at) FILTER (WHERE created_at > :now - interval '1 minute')
        + interval '1 minute' - :now), 0)::float8 AS minute_wait,
    count(*) FILTER (WHERE created_at > :now - interval '1 hour') AS hour,
    coalesce(extract(epoch FROM min(created_at) FILTER (WHERE created_at > :now - interval '1 hour')
        + interval '1 hour' - :now), 0)::float8 AS hour_wait
FROM jobs WHERE account_id = :account_id
    AND (created_at > :now - interval '1 hour' OR state IN ('queued', 'submitting', 'running'));

-- name: late_cancels
-- Count the jobs of an account that were cancelled after their submit in the last 24 hours.
SELECT count(*) AS cancels FROM jobs
WHERE account_id = :account_id AND state = 'cancelled' AND submitted_at IS NOT NULL
    AND ended_at > :now - interval '1 day';
