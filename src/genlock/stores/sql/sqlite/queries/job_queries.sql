-- name: job
-- Return one job.
SELECT *, :now AS read_at FROM jobs WHERE id = :job_id;

-- name: jobs
-- Return jobs, newest first, filtered by state and account, and below an id.
SELECT *, :now AS read_at FROM jobs
WHERE (:state IS NULL OR state = :state) AND (:account_id IS NULL OR account_id = :account_id)
    AND (:before IS NULL OR id < :before)
ORDER BY id DESC LIMIT :limit;

-- name: jobs_needing_attention
-- Return the operator's list, oldest first.
SELECT *, :now AS read_at FROM jobs WHERE attention_reason IS NOT NULL ORDER BY id LIMIT :limit;

-- name: is_of_order
-- Whether a message shows a job of an account: as its placeholder or as one of its parts.
SELECT id FROM jobs
WHERE account_id = :account_id AND (placeholder = :message OR EXISTS (
    SELECT 1 FROM json_each(jobs.parts) AS part WHERE part.value ->> 'message' = :message))
LIMIT 1;

-- name: activity
-- Count the jobs that an account has running and has ordered lately, with the seconds until the oldest leaves its
-- window.
SELECT count(*) FILTER (WHERE state IN ('queued', 'submitting', 'running')) AS running,
    count(*) FILTER (WHERE created_at > :now - 60000000) AS minute,
    coalesce((min(created_at) FILTER (WHERE created_at > :now - 60000000)
        + 60000000 - :now) / 1000000.0, 0.0) AS minute_wait,
    count(*) FILTER (WHERE created_at > :now - 3600000000) AS hour,
    coalesce((min(created_at) FILTER (WHERE created_at > :now - 3600000000)
        + 3600000000 - :now) / 1000000.0, 0.0) AS hour_wait
FROM jobs WHERE account_id = :account_id
    AND (created_at > :now - 3600000000 OR state IN ('queued', 'submitting', 'running'));

-- name: late_cancels
-- Count the jobs of an account that were cancelled after their submit in the last 24 hours.
SELECT count(*) AS cancels FROM jobs
WHERE account_id = :account_id AND state = 'cancelled' AND submitted_at IS NOT NULL AND ended_at > :now - 86400000000;
