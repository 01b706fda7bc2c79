-- Facts, what the alarms look at, and what is forgotten in the end.

-- name: kv_get
-- What is known under a key.
SELECT key, bot, value, at, :now AS read_at FROM kv WHERE key = :key AND bot = :bot;

-- name: kv_put_if_absent
-- Know something from now on, unless something is known already; says what is.
INSERT INTO kv (key, bot, value, at) VALUES (:key, :bot, :value, :now) ON CONFLICT (key, bot) DO NOTHING;
SELECT value FROM kv WHERE key = :key AND bot = :bot;

-- name: kv_put
-- Know something else from now on.
INSERT INTO kv (key, bot, value, at) VALUES (:key, :bot, :value, :now)
ON CONFLICT (key, bot) DO UPDATE SET value = excluded.value, at = excluded.at;

-- name: kv_delete
-- Know it no more.
DELETE FROM kv WHERE key = :key AND bot = :bot;

-- name: kv_list
-- All that is known under keys with a beginning.
SELECT key, bot, value, at, :now AS read_at FROM kv
WHERE bot = :bot AND substr(key, 1, length(:beginning)) = :beginning ORDER BY key;

-- name: clock
-- The process's time: SQLite has none of its own.
SELECT :now AS now;

-- name: live_instances
-- The instances that were heard of lately.
SELECT id, started_at FROM instances
WHERE seen_at >= :now - CAST(:silent_seconds * 1000000 AS INTEGER) ORDER BY started_at;

-- name: stats
-- How things go, in numbers: what is open, how old the oldest is, and how the newest jobs ended.
SELECT state AS name, count(*) AS value FROM jobs WHERE due_at IS NOT NULL GROUP BY state
UNION ALL
SELECT 'due', count(*) FROM jobs WHERE due_at <= :now
UNION ALL
SELECT 'due_age', (:now - min(due_at)) / 1e6 FROM jobs WHERE due_at <= :now
UNION ALL
SELECT 'undelivered', count(*) FROM jobs WHERE due_at IS NOT NULL AND delivery IN ('pending', 'sending')
UNION ALL
SELECT 'undelivered_age', (:now - min(ended_at)) / 1e6 FROM jobs
WHERE due_at IS NOT NULL AND delivery IN ('pending', 'sending')
UNION ALL
SELECT 'queued_age', (:now - min(created_at)) / 1e6 FROM jobs WHERE due_at IS NOT NULL AND state = 'queued'
UNION ALL
SELECT 'callbacks', count(*) FROM inbox WHERE due_at IS NOT NULL
UNION ALL
SELECT 'callback_age', (:now - min(received_at)) / 1e6 FROM inbox WHERE due_at IS NOT NULL
UNION ALL
SELECT 'orphans', count(*) FROM inbox WHERE state = 'orphan'
UNION ALL
SELECT 'orphans_fresh', count(*) FROM inbox
WHERE state = 'orphan' AND received_at > :now - CAST(:window * 1000000 AS INTEGER)
UNION ALL
SELECT 'attention', count(*) FROM jobs WHERE attention_reason IS NOT NULL
UNION ALL
SELECT 'updates', coalesce(sum(waiting), 0) FROM update_queues WHERE due_at IS NOT NULL
UNION ALL
SELECT 'update_age', (:now - min(due_at)) / 1e6 FROM update_queues WHERE due_at IS NOT NULL
UNION ALL
SELECT 'ledger_violations', CAST(value AS REAL) FROM kv WHERE key = 'ledger_violations'
UNION ALL
SELECT 'refunds_open', count(*) FROM kv WHERE key >= 'chat:refund:' AND key < 'chat:refund;'
UNION ALL
SELECT 'refund_age', (:now - min(at)) / 1e6 FROM kv WHERE key >= 'chat:refund:' AND key < 'chat:refund;'
UNION ALL
SELECT 'updates_dead', count(*) FROM updates WHERE state = 'dead'
UNION ALL
SELECT 'instances', count(*) FROM instances WHERE seen_at >= :now - 10000000
UNION ALL
SELECT 'lately_ended', count(*)
FROM (SELECT state, ended_at FROM jobs ORDER BY id DESC LIMIT 300)
WHERE ended_at > :now - CAST(:window * 1000000 AS INTEGER) AND state <> 'cancelled'
UNION ALL
SELECT 'lately_failed', count(*)
FROM (SELECT state, error_code, ended_at FROM jobs ORDER BY id DESC LIMIT 300)
WHERE ended_at > :now - CAST(:window * 1000000 AS INTEGER) AND state IN ('failed', 'expired')
    AND error_code NOT IN (SELECT value FROM json_each(:blameless));

-- name: prune_updates
-- Updates whose time is over, a few at a time; only the holder of the active role, in its own epoch, may do it.
DELETE FROM updates
WHERE id IN (SELECT id FROM updates ORDER BY id LIMIT :limit)
    AND state <> 'new' AND received_at < :now - CAST(:older_than * 1000000 AS INTEGER)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_callbacks
-- Callbacks whose time is over, a few at a time; as for updates.
DELETE FROM inbox
WHERE id IN (SELECT id FROM inbox ORDER BY id LIMIT :limit)
    AND state NOT IN ('new', 'orphan') AND received_at < :now - CAST(:older_than * 1000000 AS INTEGER)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_unauthenticated_callbacks
-- Callbacks that no job ever vouched for, a few at a time; as for updates.
DELETE FROM inbox
WHERE id IN (
        SELECT id FROM inbox
        WHERE job_id IS NULL AND received_at < :now - CAST(:older_than * 1000000 AS INTEGER) AND state NOT IN ('new', 'orphan')
        ORDER BY received_at LIMIT :limit)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_uploads
-- Files that were sent and never ordered with, a few at a time; not those that somebody still has before them.
DELETE FROM uploads
WHERE address IN (
        SELECT u.address FROM uploads u
        WHERE u.ordered = 0 AND u.at < :now - CAST(:older_than * 1000000 AS INTEGER) AND NOT EXISTS (
            SELECT 1 FROM drafts d, json_each(d.uploads) used
            WHERE d.account_id = u.account_id AND used.value = u.address)
        ORDER BY u.at LIMIT :limit)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING address;

-- name: last_callback
-- The newest callback there is.
SELECT coalesce(max(id), 0) AS id FROM inbox;

-- name: marked_callbacks
-- Callbacks after a given one whose body has a mark.
SELECT id, job_id, state FROM inbox WHERE id > :after AND instr(body, :mark) > 0 ORDER BY id;

-- name: drop_callbacks
-- Remove them: they were made up to see whether they arrive.
DELETE FROM inbox WHERE id > :after AND instr(body, :mark) > 0 RETURNING id;
