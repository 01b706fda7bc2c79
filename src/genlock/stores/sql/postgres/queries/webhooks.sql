-- name: add_webhook
-- use: screen
-- Store an endpoint, unless the account has as many as it may. Two at the same time may both pass the check.
INSERT INTO webhooks (account_id, public_id, url, events, description, secret, held_until, created_at)
SELECT :account_id, :public_id, :url, :events, :description, :secret, :now, :now
WHERE (SELECT count(*) FROM webhooks WHERE account_id = :account_id) < :most
RETURNING *;

-- name: account_webhooks
-- use: screen
-- Return the endpoints of an account. An array as in `account_jobs`.
SELECT * FROM webhooks WHERE account_id = ANY (ARRAY[:account_id::bigint]) ORDER BY account_id, id;

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
-- Delete an endpoint. Its deliveries are pruned within minutes, a few at a time: there may be very many.
DELETE FROM webhooks WHERE id = :id RETURNING id;

-- name: rotate_webhook_secret
-- use: screen
-- Store a new secret; the one before it signs for a while, too. Nothing happens if it was rotated meanwhile.
UPDATE webhooks SET secret_number = secret_number + 1, previous_secret = secret, secret = :secret,
    previous_secret_until = :now + make_interval(secs => :overlap_seconds::float8)
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
WITH disabled AS (
    UPDATE webhooks SET enabled = false, disabled_reason = :reason WHERE id = :id AND enabled RETURNING id
), queued AS (
    INSERT INTO kv (key, bot, value, at) SELECT :message_key, '', :message, :now FROM disabled
    WHERE :message_key::text IS NOT NULL
)
SELECT id FROM disabled;

-- name: claim_webhooks
-- Take enabled endpoints that have due deliveries, and hide them from other instances for a while; of those that were slow
-- or failed repeatedly only a few. The search steps from endpoint to endpoint in the index: how many deliveries wait for
-- one of them does not matter. A disabled endpoint is taken for its tests, which have an index of their own. Without
-- `full`, only deliveries that became due lately are looked for, but for every endpoint: see `claim_webhooks` in Python.
WITH RECURSIVE waiting AS (
    (SELECT webhook_id FROM webhook_deliveries WHERE :full::boolean AND due_at IS NOT NULL ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.webhook_id FROM webhook_deliveries d
            WHERE d.due_at IS NOT NULL AND d.webhook_id > w.webhook_id ORDER BY d.webhook_id LIMIT 1)
    FROM waiting w WHERE w.webhook_id IS NOT NULL
), candidate AS (
    SELECT webhook_id FROM waiting
    UNION ALL
    SELECT id FROM webhooks WHERE NOT :full::boolean
), due AS MATERIALIZED (
    SELECT w.id, w.held_until, w.slow OR w.failures > 1 AS is_degraded
    FROM webhooks w JOIN candidate ON candidate.webhook_id = w.id
    WHERE w.held_until <= :now AND (
        w.enabled AND EXISTS (
            SELECT FROM webhook_deliveries d
            WHERE d.webhook_id = w.id AND d.due_at <= :now
                AND d.due_at > CASE WHEN :full::boolean THEN '-infinity' ELSE :now - interval '2 minutes' END)
        OR EXISTS (
            SELECT FROM webhook_deliveries d
            WHERE d.webhook_id = w.id AND d.due_at IS NOT NULL AND d.due_at <= :now AND d.event = 'webhook.test'))
), chosen AS (
    (SELECT id FROM due WHERE NOT is_degraded ORDER BY held_until LIMIT :limit)
    UNION ALL
    (SELECT id FROM due WHERE is_degraded ORDER BY held_until LIMIT :degraded)
), locked AS MATERIALIZED (
    SELECT w.id FROM webhooks w JOIN chosen ON chosen.id = w.id
    WHERE w.held_until <= :now FOR NO KEY UPDATE OF w SKIP LOCKED
)
UPDATE webhooks w SET held_by = :owner, held_until = :now + make_interval(secs => :hold_seconds::float8)
FROM locked WHERE w.id = locked.id
RETURNING w.*;

-- name: due_webhook_deliveries
-- Return due deliveries of an endpoint, oldest first, of each job only the first one that is pending. The planner is to read
-- them in the order of the index, as many as are returned, and to look up the others of each one's job: otherwise it sorts all
-- that wait, or compares them with each other. Hence a lower limit in any case, without which it overrates the cost of
-- this index, and an inner LIMIT that stops nothing, but is not known when the plan is made.
SELECT d.* FROM (
    SELECT * FROM webhook_deliveries
    WHERE webhook_id = :webhook_id AND due_at <= :now
        AND due_at > coalesce(:due_since::timestamptz, '-infinity') - interval '2 minutes'
    ORDER BY due_at, id LIMIT (SELECT 9000000000000000000)) d
WHERE NOT EXISTS (
        SELECT FROM webhook_deliveries e
        WHERE e.webhook_id = d.webhook_id AND e.job_id = d.job_id AND e.id < d.id AND e.due_at IS NOT NULL OFFSET 0)
ORDER BY d.due_at, d.id LIMIT :limit;

-- name: due_webhook_tests
-- Return due test events of an endpoint, oldest first.
SELECT * FROM webhook_deliveries
WHERE webhook_id = :webhook_id AND due_at IS NOT NULL AND due_at <= :now AND event = 'webhook.test'
ORDER BY due_at, id LIMIT :limit;

-- name: settle_webhook_deliveries
-- Record what attempts to deliver led to, unless another instance has settled it meanwhile. Later events of the same jobs become due with the next attempt, or now.
WITH settled AS (
    UPDATE webhook_deliveries d
    SET state = i.state, attempts = d.attempts + 1, last_status = i.status, last_error = i.error,
        last_answer = i.answer,
        due_at = CASE WHEN i.state = 'pending' THEN :now + make_interval(secs => i.after) END,
        delivered_at = CASE WHEN i.state = 'delivered' THEN :now ELSE d.delivered_at END
    FROM unnest(:delivery_id::bigint[], :webhook_id::bigint[], :state::text[], :after::float8[], :status::integer[], :error::text[],
        :answer::text[]) AS i (id, webhook_id, state, after, status, error, answer)
    WHERE d.id = i.id AND d.webhook_id = i.webhook_id AND d.due_at IS NOT NULL
    RETURNING d.id, d.webhook_id, d.job_id, d.due_at
)
UPDATE webhook_deliveries d SET due_at = coalesce(s.due_at, :now)
FROM settled s
WHERE d.webhook_id = s.webhook_id AND d.job_id = s.job_id AND d.id > s.id AND d.due_at IS NOT NULL
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
-- Let any instance claim the endpoints that an instance held: it stops, or it crashed.
UPDATE webhooks SET held_by = '', held_until = :now WHERE held_by = :owner AND held_by <> '' RETURNING id;

-- name: wake_webhook
-- use: screen
-- End the pause of an endpoint: its owner wants to see at once whether it takes events again.
UPDATE webhooks SET held_until = :now WHERE id = :id AND held_by = '' AND held_until > :now RETURNING id;

-- name: webhook_deliveries
-- use: screen
-- Return deliveries of an endpoint, newest first. An array as in `account_jobs`.
SELECT * FROM webhook_deliveries
WHERE webhook_id = ANY (ARRAY[:webhook_id::bigint])
    AND id < coalesce((SELECT b.id FROM webhook_deliveries b WHERE b.public_id = :before::text), 9223372036854775807)
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
