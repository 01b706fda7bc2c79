-- name: search_jobs
-- use: operator
-- Return the jobs within ranges of ids that match every filter that is set, newest first. A text is looked for as it is,
-- never as a pattern. Materialized, the ends get an index by their place: else each start is compared with all of them.
WITH ends AS MATERIALIZED (SELECT key, value FROM json_each(:ends))
SELECT j.*, :now AS read_at
FROM json_each(:starts) starts CROSS JOIN ends ON ends.key = starts.key
CROSS JOIN jobs j ON j.id >= starts.value AND j.id < ends.value
    AND (:states = '[]' OR j.state IN (SELECT value FROM json_each(:states)))
    AND (:deliveries = '[]' OR j.delivery IN (SELECT value FROM json_each(:deliveries)))
    AND (:holds = '[]' OR j.hold_state IN (SELECT value FROM json_each(:holds)))
    AND (:model = '' OR j.model = :model) AND (:provider = '' OR j.provider = :provider)
    AND (:account_id IS NULL OR j.account_id = :account_id)
    AND j.created_at >= :since_us AND j.created_at < :until_us
    AND (:error_code = '' OR j.error_code = :error_code) AND (:task_id = '' OR j.task_id = :task_id)
    AND (NOT :attention OR j.attention_reason IS NOT NULL)
    AND (:texts = '[]' OR EXISTS (SELECT 1 FROM json_each(:texts) form WHERE instr(j.input, form.value) > 0))
ORDER BY j.id DESC LIMIT :limit;

-- name: count_jobs
-- use: operator
-- Count the jobs within ranges of ids, and those that match as in search_jobs.
WITH ends AS MATERIALIZED (SELECT key, value FROM json_each(:ends))
SELECT count(*) AS rows, count(*) FILTER (
    WHERE (:states = '[]' OR j.state IN (SELECT value FROM json_each(:states)))
    AND (:deliveries = '[]' OR j.delivery IN (SELECT value FROM json_each(:deliveries)))
    AND (:holds = '[]' OR j.hold_state IN (SELECT value FROM json_each(:holds)))
    AND (:model = '' OR j.model = :model) AND (:provider = '' OR j.provider = :provider)
    AND (:account_id IS NULL OR j.account_id = :account_id)
    AND j.created_at >= :since_us AND j.created_at < :until_us
    AND (:error_code = '' OR j.error_code = :error_code) AND (:task_id = '' OR j.task_id = :task_id)
    AND (NOT :attention OR j.attention_reason IS NOT NULL)
    AND (:texts = '[]' OR EXISTS (SELECT 1 FROM json_each(:texts) form WHERE instr(j.input, form.value) > 0))
) AS matches
FROM json_each(:starts) starts CROSS JOIN ends ON ends.key = starts.key
CROSS JOIN jobs j ON j.id >= starts.value AND j.id < ends.value;

-- name: task_job_ids
-- use: operator
-- Return the jobs of a task below an id, newest first. The index of task ids begins with the provider, so that each
-- provider is looked up by itself.
WITH RECURSIVE known (provider) AS (
    SELECT (SELECT provider FROM jobs WHERE task_id IS NOT NULL AND provider > '' ORDER BY provider LIMIT 1)
    UNION ALL
    SELECT (SELECT j.provider FROM jobs j WHERE j.provider > known.provider AND j.task_id IS NOT NULL
            ORDER BY j.provider LIMIT 1)
    FROM known WHERE known.provider IS NOT NULL
)
SELECT j.id FROM known CROSS JOIN jobs j ON j.provider = known.provider AND j.task_id = :task_id
WHERE j.id >= :low AND j.id < :before ORDER BY j.id DESC LIMIT :limit;

-- name: job_providers
-- use: operator
-- Return the providers that have accepted a task: one look-up in the index of task ids for each.
WITH RECURSIVE known (provider) AS (
    SELECT (SELECT provider FROM jobs WHERE task_id IS NOT NULL AND provider > '' ORDER BY provider LIMIT 1)
    UNION ALL
    SELECT (SELECT j.provider FROM jobs j WHERE j.provider > known.provider AND j.task_id IS NOT NULL
            ORDER BY j.provider LIMIT 1)
    FROM known WHERE known.provider IS NOT NULL
)
SELECT provider FROM known WHERE provider IS NOT NULL ORDER BY provider;

-- name: open_job_ids
-- use: operator
-- Return the jobs below an id that have not ended, newest first.
SELECT id FROM jobs INDEXED BY jobs_open WHERE ended_at IS NULL AND id >= :low AND id < :before
ORDER BY id DESC LIMIT :limit;

-- name: unfinished_job_ids
-- use: operator
-- Return the jobs below an id that may not be delivered yet, newest first: those that are open or due, and those that
-- wait for an operator.
SELECT id FROM (
    SELECT id FROM jobs INDEXED BY jobs_open WHERE ended_at IS NULL
    UNION SELECT id FROM jobs INDEXED BY jobs_due WHERE due_at IS NOT NULL
    UNION SELECT id FROM (
        SELECT id FROM jobs INDEXED BY jobs_attention
        WHERE attention_reason IS NOT NULL AND id >= :low AND id < :before ORDER BY id DESC LIMIT :limit))
WHERE id >= :low AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: attention_job_ids
-- use: operator
-- Return the jobs below an id that wait for an operator, newest first.
SELECT id FROM jobs INDEXED BY jobs_attention
WHERE attention_reason IS NOT NULL AND id >= :low AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: account_job_ids
-- use: operator
-- Return the jobs of an account below an id, newest first.
SELECT id FROM jobs WHERE account_id = :account_id AND id >= :low AND id < :before
ORDER BY account_id DESC, id DESC LIMIT :limit;

-- name: first_job_since
-- use: operator
-- Return the id from which on jobs were ordered at a time or later, by halving the range of ids: they follow the order
-- of time.
WITH RECURSIVE search (low, high) AS (
    SELECT coalesce((SELECT min(id) FROM jobs), 0), coalesce((SELECT max(id) FROM jobs), -1) + 1
    UNION ALL
    SELECT CASE WHEN (
            SELECT j.created_at < :at_us FROM jobs j WHERE j.id >= (s.low + s.high) / 2 ORDER BY j.id LIMIT 1)
            THEN (s.low + s.high) / 2 + 1 ELSE s.low END,
        CASE WHEN (
            SELECT j.created_at < :at_us FROM jobs j WHERE j.id >= (s.low + s.high) / 2 ORDER BY j.id LIMIT 1)
            THEN s.high ELSE (s.low + s.high) / 2 END
    FROM search s WHERE s.low < s.high
)
SELECT low AS id FROM search WHERE low >= high LIMIT 1;

-- name: job_ordered_at
-- use: operator
-- Return when the first job from an id on was ordered.
SELECT created_at FROM jobs WHERE id >= :job_id ORDER BY id LIMIT 1;

-- name: refunded_jobs
-- use: operator
-- Return those of several jobs whose price was refunded.
SELECT ids.value AS id FROM json_each(:job_ids) ids CROSS JOIN ledger l ON l.key = 'refund:' || ids.value;

-- name: attempt_costs
-- use: operator
-- Return what was billed for attempts of several jobs, each once: a job's row has the cost of its own attempt.
SELECT a.job_id, a.provider, a.cost
FROM json_each(:job_ids) ids CROSS JOIN jobs j ON j.id = ids.value CROSS JOIN attempts a ON a.job_id = j.id
WHERE a.cost > 0 AND (a.number <> j.attempt OR j.cost IS NULL) ORDER BY a.job_id, a.number;

-- name: account_names
-- use: operator
-- Return the names of the users of several accounts.
SELECT a.id, coalesce(nullif(p.name, ''), a.external_id) AS name
FROM json_each(:account_ids) ids CROSS JOIN accounts a ON a.id = ids.value
LEFT JOIN profiles p ON p.account_id = a.id;
