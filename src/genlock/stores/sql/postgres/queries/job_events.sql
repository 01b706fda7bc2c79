-- name: add_job_events
-- use: periodic
-- Add rows of events. The clock of the database dates them: each event says how long before the row it happened. The
-- commit does not wait for the disk: what an instance has not written yet is lost in a crash, too.
INSERT INTO job_events (correlation_id, instance, number, events, at)
SELECT i.correlation_id, :instance::text, i.number, i.events, :now
FROM unnest(:correlation_id::text[], :number::bigint[], :events::text[]) AS i (correlation_id, number, events)
WHERE set_config('synchronous_commit', 'off', true) = 'off';

-- name: job_events
-- use: operator
-- Return the rows of events of a correlation id, newest first.
WITH found AS MATERIALIZED (SELECT * FROM job_events WHERE correlation_id = :correlation_id)
SELECT id, instance, number, events, at FROM found ORDER BY id DESC LIMIT :limit;

-- name: prune_job_events
-- use: periodic
-- Delete old rows of events, a few at a time. Only the current holder of the active role may, in its own epoch.
DELETE FROM job_events
WHERE id IN (SELECT id FROM job_events ORDER BY id LIMIT :limit)
    AND at < :now - make_interval(secs => :older_than::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: account_job_window
-- Return the last of the next jobs of an account after an id. An array as in `account_jobs`.
SELECT max(id) AS id FROM (
    SELECT id FROM jobs WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND id > :after AND id <= :until
    ORDER BY account_id, id LIMIT :limit) w;

-- name: erase_job_events
-- Delete the events of an account's jobs in a range of ids. They are read as in `order_lookup`.
DELETE FROM job_events
WHERE correlation_id IN (
    SELECT correlation_id FROM (
        SELECT correlation_id FROM jobs WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND id > :after AND id <= :until
        ORDER BY account_id, id LIMIT (SELECT 9000000000000000000)) own
    WHERE correlation_id <> '')
RETURNING id;

-- name: job_ledger_entries
-- use: operator
-- Return the ledger entries with these keys, oldest first.
SELECT * FROM ledger WHERE key = ANY (:keys::text[]) ORDER BY at, key;

-- name: job_callbacks
-- use: operator
-- Return those of these callbacks that belong to a job, with the beginning of their bodies.
SELECT b.id, b.provider, b.job_id, b.task_id, substring(b.body FROM 1 FOR :length::int) AS body, b.state, b.note,
    b.received_at, b.attempt, '' AS correlation_id
FROM inbox b WHERE b.id = ANY (:ids::bigint[]) AND b.job_id = :job_id ORDER BY b.id;

-- name: audit_about
-- use: operator
-- Return the newest lines of the audit log about these subjects.
WITH found AS MATERIALIZED (SELECT * FROM audit WHERE subject = ANY (:subjects::text[]))
SELECT * FROM found ORDER BY id DESC LIMIT :limit;
