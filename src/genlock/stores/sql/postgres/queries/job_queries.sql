-- Lists in the order of ids compare with an array of one element, so that only the index that begins with the compared
-- column has the order, and the planner cannot read the table in the order of ids until enough rows are found. It would,
-- where it knows of few accounts with many jobs each: an account that has none then reads all jobs.

-- name: job
-- Return one job.
SELECT *, :now AS read_at FROM jobs WHERE id = :job_id;

-- name: newest_jobs
-- use: operator
-- Return jobs below an id, newest first.
SELECT *, :now AS read_at FROM jobs WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- name: account_jobs
-- use: screen
-- Return jobs of an account below an id, newest first.
SELECT *, :now AS read_at FROM jobs
WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND id < :before
ORDER BY account_id DESC, id DESC LIMIT :limit;

-- name: account_open_jobs
-- use: screen
-- Return the jobs of an account that have not ended, newest first.
SELECT *, :now AS read_at FROM jobs
WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND ended_at IS NULL
ORDER BY account_id DESC, id DESC LIMIT :limit;

-- name: open_jobs
-- use: operator
-- Return jobs that have not ended, in a state and below an id, newest first; of one account or of all. Materialized,
-- so that the planner reads the small index of open jobs instead of all jobs backwards.
WITH open AS MATERIALIZED (
    SELECT * FROM jobs
    WHERE ended_at IS NULL AND state = :state AND id < :before
        AND account_id = coalesce(:account_id::bigint, account_id)
)
SELECT *, :now AS read_at FROM open ORDER BY id DESC LIMIT :limit;

-- name: job_id_range
-- use: operator
-- Return the lowest and the highest id of a job.
SELECT min(id) AS first, max(id) AS last FROM jobs;

-- name: jobs_between
-- use: operator
-- Return the jobs in a state within a range of ids, newest first.
SELECT *, :now AS read_at FROM jobs WHERE id >= :floor AND id < :before AND state = :state ORDER BY id DESC LIMIT :limit;

-- name: account_job_floor
-- use: operator
-- Return the lowest id and the number of the next jobs of an account below an id, newest first.
SELECT min(id) AS floor, count(*) AS jobs FROM (
    SELECT id FROM jobs WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND id < :before
    ORDER BY account_id DESC, id DESC LIMIT :size) step;

-- name: account_jobs_between
-- use: operator
-- Return the jobs of an account in a state within a range of ids, newest first.
SELECT *, :now AS read_at FROM jobs
WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND id >= :floor AND id < :before AND state = :state
ORDER BY account_id DESC, id DESC LIMIT :limit;

-- name: jobs_needing_attention
-- use: operator
-- Return the operator's list, oldest first.
SELECT *, :now AS read_at FROM jobs WHERE attention_reason IS NOT NULL ORDER BY id LIMIT :limit;

-- name: is_job_message
-- use: screen
-- Whether a message shows a job of an account: as its placeholder, as one of its parts, or as the message on which its end
-- will be put again. Only the newest jobs are read: if there are more, the answer is yes, because a result that is
-- overwritten is worse than an old screen that stays.
WITH newest AS MATERIALIZED (
    SELECT placeholder, progress_message, parts FROM jobs WHERE account_id = ANY (ARRAY[:account_id::bigint])
    ORDER BY account_id DESC, id DESC LIMIT :window::bigint + 1
)
SELECT 1 AS found WHERE (SELECT count(*) FROM newest) > :window OR EXISTS (
    SELECT FROM newest WHERE :message IN (placeholder, progress_message) OR EXISTS (
        SELECT FROM json_array_elements(newest.parts::json) AS part (value) WHERE part.value ->> 'message' = :message));

-- name: jobs_shown_by
-- use: screen
-- Return the newest jobs of an account with a part on a message of this id. Only the newest jobs are read.
WITH newest AS MATERIALIZED (
    SELECT * FROM jobs WHERE account_id = ANY (ARRAY[:account_id::bigint]) ORDER BY account_id DESC, id DESC LIMIT :window
)
SELECT *, :now AS read_at FROM newest
WHERE EXISTS (
    SELECT FROM json_array_elements(newest.parts::json) AS part (value) WHERE part.value ->> 'message' = :message)
ORDER BY id DESC LIMIT :limit;

-- name: order_lookup
-- Return what `accept_lookup` returns, with the number of jobs that the account has running and has ordered lately, and
-- the seconds until the oldest leaves its window. Job ids follow the order of time, so that only the jobs of the last hour
-- are read. The inner LIMIT stops nothing, but is not known when the plan is made: the order of the index is preferred.
WITH before AS MATERIALIZED (
    SELECT coalesce((
        SELECT id FROM jobs WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND created_at <= :now - interval '1 hour'
        ORDER BY account_id DESC, id DESC LIMIT 1), 0) AS id
), lately AS MATERIALIZED (
    SELECT created_at FROM (
        SELECT created_at FROM jobs WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND id > (SELECT id FROM before)
        ORDER BY account_id DESC, id DESC LIMIT (SELECT 9000000000000000000)) own
    WHERE created_at > :now - interval '1 hour'
), activity AS MATERIALIZED (
    SELECT (SELECT count(*) FROM jobs WHERE account_id = :account_id AND ended_at IS NULL) AS running,
        count(*) FILTER (WHERE created_at > :now - interval '1 minute') AS minute,
        coalesce(extract(epoch FROM min(created_at) FILTER (WHERE created_at > :now - interval '1 minute')
            + interval '1 minute' - :now), 0)::float8 AS minute_wait,
        count(*) AS hour,
        coalesce(extract(epoch FROM min(created_at) + interval '1 hour' - :now), 0)::float8 AS hour_wait
    FROM lately
)
SELECT wallet.available, wallet.open_api_jobs, recent.*, j.*, :now AS read_at
FROM activity recent LEFT JOIN accounts wallet ON wallet.id = :account_id
    LEFT JOIN jobs j ON j.account_id = wallet.id AND j.request_key = :request_key;

-- name: late_cancels
-- Count the jobs of an account that were cancelled after their submit in the last 24 hours.
SELECT count(*) AS cancels FROM jobs
WHERE account_id = :account_id AND cancelled_by <> '' AND ended_at > :now - interval '1 day'
    AND state = 'cancelled' AND submitted_at IS NOT NULL;
