-- name: store_callback
-- Store raw callbacks, each with its job and attempt if the secret is that of an attempt. Of one for a job that was erased
-- only the row is stored: it could change nothing, and its body repeats the user's input and result.
INSERT INTO inbox (provider, job_id, attempt, body, state, note, due_at, received_at)
SELECT
    :provider, j.id, coalesce(a.number, j.attempt), CASE WHEN e.id IS NULL THEN :body ELSE x'' END,
    CASE WHEN e.id IS NULL THEN 'new' ELSE 'done' END, CASE WHEN e.id IS NULL THEN '' ELSE 'erased' END,
    CASE WHEN e.id IS NULL THEN :now + CAST(:hold_seconds * 1000000 AS INTEGER) END, :now
FROM (SELECT :job_id AS job_id) t
LEFT JOIN attempts a ON a.job_id = t.job_id AND a.secret_hash = :secret_hash AND a.provider = :provider
LEFT JOIN jobs j ON j.id = t.job_id
    AND (a.job_id IS NOT NULL OR j.secret_hash = :secret_hash AND j.provider = :provider)
LEFT JOIN jobs e ON e.id = t.job_id AND e.ended_at IS NOT NULL AND e.secret_hash IS NULL AND e.input = 'null'
RETURNING id, job_id, attempt, received_at, (SELECT correlation_id FROM jobs WHERE jobs.id = inbox.job_id) AS correlation_id;

-- name: is_callback_secret
-- Whether this is the secret of a job's callback URL.
SELECT id FROM jobs WHERE id = :job_id AND provider = :provider AND secret_hash = :secret_hash
UNION ALL
SELECT job_id FROM attempts WHERE job_id = :job_id AND provider = :provider AND secret_hash = :secret_hash;

-- name: count_unauthenticated_callbacks
-- Count the latest callbacks that carried no job's secret, up to a limit.
SELECT count(*) AS number FROM (
    SELECT 1 AS one FROM inbox WHERE job_id IS NULL
        AND received_at > :now - CAST(:older_than * 1000000 AS INTEGER) LIMIT :limit
) AS lately;

-- name: claim_callbacks
-- Take stored callbacks that no instance settled in time, and hide them for a while.
UPDATE inbox SET due_at = :now + CAST(:hold_seconds * 1000000 AS INTEGER)
WHERE id IN (SELECT id FROM inbox WHERE due_at <= :now ORDER BY due_at LIMIT :limit)
RETURNING *, (SELECT correlation_id FROM jobs WHERE jobs.id = inbox.job_id) AS correlation_id;

-- name: settle_callback
-- Set the final state of new callbacks that change no job. Of an unauthenticated callback only the beginning of the body is
-- stored.
UPDATE inbox
SET state = i.value ->> 'state', due_at = NULL, task_id = coalesce(i.value ->> 'task_id', task_id),
    note = i.value ->> 'note',
    body = CASE WHEN job_id IS NULL AND length(body) > 2000 THEN substr(body, 1, 2000) ELSE body END
FROM json_each(:items) i WHERE inbox.id = i.value ->> 'callback_id' AND inbox.state = 'new'
RETURNING id;

-- name: expire_callback
-- Set a callback that could not be applied to expired, if it has waited long enough.
UPDATE inbox SET state = 'expired', due_at = NULL, note = :note
WHERE id = :callback_id AND state = 'new' AND received_at < :now - CAST(:older_than * 1000000 AS INTEGER)
RETURNING id;

-- name: note_untrusted_callback
-- Make the running job of an unauthenticated callback due for a status query, or store the beginning of the callback as
-- an orphan. It never gets the job's id: a row without one counts as unauthenticated. Of several callbacks about one
-- task in a while, one is kept open; of the others only the row remains, so that they count. The search ends after as
-- many rows as are accepted in that time. A callback that was settled before keeps its state: its own row would count as
-- the earlier one. Of a callback about a job that was erased only the row remains, too.
UPDATE jobs SET due_at = :now
WHERE provider = :provider AND task_id = :task_id AND state = 'running' AND lease_owner IS NULL;
WITH earlier AS MATERIALIZED (
    SELECT b.state FROM (
        SELECT provider, task_id, state FROM inbox
        WHERE job_id IS NULL AND received_at > :now - CAST(:repeat_seconds * 1000000 AS INTEGER)
        ORDER BY received_at DESC LIMIT 1000) b
    WHERE b.provider = :provider AND b.task_id = :task_id AND b.state IN ('orphan', 'matched')
), erased AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE ended_at IS NOT NULL AND secret_hash IS NULL AND input = 'null' AND id = coalesce(
        (SELECT j.id FROM jobs j WHERE j.provider = :provider AND j.task_id = :task_id),
        (SELECT a.job_id FROM attempts a WHERE a.provider = :provider AND a.task_id = :task_id LIMIT 1))
)
UPDATE inbox
SET state = CASE
        WHEN EXISTS (SELECT 1 FROM erased) OR EXISTS (SELECT 1 FROM earlier) THEN 'done'
        WHEN EXISTS (SELECT 1 FROM jobs WHERE provider = :provider AND task_id = :task_id) THEN 'matched'
        ELSE 'orphan' END,
    note = CASE
        WHEN EXISTS (SELECT 1 FROM erased) THEN 'erased'
        WHEN EXISTS (SELECT 1 FROM earlier) THEN 'repeated'
        ELSE note END,
    task_id = :task_id, due_at = NULL,
    body = CASE
        WHEN EXISTS (SELECT 1 FROM erased) OR EXISTS (SELECT 1 FROM earlier) THEN x''
        ELSE substr(body, 1, 2000) END
WHERE id = :callback_id AND state = 'new';
SELECT (SELECT id FROM jobs WHERE provider = :provider AND task_id = :task_id) AS job_id;

-- name: match_orphans
-- use: periodic
-- Match orphans with jobs that know their task by now, and make the running ones due for a status query.
UPDATE jobs SET due_at = :now
WHERE state = 'running' AND lease_owner IS NULL AND id IN (
    SELECT j.id FROM inbox b CROSS JOIN jobs j ON j.provider = b.provider AND j.task_id = b.task_id
    WHERE b.state = 'orphan' ORDER BY j.id LIMIT :limit);
UPDATE inbox SET state = 'matched'
FROM (SELECT b.id AS callback_id
      FROM inbox b CROSS JOIN jobs j ON j.provider = b.provider AND j.task_id = b.task_id
      WHERE b.state = 'orphan' ORDER BY j.id LIMIT :limit) AS pair
WHERE inbox.id = pair.callback_id
RETURNING id AS callback_id,
    (SELECT j.id FROM jobs j WHERE j.provider = inbox.provider AND j.task_id = inbox.task_id LIMIT 1) AS job_id;

-- name: expire_orphans
-- use: periodic
-- Set old orphans to expired. Only the current holder of the active role may, in its own epoch.
UPDATE inbox SET state = 'expired'
WHERE state = 'orphan' AND received_at < :now - CAST(:older_than * 1000000 AS INTEGER)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: new_callbacks
-- use: operator
-- Return the newest callbacks that are not settled. Of the others only the ids are read.
WITH waiting AS MATERIALIZED (SELECT id FROM inbox INDEXED BY inbox_due WHERE due_at IS NOT NULL),
newest AS MATERIALIZED (SELECT id FROM waiting ORDER BY id DESC LIMIT :limit)
SELECT b.*, (SELECT correlation_id FROM jobs j WHERE j.id = b.job_id) AS correlation_id
FROM newest n CROSS JOIN inbox b ON b.id = n.id ORDER BY b.id DESC;

-- name: orphan_callbacks
-- use: operator
-- Return the newest callbacks whose job is not known. Of the others only the ids are read.
WITH orphan AS MATERIALIZED (SELECT id FROM inbox INDEXED BY inbox_orphans WHERE state = 'orphan'),
newest AS MATERIALIZED (SELECT id FROM orphan ORDER BY id DESC LIMIT :limit)
SELECT b.*, NULL AS correlation_id FROM newest n CROSS JOIN inbox b ON b.id = n.id ORDER BY b.id DESC;

-- name: callback_id_range
-- use: operator
-- Return the lowest and the highest id of a callback.
SELECT (SELECT min(id) FROM inbox) AS first, (SELECT max(id) FROM inbox) AS last;

-- name: callbacks_between
-- use: operator
-- Return the callbacks in a state within a range of ids, newest first, each with the job whose secret it carried or whose
-- task it names.
SELECT b.id, b.provider, j.id AS job_id, b.task_id, b.body, b.state, b.note, b.received_at, b.attempt, j.correlation_id
FROM inbox b LEFT JOIN jobs j ON j.id = coalesce(b.job_id, (
    SELECT t.id FROM jobs t WHERE b.state = 'matched' AND t.provider = b.provider AND t.task_id = b.task_id))
WHERE b.id >= :floor AND b.id < :before AND b.state = :state ORDER BY b.id DESC LIMIT :limit;
