-- name: prune_updates
-- use: periodic
-- Delete old updates, a few at a time. Only the current holder of the active role may, in its own epoch.
DELETE FROM updates
WHERE id IN (SELECT id FROM updates ORDER BY id LIMIT :limit)
    AND state <> 'new' AND received_at < :now - CAST(:older_than * 1000000 AS INTEGER)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_callbacks
-- use: periodic
-- Delete old callbacks, a few at a time. Only the current holder of the active role may, in its own epoch.
DELETE FROM inbox
WHERE id IN (SELECT id FROM inbox ORDER BY id LIMIT :limit)
    AND state NOT IN ('new', 'orphan') AND received_at < :now - CAST(:older_than * 1000000 AS INTEGER)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_unauthenticated_callbacks
-- use: periodic
-- Delete old callbacks that carried no job's secret, a few at a time. Only the current holder of the active role may, in its
-- own epoch.
DELETE FROM inbox
WHERE id IN (
        SELECT id FROM inbox
        WHERE job_id IS NULL AND received_at < :now - CAST(:older_than * 1000000 AS INTEGER)
            AND state NOT IN ('new', 'orphan')
        ORDER BY received_at LIMIT :limit)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_uploads
-- use: periodic
-- Delete old uploads that no order and no draft uses, a few at a time. Only the current holder of the active role may,
-- in its own epoch.
DELETE FROM uploads
WHERE address IN (
        SELECT u.address FROM uploads u
        WHERE u.ordered = 0 AND u.at < :now - CAST(:older_than * 1000000 AS INTEGER) AND NOT EXISTS (
            SELECT 1 FROM drafts d, json_each(d.uploads) used
            WHERE d.account_id = u.account_id AND used.value = u.address)
        ORDER BY u.at LIMIT :limit)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
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
WHERE key > :after AND key <= :until AND next_at < :now - CAST(:idle_seconds * 1000000 AS INTEGER)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING key;
