-- name: result_before
-- use: screen
-- Return the newest delivered result of an account below an id, of these models. One look into the index for each model.
SELECT *, :now AS read_at FROM jobs WHERE id = (
    SELECT max((
        SELECT id FROM jobs INDEXED BY jobs_results
        WHERE account_id = :account_id AND model = one.value AND id < :before AND delivered_at IS NOT NULL
            AND hidden_at IS NULL AND (hold_state <> 'released' OR late = 1) AND (state = 'succeeded' OR late = 1)
        ORDER BY id DESC LIMIT 1))
    FROM json_each(:models) AS one);

-- name: result_after
-- use: screen
-- Return the oldest delivered result of an account above an id, of these models. One look into the index for each model.
SELECT *, :now AS read_at FROM jobs WHERE id = (
    SELECT min((
        SELECT id FROM jobs INDEXED BY jobs_results
        WHERE account_id = :account_id AND model = one.value AND id > :after AND delivered_at IS NOT NULL
            AND hidden_at IS NULL AND (hold_state <> 'released' OR late = 1) AND (state = 'succeeded' OR late = 1)
        ORDER BY id LIMIT 1))
    FROM json_each(:models) AS one);

-- name: set_result_hidden
-- Remove an ended job from its account's gallery and history, or take it back; return whether it is the account's own.
UPDATE jobs SET hidden_at = CASE WHEN :hidden THEN coalesce(hidden_at, :now) END
WHERE id = :job_id AND account_id = :account_id AND ended_at IS NOT NULL
RETURNING id;
