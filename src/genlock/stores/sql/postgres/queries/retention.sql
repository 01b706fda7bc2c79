-- name: prune_updates
-- use: periodic
-- Delete old updates, a few at a time; those that wait, such as those for a bot that is not served any more, hide none behind
-- them. Only the current holder of the active role may, in its own epoch.
DELETE FROM updates
WHERE id IN (SELECT id FROM updates WHERE state <> 'new' ORDER BY id LIMIT :limit)
    AND state <> 'new' AND received_at < :now - make_interval(secs => :older_than::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_callbacks
-- use: periodic
-- Delete old callbacks, a few at a time. Only the current holder of the active role may, in its own epoch.
DELETE FROM inbox
WHERE id IN (SELECT id FROM inbox WHERE state NOT IN ('new', 'orphan') ORDER BY id LIMIT :limit)
    AND state NOT IN ('new', 'orphan') AND received_at < :now - make_interval(secs => :older_than::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_unauthenticated_callbacks
-- use: periodic
-- Delete old callbacks that carried no job's secret, a few at a time. Only the current holder of the active role may, in its
-- own epoch.
DELETE FROM inbox
WHERE id IN (
        SELECT id FROM inbox
        WHERE job_id IS NULL AND received_at < :now - make_interval(secs => :older_than::float8)
            AND state NOT IN ('new', 'orphan')
        ORDER BY received_at LIMIT :limit)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_uploads
-- use: periodic
-- Delete old uploads that no order and no draft uses, after one time in microseconds up to another, a few at a time. Only
-- the current holder of the active role may, in its own epoch.
DELETE FROM uploads
WHERE address IN (
        SELECT u.address FROM uploads u
        WHERE NOT u.ordered AND u.at > timestamptz 'epoch' + :after::bigint * interval '1 microsecond'
            AND u.at <= timestamptz 'epoch' + :until::bigint * interval '1 microsecond'
            AND u.at < :now - make_interval(secs => :older_than::float8) AND NOT EXISTS (
                SELECT FROM drafts d WHERE d.account_id = u.account_id AND u.address = ANY (d.uploads))
        ORDER BY u.at LIMIT :limit)
    AND NOT coalesce(ordered, false)  -- so that the planner does not read all files that no order uses
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING address;

-- name: step_uploads
-- use: periodic
-- Return the time, in microseconds, of the last of the next old uploads that no order uses.
SELECT (extract(epoch FROM max(at)) * 1000000)::bigint AS until FROM (
    SELECT at FROM uploads
    WHERE NOT ordered AND at > timestamptz 'epoch' + :after::bigint * interval '1 microsecond'
        AND at < :now - make_interval(secs => :older_than::float8)
    ORDER BY at LIMIT :size) step;

-- name: step_limits
-- use: periodic
-- Return the last key of the next limits.
SELECT max(key) AS until FROM (SELECT key FROM limits WHERE key > :after ORDER BY key LIMIT :size) step;

-- name: prune_limits
-- use: periodic
-- Delete limits that were not used for long, after one key up to another. Only the current holder of the active role may,
-- in its own epoch.
DELETE FROM limits
WHERE key > :after AND key <= :until AND next_at < :now - make_interval(secs => :idle_seconds::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING key;

-- name: prune_ordered_uploads
-- use: periodic
-- Delete old uploads that an order uses, a few at a time. Only the current holder of the active role may, in its own
-- epoch.
DELETE FROM uploads
WHERE address IN (SELECT address FROM uploads WHERE ordered AND at < :now - make_interval(secs => :older_than::float8) ORDER BY at LIMIT :limit)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING address;

-- name: prune_upload_copies
-- use: periodic
-- Delete what is known of copies that their provider has deleted, a few at a time. Only the current holder of the active
-- role may, in its own epoch.
DELETE FROM upload_copies
WHERE (address, provider) IN (
        SELECT address, provider FROM upload_copies
        WHERE expires_at < :now - make_interval(secs => :older_than::float8) ORDER BY expires_at LIMIT :limit)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING address;

-- name: prune_audit
-- use: periodic
-- Delete old lines of the audit log, a few at a time. Only the current holder of the active role may, in its own epoch.
DELETE FROM audit
WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT :limit) AND at < :now - make_interval(secs => :older_than::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_promo_uses
-- use: periodic
-- Delete the uses of codes for credits that ended long ago, a few at a time. Uses of codes for free runs stay: they say
-- how many runs are left. Only the current holder of the active role may, in its own epoch.
DELETE FROM promo_uses
WHERE (code, account_id, number) IN (
        SELECT u.code, u.account_id, u.number FROM promos p CROSS JOIN LATERAL (
            SELECT code, account_id, number FROM promo_uses WHERE code = p.code LIMIT :limit) u
        WHERE p.runs = 0 AND coalesce(p.closed_at, p.until_at) < :now - make_interval(secs => :older_than::float8) LIMIT :limit)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING code;

-- name: prune_free_runs
-- use: periodic
-- Delete old daily free runs of the accounts after one id up to another, a few at a time. Those from promo codes stay:
-- they say how many runs are left. Only the current holder of the active role may, in its own epoch.
DELETE FROM free_runs
WHERE (account_id, request_key) IN (
        SELECT old.account_id, old.request_key FROM accounts a CROSS JOIN LATERAL (
            SELECT account_id, request_key FROM free_runs
            WHERE account_id = a.id AND source = 'day' AND at < :now - make_interval(secs => :older_than::float8) LIMIT :limit) old
        WHERE a.id > :after AND a.id <= :until LIMIT :limit)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING account_id;

-- name: prune_drafts
-- use: periodic
-- Empty old drafts of the accounts after one id up to another, a few at a time. They keep their versions, which are part of
-- idempotency keys of orders. Only the current holder of the active role may, in its own epoch.
UPDATE drafts SET body = '{}', uploads = '{}', message = NULL, version = version + 1
WHERE (account_id, chat) IN (
        SELECT account_id, chat FROM drafts
        WHERE account_id > :after AND account_id <= :until AND updated_at < :now - make_interval(secs => :older_than::float8)
            AND (body <> '{}' OR uploads <> '{}' OR message IS NOT NULL) LIMIT :limit)
    AND updated_at < :now - make_interval(secs => :older_than::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING account_id;

-- name: prune_update_queues
-- use: periodic
-- Delete empty update queues after one id up to another: the next update of the user creates a new one. Only the current
-- holder of the active role may, in its own epoch.
DELETE FROM update_queues
WHERE id IN (
        SELECT id FROM update_queues
        WHERE id > :after AND id <= :until AND waiting = 0 AND lease_owner IS NULL LIMIT :limit)
    AND waiting = 0 AND lease_owner IS NULL
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_bulk_failures
-- use: periodic
-- Delete what old bulk actions left out, a few at a time. Only the current holder of the active role may, in its own epoch.
DELETE FROM bulk_failures
WHERE (bulk_id, job_id) IN (SELECT bulk_id, job_id FROM bulk_failures ORDER BY bulk_id, job_id LIMIT :limit)
    AND EXISTS (SELECT 1 FROM bulk_actions a WHERE a.id = bulk_failures.bulk_id AND a.ended_at < :now - make_interval(secs => :older_than::float8))
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING job_id;
