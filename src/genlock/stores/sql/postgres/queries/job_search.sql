-- name: search_jobs
-- use: operator
-- Return the jobs within ranges of ids that match every filter that is set, newest first. A text is looked for as it is,
-- never as a pattern. OFFSET 0 keeps the planner from reading all jobs and comparing them with the ranges.
WITH f AS MATERIALIZED (
    SELECT :states::text[] AS states, :deliveries::text[] AS deliveries, :holds::text[] AS holds, :model::text AS model,
        :provider::text AS provider, :account_id::bigint AS account_id, :error_code::text AS error_code,
        :task_id::text AS task_id, :attention::boolean AS attention, :texts::text[] AS texts,
        timestamptz 'epoch' + :since_us::bigint * interval '1 microsecond' AS since,
        timestamptz 'epoch' + :until_us::bigint * interval '1 microsecond' AS until
)
SELECT j.*, :now AS read_at
FROM f CROSS JOIN unnest(:starts::bigint[], :ends::bigint[]) AS ids (start, stop)
CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id >= ids.start AND id < ids.stop OFFSET 0) j
WHERE (f.states = '{}' OR j.state = ANY (f.states)) AND (f.deliveries = '{}' OR j.delivery = ANY (f.deliveries))
    AND (f.holds = '{}' OR j.hold_state = ANY (f.holds)) AND (f.model = '' OR j.model = f.model)
    AND (f.provider = '' OR j.provider = f.provider) AND (f.account_id IS NULL OR j.account_id = f.account_id)
    AND j.created_at >= f.since AND j.created_at < f.until
    AND (f.error_code = '' OR j.error_code = f.error_code) AND (f.task_id = '' OR j.task_id = f.task_id)
    AND (NOT f.attention OR j.attention_reason IS NOT NULL)
    AND (f.texts = '{}' OR EXISTS (SELECT FROM unnest(f.texts) form WHERE position(form IN j.input) > 0))
ORDER BY j.id DESC LIMIT :limit;

-- name: count_jobs
-- use: operator
-- Count the jobs within ranges of ids, and those that match as in search_jobs.
WITH f AS MATERIALIZED (
    SELECT :states::text[] AS states, :deliveries::text[] AS deliveries, :holds::text[] AS holds, :model::text AS model,
        :provider::text AS provider, :account_id::bigint AS account_id, :error_code::text AS error_code,
        :task_id::text AS task_id, :attention::boolean AS attention, :texts::text[] AS texts,
        timestamptz 'epoch' + :since_us::bigint * interval '1 microsecond' AS since,
        timestamptz 'epoch' + :until_us::bigint * interval '1 microsecond' AS until
)
SELECT count(*) AS rows, count(*) FILTER (
    WHERE (f.states = '{}' OR j.state = ANY (f.states)) AND (f.deliveries = '{}' OR j.delivery = ANY (f.deliveries))
    AND (f.holds = '{}' OR j.hold_state = ANY (f.holds)) AND (f.model = '' OR j.model = f.model)
    AND (f.provider = '' OR j.provider = f.provider) AND (f.account_id IS NULL OR j.account_id = f.account_id)
    AND j.created_at >= f.since AND j.created_at < f.until
    AND (f.error_code = '' OR j.error_code = f.error_code) AND (f.task_id = '' OR j.task_id = f.task_id)
    AND (NOT f.attention OR j.attention_reason IS NOT NULL)
    AND (f.texts = '{}' OR EXISTS (SELECT FROM unnest(f.texts) form WHERE position(form IN j.input) > 0))
) AS matches
FROM f CROSS JOIN unnest(:starts::bigint[], :ends::bigint[]) AS ids (start, stop)
CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id >= ids.start AND id < ids.stop OFFSET 0) j;

-- name: task_job_ids
-- use: operator
-- Return the jobs of a task below an id, newest first. The index of task ids begins with the provider, so that each
-- provider is looked up by itself.
WITH RECURSIVE known (provider) AS (
    SELECT min(provider) FROM jobs WHERE task_id IS NOT NULL
    UNION ALL
    SELECT (SELECT min(j.provider) FROM jobs j WHERE j.provider > known.provider AND j.task_id IS NOT NULL)
    FROM known WHERE known.provider IS NOT NULL
)
SELECT j.id
FROM known CROSS JOIN LATERAL (SELECT id FROM jobs WHERE provider = known.provider AND task_id = :task_id OFFSET 0) j
WHERE j.id >= :low AND j.id < :before ORDER BY j.id DESC LIMIT :limit;

-- name: job_providers
-- use: operator
-- Return the providers that have accepted a task: one look-up in the index of task ids for each.
WITH RECURSIVE known (provider) AS (
    SELECT min(provider) FROM jobs WHERE task_id IS NOT NULL
    UNION ALL
    SELECT (SELECT min(j.provider) FROM jobs j WHERE j.provider > known.provider AND j.task_id IS NOT NULL)
    FROM known WHERE known.provider IS NOT NULL
)
SELECT provider FROM known WHERE provider IS NOT NULL ORDER BY provider;

-- name: open_job_ids
-- use: operator
-- Return the jobs below an id that have not ended, newest first.
WITH open AS MATERIALIZED (SELECT id FROM jobs WHERE ended_at IS NULL)
SELECT id FROM open WHERE id >= :low AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: unfinished_job_ids
-- use: operator
-- Return the jobs below an id that may not be delivered yet, newest first: those that are open or due, and those that
-- wait for an operator.
WITH unfinished AS MATERIALIZED (
    SELECT id FROM jobs WHERE ended_at IS NULL
    UNION SELECT id FROM jobs WHERE due_at IS NOT NULL
    UNION (SELECT id FROM jobs WHERE attention_reason IS NOT NULL AND id >= :low AND id < :before
           ORDER BY id DESC LIMIT :limit)
)
SELECT id FROM unfinished WHERE id >= :low AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: attention_job_ids
-- use: operator
-- Return the jobs below an id that wait for an operator, newest first.
SELECT id FROM jobs WHERE attention_reason IS NOT NULL AND id >= :low AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: account_job_ids
-- use: operator
-- Return the jobs of an account below an id, newest first. An array as in `account_jobs`.
SELECT id FROM jobs WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND id >= :low AND id < :before
ORDER BY account_id DESC, id DESC LIMIT :limit;

-- name: first_job_since
-- use: operator
-- Return the id from which on jobs were ordered at a time or later, by halving the range of ids: they follow the order
-- of time.
WITH RECURSIVE search (low, high) AS (
    SELECT coalesce(min(id), 0), coalesce(max(id), -1) + 1 FROM jobs
    UNION ALL
    SELECT CASE WHEN step.older THEN step.middle + 1 ELSE step.low END,
        CASE WHEN step.older THEN step.high ELSE step.middle END
    FROM (SELECT s.low, s.high, (s.low + s.high) / 2 AS middle, (
              SELECT j.created_at < timestamptz 'epoch' + :at_us::bigint * interval '1 microsecond' FROM jobs j
              WHERE j.id >= (s.low + s.high) / 2 ORDER BY j.id LIMIT 1) AS older
          FROM search s WHERE s.low < s.high) step
)
SELECT low AS id FROM search WHERE low >= high LIMIT 1;

-- name: job_ordered_at
-- use: operator
-- Return when the first job from an id on was ordered.
SELECT created_at FROM jobs WHERE id >= :job_id ORDER BY id LIMIT 1;

-- name: refunded_jobs
-- use: operator
-- Return those of several jobs whose price was refunded.
SELECT ids.id FROM unnest(:job_ids::bigint[]) AS ids (id) JOIN ledger l ON l.key = 'refund:' || ids.id;

-- name: attempt_costs
-- use: operator
-- Return what was billed for attempts of several jobs, each once: a job's row has the cost of its own attempt.
SELECT a.job_id, a.provider, a.cost
FROM unnest(:job_ids::bigint[]) AS ids (id) JOIN jobs j ON j.id = ids.id JOIN attempts a ON a.job_id = j.id
WHERE a.cost > 0 AND (a.number <> j.attempt OR j.cost IS NULL) ORDER BY a.job_id, a.number;

-- name: account_names
-- use: operator
-- Return the names of the users of several accounts.
SELECT a.id, coalesce(nullif(p.name, ''), a.external_id) AS name
FROM unnest(:account_ids::bigint[]) AS ids (id) JOIN accounts a ON a.id = ids.id
LEFT JOIN profiles p ON p.account_id = a.id;
