-- name: store_callback
-- Store raw callbacks, each with its job and attempt if the secret is that of an attempt. Of one for a job that was erased
-- only the row is stored: it could change nothing, and its body repeats the user's input and result.
WITH item AS MATERIALIZED (
    SELECT nextval('inbox_id_seq') AS id, t.*, j.id AS job_id, j.correlation_id, coalesce(a.number, j.attempt) AS attempt,
        e.id IS NOT NULL AS is_erased
    FROM unnest(:ord::bigint[], :provider::text[], :job_id::bigint[], :secret_hash::text[], :body::bytea[])
        AS t (ord, provider, claimed_job, secret_hash, body)
    LEFT JOIN attempts a
        ON a.job_id = t.claimed_job AND a.secret_hash = t.secret_hash AND a.provider = t.provider
    LEFT JOIN jobs j ON j.id = t.claimed_job
        AND (a.job_id IS NOT NULL OR j.secret_hash = t.secret_hash AND j.provider = t.provider)
    LEFT JOIN jobs e ON e.id = t.claimed_job
        AND e.ended_at IS NOT NULL AND e.secret_hash IS NULL AND e.input = 'null'
), added AS (
    INSERT INTO inbox (id, provider, job_id, attempt, body, state, note, due_at, received_at)
    OVERRIDING SYSTEM VALUE
    SELECT id, provider, job_id, attempt, CASE WHEN is_erased THEN ''::bytea ELSE body END,
        CASE WHEN is_erased THEN 'done' ELSE 'new' END, CASE WHEN is_erased THEN 'erased' ELSE '' END,
        CASE WHEN NOT is_erased THEN :now + make_interval(secs => :hold_seconds::float8) END, :now
    FROM item
)
SELECT ord, id, job_id, attempt, correlation_id, :now AS received_at FROM item;

-- name: is_callback_secret
-- Whether this is the secret of a job's callback URL.
SELECT id FROM jobs WHERE id = :job_id AND provider = :provider AND secret_hash = :secret_hash
UNION ALL
SELECT job_id FROM attempts WHERE job_id = :job_id AND provider = :provider AND secret_hash = :secret_hash;

-- name: count_unauthenticated_callbacks
-- Count the latest callbacks that carried no job's secret, up to a limit.
SELECT count(*) AS number FROM (
    SELECT 1 AS one FROM inbox WHERE job_id IS NULL
        AND received_at > :now - make_interval(secs => :older_than::float8) LIMIT :limit::bigint
) AS lately;

-- name: claim_callbacks
-- Take stored callbacks that no instance settled in time, and hide them for a while. For `due_since` and the row that is
-- returned also if nothing is due, see `DueScan`.
WITH due AS MATERIALIZED (
    SELECT id, due_at FROM inbox
    WHERE due_at > least(coalesce(:due_since::timestamptz, '-infinity'), :now) - interval '30 seconds' AND due_at <= :now
    ORDER BY due_at LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
), claimed AS (
    UPDATE inbox b SET due_at = :now + make_interval(secs => :hold_seconds::float8)
    FROM due WHERE b.id = due.id
    RETURNING b.*, due.due_at AS was_due_at
)
SELECT c.*, :now AS read_at, (SELECT correlation_id FROM jobs j WHERE j.id = c.job_id) AS correlation_id
FROM (SELECT 1) always LEFT JOIN claimed c ON true;

-- name: settle_callback
-- Set the final state of new callbacks that change no job. Of an unauthenticated callback only the beginning of the body is
-- stored.
UPDATE inbox b SET state = i.state, due_at = NULL, task_id = coalesce(i.task_id, b.task_id), note = i.note,
    body = CASE WHEN b.job_id IS NULL THEN substring(b.body FROM 1 FOR 2000) ELSE b.body END
FROM unnest(:callback_id::bigint[], :state::text[], :task_id::text[], :note::text[]) AS i (id, state, task_id, note)
WHERE b.id = i.id AND b.state = 'new'
RETURNING b.id;

-- name: expire_callback
-- Set a callback that could not be applied to expired, if it has waited long enough.
UPDATE inbox SET state = 'expired', due_at = NULL, note = :note
WHERE id = :callback_id AND state = 'new' AND received_at < :now - make_interval(secs => :older_than::float8)
RETURNING id;

-- name: note_untrusted_callback
-- Make the running job of an unauthenticated callback due for a status query, or store the beginning of the callback as
-- an orphan. It never gets the job's id: a row without one counts as unauthenticated. Of several callbacks about one
-- task in a while, one is kept open; of the others only the row remains, so that they count. The search ends after as
-- many rows as are accepted in that time. A callback that was settled before keeps its state: its own row would count as
-- the earlier one. Of a callback about a job that was erased only the row remains, too.
WITH job AS MATERIALIZED (
    SELECT id FROM jobs WHERE provider = :provider AND task_id = :task_id FOR NO KEY UPDATE
), nudged AS (
    UPDATE jobs j SET due_at = :now
    FROM job WHERE j.id = job.id AND j.state = 'running' AND j.lease_owner IS NULL
), earlier AS MATERIALIZED (
    SELECT b.state FROM (
        SELECT provider, task_id, state FROM inbox
        WHERE job_id IS NULL AND received_at > :now - make_interval(secs => :repeat_seconds::float8)
        ORDER BY received_at DESC LIMIT 1000) b
    WHERE b.provider = :provider AND b.task_id = :task_id AND b.state IN ('orphan', 'matched')
), erased AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE ended_at IS NOT NULL AND secret_hash IS NULL AND input = 'null' AND id = coalesce(
        (SELECT job.id FROM job),
        (SELECT a.job_id FROM attempts a WHERE a.provider = :provider AND a.task_id = :task_id LIMIT 1))
), noted AS (
    UPDATE inbox
    SET state = CASE
            WHEN EXISTS (SELECT FROM erased) OR EXISTS (SELECT FROM earlier) THEN 'done'
            WHEN EXISTS (SELECT FROM job) THEN 'matched'
            ELSE 'orphan' END,
        note = CASE
            WHEN EXISTS (SELECT FROM erased) THEN 'erased'
            WHEN EXISTS (SELECT FROM earlier) THEN 'repeated'
            ELSE note END,
        task_id = :task_id, due_at = NULL,
        body = CASE
            WHEN EXISTS (SELECT FROM erased) OR EXISTS (SELECT FROM earlier) THEN ''
            ELSE substring(body FROM 1 FOR 2000) END
    WHERE id = :callback_id AND state = 'new'
)
SELECT (SELECT id FROM job) AS job_id;

-- name: match_orphans
-- use: periodic
-- Match orphans with jobs that know their task by now, and make the running ones due for a status query. OFFSET 0: one
-- look into the index of task ids for each orphan. The planner would read all jobs in the order of their ids if it
-- expected many orphans, as it does without statistics.
WITH found AS MATERIALIZED (
    SELECT b.id AS callback_id, j.id AS job_id
    FROM inbox b CROSS JOIN LATERAL (
        SELECT id FROM jobs WHERE provider = b.provider AND task_id = b.task_id OFFSET 0) j
    WHERE b.state = 'orphan' ORDER BY j.id LIMIT :limit
), pair AS MATERIALIZED (
    SELECT f.callback_id, f.job_id FROM found f JOIN jobs j ON j.id = f.job_id ORDER BY j.id FOR NO KEY UPDATE OF j
), nudged AS (
    UPDATE jobs j SET due_at = :now
    WHERE j.id IN (SELECT job_id FROM pair) AND j.state = 'running' AND j.lease_owner IS NULL
)
UPDATE inbox b SET state = 'matched'
FROM pair WHERE b.id = pair.callback_id
RETURNING pair.callback_id, pair.job_id;

-- name: expire_orphans
-- use: periodic
-- Set old orphans to expired. Only the current holder of the active role may, in its own epoch.
UPDATE inbox SET state = 'expired'
WHERE state = 'orphan' AND received_at < :now - make_interval(secs => :older_than::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: new_callbacks
-- use: operator
-- Return the newest callbacks that are not settled. Of the others only the ids are read.
WITH waiting AS MATERIALIZED (SELECT id FROM inbox WHERE due_at IS NOT NULL),
newest AS MATERIALIZED (SELECT id FROM waiting ORDER BY id DESC LIMIT :limit)
SELECT b.*, (SELECT correlation_id FROM jobs j WHERE j.id = b.job_id) AS correlation_id
FROM newest n JOIN inbox b ON b.id = n.id ORDER BY b.id DESC;

-- name: orphan_callbacks
-- use: operator
-- Return the newest callbacks whose job is not known. Of the others only the ids are read.
WITH orphan AS MATERIALIZED (SELECT id FROM inbox WHERE state = 'orphan'),
newest AS MATERIALIZED (SELECT id FROM orphan ORDER BY id DESC LIMIT :limit)
SELECT b.*, NULL AS correlation_id FROM newest n JOIN inbox b ON b.id = n.id ORDER BY b.id DESC;

-- name: callback_id_range
-- use: operator
-- Return the lowest and the highest id of a callback.
SELECT min(id) AS first, max(id) AS last FROM inbox;

-- name: callbacks_between
-- use: operator
-- Return the callbacks in a state within a range of ids, newest first, each with the job whose secret it carried or whose
-- task it names.
SELECT b.id, b.provider, j.id AS job_id, b.task_id, b.body, b.state, b.note, b.received_at, b.attempt, j.correlation_id
FROM inbox b LEFT JOIN jobs j ON j.id = coalesce(b.job_id, (
    SELECT t.id FROM jobs t WHERE b.state = 'matched' AND t.provider = b.provider AND t.task_id = b.task_id))
WHERE b.id >= :floor AND b.id < :before AND b.state = :state ORDER BY b.id DESC LIMIT :limit;
