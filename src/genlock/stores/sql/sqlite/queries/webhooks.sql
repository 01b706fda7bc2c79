-- name: add_webhook
-- use: screen
-- Store an endpoint, unless the account has as many as it may. Two at the same time may both pass the check.
INSERT INTO webhooks (account_id, public_id, url, events, description, held_until, created_at)
SELECT :account_id, :public_id, :url, :events, :description, :now, :now
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
    held_until = CASE WHEN :enabled THEN :now ELSE held_until END
WHERE id = :id
RETURNING *;

-- name: remove_webhook
-- use: screen
-- Delete an endpoint. What waited for it is given up: the search for due events must not meet endpoints that are gone.
-- Its deliveries are pruned later.
UPDATE webhook_deliveries SET state = 'failed', due_at = NULL, last_error = 'the endpoint was deleted'
WHERE webhook_id = :id AND due_at IS NOT NULL;
DELETE FROM webhooks WHERE id = :id RETURNING id;

-- name: rotate_webhook_secret
-- use: screen
-- Count a new secret; the one before it signs for a while, too.
UPDATE webhooks SET secret_number = secret_number + 1,
    previous_secret_until = :now + CAST(:overlap_seconds * 1000000 AS INTEGER)
WHERE id = :id
RETURNING *;

-- name: disable_webhook
-- Disable an endpoint that does not want or does not take its events.
UPDATE webhooks SET enabled = 0, disabled_reason = :reason WHERE id = :id AND enabled RETURNING id;

-- name: claim_webhooks
-- Take enabled endpoints that have due deliveries, and hide them from other instances for a while. The search steps from
-- endpoint to endpoint in the index: how many deliveries wait for one of them does not matter.
WITH RECURSIVE waiting AS (
    SELECT min(webhook_id) AS webhook_id FROM webhook_deliveries WHERE due_at IS NOT NULL
    UNION ALL
    SELECT (SELECT min(d.webhook_id) FROM webhook_deliveries d
            WHERE d.due_at IS NOT NULL AND d.webhook_id > w.webhook_id)
    FROM waiting w WHERE w.webhook_id IS NOT NULL
)
UPDATE webhooks SET held_until = :now + CAST(:hold_seconds * 1000000 AS INTEGER)
WHERE id IN (
    SELECT w.id FROM waiting CROSS JOIN webhooks w ON w.id = waiting.webhook_id
    WHERE w.held_until <= :now AND EXISTS (
        SELECT 1 FROM webhook_deliveries d
        WHERE d.webhook_id = w.id AND d.due_at IS NOT NULL AND d.due_at <= :now AND (w.enabled OR d.event = 'webhook.test'))
    ORDER BY w.held_until LIMIT :limit)
RETURNING *;

-- name: due_webhook_deliveries
-- Return due deliveries of an endpoint, oldest first, of each job only the first one that is pending. A disabled endpoint
-- gets tests only.
SELECT d.* FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id
WHERE d.webhook_id = :webhook_id AND d.due_at IS NOT NULL AND d.due_at <= :now
    AND (w.enabled OR d.event = 'webhook.test')
    AND NOT EXISTS (
        SELECT 1 FROM webhook_deliveries e
        WHERE e.webhook_id = d.webhook_id AND e.job_id = d.job_id AND e.id < d.id AND e.due_at IS NOT NULL)
ORDER BY d.due_at, d.id LIMIT :limit;

-- name: settle_webhook_deliveries
-- Record what attempts to deliver led to.
UPDATE webhook_deliveries
SET state = i.value ->> 'state', attempts = attempts + 1, last_status = i.value ->> 'status',
    last_error = i.value ->> 'error',
    due_at = CASE WHEN i.value ->> 'state' = 'pending' THEN :now + CAST((i.value ->> 'after') * 1000000 AS INTEGER) END,
    delivered_at = CASE WHEN i.value ->> 'state' = 'delivered' THEN :now ELSE delivered_at END
FROM json_each(:items) i WHERE webhook_deliveries.id = i.value ->> 'delivery_id'
RETURNING id;

-- name: release_webhook
-- Let any instance claim an endpoint again after a pause.
UPDATE webhooks SET held_until = :now + CAST(:pause_seconds * 1000000 AS INTEGER) WHERE id = :id RETURNING id;

-- name: webhook_deliveries
-- use: screen
-- Return deliveries of an endpoint, newest first.
SELECT * FROM webhook_deliveries
WHERE webhook_id = :webhook_id
    AND id < coalesce((SELECT b.id FROM webhook_deliveries b WHERE b.public_id = :before), 9223372036854775807)
    AND state = coalesce(:state, state)
ORDER BY webhook_id DESC, id DESC LIMIT :limit;

-- name: add_test_delivery
-- use: screen
-- Put a test event into the outbox of an endpoint.
INSERT INTO webhook_deliveries (public_id, webhook_id, event, event_at, due_at)
SELECT :public_id, id, 'webhook.test', :now, :now FROM webhooks WHERE id = :webhook_id
RETURNING *;

-- name: redeliver
-- use: screen
-- Make one delivery due again.
UPDATE webhook_deliveries SET state = 'pending', attempts = 0, due_at = :now, last_error = ''
WHERE public_id = :public_id AND webhook_id = :webhook_id
RETURNING *;

-- name: redeliver_between
-- use: screen
-- Make settled deliveries of a time due again, oldest first.
UPDATE webhook_deliveries SET state = 'pending', attempts = 0, due_at = :now, last_error = ''
WHERE id IN (
    SELECT id FROM webhook_deliveries
    WHERE webhook_id = :webhook_id AND due_at IS NULL AND event_at >= :since_us AND event_at < :until_us
        AND (NOT :failed_only OR state = 'failed')
    ORDER BY webhook_id, id LIMIT :limit)
RETURNING id;

-- name: prune_webhook_deliveries
-- use: periodic
-- Delete old deliveries that are settled or whose endpoint is gone, a few at a time. Only the current holder of the active
-- role may, in its own epoch.
DELETE FROM webhook_deliveries AS d
WHERE d.id IN (SELECT id FROM webhook_deliveries ORDER BY id LIMIT :limit)
    AND d.event_at < :now - CAST(:older_than * 1000000 AS INTEGER)
    AND (d.due_at IS NULL OR NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.id = d.webhook_id AND w.enabled))
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;
