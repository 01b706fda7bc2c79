-- name: begin_bulk_action
-- Start a bulk action on the jobs below an id, or on those that exist now; the same key again is the same bulk action.
WITH added AS (
    INSERT INTO bulk_actions (kind, selection, author, request_key, state, below, expected, expected_kind, created_at)
    SELECT :kind, :selection, :author, :request_key, 'running', coalesce(:below::bigint, (SELECT max(id) FROM jobs) + 1, 1), :expected,
        :expected_kind, :now
    ON CONFLICT (request_key) DO NOTHING RETURNING *
)
SELECT * FROM added UNION ALL SELECT * FROM bulk_actions WHERE request_key = :request_key LIMIT 1;

-- name: bulk_action
-- use: operator
-- Return one bulk action.
SELECT * FROM bulk_actions WHERE id = :bulk_id;

-- name: bulk_actions
-- use: operator
-- Return bulk actions below an id, newest first.
SELECT * FROM bulk_actions WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- name: open_bulk_actions
-- use: periodic
-- Return the bulk actions that a worker must look at, oldest first.
SELECT * FROM bulk_actions WHERE ended_at IS NULL ORDER BY id LIMIT :limit;

-- name: bulk_failures
-- use: operator
-- Return jobs that a bulk action left out, by their ids.
SELECT job_id, reason, detail FROM bulk_failures
WHERE bulk_id = :bulk_id AND job_id > :after ORDER BY job_id LIMIT :limit;

-- name: begin_bulk_step
-- use: periodic
-- Record the jobs that a running bulk action acts on next, and those that it leaves out, before it is done.
WITH moved AS (
    UPDATE bulk_actions
    SET step = :step, below = :below, failed = failed + :failed::bigint, version = version + 1
    WHERE id = :bulk_id AND version = :version AND state = 'running' AND step = '[]' AND ended_at IS NULL
    RETURNING *
), kept AS (
    INSERT INTO bulk_failures (bulk_id, job_id, reason, detail)
    SELECT moved.id, f.job_id, f.reason, f.detail
    FROM moved, unnest(:job_ids::bigint[], :reasons::text[], :details::text[]) AS f (job_id, reason, detail)
    ON CONFLICT (bulk_id, job_id) DO NOTHING
)
SELECT * FROM moved;

-- name: finish_bulk_step
-- use: periodic
-- Record that every job of the step was acted on.
WITH moved AS (
    UPDATE bulk_actions
    SET step = '[]', done = done + :done::bigint, failed = failed + :failed::bigint, version = version + 1
    WHERE id = :bulk_id AND version = :version AND step <> '[]'
    RETURNING *
), kept AS (
    INSERT INTO bulk_failures (bulk_id, job_id, reason, detail)
    SELECT moved.id, f.job_id, f.reason, f.detail
    FROM moved, unnest(:job_ids::bigint[], :reasons::text[], :details::text[]) AS f (job_id, reason, detail)
    ON CONFLICT (bulk_id, job_id) DO NOTHING
)
SELECT * FROM moved;

-- name: stop_bulk_action
-- Stop a running bulk action. The step that has begun is finished.
UPDATE bulk_actions SET state = 'stopped' WHERE id = :bulk_id AND state = 'running' AND ended_at IS NULL RETURNING id;

-- name: end_bulk_action
-- use: periodic
-- End a bulk action between two steps; one that was stopped meanwhile stays so.
UPDATE bulk_actions SET state = CASE WHEN state = 'stopped' THEN state ELSE :state END, ended_at = :now, version = version + 1
WHERE id = :bulk_id AND version = :version AND step = '[]' AND ended_at IS NULL
RETURNING id;
