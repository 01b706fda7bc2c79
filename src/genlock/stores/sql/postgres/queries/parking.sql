-- name: park_jobs
-- Put the open jobs and deliveries of a restored database on the operator's list.
UPDATE jobs
SET due_at = NULL, lease_owner = NULL, lease_token = lease_token + 1,
    attention_code = coalesce(attention_code, 'parked'), attention_reason = coalesce(attention_reason, :reason::text)
WHERE due_at IS NOT NULL
    AND (state IN ('queued', 'submitting', 'running') OR delivery IN ('pending', 'sending'))
RETURNING id;

-- name: discard_due_notices
-- Count the notices that were due in a restored database as sent: they are sent at most once.
UPDATE jobs SET notice = 'sent', due_at = NULL, lease_owner = NULL, lease_token = lease_token + 1
WHERE due_at IS NOT NULL AND notice = 'due'
RETURNING id;

-- name: discard_waiting_messages
-- Give up the messages that were waiting in a restored database, also those about refunds: they are sent at most once.
DELETE FROM kv WHERE starts_with(key, 'tell:') OR starts_with(key, 'chat:refunded:');

-- name: park_callbacks
-- Settle the callbacks that were waiting in a restored database: a retried job asks the provider instead.
UPDATE inbox SET state = 'done', due_at = NULL, note = :reason::text
WHERE due_at IS NOT NULL
RETURNING id;

-- name: park_updates
-- Put the waiting updates of a restored database on the operator's list.
UPDATE updates SET state = 'dead', note = :reason::text
WHERE state = 'new'
RETURNING id;

-- name: clear_update_queues
-- Empty the update queues of a restored database.
UPDATE update_queues
SET waiting = 0, due_at = NULL, lease_owner = NULL, lease_token = lease_token + 1, attempts = 0, crash_count = 0
WHERE due_at IS NOT NULL
RETURNING id;

-- name: stop_broadcasts
-- Stop the broadcasts that were running in a restored database.
UPDATE broadcasts SET state = 'stopped'
WHERE state = 'running'
RETURNING id;

-- name: stop_bulk_actions
-- Stop the bulk actions that were open in a restored database; the step that had begun is given up.
UPDATE bulk_actions SET state = 'stopped', step = '[]', ended_at = :now, version = version + 1
WHERE ended_at IS NULL
RETURNING id;

-- name: recount_open_api_jobs
-- Count the open jobs of API keys of every account of a restored database, whatever the backup says.
UPDATE accounts SET open_api_jobs = o.jobs
FROM (
    SELECT wallet.id, count(j.id) AS jobs
    FROM accounts wallet
    LEFT JOIN jobs j ON j.account_id = wallet.id AND j.ended_at IS NULL AND j.api_key_id IS NOT NULL
    GROUP BY wallet.id
) o
WHERE accounts.id = o.id AND accounts.open_api_jobs <> o.jobs
RETURNING accounts.id;
