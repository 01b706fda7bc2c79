-- name: prune_updates
-- use: periodic
-- Delete old updates, a few at a time. Only the current holder of the active role may, in its own epoch.
DELETE FROM updates
WHERE id IN (SELECT id FROM updates ORDER BY id LIMIT :limit)
    AND state <> 'new' AND received_at < :now - make_interval(secs => :older_than::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_callbacks
-- use: periodic
-- Delete old callbacks, a few at a time. Only the current holder of the active role may, in its own epoch.
DELETE FROM inbox
WHERE id IN (SELECT id FROM inbox ORDER BY id LIMIT :limit)
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
-- Delete old uploads that no order and no draft uses, a few at a time. Only the current holder of the active role may,
-- in its own epoch.
DELETE FROM uploads
WHERE address IN (
        SELECT u.address FROM uploads u
        WHERE NOT u.ordered AND u.at < :now - make_interval(secs => :older_than::float8) AND NOT EXISTS (
            SELECT FROM drafts d WHERE d.account_id = u.account_id AND u.address = ANY (d.uploads))
        ORDER BY u.at LIMIT :limit)
    AND NOT ordered
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING address;

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
