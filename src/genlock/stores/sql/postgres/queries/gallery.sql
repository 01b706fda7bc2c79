-- name: result_before
-- use: screen
-- Return the newest delivered result of an account below an id, of these models. One look into the index for each model;
-- arrays as in `account_jobs`.
SELECT *, :now AS read_at FROM jobs WHERE id = (
    SELECT max(found.id) FROM unnest(:models::text[]) AS one (model)
    CROSS JOIN LATERAL (
        SELECT j.id FROM jobs j
        WHERE j.account_id = ANY (ARRAY[:account_id::bigint]) AND j.model = ANY (ARRAY[one.model]) AND j.id < :before AND j.delivered_at IS NOT NULL
            AND j.hidden_at IS NULL AND (j.hold_state <> 'released' OR j.late) AND (j.state = 'succeeded' OR j.late)
        ORDER BY j.account_id DESC, j.model DESC, j.id DESC LIMIT 1) found);

-- name: result_after
-- use: screen
-- Return the oldest delivered result of an account above an id, of these models. One look into the index for each model.
SELECT *, :now AS read_at FROM jobs WHERE id = (
    SELECT min(found.id) FROM unnest(:models::text[]) AS one (model)
    CROSS JOIN LATERAL (
        SELECT j.id FROM jobs j
        WHERE j.account_id = ANY (ARRAY[:account_id::bigint]) AND j.model = ANY (ARRAY[one.model]) AND j.id > :after AND j.delivered_at IS NOT NULL
            AND j.hidden_at IS NULL AND (j.hold_state <> 'released' OR j.late) AND (j.state = 'succeeded' OR j.late)
        ORDER BY j.account_id, j.model, j.id LIMIT 1) found);

-- name: set_result_hidden
-- Remove an ended job from its account's gallery and history, or take it back; return whether it is the account's own.
UPDATE jobs SET hidden_at = CASE WHEN :hidden::boolean THEN coalesce(hidden_at, :now) END
WHERE id = :job_id AND account_id = :account_id AND ended_at IS NOT NULL
RETURNING id;
