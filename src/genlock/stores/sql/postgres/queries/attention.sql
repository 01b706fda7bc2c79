-- name: attention_counts
-- use: operator
-- Count what waits for an operator by reason, each up to a limit.
SELECT code AS name, (
    SELECT count(*) FROM (
        SELECT 1 AS one FROM jobs WHERE attention_code = code AND attention_reason IS NOT NULL LIMIT :limit::bigint) found
    ) AS number
FROM unnest(ARRAY['poison', 'stage_error', 'retries_exhausted', 'undeliverable', 'unknown_delivery', 'parked',
                  'other']) AS codes (code)
UNION ALL
SELECT name, (
    SELECT count(*) FROM (
        SELECT 1 AS one FROM job_anomalies WHERE kind = name AND handled_at IS NULL LIMIT :limit::bigint) found)
FROM unnest(ARRAY['contradiction', 'wrong_task', 'loss']) AS kinds (name)
UNION ALL
SELECT name, (
    SELECT count(*) FROM (
        SELECT 1 AS one FROM inbox WHERE state = name AND state IN ('expired', 'unreadable') LIMIT :limit::bigint) found)
FROM unnest(ARRAY['expired', 'unreadable']) AS states (name)
UNION ALL
SELECT 'dead_update', count(*) FROM (SELECT 1 AS one FROM updates WHERE state = 'dead' LIMIT :limit::bigint) found
UNION ALL
SELECT 'open_refund', count(*) FROM kv WHERE starts_with(key, 'chat:refund:')
    AND at < :now - make_interval(secs => :refund_seconds::float8)
UNION ALL
SELECT 'cost_above_price', count(*) FROM kv WHERE starts_with(key, 'cost_above_price:');

-- name: jobs_with_attention
-- use: operator
-- Return the jobs that need attention for a reason, below an id, newest first. An array as in `account_jobs`.
SELECT *, :now AS read_at FROM jobs
WHERE attention_code = ANY (ARRAY[:code::text]) AND attention_reason IS NOT NULL AND id < :before
ORDER BY attention_code DESC, id DESC LIMIT :limit;

-- name: clear_attention
-- Take a job off the operator's list, if it has not changed since it was read and needs no more work. A notice that no
-- worker tries any more is given up: it counts as sent.
UPDATE jobs
SET attention_code = NULL, attention_reason = NULL, lease_token = lease_token + 1,
    notice = CASE WHEN notice = 'due' AND due_at IS NULL THEN 'sent' ELSE notice END
WHERE id = :job_id AND lease_token = :token AND attention_reason IS NOT NULL AND lease_owner IS NULL
    AND delivery IN ('delivered', 'undeliverable', 'unknown')
RETURNING id;

-- name: kept_callbacks
-- use: operator
-- Return the callbacks that are kept for the operator in a state, below an id, newest first, with the beginning of their
-- bodies. An array as in `account_jobs`.
SELECT b.id, b.provider, b.job_id, b.task_id, substring(b.body FROM 1 FOR :length::int) AS body, b.state, b.note,
    b.received_at, b.attempt, (SELECT correlation_id FROM jobs j WHERE j.id = b.job_id) AS correlation_id
FROM inbox b
WHERE b.state = ANY (ARRAY[:state::text]) AND b.state IN ('expired', 'unreadable') AND b.id < :before
ORDER BY b.state DESC, b.id DESC LIMIT :limit;

-- name: retry_callback
-- Have a callback that is kept for the operator read again.
UPDATE inbox SET state = 'new', due_at = :now
WHERE id = :callback_id AND state IN ('expired', 'unreadable')
RETURNING id;

-- name: close_callback
-- Take a callback off the operator's list.
UPDATE inbox SET state = 'done', note = :note
WHERE id = :callback_id AND state IN ('expired', 'unreadable')
RETURNING id;

-- name: dead_updates_before
-- use: operator
-- Return the updates that failed in every attempt, below an id, newest first.
SELECT *, 0 AS attempts FROM updates WHERE state = 'dead' AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: discard_update
-- Give up a dead update: it is not handled any more.
UPDATE updates SET state = 'done', note = :note WHERE id = :id AND state = 'dead' RETURNING id;

-- name: anomalies
-- use: operator
-- Return the anomalies of a kind that no operator has handled, below an id, newest first. An array as in `account_jobs`.
SELECT id, job_id, kind, at FROM job_anomalies
WHERE kind = ANY (ARRAY[:kind::text]) AND handled_at IS NULL AND id < :before ORDER BY kind DESC, id DESC LIMIT :limit;

-- name: job_anomalies
-- use: operator
-- Return the anomalies of a job that no operator has handled.
SELECT id, job_id, kind, at FROM job_anomalies WHERE job_id = :job_id AND handled_at IS NULL ORDER BY id;

-- name: handle_anomaly
-- Record that an operator has handled an anomaly, once.
UPDATE job_anomalies SET handled_at = :now WHERE id = :anomaly_id AND handled_at IS NULL RETURNING id;

-- name: prune_anomalies
-- use: periodic
-- Delete old anomalies, a few at a time. Only the current holder of the active role may, in its own epoch.
DELETE FROM job_anomalies
WHERE id IN (SELECT id FROM job_anomalies ORDER BY id LIMIT :limit)
    AND at < :now - make_interval(secs => :older_than::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: kv_list_of_all_bots
-- use: operator
-- Return the entries of all bots whose key starts with `beginning`, oldest first.
SELECT key, bot, value, at, :now AS read_at FROM kv WHERE starts_with(key, :beginning) ORDER BY at, key LIMIT :limit;
