-- There is one writer, so the count in a queue's row always equals the number of its new updates.

-- name: store_updates
-- Store updates, each id once, and count them in their queues. A press of the same button within a moment, with no other
-- update of the user in between, is stored as repeated and not handled. With an owner, a queue that was empty is leased
-- to it. Returns the added updates and then the queues; a queue with as many waiting updates as were added to it was
-- empty.
INSERT INTO update_item
SELECT bot, update_id, ordering_key, kind, urgent, dedup_key, body,
    CASE WHEN dedup_key IS NOT NULL AND (previous_key = dedup_key OR nth = 1 AND EXISTS (
        SELECT 1 FROM updates u
        WHERE u.bot = i.bot AND u.ordering_key = i.ordering_key AND u.dedup_key = i.dedup_key
            AND u.update_id <> i.update_id
            AND (u.state = 'new' OR u.state <> 'repeated'
                 AND u.received_at > :now - CAST(:repeat_seconds * 1000000 AS INTEGER))
            AND NOT EXISTS (
                SELECT 1 FROM updates b
                WHERE b.bot = i.bot AND b.ordering_key = i.ordering_key AND b.dedup_key IS NOT i.dedup_key
                    AND b.update_id > min(u.update_id, i.update_id) AND b.update_id < max(u.update_id, i.update_id))))
    THEN 'repeated' ELSE 'new' END
FROM (
    SELECT value ->> 'bot' AS bot, value ->> 'update_id' AS update_id, value ->> 'ordering_key' AS ordering_key,
        value ->> 'kind' AS kind, value ->> 'urgent' AS urgent, value ->> 'dedup_key' AS dedup_key,
        value ->> 'body' AS body, row_number() OVER sent AS nth, lag(value ->> 'dedup_key') OVER sent AS previous_key
    FROM json_each(:items)
    WINDOW sent AS (PARTITION BY value ->> 'bot', value ->> 'ordering_key' ORDER BY value ->> 'update_id')
) i
WHERE NOT EXISTS (SELECT 1 FROM updates u WHERE u.bot = i.bot AND u.update_id = i.update_id);
INSERT INTO updates (bot, update_id, ordering_key, kind, urgent, dedup_key, body, state, received_at)
SELECT bot, update_id, ordering_key, kind, urgent, dedup_key, body, state, :now
FROM update_item ORDER BY bot, update_id;
INSERT INTO update_queues (bot, name, urgent, waiting, due_at, lease_owner, lease_token, attempts)
SELECT bot, ordering_key, max(urgent), count(*), :now + CAST(:seconds * 1000000 AS INTEGER), :owner,
    :owner IS NOT NULL, :owner IS NOT NULL
FROM update_item WHERE state = 'new' GROUP BY bot, ordering_key
ON CONFLICT (bot, name) DO UPDATE
SET waiting = update_queues.waiting + excluded.waiting, due_at = coalesce(update_queues.due_at, excluded.due_at),
    lease_owner = CASE WHEN update_queues.due_at IS NULL THEN excluded.lease_owner ELSE update_queues.lease_owner END,
    lease_token = update_queues.lease_token
        + CASE WHEN update_queues.due_at IS NULL THEN excluded.lease_token ELSE 0 END,
    attempts = CASE WHEN update_queues.due_at IS NULL THEN excluded.attempts ELSE update_queues.attempts END;
SELECT u.id, i.bot, i.ordering_key AS name, i.update_id, i.state, u.received_at, 0 AS waiting, 0 AS lease_token
FROM update_item i JOIN updates u ON u.bot = i.bot AND u.update_id = i.update_id;
SELECT q.id, q.bot, q.name, NULL AS update_id, NULL AS state, NULL AS received_at, q.waiting, q.lease_token
FROM (SELECT DISTINCT bot, ordering_key FROM update_item WHERE state = 'new') i
JOIN update_queues q ON q.bot = i.bot AND q.name = i.ordering_key;
DELETE FROM update_item;

-- name: claim_update_queues
-- Lease due update queues of some bots, the longest overdue first, each with its first update. An expired lease is due
-- again; if another instance had it, that counts as a crash. Queues with many crashes are claimed separately.
INSERT INTO queue_item
SELECT id FROM update_queues WHERE urgent = :urgent AND due_at <= :now AND bot IN (SELECT value FROM json_each(:bots))
    AND (crash_count >= :isolated_from) = :poison
ORDER BY due_at LIMIT :limit;
UPDATE update_queues
SET lease_owner = :owner, lease_token = lease_token + 1, attempts = attempts + 1,
    crash_count = crash_count + CASE WHEN lease_owner <> :owner THEN 1 ELSE 0 END,
    due_at = :now + CAST(:seconds * 1000000 AS INTEGER)
WHERE id IN (SELECT queue_id FROM queue_item);
SELECT q.id AS queue_id, q.lease_token, q.attempts, q.crash_count, u.*
FROM queue_item i JOIN update_queues q ON q.id = i.queue_id
LEFT JOIN updates u ON u.id = (
    SELECT n.id FROM updates n WHERE n.bot = q.bot AND n.ordering_key = q.name AND n.state = 'new'
    ORDER BY n.id LIMIT 1);
DELETE FROM queue_item;

-- name: next_update
-- Return the first update of a leased queue.
SELECT q.id AS queue_id, q.lease_token, q.attempts, q.crash_count, u.*
FROM update_queues q JOIN updates u ON u.id = (
    SELECT n.id FROM updates n WHERE n.bot = q.bot AND n.ordering_key = q.name AND n.state = 'new'
    ORDER BY n.id LIMIT 1)
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
INSERT INTO settle_item
SELECT value ->> 'queue_id', value ->> 'token', value ->> 'id', value ->> 'state', value ->> 'note'
FROM json_each(:items) i
JOIN update_queues q ON q.id = value ->> 'queue_id' AND q.lease_token = value ->> 'token' AND q.lease_owner IS NOT NULL
JOIN updates u ON u.id = value ->> 'id' AND u.state = 'new';
UPDATE updates SET state = i.state, note = i.note FROM settle_item i WHERE updates.id = i.id;
UPDATE update_queues
SET waiting = waiting - 1, attempts = CASE WHEN waiting > 1 THEN 1 ELSE 0 END, crash_count = 0,
    lease_owner = CASE WHEN waiting > 1 THEN lease_owner END,
    due_at = CASE WHEN waiting > 1 THEN :now + CAST(:seconds * 1000000 AS INTEGER) END
FROM settle_item i WHERE update_queues.id = i.queue_id;
SELECT q.id AS queue_id, q.lease_token, q.attempts, q.crash_count, q.waiting, u.*
FROM settle_item i JOIN update_queues q ON q.id = i.queue_id
LEFT JOIN updates u ON u.id = (
    SELECT n.id FROM updates n WHERE n.bot = q.bot AND n.ordering_key = q.name AND n.state = 'new'
    ORDER BY n.id LIMIT 1);
DELETE FROM settle_item;

-- name: postpone_update
-- Release a queue after a failed attempt, until later.
UPDATE updates SET note = :note
WHERE id = :id AND EXISTS (
    SELECT 1 FROM update_queues WHERE id = :queue_id AND lease_token = :token AND lease_owner IS NOT NULL);
UPDATE update_queues
SET lease_owner = NULL, crash_count = 0, due_at = :now + CAST(:after * 1000000 AS INTEGER)
WHERE id = :queue_id AND lease_token = :token AND lease_owner IS NOT NULL
RETURNING id;

-- name: renew_update_queues
-- Renew the leases of queues whose handlers take long.
UPDATE update_queues SET due_at = :now + CAST(:seconds * 1000000 AS INTEGER)
FROM json_each(:items) i
WHERE update_queues.id = i.value ->> 'queue_id' AND lease_token = i.value ->> 'token' AND lease_owner IS NOT NULL
RETURNING update_queues.id;

-- name: release_update_queues
-- Release the update queues of an instance, except some. After a crash, count it and delay as for jobs.
UPDATE update_queues
SET lease_owner = NULL, crash_count = crash_count + :crashed,
    due_at = :now + CASE WHEN :crashed AND crash_count + 1 >= :isolated_from
        THEN 1000000 << min(crash_count + 1 - :isolated_from, 6) ELSE 0 END
WHERE due_at IS NOT NULL AND lease_owner = :instance AND id NOT IN (SELECT value FROM json_each(:keep))
RETURNING id;

-- name: new_updates
-- use: operator
-- Return the newest updates that are not handled. Of the others only the ids are read, from the index.
WITH waiting AS MATERIALIZED (SELECT id FROM updates INDEXED BY updates_waiting WHERE state = 'new'),
newest AS MATERIALIZED (SELECT id FROM waiting ORDER BY id DESC LIMIT :limit)
SELECT u.*, 0 AS attempts FROM newest n CROSS JOIN updates u ON u.id = n.id ORDER BY u.id DESC;

-- name: dead_updates
-- use: operator
-- Return the newest updates that failed in every attempt.
SELECT *, 0 AS attempts FROM updates WHERE state = 'dead' ORDER BY id DESC LIMIT :limit;

-- name: update_row_range
-- use: operator
-- Return the lowest and the highest id of a stored update.
SELECT (SELECT min(id) FROM updates) AS first, (SELECT max(id) FROM updates) AS last;

-- name: updates_between
-- use: operator
-- Return the updates in a state within a range of ids, newest first.
SELECT *, 0 AS attempts FROM updates
WHERE id >= :floor AND id < :before AND state = :state ORDER BY id DESC LIMIT :limit;

-- name: retry_update
-- Queue a dead update again.
UPDATE updates SET state = 'new' WHERE id = :id AND state = 'dead';
INSERT INTO update_queues (bot, name, urgent, waiting, due_at)
SELECT bot, ordering_key, urgent, 1, :now FROM updates WHERE id = :id AND changes() = 1  -- only if it was dead
ON CONFLICT (bot, name) DO UPDATE
SET waiting = update_queues.waiting + 1, due_at = coalesce(update_queues.due_at, excluded.due_at)
RETURNING id;
