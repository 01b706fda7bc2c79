-- name: read_clock
-- Return the time. SQLite has no clock of its own: it is the time of the process.
SELECT :now AS now;

-- name: counts
-- use: operator
-- Count the open jobs by state, the due jobs, the waiting callbacks and the jobs that need attention.
SELECT state AS name, count(*) AS count FROM jobs WHERE due_at IS NOT NULL GROUP BY state
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
    FROM jobs INDEXED BY jobs_due WHERE due_at IS NOT NULL GROUP BY state, delivery
)
SELECT state AS name, sum(jobs) AS value FROM open GROUP BY state
UNION ALL
SELECT 'due', sum(due) FROM open
UNION ALL
SELECT 'due_age', (:now - min(due_at)) / 1e6 FROM open WHERE due_at <= :now
UNION ALL
SELECT 'undelivered', sum(jobs) FROM open WHERE delivery IN ('pending', 'sending')
UNION ALL
SELECT 'undelivered_age', (:now - min(ended_at)) / 1e6 FROM open WHERE delivery IN ('pending', 'sending')
UNION ALL
SELECT 'queued_age', (:now - min(created_at)) / 1e6 FROM open WHERE state = 'queued'
UNION ALL
SELECT 'callbacks', count(*) FROM inbox WHERE due_at IS NOT NULL
UNION ALL
SELECT 'callback_age', (:now - min(received_at)) / 1e6 FROM inbox WHERE due_at IS NOT NULL
UNION ALL
SELECT 'orphans', count(*) FROM inbox WHERE state = 'orphan'
UNION ALL
SELECT 'orphans_fresh', count(*) FROM inbox
WHERE state = 'orphan' AND received_at > :now - CAST(:window * 1000000 AS INTEGER)
UNION ALL
SELECT 'attention', count(*) FROM jobs WHERE attention_reason IS NOT NULL
UNION ALL
SELECT 'updates', coalesce(sum(waiting), 0) FROM update_queues WHERE due_at IS NOT NULL
UNION ALL
SELECT 'update_age', (:now - min(due_at)) / 1e6 FROM update_queues WHERE due_at IS NOT NULL
UNION ALL
SELECT 'ledger_check_age', (:now - at) / 1e6 FROM kv WHERE key = 'money_check'
UNION ALL
SELECT 'ledger_violations', CAST(value AS REAL) FROM kv WHERE key = 'ledger_violations'
UNION ALL
SELECT 'bot_refused', count(*) FROM kv WHERE key = 'bot_refused' AND at > :now - CAST(:window * 1000000 AS INTEGER)
UNION ALL
SELECT 'refunds_open', count(*) FROM kv WHERE key >= 'chat:refund:' AND key < 'chat:refund;'
UNION ALL
SELECT 'refund_age', (:now - min(at)) / 1e6 FROM kv WHERE key >= 'chat:refund:' AND key < 'chat:refund;'
UNION ALL
SELECT 'costs_above_price', count(*) FROM kv
WHERE key >= 'cost_above_price:' AND key < 'cost_above_price;' AND at > :now - 3600000000
UNION ALL
SELECT 'cost_above_price_job', max(CAST(value AS INTEGER)) FROM kv
WHERE key >= 'cost_above_price:' AND key < 'cost_above_price;' AND at > :now - 3600000000
UNION ALL
SELECT 'breakers_open', count(*) FROM breakers WHERE open_until IS NOT NULL
UNION ALL
SELECT 'providers_silent', count(*) FROM kv
WHERE key >= 'provider_silent:' AND key < 'provider_silent;' AND at < :now - CAST(:window * 500000 AS INTEGER)
UNION ALL
SELECT 'external_refunds', count(*) FROM payments WHERE external_refund_at > :now - 3600000000
UNION ALL
SELECT 'updates_dead', count(*) FROM updates WHERE state = 'dead'
UNION ALL
SELECT 'instances', count(*) FROM instances WHERE seen_at >= :now - 10000000
UNION ALL
SELECT 'lately_ended', count(*)
FROM (SELECT state, ended_at FROM jobs ORDER BY id DESC LIMIT 300)
WHERE ended_at > :now - CAST(:window * 1000000 AS INTEGER) AND state <> 'cancelled'
UNION ALL
SELECT 'lately_failed', count(*)
FROM (SELECT state, error_code, ended_at FROM jobs ORDER BY id DESC LIMIT 300)
WHERE ended_at > :now - CAST(:window * 1000000 AS INTEGER) AND state IN ('failed', 'expired')
    AND error_code NOT IN (SELECT value FROM json_each(:user_errors));

-- name: last_callback_id
-- use: operator
-- Return the id of the newest callback.
SELECT coalesce(max(id), 0) AS id FROM inbox;

-- name: find_callbacks
-- use: operator
-- Return the callbacks after an id whose body contains a mark, or whose task has it as its id.
SELECT id, job_id, state FROM inbox
WHERE id > :after AND (instr(body, :mark) > 0 OR task_id = CAST(:mark AS TEXT)) ORDER BY id;

-- name: delete_callbacks
-- use: operator
-- Delete the callbacks that `find_callbacks` returns: they were probes of the doctor.
DELETE FROM inbox WHERE id > :after AND (instr(body, :mark) > 0 OR task_id = CAST(:mark AS TEXT)) RETURNING id;
