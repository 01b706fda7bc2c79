-- Facts that all instances share, what the alarms look at, and what is forgotten in the end.

-- name: kv_get
-- What is known under a key.
SELECT key, bot, value, at, :now AS read_at FROM kv WHERE key = :key AND bot = :bot;

-- name: kv_put_if_absent
-- Know something from now on, unless something is known already; says what is.
WITH added AS (
    INSERT INTO kv (key, bot, value, at) VALUES (:key, :bot, :value, :now) ON CONFLICT (key, bot) DO NOTHING RETURNING value
)
SELECT value FROM added
UNION ALL
SELECT value FROM kv WHERE key = :key AND bot = :bot
LIMIT 1;

-- name: kv_put
-- Know something else from now on.
INSERT INTO kv (key, bot, value, at) VALUES (:key, :bot, :value, :now)
ON CONFLICT (key, bot) DO UPDATE SET value = excluded.value, at = excluded.at;

-- name: kv_delete
-- Know it no more.
DELETE FROM kv WHERE key = :key AND bot = :bot;

-- name: kv_list
-- All that is known under keys with a beginning.
SELECT key, bot, value, at, :now AS read_at FROM kv WHERE bot = :bot AND starts_with(key, :beginning) ORDER BY key;

-- name: clock
-- The database's time.
SELECT :now AS now;

-- name: live_instances
-- The instances that were heard of lately.
SELECT id, started_at FROM instances
WHERE seen_at >= :now - make_interval(secs => :silent_seconds::float8) ORDER BY started_at;

-- name: stats
-- How things go, in numbers: what is open, how old the oldest is, and how the newest jobs ended.
SELECT state AS name, count(*)::float8 AS value FROM jobs WHERE due_at IS NOT NULL GROUP BY state
UNION ALL
SELECT unnest(ARRAY['due', 'due_age', 'undelivered', 'undelivered_age', 'queued_age']),
    unnest(ARRAY[
        count(*) FILTER (WHERE due_at <= :now),
        extract(epoch FROM :now - min(due_at) FILTER (WHERE due_at <= :now)),
        count(*) FILTER (WHERE delivery IN ('pending', 'sending')),
        extract(epoch FROM :now - min(ended_at) FILTER (WHERE delivery IN ('pending', 'sending'))),
        extract(epoch FROM :now - min(created_at) FILTER (WHERE state = 'queued'))])::float8
FROM jobs WHERE due_at IS NOT NULL
UNION ALL
SELECT unnest(ARRAY['callbacks', 'callback_age']),
    unnest(ARRAY[count(*), extract(epoch FROM :now - min(received_at))])::float8
FROM inbox WHERE due_at IS NOT NULL
UNION ALL
SELECT unnest(ARRAY['orphans', 'orphans_fresh']),
    unnest(ARRAY[count(*), count(*) FILTER (WHERE received_at > :now - make_interval(secs => :window::float8))])::float8
FROM inbox WHERE state = 'orphan'
UNION ALL
SELECT 'attention', count(*)::float8 FROM jobs WHERE attention_reason IS NOT NULL
UNION ALL
SELECT unnest(ARRAY['updates', 'update_age']),
    unnest(ARRAY[sum(waiting), extract(epoch FROM :now - min(due_at))])::float8
FROM update_queues WHERE due_at IS NOT NULL
UNION ALL
SELECT 'ledger_violations', value::float8 FROM kv WHERE key = 'ledger_violations'
UNION ALL
SELECT unnest(ARRAY['refunds_open', 'refund_age']),
    unnest(ARRAY[count(*), extract(epoch FROM :now - min(at))])::float8
FROM kv WHERE starts_with(key, 'chat:refund:')
UNION ALL
SELECT 'updates_dead', count(*)::float8 FROM updates WHERE state = 'dead'
UNION ALL
SELECT 'instances', count(*)::float8 FROM instances WHERE seen_at >= :now - interval '10 seconds'
UNION ALL
SELECT unnest(ARRAY['lately_ended', 'lately_failed']),
    unnest(ARRAY[count(*), count(*) FILTER (
        WHERE state IN ('failed', 'expired') AND error_code NOT IN (
            SELECT unnest(:blameless::text[])))])::float8
FROM (SELECT state, error_code, ended_at FROM jobs ORDER BY id DESC LIMIT 300) newest
WHERE ended_at > :now - make_interval(secs => :window::float8) AND state <> 'cancelled';

-- name: prune_updates
-- Updates whose time is over, a few at a time; only the holder of the active role, in its own epoch, may do it.
DELETE FROM updates
WHERE id IN (SELECT id FROM updates ORDER BY id LIMIT :limit)
    AND state <> 'new' AND received_at < :now - make_interval(secs => :older_than::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_callbacks
-- Callbacks whose time is over, a few at a time; as for updates.
DELETE FROM inbox
WHERE id IN (SELECT id FROM inbox ORDER BY id LIMIT :limit)
    AND state NOT IN ('new', 'orphan') AND received_at < :now - make_interval(secs => :older_than::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_unauthenticated_callbacks
-- Callbacks that no job ever vouched for, a few at a time; as for updates.
DELETE FROM inbox
WHERE id IN (
        SELECT id FROM inbox
        WHERE job_id IS NULL AND received_at < :now - make_interval(secs => :older_than::float8) AND state NOT IN ('new', 'orphan')
        ORDER BY received_at LIMIT :limit)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: prune_uploads
-- Files that were sent and never ordered with, a few at a time; not those that somebody still has before them.
DELETE FROM uploads
WHERE address IN (
        SELECT u.address FROM uploads u
        WHERE NOT u.ordered AND u.at < :now - make_interval(secs => :older_than::float8) AND NOT EXISTS (
            SELECT FROM drafts d WHERE d.account_id = u.account_id AND u.address = ANY (d.uploads))
        ORDER BY u.at LIMIT :limit)
    AND NOT ordered
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING address;

-- name: last_callback
-- The newest callback there is.
SELECT coalesce(max(id), 0) AS id FROM inbox;

-- name: marked_callbacks
-- Callbacks after a given one whose body has a mark.
SELECT id, job_id, state FROM inbox WHERE id > :after AND position(:mark::bytea IN body) > 0 ORDER BY id;

-- name: drop_callbacks
-- Remove them: they were made up to see whether they arrive.
DELETE FROM inbox WHERE id > :after AND position(:mark::bytea IN body) > 0 RETURNING id;
