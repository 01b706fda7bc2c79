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
    url = coalesce(:url::text, url), events = coalesce(:events::text, events),
    description = coalesce(:description::text, description), enabled = coalesce(:enabled::boolean, enabled),
    disabled_reason = CASE WHEN :enabled::boolean THEN '' ELSE disabled_reason END,
    held_until = CASE WHEN :enabled::boolean THEN :now ELSE held_until END,
    failures = CASE WHEN :enabled::boolean THEN 0 ELSE failures END, failing_since = CASE WHEN :enabled::boolean THEN NULL ELSE failing_since END
WHERE id = :id
RETURNING *;

-- name: remove_webhook
-- use: screen
-- Delete an endpoint. Its deliveries are pruned later.
DELETE FROM webhooks WHERE id = :id RETURNING id;

-- name: rotate_webhook_secret
-- use: screen
-- Count a new secret; the one before it signs for a while, too.
UPDATE webhooks SET secret_number = secret_number + 1,
    previous_secret_until = :now + make_interval(secs => :overlap_seconds::float8)
WHERE id = :id
RETURNING *;

-- name: disable_webhook
-- Disable an endpoint that does not want or does not take its events.
UPDATE webhooks SET enabled = false, disabled_reason = :reason WHERE id = :id AND enabled RETURNING id;

-- name: claim_webhooks
-- Take enabled endpoints that have due deliveries, and hide them from other instances for a while; of those that were slow
-- or failed repeatedly only a few. The search steps from endpoint to endpoint in the index: how many deliveries wait for
-- one of them does not matter. A disabled endpoint is taken for its tests, which have an index of their own.
WITH RECURSIVE waiting AS (
    (SELECT webhook_id FROM webhook_deliveries WHERE due_at IS NOT NULL ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.webhook_id FROM webhook_deliveries d
            WHERE d.due_at IS NOT NULL AND d.webhook_id > w.webhook_id ORDER BY d.webhook_id LIMIT 1)
    FROM waiting w WHERE w.webhook_id IS NOT NULL
), due AS MATERIALIZED (
    SELECT w.id, w.held_until, w.slow OR w.failures > 1 AS is_suspect
    FROM webhooks w JOIN waiting ON waiting.webhook_id = w.id
    WHERE w.held_until <= :now AND (
        w.enabled AND EXISTS (
            SELECT FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.due_at IS NOT NULL AND d.due_at <= :now)
        OR EXISTS (
            SELECT FROM webhook_deliveries d
            WHERE d.webhook_id = w.id AND d.due_at IS NOT NULL AND d.due_at <= :now AND d.event = 'webhook.test'))
), chosen AS (
    (SELECT id FROM due WHERE NOT is_suspect ORDER BY held_until LIMIT :limit)
    UNION ALL
    (SELECT id FROM due WHERE is_suspect ORDER BY held_until LIMIT :suspects)
), locked AS MATERIALIZED (
    SELECT w.id FROM webhooks w JOIN chosen ON chosen.id = w.id
    WHERE w.held_until <= :now FOR NO KEY UPDATE OF w SKIP LOCKED
)
UPDATE webhooks w SET held_by = :owner, held_until = :now + make_interval(secs => :hold_seconds::float8)
FROM locked WHERE w.id = locked.id
RETURNING w.*;

-- name: due_webhook_deliveries
-- Return due deliveries of an endpoint, oldest first, of each job only the first one that is pending. The others become due
-- when that one does, so that they are not passed over again and again: the search looks at :window deliveries at most.
-- A disabled endpoint gets tests only.
WITH due AS MATERIALIZED (
    (SELECT d.* FROM webhook_deliveries d
     WHERE d.webhook_id = :webhook_id AND d.due_at IS NOT NULL AND d.due_at <= :now
        AND (SELECT enabled FROM webhooks WHERE id = :webhook_id)
     ORDER BY d.due_at, d.id LIMIT :window)
    UNION ALL
    (SELECT d.* FROM webhook_deliveries d
     WHERE d.webhook_id = :webhook_id AND d.due_at IS NOT NULL AND d.due_at <= :now AND d.event = 'webhook.test'
        AND (SELECT NOT enabled FROM webhooks WHERE id = :webhook_id)
     ORDER BY d.due_at LIMIT :limit)
), blocked AS MATERIALIZED (
    SELECT due.id, due.due_at, earlier.due_at AS until FROM due CROSS JOIN LATERAL (
        SELECT e.due_at FROM webhook_deliveries e
        WHERE e.webhook_id = due.webhook_id AND e.job_id = due.job_id AND e.id < due.id AND e.due_at IS NOT NULL
        ORDER BY e.id LIMIT 1) earlier
), postponed AS (
    UPDATE webhook_deliveries d SET due_at = b.until FROM blocked b WHERE d.id = b.id AND b.until > b.due_at
)
SELECT due.* FROM due WHERE NOT EXISTS (SELECT FROM blocked b WHERE b.id = due.id)
ORDER BY due.due_at, due.id LIMIT :limit;

-- name: settle_webhook_deliveries
-- Record what attempts to deliver led to. What another instance has settled meanwhile stays so.
UPDATE webhook_deliveries d
SET state = i.state, attempts = d.attempts + 1, last_status = i.status, last_error = i.error,
    due_at = CASE WHEN i.state = 'pending' THEN :now + make_interval(secs => i.after) END,
    delivered_at = CASE WHEN i.state = 'delivered' THEN :now ELSE d.delivered_at END
FROM unnest(:delivery_id::bigint[], :state::text[], :after::float8[], :status::integer[], :error::text[])
    AS i (id, state, after, status, error)
WHERE d.id = i.id AND d.due_at IS NOT NULL
RETURNING d.id;

-- name: release_webhook
-- Let any instance claim an endpoint again after a pause, if this one still holds it. :failed: whether nothing could be
-- delivered; NULL if nothing was due.
UPDATE webhooks SET held_by = '', held_until = :now + make_interval(secs => :pause_seconds::float8),
    failures = CASE WHEN :failed::boolean THEN failures + 1 WHEN NOT :failed::boolean THEN 0 ELSE failures END,
    failing_since = CASE WHEN :failed::boolean THEN coalesce(failing_since, :now) WHEN NOT :failed::boolean THEN NULL ELSE failing_since END,
    slow = coalesce(:slow::boolean, slow)
WHERE id = :id AND held_by = :owner RETURNING id;

-- name: release_webhooks_of
-- Let any instance claim the endpoints that an instance held: it stops, or it died.
UPDATE webhooks SET held_by = '', held_until = :now WHERE held_by = :owner AND held_by <> '' RETURNING id;

-- name: wake_webhook
-- use: screen
-- End the pause of an endpoint: its owner wants to see at once whether it takes events again.
UPDATE webhooks SET held_until = :now WHERE id = :id AND held_by = '' AND held_until > :now RETURNING id;

-- name: webhook_deliveries
-- use: screen
-- Return deliveries of an endpoint, newest first.
SELECT * FROM webhook_deliveries
WHERE webhook_id = :webhook_id AND (event_at, id) < (
    coalesce((SELECT b.event_at FROM webhook_deliveries b WHERE b.public_id = :before::text), timestamptz 'infinity'),
    coalesce((SELECT b.id FROM webhook_deliveries b WHERE b.public_id = :before::text), 9223372036854775807))
ORDER BY webhook_id DESC, event_at DESC, id DESC LIMIT :limit;

-- name: webhook_deliveries_in_state
-- use: screen
-- Return deliveries of an endpoint in one state, newest first.
SELECT * FROM webhook_deliveries
WHERE webhook_id = :webhook_id AND state = :state AND (event_at, id) < (
    coalesce((SELECT b.event_at FROM webhook_deliveries b WHERE b.public_id = :before::text), timestamptz 'infinity'),
    coalesce((SELECT b.id FROM webhook_deliveries b WHERE b.public_id = :before::text), 9223372036854775807))
ORDER BY webhook_id DESC, state DESC, event_at DESC, id DESC LIMIT :limit;

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
-- Make some deliveries of a time that are settled in one way due again, oldest first.
UPDATE webhook_deliveries SET state = 'pending', attempts = 0, due_at = :now, last_error = ''
WHERE id IN (
    SELECT id FROM webhook_deliveries
    WHERE webhook_id = :webhook_id AND state = :state
        AND event_at >= timestamptz 'epoch' + :since_us::bigint * interval '1 microsecond'
        AND event_at < timestamptz 'epoch' + :until_us::bigint * interval '1 microsecond'
    ORDER BY webhook_id, state, event_at, id LIMIT :limit)
RETURNING id;

-- name: prune_webhook_deliveries
-- use: periodic
-- Delete old deliveries, also those that could never be sent, and those of an endpoint that was removed, a few at a time.
-- Only the current holder of the active role may, in its own epoch.
WITH RECURSIVE known AS (
    (SELECT webhook_id FROM webhook_deliveries ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.webhook_id FROM webhook_deliveries d
            WHERE d.webhook_id > k.webhook_id ORDER BY d.webhook_id LIMIT 1)
    FROM known k WHERE k.webhook_id IS NOT NULL
), removed AS MATERIALIZED (
    SELECT webhook_id FROM known k
    WHERE webhook_id IS NOT NULL AND NOT EXISTS (SELECT FROM webhooks w WHERE w.id = k.webhook_id) LIMIT 1
), chosen AS MATERIALIZED (
    (SELECT id FROM (SELECT id, event_at FROM webhook_deliveries ORDER BY id LIMIT :limit) oldest
     WHERE event_at < :now - make_interval(secs => :older_than::float8))
    UNION
    (SELECT d.id FROM webhook_deliveries d WHERE d.webhook_id = (SELECT webhook_id FROM removed) LIMIT :limit)
)
DELETE FROM webhook_deliveries d USING chosen
WHERE d.id = chosen.id AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING d.id;
