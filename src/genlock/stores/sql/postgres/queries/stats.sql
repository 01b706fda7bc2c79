-- name: read_clock
-- Return the time. It is the time of the server.
SELECT :now AS now;

-- name: counts
-- use: operator
-- Count the open jobs by state, the due jobs, the waiting callbacks and the jobs that need attention.
SELECT state AS name, count(*) FROM jobs WHERE due_at IS NOT NULL GROUP BY state
UNION ALL SELECT 'due', count(*) FROM jobs WHERE due_at <= :now
UNION ALL SELECT 'callbacks', count(*) FROM inbox WHERE due_at IS NOT NULL
UNION ALL SELECT 'orphans', count(*) FROM inbox WHERE state = 'orphan'
UNION ALL SELECT 'attention', count(*) FROM jobs WHERE attention_reason IS NOT NULL;

-- name: stats
-- use: periodic
-- Return counts and ages of open work, and how the latest jobs ended. The rows of open jobs are read once.
WITH open AS MATERIALIZED (
    SELECT state, delivery, count(*) AS jobs, count(*) FILTER (WHERE due_at <= :now) AS due, min(due_at) AS due_at,
        min(ended_at) AS ended_at, min(created_at) AS created_at
    FROM jobs WHERE due_at IS NOT NULL GROUP BY state, delivery
)
SELECT state AS name, sum(jobs)::float8 AS value FROM open GROUP BY state
UNION ALL
SELECT unnest(ARRAY['due', 'due_age', 'undelivered', 'undelivered_age', 'queued_age']),
    unnest(ARRAY[
        sum(due),
        extract(epoch FROM :now - min(due_at) FILTER (WHERE due_at <= :now)),
        sum(jobs) FILTER (WHERE delivery IN ('pending', 'sending')),
        extract(epoch FROM :now - min(ended_at) FILTER (WHERE delivery IN ('pending', 'sending'))),
        extract(epoch FROM :now - min(created_at) FILTER (WHERE state = 'queued'))])::float8
FROM open
UNION ALL
SELECT unnest(ARRAY['callbacks', 'callback_age']),
    unnest(ARRAY[count(*), extract(epoch FROM :now - min(received_at))])::float8
FROM inbox WHERE due_at IS NOT NULL
UNION ALL
SELECT unnest(ARRAY['orphans', 'orphans_fresh']),
    unnest(ARRAY[count(*), count(*) FILTER (WHERE received_at > :now - make_interval(secs => :window::float8))])::float8
FROM inbox WHERE state = 'orphan'
UNION ALL
SELECT 'attention', count(*)::float8 FROM jobs WHERE attention_reason IS NOT NULL
UNION ALL
SELECT unnest(ARRAY['updates', 'update_age']),
    unnest(ARRAY[sum(waiting), extract(epoch FROM :now - min(due_at))])::float8
FROM update_queues WHERE due_at IS NOT NULL
UNION ALL
SELECT 'ledger_check_age', extract(epoch FROM :now - at)::float8 FROM kv WHERE key = 'money_check'
UNION ALL
SELECT 'ledger_violations', value::float8 FROM kv WHERE key = 'ledger_violations'
UNION ALL
SELECT 'bot_refused', count(*)::float8 FROM kv
WHERE key = 'bot_refused' AND at > :now - make_interval(secs => :window::float8)
UNION ALL
SELECT unnest(ARRAY['refunds_open', 'refund_age']),
    unnest(ARRAY[count(*), extract(epoch FROM :now - min(at))])::float8
FROM kv WHERE starts_with(key, 'chat:refund:')
UNION ALL
SELECT unnest(ARRAY['costs_above_price', 'cost_above_price_job']), unnest(ARRAY[count(*), max(value::int8)])::float8
FROM kv WHERE starts_with(key, 'cost_above_price:') AND at > :now - interval '1 hour'
UNION ALL
SELECT 'breakers_open', count(*)::float8 FROM breakers WHERE open_until IS NOT NULL
UNION ALL
SELECT 'providers_silent', count(*)::float8 FROM kv
WHERE starts_with(key, 'provider_silent:')
    AND at < :now - make_interval(secs => :window::float8 / 2)
UNION ALL
SELECT 'external_refunds', count(*) FROM payments WHERE external_refund_at > :now - interval '1 hour'
UNION ALL
SELECT 'updates_dead', count(*)::float8 FROM updates WHERE state = 'dead'
UNION ALL
SELECT 'instances', count(*)::float8 FROM instances WHERE seen_at >= :now - interval '10 seconds'
UNION ALL
SELECT unnest(ARRAY['lately_ended', 'lately_failed']),
    unnest(ARRAY[count(*), count(*) FILTER (
        WHERE state IN ('failed', 'expired') AND error_code NOT IN (
            SELECT unnest(:user_errors::text[])))])::float8
FROM (SELECT state, error_code, ended_at FROM jobs ORDER BY id DESC LIMIT 300) newest
WHERE ended_at > :now - make_interval(secs => :window::float8) AND state <> 'cancelled';

-- name: last_callback_id
-- use: operator
-- Return the id of the newest callback.
SELECT coalesce(max(id), 0) AS id FROM inbox;

-- name: find_callbacks
-- use: operator
-- Return the callbacks after an id whose body contains a mark, or whose task has it as its id.
SELECT id, job_id, state FROM inbox
WHERE id > :after AND (position(:mark::bytea IN body) > 0 OR task_id = convert_from(:mark::bytea, 'UTF8')) ORDER BY id;

-- name: delete_callbacks
-- use: operator
-- Delete the callbacks that `find_callbacks` returns: they were probes of the doctor.
DELETE FROM inbox
WHERE id > :after AND (position(:mark::bytea IN body) > 0 OR task_id = convert_from(:mark::bytea, 'UTF8'))
RETURNING id;
