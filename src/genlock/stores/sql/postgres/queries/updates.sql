-- A new update is counted in the row of its queue under the lock of that row. A statement sees only the updates that
-- were there when it began, but always the latest count: so the statement that settles the last known update cannot
-- miss a new one. Queues are locked in the order of their ids.

-- name: store_updates
-- Store updates, each id once, and count them in their queues. A press of the same button within a moment, with no other
-- update of the user in between, is stored as repeated and not handled. With an owner, a queue that was empty is leased
-- to it. Returns the added updates and then the queues; a queue with as many waiting updates as were added to it was
-- empty.
WITH item AS MATERIALIZED (
    SELECT t.*, row_number() OVER sent AS nth, lag(dedup_key) OVER sent AS previous_key
    FROM unnest(:bot::text[], :update_id::bigint[], :ordering_key::text[], :kind::text[], :urgent::boolean[],
                :dedup_key::text[],
                :body::text[]) AS t (bot, update_id, ordering_key, kind, urgent, dedup_key, body)
    WINDOW sent AS (PARTITION BY bot, ordering_key ORDER BY update_id)
), added AS (
    INSERT INTO updates (bot, update_id, ordering_key, kind, urgent, dedup_key, body, state, received_at)
    SELECT i.bot, i.update_id, i.ordering_key, i.kind, i.urgent, i.dedup_key, i.body,
        CASE WHEN i.dedup_key IS NOT NULL AND (i.previous_key = i.dedup_key OR i.nth = 1 AND EXISTS (
            SELECT FROM updates u
            WHERE u.bot = i.bot AND u.ordering_key = i.ordering_key AND u.dedup_key = i.dedup_key
                AND u.update_id <> i.update_id
                AND (u.state = 'new' OR u.state <> 'repeated'
                     AND u.received_at > :now - make_interval(secs => :repeat_seconds::float8))
                AND NOT EXISTS (
                    SELECT FROM updates b
                    WHERE b.bot = i.bot AND b.ordering_key = i.ordering_key
                        AND b.dedup_key IS DISTINCT FROM i.dedup_key
                        AND b.update_id > least(u.update_id, i.update_id)
                        AND b.update_id < greatest(u.update_id, i.update_id))))
        THEN 'repeated' ELSE 'new' END,
        :now
    FROM item i ORDER BY i.bot, i.update_id
    ON CONFLICT (bot, update_id) DO NOTHING
    RETURNING id, bot, update_id, ordering_key, urgent, state, received_at
), opened AS (
    INSERT INTO update_queues AS q (bot, name, urgent, waiting, due_at, lease_owner, lease_token, attempts)
    SELECT a.bot, a.ordering_key, a.urgent, a.count, :now + make_interval(secs => :seconds::float8), :owner::text,
        CASE WHEN :owner::text IS NULL THEN 0 ELSE 1 END, CASE WHEN :owner::text IS NULL THEN 0 ELSE 1 END
    FROM (SELECT bot, ordering_key, bool_or(urgent) AS urgent, count(*) AS count
          FROM added WHERE state = 'new' GROUP BY bot, ordering_key) a
    LEFT JOIN update_queues k ON k.bot = a.bot AND k.name = a.ordering_key
    ORDER BY k.id, a.bot, a.ordering_key
    ON CONFLICT (bot, name) DO UPDATE
    SET waiting = q.waiting + excluded.waiting, due_at = coalesce(q.due_at, excluded.due_at),
        lease_owner = CASE WHEN q.due_at IS NULL THEN excluded.lease_owner ELSE q.lease_owner END,
        lease_token = q.lease_token + CASE WHEN q.due_at IS NULL THEN excluded.lease_token ELSE 0 END,
        attempts = CASE WHEN q.due_at IS NULL THEN excluded.attempts ELSE q.attempts END
    RETURNING q.id, q.bot, q.name, q.waiting, q.lease_token
)
SELECT id, bot, ordering_key AS name, update_id, state, received_at, 0 AS waiting, 0 AS lease_token FROM added
UNION ALL
SELECT id, bot, name, NULL, NULL, NULL, waiting, lease_token FROM opened;

-- name: claim_update_queues
-- Lease due update queues of some bots, the longest overdue first, each with its first update. An expired lease is due
-- again; if another instance had it, that counts as a crash. Queues with many crashes are claimed separately.
-- For `due_since` and the row that is returned also if nothing is due, see `DueScan`.
WITH due AS MATERIALIZED (
    SELECT id, due_at FROM update_queues
    WHERE urgent = :urgent AND due_at <= :now AND bot = ANY (:bots::text[])
        AND due_at > least(coalesce(:due_since::timestamptz, '-infinity'), :now) - interval '30 seconds'
        AND (crash_count >= :isolated_from::int) = :poison::boolean
    ORDER BY due_at LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
    UPDATE update_queues q
    SET lease_owner = :owner::text, lease_token = q.lease_token + 1, attempts = q.attempts + 1,
        crash_count = q.crash_count + CASE WHEN q.lease_owner <> :owner::text THEN 1 ELSE 0 END,
        due_at = :now + make_interval(secs => :seconds::float8)
    FROM due WHERE q.id = due.id
    RETURNING q.id, q.bot, q.name, q.lease_token, q.attempts, q.crash_count, due.due_at AS was_due_at
)
SELECT t.id AS queue_id, t.lease_token, t.attempts, t.crash_count, t.was_due_at, u.*, :now AS read_at
FROM (SELECT 1) always LEFT JOIN taken t ON true LEFT JOIN LATERAL (
    SELECT * FROM updates n WHERE n.bot = t.bot AND n.ordering_key = t.name AND n.state = 'new' ORDER BY n.id LIMIT 1
) u ON true;

-- name: next_update
-- Return the first update of a leased queue.
SELECT q.id AS queue_id, q.lease_token, q.attempts, q.crash_count, u.*
FROM update_queues q JOIN LATERAL (
    SELECT * FROM updates n WHERE n.bot = q.bot AND n.ordering_key = q.name AND n.state = 'new' ORDER BY n.id LIMIT 1
) u ON true
WHERE q.id = :queue_id AND q.lease_token = :token;

-- name: following_update
-- Return the update that follows another one in its queue.
SELECT n.*, 0 AS attempts
FROM updates u JOIN updates n ON n.bot = u.bot AND n.ordering_key = u.ordering_key AND n.state = 'new' AND n.id > u.id
WHERE u.id = :id
ORDER BY n.id LIMIT 1;

-- name: is_update_open
-- Whether an update is not settled yet.
SELECT 1 AS found FROM updates WHERE id = :id AND state = 'new';

-- name: settle_updates
-- Set the final state of updates. The lease is kept while more updates wait in the queue, and the next one is returned.
WITH item AS (
    SELECT * FROM unnest(:queue_id::bigint[], :token::bigint[], :id::bigint[], :state::text[], :note::text[])
        AS t (queue_id, token, id, state, note)
), found AS MATERIALIZED (
    SELECT i.* FROM item i JOIN update_queues q ON q.id = i.queue_id
    WHERE q.lease_token = i.token AND q.lease_owner IS NOT NULL
        AND EXISTS (  -- coalesce keeps the planner from reading all updates that wait
            SELECT FROM updates u WHERE u.id = i.id AND coalesce(u.state, '') = 'new')
    ORDER BY q.id FOR NO KEY UPDATE OF q
), freed AS (
    UPDATE update_queues q
    SET waiting = q.waiting - 1, attempts = CASE WHEN q.waiting > 1 THEN 1 ELSE 0 END, crash_count = 0,
        lease_owner = CASE WHEN q.waiting > 1 THEN q.lease_owner END,
        due_at = CASE WHEN q.waiting > 1 THEN :now + make_interval(secs => :seconds::float8) END
    FROM found i WHERE q.id = i.queue_id
    RETURNING q.id AS queue_id, q.bot, q.name, q.lease_token, q.attempts, q.crash_count, q.waiting, i.id, i.state,
        i.note
), settled AS (
    UPDATE updates u SET state = f.state, note = f.note FROM freed f WHERE u.id = f.id
)
SELECT f.queue_id, f.lease_token, f.attempts, f.crash_count, f.waiting, u.*
FROM freed f LEFT JOIN LATERAL (
    SELECT * FROM updates n
    WHERE f.waiting > 0 AND n.bot = f.bot AND n.ordering_key = f.name AND n.state = 'new' AND n.id <> f.id
    ORDER BY n.id LIMIT 1
) u ON true;

-- name: postpone_update
-- Release a queue after a failed attempt, until later.
WITH freed AS (
    UPDATE update_queues
    SET lease_owner = NULL, crash_count = 0, due_at = :now + make_interval(secs => :after::float8)
    WHERE id = :queue_id AND lease_token = :token AND lease_owner IS NOT NULL
    RETURNING id
)
UPDATE updates SET note = :note WHERE id = :id AND EXISTS (SELECT FROM freed)
RETURNING id;

-- name: renew_update_queues
-- Renew the leases of queues whose handlers take long.
UPDATE update_queues q SET due_at = :now + make_interval(secs => :seconds::float8)
FROM unnest(:queue_id::bigint[], :token::bigint[]) AS i (id, token)
WHERE q.id = i.id AND q.lease_token = i.token AND q.lease_owner IS NOT NULL
RETURNING q.id;

-- name: release_update_queues
-- Release the update queues of an instance, except some. After a crash, count it and delay as for jobs.
UPDATE update_queues
SET lease_owner = NULL, crash_count = crash_count + CASE WHEN :crashed::boolean THEN 1 ELSE 0 END,
    due_at = :now + CASE
        WHEN :crashed::boolean AND crash_count + 1 >= :isolated_from::int
        THEN make_interval(secs => 1 << least(crash_count + 1 - :isolated_from::int, 6))
        ELSE interval '0' END
WHERE due_at > (  -- as in `release_leases`
        SELECT coalesce(min(least(seen_at, :now)), '-infinity') - interval '1 minute' FROM instances WHERE id = :instance)
    AND lease_owner = :instance AND NOT (id = ANY (:keep::bigint[]))
RETURNING id;

-- name: new_updates
-- use: operator
-- Return the newest updates that are not handled. Of the others only the ids are read.
WITH waiting AS MATERIALIZED (SELECT id FROM updates WHERE state = 'new'),
newest AS MATERIALIZED (SELECT id FROM waiting ORDER BY id DESC LIMIT :limit)
SELECT u.*, 0 AS attempts FROM newest n JOIN updates u ON u.id = n.id ORDER BY u.id DESC;

-- name: dead_updates
-- use: operator
-- Return the newest updates that failed in every attempt.
SELECT *, 0 AS attempts FROM updates WHERE state = 'dead' ORDER BY id DESC LIMIT :limit;

-- name: update_row_range
-- use: operator
-- Return the lowest and the highest id of a stored update.
SELECT min(id) AS first, max(id) AS last FROM updates;

-- name: updates_between
-- use: operator
-- Return the updates in a state within a range of ids, newest first.
SELECT *, 0 AS attempts FROM updates
WHERE id >= :floor AND id < :before AND state = :state ORDER BY id DESC LIMIT :limit;

-- name: retry_update
-- Queue a dead update again.
WITH again AS (
    UPDATE updates SET state = 'new' WHERE id = :id AND state = 'dead' RETURNING bot, ordering_key, urgent
)
INSERT INTO update_queues AS q (bot, name, urgent, waiting, due_at)
SELECT bot, ordering_key, urgent, 1, :now FROM again
ON CONFLICT (bot, name) DO UPDATE SET waiting = q.waiting + 1, due_at = coalesce(q.due_at, excluded.due_at)
RETURNING id;
