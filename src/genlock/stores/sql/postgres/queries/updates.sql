-- Updates and their lanes. A new update is counted in its lane's row under that row's lock, so that whoever ends the
-- last but one cannot overlook it: a statement sees only the rows that were there when it began, but the newest count.
-- Lanes are locked in the order of their ids.

-- name: store_updates
-- Keep updates, each id once, and open their lanes. A press that was made a moment ago is kept and not worked off.
WITH item AS MATERIALIZED (
    SELECT t.*, row_number() OVER (PARTITION BY bot, ordering_key, dedup_key ORDER BY update_id) AS nth
    FROM unnest(:bot::text[], :update_id::bigint[], :ordering_key::text[], :kind::text[], :urgent::boolean[], :dedup_key::text[],
                :body::text[]) AS t (bot, update_id, ordering_key, kind, urgent, dedup_key, body)
), added AS (
    INSERT INTO updates (bot, update_id, ordering_key, kind, urgent, dedup_key, body, state, received_at)
    SELECT i.bot, i.update_id, i.ordering_key, i.kind, i.urgent, i.dedup_key, i.body,
        CASE WHEN i.dedup_key IS NOT NULL AND (i.nth > 1 OR EXISTS (
            SELECT FROM updates u
            WHERE u.bot = i.bot AND u.ordering_key = i.ordering_key AND u.dedup_key = i.dedup_key AND u.update_id <> i.update_id
                AND (u.state = 'new' OR u.state <> 'repeated'
                     AND u.received_at > :now - make_interval(secs => :repeat_seconds::float8))))
        THEN 'repeated' ELSE 'new' END,
        :now
    FROM item i ORDER BY i.bot, i.update_id
    ON CONFLICT (bot, update_id) DO NOTHING
    RETURNING bot, update_id, ordering_key, urgent, state
), opened AS (
    INSERT INTO update_queues AS l (bot, name, urgent, waiting, due_at)
    SELECT a.bot, a.ordering_key, a.urgent, a.count, :now
    FROM (SELECT bot, ordering_key, bool_or(urgent) AS urgent, count(*) AS count
          FROM added WHERE state = 'new' GROUP BY bot, ordering_key) a
    LEFT JOIN update_queues k ON k.bot = a.bot AND k.name = a.ordering_key
    ORDER BY k.id, a.bot, a.ordering_key
    ON CONFLICT (bot, name) DO UPDATE
    SET waiting = l.waiting + excluded.waiting, due_at = coalesce(l.due_at, excluded.due_at)
)
SELECT bot, update_id, state FROM added;

-- name: claim_update_queues
-- Take due lanes, the longest overdue first, each with its first update. An expired lease is simply due again; its
-- holder may have died. Those that were often in hand at a death are for whoever asks for them.
WITH due AS MATERIALIZED (
    SELECT id FROM update_queues
    WHERE urgent = :urgent AND due_at <= :now AND bot = ANY (:bots::text[])
        AND (crash_count >= :isolated_from::int) = :poison::boolean
    ORDER BY due_at LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
    UPDATE update_queues l
    SET lease_owner = :owner::text, lease_token = l.lease_token + 1, attempts = l.attempts + 1,
        crash_count = l.crash_count + CASE WHEN l.lease_owner <> :owner::text THEN 1 ELSE 0 END,
        due_at = :now + make_interval(secs => :seconds::float8)
    FROM due WHERE l.id = due.id
    RETURNING l.id, l.bot, l.name, l.lease_token, l.attempts, l.crash_count
)
SELECT t.id AS queue_id, t.lease_token, t.attempts, t.crash_count, u.*
FROM taken t LEFT JOIN LATERAL (
    SELECT * FROM updates n WHERE n.bot = t.bot AND n.ordering_key = t.name AND n.state = 'new' ORDER BY n.id LIMIT 1
) u ON true;

-- name: next_update
-- The first update of a lane that we hold.
SELECT l.id AS queue_id, l.lease_token, l.attempts, l.crash_count, u.*
FROM update_queues l JOIN LATERAL (
    SELECT * FROM updates n WHERE n.bot = l.bot AND n.ordering_key = l.name AND n.state = 'new' ORDER BY n.id LIMIT 1
) u ON true
WHERE l.id = :queue_id AND l.lease_token = :token;

-- name: update_behind
-- The update that waits right behind another one of its lane.
SELECT n.*, 0 AS attempts
FROM updates u JOIN updates n ON n.bot = u.bot AND n.ordering_key = u.ordering_key AND n.state = 'new' AND n.id > u.id
WHERE u.id = :id
ORDER BY n.id LIMIT 1;

-- name: settle_updates
-- Updates are dealt with. Whoever held the lane keeps it as long as more is waiting there, and is told what.
WITH item AS (
    SELECT * FROM unnest(:queue_id::bigint[], :token::bigint[], :id::bigint[], :state::text[], :note::text[])
        AS t (queue_id, token, id, state, note)
), found AS MATERIALIZED (
    SELECT i.* FROM item i JOIN update_queues l ON l.id = i.queue_id
    WHERE l.lease_token = i.token AND l.lease_owner IS NOT NULL
        AND EXISTS (SELECT FROM updates u WHERE u.id = i.id AND u.state = 'new')
    ORDER BY l.id FOR NO KEY UPDATE OF l
), freed AS (
    UPDATE update_queues l
    SET waiting = l.waiting - 1, attempts = CASE WHEN l.waiting > 1 THEN 1 ELSE 0 END, crash_count = 0,
        lease_owner = CASE WHEN l.waiting > 1 THEN l.lease_owner END,
        due_at = CASE WHEN l.waiting > 1 THEN :now + make_interval(secs => :seconds::float8) END
    FROM found i WHERE l.id = i.queue_id
    RETURNING l.id AS queue_id, l.bot, l.name, l.lease_token, l.attempts, l.crash_count, l.waiting, i.id, i.state, i.note
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
-- A try failed: the lane is free again, and due later.
WITH freed AS (
    UPDATE update_queues
    SET lease_owner = NULL, crash_count = 0, due_at = :now + make_interval(secs => :after::float8)
    WHERE id = :queue_id AND lease_token = :token AND lease_owner IS NOT NULL
    RETURNING id
)
UPDATE updates SET note = :note WHERE id = :id AND EXISTS (SELECT FROM freed)
RETURNING id;

-- name: renew_update_queues
-- Keep the lanes of work that takes long.
UPDATE update_queues l SET due_at = :now + make_interval(secs => :seconds::float8)
FROM unnest(:queue_id::bigint[], :token::bigint[]) AS i (id, token)
WHERE l.id = i.id AND l.lease_token = i.token AND l.lease_owner IS NOT NULL
RETURNING l.id;

-- name: release_update_queues
-- Make due the lanes that an instance holds, except those it is known to work on. If it died, as for jobs.
UPDATE update_queues
SET lease_owner = NULL, crash_count = crash_count + CASE WHEN :died::boolean THEN 1 ELSE 0 END,
    due_at = :now + CASE
        WHEN :died::boolean AND crash_count + 1 >= :isolated_from::int
        THEN make_interval(secs => 1 << least(crash_count + 1 - :isolated_from::int, 6))
        ELSE interval '0' END
WHERE due_at > '-infinity' AND lease_owner = :instance AND NOT (id = ANY (:but::bigint[]))
RETURNING id;

-- name: updates
-- The newest updates in a state.
SELECT *, 0 AS attempts FROM updates WHERE state = :state ORDER BY id DESC LIMIT :limit;

-- name: retry_update
-- Work off an update that was set aside.
WITH again AS (
    UPDATE updates SET state = 'new' WHERE id = :id AND state = 'dead' RETURNING bot, ordering_key, urgent
)
INSERT INTO update_queues AS l (bot, name, urgent, waiting, due_at)
SELECT bot, ordering_key, urgent, 1, :now FROM again
ON CONFLICT (bot, name) DO UPDATE SET waiting = l.waiting + 1, due_at = coalesce(l.due_at, excluded.due_at)
RETURNING id;

-- name: check_update_queues
-- Every lane counts the updates that wait in it.
SELECT l.id::text AS subject, format('waiting %s, new updates %s', l.waiting, n.count) AS detail
FROM update_queues l CROSS JOIN LATERAL (
    SELECT count(*) AS count FROM updates u WHERE u.bot = l.bot AND u.ordering_key = l.name AND u.state = 'new'
) n
WHERE l.waiting <> n.count;

-- name: settled_update_queues
-- When no work is left, no update waits.
SELECT id::text AS subject, format('waiting %s, lease %s', waiting, lease_owner) AS detail
FROM update_queues WHERE due_at IS NOT NULL;
