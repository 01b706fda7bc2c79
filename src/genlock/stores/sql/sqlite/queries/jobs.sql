-- name: accept_job
-- Write jobs and their holds. An account may have several orders in a batch, each with an idempotency key of its own: one
-- is written if the balance, the limit of the day of its API key and the number of jobs that may be open cover it and all
-- orders before it. One that is not written may still be covered alone. One that began before midnight and waited for an
-- order of the new day counts for the new day. Orders of API keys do not appear in the gallery and the history of the chat.
INSERT INTO accept_item
SELECT
    i.account_id, i.request_key, value ->> 'request_hash', value ->> 'correlation_id', value ->> 'provider',
    value ->> 'channel', value ->> 'bot', value ->> 'address', value ->> 'placeholder', value ->> 'model',
    value ->> 'input', i.price,
    value ->> 'deadline_seconds', value ->> 'notice', i.api_key_id,
    i.account_total <= wallet.available AND NOT EXISTS (
        SELECT 1 FROM jobs j WHERE j.account_id = i.account_id AND j.request_key = i.request_key)
    AND NOT EXISTS (
        SELECT 1 FROM api_keys k WHERE k.id = i.api_key_id
            AND i.key_total + CASE WHEN k.spent_day - :now / 86400000000 IN (0, 1) THEN k.spent ELSE 0 END > k.spend_limit)
    AND (i.open_max IS NULL OR wallet.open_api_jobs + i.opened <= i.open_max)
FROM (
    SELECT value, account_id, request_key, price, api_key_id, open_max,
        sum(price) OVER (PARTITION BY account_id ORDER BY position) AS account_total,
        sum(price) OVER (PARTITION BY api_key_id ORDER BY position) AS key_total,
        count(open_max) OVER (PARTITION BY account_id ORDER BY position) AS opened
    FROM (SELECT value, key AS position, value ->> 'account_id' AS account_id, value ->> 'request_key' AS request_key,
              value ->> 'price' AS price, value ->> 'api_key_id' AS api_key_id, value ->> 'open_max' AS open_max
          FROM json_each(:items))) i
JOIN accounts wallet ON wallet.id = i.account_id;
INSERT INTO jobs (
    account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, placeholder, model, input,
    price, hold_state, state, notice, due_at, deadline_at, lease_owner, lease_token, created_at, api_key_id,
    hidden_at)
SELECT
    account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, placeholder, model, input,
    price, CASE WHEN price > 0 THEN 'held' ELSE 'free' END, 'queued', notice,
    :now + CAST(:seconds * 1000000 AS INTEGER), :now + CAST(deadline_seconds * 1000000 AS INTEGER), :owner, 1, :now,
    api_key_id, CASE WHEN api_key_id IS NOT NULL THEN :now END
FROM accept_item WHERE fresh
RETURNING id, account_id, request_key, due_at, deadline_at, created_at;
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'hold:' || j.id, j.account_id, j.id, 'hold', 'available', 'held', j.price, :now
FROM accept_item i JOIN jobs j ON j.account_id = i.account_id AND j.request_key = i.request_key
WHERE i.fresh AND i.price > 0;
UPDATE accounts SET available = available - i.price, held = held + i.price
FROM (SELECT account_id, sum(price) AS price FROM accept_item WHERE fresh GROUP BY account_id) i
WHERE accounts.id = i.account_id;
UPDATE api_keys
SET spent = CASE WHEN spent_day - :now / 86400000000 IN (0, 1) THEN spent ELSE 0 END + i.price,
    spent_day = :now / 86400000000 + (spent_day - :now / 86400000000 = 1)
FROM (SELECT api_key_id, sum(price) AS price FROM accept_item WHERE fresh GROUP BY api_key_id) i
WHERE i.price > 0 AND api_keys.id = i.api_key_id;
DELETE FROM accept_item;

-- name: accept_lookup
-- reads by key
-- Return the balance of an account, its number of open jobs of API keys, and the job that an idempotency key was used
-- for.
SELECT wallet.available, wallet.open_api_jobs, j.*, :now AS read_at
FROM accounts wallet LEFT JOIN jobs j ON j.account_id = wallet.id AND j.request_key = :request_key
WHERE wallet.id = :account_id;

-- name: begin_submit
-- Record the intent to call the provider, as an attempt, while the lease is valid. The same token again records the same
-- intent. After an answer that proves that nothing was accepted, the attempt is made again under the same number.
UPDATE jobs
SET state = 'submitting', secret_hash = i.value ->> 'secret_hash',
    placeholder = coalesce(i.value ->> 'placeholder', placeholder), submitted_at = :now, grace_until = NULL,
    provider = coalesce(i.value ->> 'provider', provider),
    attempt = CASE WHEN state = 'submitting' OR attempt > 0 AND secret_hash IS NOT NULL AND EXISTS (
        SELECT 1 FROM attempts a WHERE a.job_id = jobs.id AND a.number = jobs.attempt AND a.outcome = 'busy')
        THEN attempt ELSE attempt + 1 END
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND lease_token = i.value ->> 'token' AND lease_owner IS NOT NULL
    AND state IN ('queued', 'submitting')
RETURNING id;
INSERT INTO attempts (job_id, number, provider, offer, sent_input, secret_hash, started_at)
SELECT j.id, j.attempt, j.provider, coalesce(i.value ->> 'offer', j.model), i.value ->> 'sent_input', j.secret_hash, :now
FROM json_each(:items) i JOIN jobs j ON j.id = i.value ->> 'job_id'
WHERE j.lease_token = i.value ->> 'token' AND j.lease_owner IS NOT NULL AND j.state = 'submitting'
    AND j.secret_hash = i.value ->> 'secret_hash'
ON CONFLICT (job_id, number) DO UPDATE
SET provider = excluded.provider, offer = excluded.offer, sent_input = excluded.sent_input,
    secret_hash = excluded.secret_hash, outcome = NULL, error_code = '', ended_at = NULL,
    started_at = CASE WHEN attempts.provider = excluded.provider THEN attempts.started_at ELSE excluded.started_at END;

-- name: mark_submitted
-- Record the task id and release the job until its first poll, or make it due at once if an orphan callback waits for
-- it.
UPDATE jobs
SET state = 'running', task_id = i.value ->> 'task_id', handle = i.value ->> 'handle', lease_owner = NULL, attempts = 0, crash_count = 0,
    due_at = CASE
        WHEN EXISTS (SELECT 1 FROM inbox b
                     WHERE b.state = 'orphan' AND b.provider = jobs.provider AND b.task_id = i.value ->> 'task_id')
        THEN :now
        ELSE max(:now, min(deadline_at, :now + CAST((i.value ->> 'poll_after') * 1000000 AS INTEGER))) END
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND lease_token = i.value ->> 'token' AND state IN ('submitting', 'running')
RETURNING id;
UPDATE inbox SET state = 'matched'
FROM json_each(:items) i JOIN jobs j ON j.id = i.value ->> 'job_id' AND j.task_id = i.value ->> 'task_id'
WHERE inbox.state = 'orphan' AND inbox.provider = j.provider AND inbox.task_id = j.task_id;

-- name: adopt_task
-- Record the task id of a submit whose lease was lost during the call. The secret proves that this call created the
-- task; without a secret, the job's own callback named it. A task of an earlier attempt is recorded with that attempt.
UPDATE attempts SET task_id = :task_id, handle = :handle
FROM jobs j
WHERE attempts.job_id = :job_id AND j.id = attempts.job_id AND attempts.number <> j.attempt
    AND attempts.secret_hash = :secret_hash AND attempts.task_id IS NULL;
UPDATE jobs
SET task_id = :task_id, handle = :handle,
    state = CASE WHEN state = 'submitting' THEN 'running' ELSE state END,
    due_at = CASE
        WHEN state = 'submitting' OR state = 'cancelled' AND delivery = 'delivered' AND lease_owner IS NULL
        THEN :now
        ELSE due_at END,
    lease_owner = CASE WHEN state = 'submitting' THEN NULL ELSE lease_owner END,
    lease_token = CASE WHEN state = 'submitting' THEN lease_token + 1 ELSE lease_token END
WHERE id = :job_id AND secret_hash = coalesce(:secret_hash, secret_hash)
    AND (task_id IS NULL OR task_id = :task_id AND handle = '' AND :handle <> '' AND state IN ('running', 'cancelled'))
    AND (:secret_hash IS NOT NULL OR state <> 'queued') AND attempt = coalesce(:attempt, attempt)
    AND NOT EXISTS (
        SELECT 1 FROM jobs o WHERE o.provider = jobs.provider AND o.task_id = :task_id AND o.id <> jobs.id)
RETURNING id;

-- name: end_job
-- End jobs; the first end wins. Failures release the hold in the same commit, and callbacks are stored or settled in
-- it. A report about a task that is not the job's own, or belongs to another job, ends nothing. A job without its secret
-- was never submitted, or was erased: it takes no late result. A report about an earlier attempt than the current one is
-- recorded with that attempt and changes nothing else. What the provider should not have done is noted as an anomaly.
INSERT INTO end_item
SELECT
    i.job_id, i.token, i.state, value ->> 'parts', i.task_id, value ->> 'error_code',
    value ->> 'error_text', value ->> 'cancelled_by', value ->> 'cost', value ->> 'callback_id', j.provider, i.body,
    CASE WHEN i.body IS NOT NULL THEN (SELECT coalesce(max(id), 0) FROM inbox) + row_number() OVER () END,
    j.account_id, j.price, j.hold_state = 'held', coalesce(i.attempt, j.attempt),
    CASE
        WHEN i.token <> j.lease_token THEN 'stale'
        WHEN i.attempt <> j.attempt OR i.attempt > 0 AND j.state = 'queued' AND j.secret_hash IS NULL THEN 'abandoned'
        WHEN i.task_id <> j.task_id OR j.task_id IS NULL AND EXISTS (
            SELECT 1 FROM jobs o WHERE o.provider = j.provider AND o.task_id = i.task_id)
        THEN 'wrong_task'
        WHEN j.state IN ('queued', 'submitting', 'running') THEN 'won'
        WHEN j.state IN ('expired', 'failed') AND i.state = 'succeeded' AND NOT j.late
            AND j.error_code <> 'broken_result' AND j.secret_hash IS NOT NULL
        THEN CASE WHEN j.lease_owner IS NULL THEN 'late' ELSE 'busy' END
        WHEN j.state = 'cancelled' THEN 'cancelled'
        WHEN j.state = 'succeeded' AND i.state = 'failed' THEN 'contradiction'
        ELSE 'duplicate' END
FROM (SELECT value, value ->> 'job_id' AS job_id, value ->> 'token' AS token, value ->> 'state' AS state,
          value ->> 'body' AS body, value ->> 'task_id' AS task_id, value ->> 'attempt' AS attempt
      FROM json_each(:items)) i
JOIN jobs j ON j.id = i.job_id
    AND (i.body IS NULL OR j.secret_hash = value ->> 'secret_hash' AND j.provider = value ->> 'provider');
UPDATE jobs
SET state = CASE WHEN i.verdict = 'late' THEN jobs.state ELSE i.state END,
    late = i.verdict = 'late',
    -- The message about the end may still be on its way to the placeholder, so a late result gets a new message.
    placeholder = CASE WHEN i.verdict = 'late' THEN NULL ELSE placeholder END,
    -- What does not show an end yet, or perhaps not, gets it when the result is shown.
    progress_message = CASE
        WHEN i.verdict = 'late' AND jobs.delivery <> 'delivered'
        THEN coalesce(jobs.progress_message, jobs.parts ->> '$[0].message', jobs.placeholder)
        ELSE jobs.progress_message END,
    task_id = coalesce(jobs.task_id, i.task_id), parts = i.parts,
    error_code = CASE WHEN i.verdict = 'late' THEN jobs.error_code ELSE i.error_code END,
    error_text = CASE WHEN i.verdict = 'late' THEN jobs.error_text ELSE i.error_text END,
    cancelled_by = CASE WHEN i.verdict = 'late' THEN jobs.cancelled_by ELSE i.cancelled_by END,
    cost = coalesce(i.cost, jobs.cost),
    hold_state = CASE WHEN i.held AND i.state <> 'succeeded' THEN 'released' ELSE hold_state END,
    delivery = CASE WHEN :owner IS NULL THEN 'pending' ELSE 'sending' END,
    delivered_at = NULL, notice = CASE WHEN notice = 'none' THEN 'none' ELSE 'wanted' END,
    attention_code = NULL, attention_reason = NULL, attempts = 0, crash_count = 0, grace_until = NULL, ended_at = :now,
    due_at = :now + CAST(:seconds * 1000000 AS INTEGER), lease_owner = :owner, lease_token = lease_token + 1
FROM end_item i WHERE jobs.id = i.job_id AND i.verdict IN ('won', 'late');
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'settle:' || job_id, account_id, job_id, 'release', 'held', 'available', price, :now
FROM end_item WHERE verdict = 'won' AND held AND state <> 'succeeded';
UPDATE accounts SET available = available + s.amount, held = held - s.amount
FROM (SELECT account_id, sum(price) AS amount FROM end_item
      WHERE verdict = 'won' AND held AND state <> 'succeeded' GROUP BY account_id) s
WHERE accounts.id = s.account_id;
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'repay:settle:' || s.job_id, a.id, s.job_id, 'repay', 'available', 'house', min(a.debt, s.amount), :now
FROM (SELECT account_id, min(job_id) AS job_id, sum(price) AS amount FROM end_item
      WHERE verdict = 'won' AND held AND state <> 'succeeded' GROUP BY account_id) s
JOIN accounts a ON a.id = s.account_id AND a.debt > 0;
UPDATE accounts SET available = available - l.amount, debt = debt - l.amount
FROM end_item i JOIN ledger l ON l.key = 'repay:settle:' || i.job_id
WHERE i.verdict = 'won' AND accounts.id = i.account_id;
UPDATE jobs
SET cost = i.cost,  -- now that the cost is known, the status query is no longer needed
    due_at = CASE WHEN delivery = 'delivered' AND notice <> 'due' AND lease_owner IS NULL AND progress_message IS NULL
             THEN NULL ELSE due_at END
FROM end_item i WHERE jobs.id = i.job_id AND i.verdict = 'cancelled' AND i.cost IS NOT NULL;
UPDATE attempts
SET outcome = i.state, error_code = i.error_code, cost = coalesce(i.cost, attempts.cost), ended_at = :now
FROM end_item i JOIN jobs j ON j.id = i.job_id
WHERE i.verdict = 'won' AND attempts.job_id = j.id AND attempts.number = j.attempt AND attempts.outcome IS NULL;
UPDATE attempts
SET late_report = i.state, cost = max(coalesce(i.cost, attempts.cost), coalesce(attempts.cost, i.cost))
FROM end_item i JOIN jobs j ON j.id = i.job_id
WHERE i.verdict IN ('late', 'cancelled', 'contradiction', 'abandoned') AND attempts.job_id = j.id
    AND attempts.number = i.attempt AND i.state IN ('succeeded', 'failed');
UPDATE inbox SET state = 'done', due_at = NULL, task_id = i.task_id, note = i.verdict
FROM end_item i WHERE inbox.id = i.callback_id AND i.verdict <> 'busy';
INSERT INTO inbox (id, provider, job_id, attempt, task_id, body, state, note, due_at, received_at)
SELECT stored_id, provider, job_id, attempt, task_id, CAST(body AS BLOB), CASE WHEN verdict = 'busy' THEN 'new' ELSE 'done' END,
    verdict, CASE WHEN verdict = 'busy' THEN :now + CAST(:hold_seconds * 1000000 AS INTEGER) END, :now
FROM end_item WHERE body IS NOT NULL;
INSERT INTO job_anomalies (job_id, kind, at)
SELECT i.job_id, CASE WHEN i.cost > 0 AND i.verdict IN ('cancelled', 'abandoned') THEN 'loss'
                 WHEN i.verdict IN ('late', 'abandoned') THEN 'contradiction' ELSE i.verdict END, :now
FROM end_item i JOIN jobs j ON j.id = i.job_id
WHERE i.verdict IN ('contradiction', 'wrong_task') OR i.verdict = 'cancelled' AND i.cost > 0
    OR i.verdict = 'late' AND j.state = 'failed' OR i.verdict = 'abandoned' AND (i.state = 'succeeded' OR i.cost > 0)
ON CONFLICT (job_id, kind) DO NOTHING;
SELECT i.verdict, i.stored_id AS callback_id, j.*, :now AS read_at
FROM end_item i JOIN jobs j ON j.id = i.job_id;
DELETE FROM end_item;

-- name: fail_over
-- End the current attempt, and queue the job again for another provider. Nothing may be known to have been accepted and
-- billed: the caller proves it. A report must be about the attempt's own task.
UPDATE jobs
SET state = 'queued', secret_hash = NULL, grace_until = NULL, attempts = 0, crash_count = 0, lease_owner = NULL,
    lease_token = lease_token + 1, due_at = :now
WHERE id = :job_id AND attempt = coalesce(:attempt, attempt) AND state IN ('submitting', 'running')
    AND lease_token = coalesce(:token, lease_token)
    AND (:task_id IS NULL OR task_id = :task_id OR task_id IS NULL AND NOT EXISTS (
        SELECT 1 FROM jobs o WHERE o.provider = jobs.provider AND o.task_id = :task_id))
RETURNING id;
UPDATE attempts
SET outcome = :outcome, error_code = :error_code, cost = coalesce(:cost, attempts.cost), ended_at = :now,
    task_id = coalesce(j.task_id, :task_id), handle = j.handle
FROM jobs j
WHERE attempts.job_id = :job_id AND attempts.number = j.attempt AND attempts.outcome IS NULL AND j.id = :job_id
    AND j.state = 'queued' AND j.attempt = coalesce(:attempt, j.attempt) AND j.secret_hash IS NULL;
UPDATE inbox SET state = 'done', due_at = NULL, task_id = :task_id, note = 'failed over'
FROM jobs j
WHERE inbox.id = :callback_id AND j.id = :job_id AND j.state = 'queued'
    AND j.attempt = coalesce(:attempt, j.attempt) AND j.secret_hash IS NULL;
UPDATE jobs SET task_id = NULL, handle = ''
WHERE id = :job_id AND state = 'queued' AND attempt = coalesce(:attempt, attempt) AND secret_hash IS NULL;

-- name: attempts
-- Return the attempts of a job, in their order.
SELECT a.*, j.attempt = a.number AS current, j.task_id AS current_task, j.handle AS current_handle, j.state AS job_state,
    j.ended_at AS job_ended_at
FROM attempts a JOIN jobs j ON j.id = a.job_id WHERE a.job_id = :job_id ORDER BY a.number;

-- name: known_tasks
-- Return those of some task ids that belong to a job or to an attempt.
SELECT task_id FROM jobs WHERE provider = :provider AND task_id IN (SELECT value FROM json_each(:task_ids))
UNION
SELECT task_id FROM attempts WHERE provider = :provider AND task_id IN (SELECT value FROM json_each(:task_ids));

-- name: mark_result_invalid
-- Turn a success or a late result that is invalid, and not paid for, into a failure and release its hold.
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'settle:' || id, account_id, id, 'release', 'held', 'available', price, :now
FROM jobs WHERE id = :job_id AND lease_token = :token AND delivery = 'sending'
    AND state = 'succeeded' AND hold_state = 'held';
UPDATE accounts SET available = available + j.price, held = held - j.price
FROM jobs j WHERE j.id = :job_id AND j.lease_token = :token AND j.delivery = 'sending' AND j.state = 'succeeded'
    AND j.hold_state = 'held' AND accounts.id = j.account_id;
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'repay:settle:' || j.id, a.id, j.id, 'repay', 'available', 'house', min(a.debt, j.price), :now
FROM jobs j JOIN accounts a ON a.id = j.account_id
WHERE j.id = :job_id AND changes() = 1 AND a.debt > 0;
UPDATE accounts SET available = available - min(debt, j.price), debt = debt - min(debt, j.price)
FROM jobs j WHERE j.id = :job_id AND changes() = 1 AND accounts.id = j.account_id;
UPDATE jobs
SET state = 'failed', late = 0, error_code = :error_code, error_text = :error_text, parts = :parts,
    hold_state = CASE WHEN hold_state = 'held' THEN 'released' ELSE hold_state END
WHERE id = :job_id AND lease_token = :token AND delivery = 'sending'
    AND (state = 'succeeded' AND hold_state IN ('held', 'free') OR state = 'failed' OR late)
RETURNING *, :now AS read_at;

-- name: change_address
-- Set the new address of a job's chat. The placeholder exists only at the old address, where no edit is possible.
UPDATE jobs SET address = :address, parts = :parts, placeholder = NULL, progress_message = NULL
WHERE id = :job_id AND lease_token = :token
RETURNING id;

-- name: save_parts
-- Record the progress of a delivery and renew its lease.
UPDATE jobs SET parts = i.value ->> 'parts', due_at = :now + CAST(:seconds * 1000000 AS INTEGER)
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND lease_token = i.value ->> 'token' AND delivery = 'sending'
RETURNING id;

-- name: finish_delivery
-- End deliveries: capture the hold of delivered results and release any other hold, in the same commit. The user is
-- notified of a delivery, and always of one whose outcome is unknown. A cancelled job stays due until the cost of its
-- task is known, and a message that a progress edit may still overwrite is due to be put again: of a result that was
-- given up only when a resend has shown it.
INSERT INTO finish_item
SELECT
    i.job_id, i.token, i.delivery, value ->> 'parts', value ->> 'placeholder',
    value ->> 'attention_code', value ->> 'attention_reason', value ->> 'overwritable',
    j.account_id, j.price, j.hold_state = 'held',
    CASE
        WHEN j.hold_state <> 'held' THEN j.hold_state
        WHEN i.delivery = 'delivered' AND j.state = 'succeeded' THEN 'captured'
        ELSE 'released' END,
    CASE
        WHEN i.delivery = 'unknown' OR value ->> 'attention_code' = 'unknown_delivery' THEN 'due'
        WHEN i.delivery = 'delivered' AND j.notice = 'wanted' THEN 'due'
        ELSE j.notice END
FROM (SELECT value, value ->> 'job_id' AS job_id, value ->> 'token' AS token, value ->> 'delivery' AS delivery
      FROM json_each(:items)) i
JOIN jobs j ON j.id = i.job_id
WHERE j.lease_token = i.token AND j.delivery = 'sending';
UPDATE jobs
SET delivery = i.delivery, parts = i.parts, placeholder = coalesce(i.placeholder, jobs.placeholder),
    attention_code = i.attention_code, attention_reason = i.attention_reason, hold_state = i.hold_state,
    notice = i.notice, attempts = 0, crash_count = 0,
    progress_message = CASE WHEN i.overwritable OR i.delivery <> 'delivered' THEN progress_message END,
    delivered_at = CASE WHEN i.delivery = 'delivered' THEN :now END,
    lease_owner = CASE WHEN i.notice = 'due' THEN :owner END,
    due_at = CASE
        WHEN i.notice = 'due' THEN :now + CAST(:seconds * 1000000 AS INTEGER)
        WHEN state = 'cancelled' AND task_id IS NOT NULL AND cost IS NULL AND deadline_at > :now THEN :now
        WHEN i.overwritable THEN :now + 4000000 END
FROM finish_item i WHERE jobs.id = i.job_id
RETURNING id, hold_state, notice;
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'settle:' || job_id, account_id, job_id,
    CASE WHEN hold_state = 'captured' THEN 'capture' ELSE 'release' END, 'held',
    CASE WHEN hold_state = 'captured' THEN 'house' ELSE 'available' END, price, :now
FROM finish_item WHERE held;
UPDATE accounts SET held = held - s.amount, available = available + s.back
FROM (SELECT account_id, sum(price) AS amount, sum(CASE WHEN hold_state = 'released' THEN price ELSE 0 END) AS back
      FROM finish_item WHERE held GROUP BY account_id) s
WHERE accounts.id = s.account_id;
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'repay:settle:' || s.job_id || ':' || s.token, a.id, s.job_id, 'repay', 'available', 'house',
    min(a.debt, s.amount), :now
FROM (SELECT account_id, min(job_id) AS job_id, token, sum(price) AS amount FROM finish_item
      WHERE held AND hold_state = 'released' GROUP BY account_id) s
JOIN accounts a ON a.id = s.account_id AND a.debt > 0;
UPDATE accounts SET available = available - l.amount, debt = debt - l.amount
FROM finish_item i JOIN ledger l ON l.key = 'repay:settle:' || i.job_id || ':' || i.token
WHERE i.held AND accounts.id = i.account_id;
DELETE FROM finish_item;

-- name: begin_notice
-- Record the notice before it is sent and release the job. A cancelled job stays due until the cost of its task is
-- known, and a message that a progress edit may still overwrite is due to be put again.
UPDATE jobs
SET notice = 'sent', notice_token = lease_token, lease_owner = NULL, crash_count = 0,
    due_at = CASE
        WHEN state = 'cancelled' AND task_id IS NOT NULL AND cost IS NULL AND deadline_at > :now THEN :now
        WHEN progress_message IS NOT NULL THEN :now + 4000000 END
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND lease_token = i.value ->> 'token' AND notice = 'due'
RETURNING id;

-- name: return_notice
-- Make a notice due again that was journaled and then provably not sent. The job may be leased again meanwhile, or its
-- result be on its way again: then the release of that lease, or the end of that delivery, makes the notice due.
UPDATE jobs
SET notice = CASE WHEN delivery IN ('pending', 'sending') THEN 'wanted' ELSE 'due' END, notice_token = NULL,
    attempts = CASE WHEN lease_owner IS NULL THEN attempts + (i.value ->> 'failed') ELSE attempts END,
    due_at = CASE WHEN lease_owner IS NULL AND delivery NOT IN ('pending', 'sending')
             THEN :now + CAST((i.value ->> 'after') * 1000000 AS INTEGER) ELSE due_at END
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND notice = 'sent' AND notice_token = i.value ->> 'token'
RETURNING id;

-- name: claim_jobs
-- Lease due jobs, the longest overdue first. An expired lease is due again; if another instance had it, that counts as
-- a crash.
UPDATE jobs
SET lease_owner = :owner, lease_token = lease_token + 1, due_at = :now + CAST(:seconds * 1000000 AS INTEGER),
    crash_count = crash_count + CASE WHEN lease_owner <> :owner THEN 1 ELSE 0 END,
    delivery = CASE WHEN delivery = 'pending' THEN 'sending' ELSE delivery END
WHERE id IN (SELECT id FROM jobs WHERE due_at <= :now AND crash_count = 0 ORDER BY due_at LIMIT :limit)
RETURNING *, :now AS read_at;

-- name: claim_poison_jobs
-- Lease due jobs whose worker crashed: for each number of crashes as many as there are free slots; the last slot is for
-- that number and more. `NOT (due_at > …)` keeps the planner from using the index of all due jobs.
UPDATE jobs
SET lease_owner = :owner, lease_token = lease_token + 1, due_at = :now + CAST(:seconds * 1000000 AS INTEGER),
    crash_count = crash_count + CASE WHEN lease_owner <> :owner THEN 1 ELSE 0 END,
    delivery = CASE WHEN delivery = 'pending' THEN 'sending' ELSE delivery END
WHERE id IN (
    SELECT id FROM (
        SELECT id, level, row_number() OVER (PARTITION BY level ORDER BY due_at, id) AS place
        FROM (SELECT id, due_at, min(crash_count, json_array_length(:slots)) AS level
              FROM jobs WHERE crash_count > 0 AND NOT (due_at > :now)))
    WHERE place <= json_extract(:slots, '$[' || (level - 1) || ']'))
RETURNING *, :now AS read_at;

-- name: renew_lease
-- Renew the leases of jobs that take long.
UPDATE jobs SET due_at = :now + CAST(:seconds * 1000000 AS INTEGER)
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND lease_token = i.value ->> 'token' AND lease_owner = :owner
RETURNING id;

-- name: begin_progress
-- Record that a progress edit of the placeholder may be on its way, and renew the lease.
UPDATE jobs SET progress_message = placeholder, due_at = :now + CAST(:seconds * 1000000 AS INTEGER)
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND lease_token = i.value ->> 'token' AND lease_owner = :owner
RETURNING id;

-- name: reschedule
-- Release jobs until later, or without a time until an operator acts, and set what has changed. A submit that is queued
-- again was provably not accepted: its attempt is made again under the same number. A notice that became due meanwhile
-- keeps the job due.
UPDATE jobs
SET lease_owner = NULL,
    state = coalesce(i.state, jobs.state), delivery = coalesce(i.delivery, jobs.delivery),
    parts = coalesce(i.parts, jobs.parts),
    attempts = CASE i.failed WHEN 1 THEN attempts + 1 WHEN 0 THEN 0 ELSE attempts END,
    crash_count = CASE WHEN i.failed IS NULL THEN crash_count ELSE 0 END,
    attention_code = coalesce(i.attention_code, jobs.attention_code),
    attention_reason = coalesce(i.attention_reason, jobs.attention_reason),
    progress_message = CASE WHEN i.progress_settled THEN NULL ELSE progress_message END,
    grace_until = CASE WHEN i.grace THEN :now + CAST(i.after * 1000000 AS INTEGER) ELSE grace_until END,
    due_at = CASE
        WHEN i.after IS NULL AND jobs.notice = 'due' AND i.attention_code IS NULL THEN :now
        WHEN i.after IS NULL THEN NULL
        WHEN i.grace OR jobs.delivery <> 'none' OR deadline_at <= :now
        THEN :now + CAST(i.after * 1000000 AS INTEGER)
        ELSE min(deadline_at, :now + CAST(i.after * 1000000 AS INTEGER)) END
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'token' AS token, value ->> 'after' AS after,
          value ->> 'state' AS state, value ->> 'delivery' AS delivery, value ->> 'parts' AS parts,
           value ->> 'grace' AS grace, value ->> 'failed' AS failed,
          value ->> 'progress_settled' AS progress_settled,
          value ->> 'attention_code' AS attention_code, value ->> 'attention_reason' AS attention_reason
      FROM json_each(:items)) i
WHERE jobs.id = i.job_id AND lease_token = i.token
RETURNING id;
UPDATE attempts SET outcome = 'busy', ended_at = :now
FROM json_each(:items) i JOIN jobs j ON j.id = i.value ->> 'job_id'
WHERE i.value ->> 'state' = 'queued' AND j.lease_token = i.value ->> 'token' AND j.state = 'queued'
    AND attempts.job_id = j.id AND attempts.number = j.attempt AND attempts.outcome IS NULL;

-- name: retry_job
-- Make a waiting or parked job due now, or a notice that failed in every attempt: then what needs attention stays. An
-- order that the provider may have accepted is queued again, as another attempt, only with the token that was read when
-- this was decided.
UPDATE attempts SET outcome = 'unknown', ended_at = :now
FROM jobs j
WHERE j.id = :job_id AND j.lease_owner IS NULL AND j.state = 'submitting' AND j.due_at IS NULL
    AND j.lease_token = :resubmit
    AND attempts.job_id = j.id AND attempts.number = j.attempt AND attempts.outcome IS NULL;
UPDATE jobs
SET due_at = :now, lease_token = lease_token + 1, attempts = 0, crash_count = 0,
    attention_code = CASE WHEN delivery IN ('none', 'pending', 'sending') THEN NULL ELSE attention_code END,
    attention_reason = CASE WHEN delivery IN ('none', 'pending', 'sending') THEN NULL ELSE attention_reason END,
    state = CASE WHEN state = 'submitting' AND due_at IS NULL THEN 'queued' ELSE state END
WHERE id = :job_id AND lease_owner IS NULL
    AND (state IN ('queued', 'submitting', 'running') OR delivery IN ('pending', 'sending')
        OR notice = 'due' AND due_at IS NULL)
    AND (lease_token = coalesce(:resubmit, -1) OR NOT (
        state = 'submitting' AND due_at IS NULL OR state = 'queued' AND coalesce(attention_code, '') = 'parked'))
RETURNING id;

-- name: resend_job
-- Deliver the parts of an ended job again, on new messages. A message that was to show them and does not, or perhaps not,
-- gets them after that.
UPDATE jobs
SET delivery = 'pending', delivered_at = NULL, parts = :parts, placeholder = NULL, due_at = :now,
    lease_owner = NULL, lease_token = lease_token + 1, attempts = 0, crash_count = 0, attention_code = NULL,
    attention_reason = NULL,
    progress_message = CASE WHEN delivery = 'undeliverable' THEN coalesce(progress_message, placeholder)
                       ELSE progress_message END,
    notice = CASE WHEN notice = 'due' THEN 'wanted' ELSE notice END
WHERE id = :job_id AND lease_token = coalesce(:token, lease_token)
    AND delivery IN ('delivered', 'undeliverable', 'unknown')
RETURNING id;

-- name: resend_paid_job
-- Resend a result that could not be delivered, as `resend_job` does, and hold its released price again, in the same
-- commit. The ledger entries of the earlier hold get the old lease token appended to their keys, so that the new hold
-- settles under the usual keys.
UPDATE accounts SET available = available - j.price, held = held + j.price
FROM jobs j
WHERE j.id = :job_id AND j.lease_token = :token AND j.state = 'succeeded' AND j.delivery = 'undeliverable'
    AND j.hold_state = 'released' AND accounts.id = j.account_id AND accounts.available >= j.price;
UPDATE ledger SET key = key || ':' || :token
WHERE changes() = 1 AND key IN ('hold:' || :job_id, 'settle:' || :job_id);
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'hold:' || id, account_id, id, 'hold', 'available', 'held', price, :now
FROM jobs WHERE id = :job_id AND changes() = 2;
UPDATE jobs
SET hold_state = 'held', delivery = 'pending', delivered_at = NULL, parts = :parts, placeholder = NULL, due_at = :now,
    lease_owner = NULL, lease_token = lease_token + 1, attempts = 0, crash_count = 0, attention_code = NULL,
    attention_reason = NULL, progress_message = coalesce(progress_message, placeholder),
    notice = CASE WHEN notice = 'due' THEN 'wanted' ELSE notice END
WHERE id = :job_id AND changes() = 1
RETURNING id;
