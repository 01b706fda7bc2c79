-- name: add_webhook
-- use: screen
-- Store an endpoint, unless the account has as many as it may. Its id was never that of another endpoint, which a sender may
-- still hold, and whose deliveries are pruned later: SQLite itself would give out the highest id again after a deletion.
INSERT INTO webhooks (id, account_id, public_id, url, events, description, secret, held_until, created_at)
SELECT max(:now, (SELECT coalesce(max(id), 0) + 1 FROM webhooks)), :account_id, :public_id, :url, :events, :description, :secret, :now, :now
WHERE (SELECT count(*) FROM webhooks WHERE account_id = :account_id) < :most
RETURNING *;

-- name: account_webhooks
-- use: screen
-- Return the endpoints of an account.
SELECT * FROM webhooks WHERE account_id = :account_id ORDER BY id;

-- name: webhook
-- use: screen
-- Return one endpoint of an account.
SELECT * FROM webhooks WHERE public_id = :public_id AND account_id = :account_id;

-- name: change_webhook
-- use: screen
-- Change what is given of an endpoint.
UPDATE webhooks SET
    url = coalesce(:url, url), events = coalesce(:events, events),
    description = coalesce(:description, description), enabled = coalesce(:enabled, enabled),
    disabled_reason = CASE WHEN :enabled THEN '' ELSE disabled_reason END,
    held_until = CASE WHEN :enabled THEN :now ELSE held_until END,
    failures = CASE WHEN :enabled THEN 0 ELSE failures END, failing_since = CASE WHEN :enabled THEN NULL ELSE failing_since END
WHERE id = :id
RETURNING *;

-- name: remove_webhook
-- use: screen
-- Delete an endpoint. Its deliveries are pruned within minutes, a few at a time: there may be very many.
DELETE FROM webhooks WHERE id = :id RETURNING id;

-- name: rotate_webhook_secret
-- use: screen
-- Store a new secret; the one before it signs for a while, too. Nothing happens if it was rotated meanwhile.
UPDATE webhooks SET secret_number = secret_number + 1, previous_secret = secret, secret = :secret,
    previous_secret_until = :now + CAST(:overlap_seconds * 1000000 AS INTEGER)
WHERE id = :id AND secret_number = :secret_number
RETURNING *;

-- name: webhooks_after
-- use: periodic
-- Return endpoints of all accounts after an id, in the order of their ids.
SELECT * FROM webhooks WHERE id > :after ORDER BY id LIMIT :limit;

-- name: seal_webhook_secrets
-- use: periodic
-- Replace the sealed secrets of an endpoint, if nothing has changed them meanwhile.
UPDATE webhooks SET secret = :secret, previous_secret = :previous_secret
WHERE id = :id AND secret_number = :secret_number AND secret = :secret_before
RETURNING id;

-- name: disable_webhook
-- Disable an endpoint that does not want or does not take its events, and queue a message.
UPDATE webhooks SET enabled = 0, disabled_reason = :reason WHERE id = :id AND enabled RETURNING id;
INSERT INTO kv (key, bot, value, at) SELECT :message_key, '', :message, :now WHERE changes() = 1 AND :message_key IS NOT NULL;

-- name: claim_webhooks
-- Take enabled endpoints that have due deliveries, and hide them from other instances for a while; of those that were slow
-- or failed repeatedly only a few. The search steps from endpoint to endpoint in the index: how many deliveries wait for
-- one of them does not matter. A disabled endpoint is taken for its tests, which have an index of their own.
WITH RECURSIVE waiting AS (
    SELECT min(webhook_id) AS webhook_id FROM webhook_deliveries WHERE due_at IS NOT NULL
    UNION ALL
    SELECT (SELECT min(d.webhook_id) FROM webhook_deliveries d
            WHERE d.due_at IS NOT NULL AND d.webhook_id > w.webhook_id)
    FROM waiting w WHERE w.webhook_id IS NOT NULL
), due AS MATERIALIZED (
    SELECT w.id, w.held_until, w.slow OR w.failures > 1 AS is_degraded
    FROM waiting CROSS JOIN webhooks w ON w.id = waiting.webhook_id
    WHERE w.held_until <= :now AND (
        w.enabled AND EXISTS (
            SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.due_at IS NOT NULL AND d.due_at <= :now)
        OR EXISTS (
            SELECT 1 FROM webhook_deliveries d
            WHERE d.webhook_id = w.id AND d.due_at IS NOT NULL AND d.due_at <= :now AND d.event = 'webhook.test'))
)
UPDATE webhooks SET held_by = :owner, held_until = :now + CAST(:hold_seconds * 1000000 AS INTEGER)
WHERE id IN (SELECT id FROM (SELECT id FROM due WHERE NOT is_degraded ORDER BY held_until LIMIT :limit))
    OR id IN (SELECT id FROM (SELECT id FROM due WHERE is_degraded ORDER BY held_until LIMIT :degraded))
RETURNING *;

-- name: due_webhook_deliveries
-- Return due deliveries of an endpoint, oldest first, of each job only the first one that is pending.
SELECT d.* FROM webhook_deliveries d
WHERE d.webhook_id = :webhook_id AND d.due_at IS NOT NULL AND d.due_at <= :now
    AND NOT EXISTS (
        SELECT 1 FROM webhook_deliveries e
        WHERE e.webhook_id = d.webhook_id AND e.job_id = d.job_id AND e.id < d.id AND e.due_at IS NOT NULL)
ORDER BY d.due_at, d.id LIMIT :limit;

-- name: due_webhook_tests
-- Return due test events of an endpoint, oldest first.
SELECT * FROM webhook_deliveries
WHERE webhook_id = :webhook_id AND due_at IS NOT NULL AND due_at <= :now AND event = 'webhook.test'
ORDER BY due_at, id LIMIT :limit;

-- name: settle_webhook_deliveries
-- Record what attempts to deliver led to, unless another instance has settled it meanwhile. Later events of the same jobs become due with the next attempt, or now.
UPDATE webhook_deliveries
SET state = i.value ->> 'state', attempts = attempts + 1, last_status = i.value ->> 'status',
    last_error = i.value ->> 'error', last_answer = i.value ->> 'answer',
    due_at = CASE WHEN i.value ->> 'state' = 'pending' THEN :now + CAST((i.value ->> 'after') * 1000000 AS INTEGER) END,
    delivered_at = CASE WHEN i.value ->> 'state' = 'delivered' THEN :now ELSE delivered_at END
FROM json_each(:items) i
WHERE webhook_deliveries.id = i.value ->> 'delivery_id' AND webhook_id = i.value ->> 'webhook_id' AND due_at IS NOT NULL;
UPDATE webhook_deliveries AS d
SET due_at = coalesce((
    SELECT max(e.due_at) FROM webhook_deliveries e
    WHERE e.webhook_id = d.webhook_id AND e.job_id = d.job_id AND e.id < d.id AND e.due_at IS NOT NULL), :now)
WHERE d.id IN (
    SELECT later.id FROM json_each(:items) i CROSS JOIN webhook_deliveries s ON s.id = i.value ->> 'delivery_id'
    CROSS JOIN webhook_deliveries later ON later.webhook_id = s.webhook_id AND later.job_id = s.job_id
        AND later.id > s.id AND later.due_at IS NOT NULL)
RETURNING id;

-- name: release_webhook
-- Let any instance claim an endpoint again after a pause, if this one still holds it. :failed: whether nothing could be
-- delivered; NULL if nothing was due.
UPDATE webhooks SET held_by = '', held_until = :now + CAST(:pause_seconds * 1000000 AS INTEGER),
    failures = CASE WHEN :failed THEN failures + 1 WHEN NOT :failed THEN 0 ELSE failures END,
    failing_since = CASE WHEN :failed THEN coalesce(failing_since, :now) WHEN NOT :failed THEN NULL ELSE failing_since END,
    slow = coalesce(:slow, slow)
WHERE id = :id AND held_by = :owner RETURNING id;

-- name: release_webhooks_of
-- Let any instance claim the endpoints that an instance held: it stops, or it crashed.
UPDATE webhooks SET held_by = '', held_until = :now WHERE held_by = :owner AND held_by <> '' RETURNING id;

-- name: wake_webhook
-- use: screen
-- End the pause of an endpoint: its owner wants to see at once whether it takes events again.
UPDATE webhooks SET held_until = :now WHERE id = :id AND held_by = '' AND held_until > :now RETURNING id;

-- name: webhook_deliveries
-- use: screen
-- Return deliveries of an endpoint, newest first.
SELECT * FROM webhook_deliveries
WHERE webhook_id = :webhook_id
    AND id < coalesce((SELECT b.id FROM webhook_deliveries b WHERE b.public_id = :before), 9223372036854775807)
ORDER BY webhook_id DESC, id DESC LIMIT :limit;

-- name: webhook_deliveries_in_state
-- use: screen
-- Return deliveries of an endpoint that are in a state, newest first.
SELECT * FROM webhook_deliveries
WHERE webhook_id = :webhook_id AND state = :state
ORDER BY webhook_id DESC, state DESC, event_at DESC, id DESC LIMIT :limit;

-- name: webhook_deliveries_in_state_before
-- use: screen
-- Return deliveries of an endpoint that are in a state and older than one of them, newest first.
SELECT * FROM webhook_deliveries
WHERE webhook_id = :webhook_id AND state = :state
    AND (event_at, id) < (SELECT b.event_at, b.id FROM webhook_deliveries b WHERE b.public_id = :before)
ORDER BY webhook_id DESC, state DESC, event_at DESC, id DESC LIMIT :limit;

-- name: webhook_delivery
-- use: screen
-- Return one delivery of an endpoint.
SELECT * FROM webhook_deliveries WHERE public_id = :public_id AND webhook_id = :webhook_id;

-- name: job_webhook_deliveries
-- use: operator
-- Return what was sent, or is to be sent, about a job, oldest first.
SELECT * FROM webhook_deliveries WHERE job_id = :job_id ORDER BY id LIMIT :limit;

-- name: count_waiting_deliveries
-- use: screen
-- Count the deliveries that wait for an endpoint, up to a limit.
SELECT count(*) AS count FROM (
    SELECT 1 FROM webhook_deliveries WHERE webhook_id = :webhook_id AND due_at IS NOT NULL LIMIT :limit) w;

-- name: add_test_delivery
-- use: screen
-- Put a test event into the outbox of an endpoint, once per id.
INSERT INTO webhook_deliveries (public_id, webhook_id, event, event_at, due_at)
SELECT :public_id, id, 'webhook.test', :now, :now FROM webhooks WHERE id = :webhook_id
ON CONFLICT (public_id) DO NOTHING
RETURNING *;

-- name: redeliver
-- use: screen
-- Make one delivery due again.
UPDATE webhook_deliveries SET state = 'pending', attempts = 0, due_at = :now, last_error = ''
WHERE public_id = :public_id AND webhook_id = :webhook_id
RETURNING *;

-- name: redeliver_between
-- use: screen
-- Make deliveries of a time that are in a state due again, oldest first.
UPDATE webhook_deliveries SET state = 'pending', attempts = 0, due_at = :now, last_error = ''
WHERE id IN (
    SELECT id FROM webhook_deliveries
    WHERE webhook_id = :webhook_id AND state = :state
        AND event_at >= :since_us
        AND event_at < :until_us
    ORDER BY webhook_id, state, event_at, id LIMIT :limit)
RETURNING id;

-- name: prune_webhook_deliveries
-- use: periodic
-- Delete old deliveries, also those that could never be sent, and those of an endpoint that was removed, a few at a time.
-- Only the current holder of the active role may, in its own epoch.
WITH RECURSIVE known AS (
    SELECT min(webhook_id) AS webhook_id FROM webhook_deliveries
    UNION ALL
    SELECT (SELECT min(d.webhook_id) FROM webhook_deliveries d WHERE d.webhook_id > k.webhook_id)
    FROM known k WHERE k.webhook_id IS NOT NULL
), removed AS MATERIALIZED (
    SELECT webhook_id FROM known k
    WHERE webhook_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.id = k.webhook_id) LIMIT 1
)
DELETE FROM webhook_deliveries
WHERE id IN (
    SELECT id FROM (SELECT id, event_at FROM webhook_deliveries ORDER BY id LIMIT :limit)
    WHERE event_at < :now - CAST(:older_than * 1000000 AS INTEGER)
    UNION
    SELECT * FROM (
        SELECT d.id FROM webhook_deliveries d WHERE d.webhook_id = (SELECT webhook_id FROM removed) LIMIT :limit))
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;
