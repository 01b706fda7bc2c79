-- name: kv_get
-- Return one entry.
SELECT key, bot, value, at, :now AS read_at FROM kv WHERE key = :key AND bot = :bot;

-- name: kv_list
-- Return the entries whose key starts with `beginning`, in the order of their keys.
SELECT key, bot, value, at, :now AS read_at FROM kv WHERE bot = :bot AND starts_with(key, :beginning) ORDER BY key;

-- name: kv_put_if_absent
-- Write an entry unless there is one; return the value that is stored.
WITH added AS (
    INSERT INTO kv (key, bot, value, at) VALUES (:key, :bot, :value, :now)
    ON CONFLICT (key, bot) DO NOTHING RETURNING value
)
SELECT value FROM added
UNION ALL
SELECT value FROM kv WHERE key = :key AND bot = :bot
LIMIT 1;

-- name: kv_put
-- Write an entry.
INSERT INTO kv (key, bot, value, at) VALUES (:key, :bot, :value, :now)
ON CONFLICT (key, bot) DO UPDATE SET value = excluded.value, at = excluded.at;

-- name: kv_delete
-- Delete an entry, or only if it has a value.
DELETE FROM kv WHERE key = :key AND bot = :bot AND (:value::text IS NULL OR value = :value::text) RETURNING key;

-- name: kv_replace_by_message
-- Delete an entry and queue a message, if the entry is there, or only if it has a value.
WITH deleted AS (
    DELETE FROM kv WHERE key = :key AND bot = :bot AND (:value::text IS NULL OR value = :value::text) RETURNING key
)
INSERT INTO kv (key, bot, value, at) SELECT :message_key, '', :message, :now FROM deleted RETURNING key;
