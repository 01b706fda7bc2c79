-- `:now` is the clock of the server, unless a simulation provides another.
-- Statements over arrays serve many callers at once, each item on its own row. They join CTEs only with tables, by
-- key: with our planner settings, a join of two CTEs is quadratic. `count(*) FROM locked` makes one part wait for the
-- locks of another; locks are taken in the order of ids, so that two batches cannot deadlock.

-- name: accept_job
-- Write jobs and their holds. An account may have several orders in a batch, each with an idempotency key of its own: one
-- is written if the balance, the limit of the day of its API key and the number of jobs that may be open cover it and all
-- orders before it. One that is not written may still be covered alone. One that began before midnight and waited for an
-- order of the new day counts for the new day. Wallets are locked in the order of their ids, then API keys, each of
-- which belongs to one wallet. Orders of API keys do not appear in the gallery and the history of the chat.
WITH item AS (
    SELECT *, sum(price) OVER (PARTITION BY account_id ORDER BY position) AS account_total,
        sum(price) OVER (PARTITION BY api_key_id ORDER BY position) AS key_total,
        count(open_max) OVER (PARTITION BY account_id ORDER BY position) AS opened
    FROM unnest(
        :account_id::bigint[], :request_key::text[], :request_hash::text[], :correlation_id::text[], :provider::text[],
        :channel::text[], :bot::text[], :address::text[], :placeholder::text[], :model::text[], :input::text[],
        :price::bigint[], :deadline_seconds::float8[], :notice::text[], :api_key_id::bigint[],
        :open_max::bigint[]
    ) WITH ORDINALITY AS t (account_id, request_key, request_hash, correlation_id, provider, channel, bot, address,
                            placeholder, model, input, price, deadline_seconds, notice, api_key_id, open_max, position)
), affordable AS MATERIALIZED (
    SELECT i.*, wallet.available, wallet.open_api_jobs FROM item i JOIN accounts wallet ON wallet.id = i.account_id
    ORDER BY wallet.id FOR NO KEY UPDATE OF wallet
), spending AS MATERIALIZED (
    SELECT i.position, i.key_total
        + CASE WHEN k.spent_day - floor(extract(epoch FROM :now) / 86400) IN (0, 1) THEN k.spent ELSE 0 END
        > k.spend_limit AS over
    FROM affordable i JOIN api_keys k ON k.id = i.api_key_id
    FOR NO KEY UPDATE OF k
), added AS (
    INSERT INTO jobs (
        account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, placeholder, model,
        input, price, hold_state, state, notice, due_at, deadline_at, lease_owner, lease_token, created_at, api_key_id,
        hidden_at)
    SELECT
        i.account_id, i.request_key, i.request_hash, i.correlation_id, i.provider, i.channel, i.bot, i.address,
        i.placeholder, i.model, i.input, i.price, CASE WHEN i.price > 0 THEN 'held' ELSE 'free' END, 'queued', i.notice,
        :now + make_interval(secs => :seconds::float8),
        :now + make_interval(secs => i.deadline_seconds),
        :owner::text, 1, :now, i.api_key_id, CASE WHEN i.api_key_id IS NOT NULL THEN :now END
    FROM affordable i
    WHERE i.account_total <= i.available AND (i.open_max IS NULL OR i.open_api_jobs + i.opened <= i.open_max)
        AND i.position NOT IN (SELECT position FROM spending WHERE over)
    ON CONFLICT (account_id, request_key) DO NOTHING
    RETURNING id, account_id, request_key, price, due_at, deadline_at, created_at, api_key_id
), held AS (
    UPDATE accounts wallet SET available = wallet.available - a.price, held = wallet.held + a.price
    FROM (SELECT account_id, sum(price)::bigint AS price FROM added GROUP BY account_id) a
    WHERE wallet.id = a.account_id AND a.price > 0
), spent AS (
    UPDATE api_keys k
    SET spent = a.price
            + CASE WHEN k.spent_day - floor(extract(epoch FROM :now) / 86400) IN (0, 1) THEN k.spent ELSE 0 END,
        spent_day = floor(extract(epoch FROM :now) / 86400)
            + CASE WHEN k.spent_day - floor(extract(epoch FROM :now) / 86400) = 1 THEN 1 ELSE 0 END
    FROM (SELECT api_key_id, sum(price)::bigint AS price FROM added GROUP BY api_key_id) a
    WHERE k.id = a.api_key_id AND a.price > 0
), line AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'hold:' || id, account_id, id, 'hold', 'available', 'held', price, created_at FROM added WHERE price > 0
)
SELECT id, account_id, request_key, due_at, deadline_at, created_at FROM added;

-- name: accept_lookup
-- Return the balance of an account, its number of open jobs of API keys, and the job that an idempotency key was used
-- for.
SELECT wallet.available, wallet.open_api_jobs, j.*, :now AS read_at
FROM accounts wallet LEFT JOIN jobs j ON j.account_id = wallet.id AND j.request_key = :request_key
WHERE wallet.id = :account_id;

-- name: begin_submit
-- Record the intent to call the provider, as an attempt, while the lease is valid. The same token again records the same
-- intent. After an answer that proves that nothing was accepted, the attempt is made again under the same number.
WITH begun AS (
    UPDATE jobs j
    SET state = 'submitting', secret_hash = i.secret_hash, placeholder = coalesce(i.placeholder, j.placeholder),
        submitted_at = :now, grace_until = NULL, provider = coalesce(i.provider, j.provider),
        attempt = CASE WHEN j.state = 'submitting' OR j.attempt > 0 AND j.secret_hash IS NOT NULL AND EXISTS (
            SELECT FROM attempts a WHERE a.job_id = j.id AND a.number = j.attempt AND a.outcome = 'busy')
            THEN j.attempt ELSE j.attempt + 1 END
    FROM unnest(:job_id::bigint[], :token::bigint[], :secret_hash::text[], :placeholder::text[], :provider::text[],
                :offer::text[], :sent_input::text[])
        AS i (id, token, secret_hash, placeholder, provider, offer, sent_input)
    WHERE j.id = i.id AND j.lease_token = i.token AND j.lease_owner IS NOT NULL AND j.state IN ('queued', 'submitting')
    RETURNING j.id, j.attempt, j.provider, j.secret_hash, coalesce(i.offer, j.model) AS offer, i.sent_input
), attempt AS (
    INSERT INTO attempts AS a (job_id, number, provider, offer, sent_input, secret_hash, started_at)
    SELECT id, attempt, provider, offer, sent_input, secret_hash, :now FROM begun
    ON CONFLICT (job_id, number) DO UPDATE
    SET provider = excluded.provider, offer = excluded.offer, sent_input = excluded.sent_input,
        secret_hash = excluded.secret_hash, outcome = NULL, error_code = '', ended_at = NULL,
        started_at = CASE WHEN a.provider = excluded.provider THEN a.started_at ELSE excluded.started_at END
)
SELECT id FROM begun;

-- name: mark_submitted
-- Record the task id and release the job until its first poll, or make it due at once if an orphan callback waits for
-- it.
WITH moved AS (
    UPDATE jobs j
    SET state = 'running', task_id = i.task_id, handle = i.handle, lease_owner = NULL, attempts = 0, crash_count = 0,
        due_at = CASE
            WHEN EXISTS (SELECT FROM inbox b
                         WHERE b.state = 'orphan' AND b.provider = j.provider AND b.task_id = i.task_id)
            THEN :now
            ELSE greatest(:now, least(j.deadline_at, :now + make_interval(secs => i.poll_after))) END
    FROM unnest(:job_id::bigint[], :token::bigint[], :task_id::text[], :handle::text[], :poll_after::float8[])
        AS i (id, token, task_id, handle, poll_after)
    WHERE j.id = i.id AND j.lease_token = i.token AND j.state IN ('submitting', 'running')
    RETURNING j.id, j.provider, j.task_id
), matched AS (
    UPDATE inbox b SET state = 'matched'
    FROM moved m CROSS JOIN LATERAL (
        SELECT id FROM inbox WHERE state = 'orphan' AND provider = m.provider AND task_id = m.task_id OFFSET 0) o
    WHERE b.id = o.id AND coalesce(b.state, '') = 'orphan'  -- so that the planner does not read all orphans
)
SELECT id FROM moved;

-- name: adopt_task
-- Record the task id of a submit whose lease was lost during the call. The secret proves that this call created the
-- task; without a secret, the job's own callback named it. A task of an earlier attempt is recorded with that attempt.
WITH earlier AS (
    UPDATE attempts a SET task_id = :task_id, handle = :handle
    FROM jobs j
    WHERE a.job_id = :job_id AND j.id = a.job_id AND a.number <> j.attempt AND a.secret_hash = :secret_hash::text
        AND a.task_id IS NULL
)
UPDATE jobs j
SET task_id = :task_id, handle = :handle,
    state = CASE WHEN j.state = 'submitting' THEN 'running' ELSE j.state END,
    due_at = CASE
        WHEN j.state = 'submitting' OR j.state = 'cancelled' AND j.delivery = 'delivered' AND j.lease_owner IS NULL
        THEN :now
        ELSE j.due_at END,
    lease_owner = CASE WHEN j.state = 'submitting' THEN NULL ELSE j.lease_owner END,
    lease_token = CASE WHEN j.state = 'submitting' THEN j.lease_token + 1 ELSE j.lease_token END
WHERE j.id = :job_id AND j.secret_hash = coalesce(:secret_hash::text, j.secret_hash)
    AND (j.task_id IS NULL OR j.task_id = :task_id AND j.handle = '' AND :handle <> '' AND j.state IN ('running', 'cancelled'))
    AND (:secret_hash::text IS NOT NULL OR j.state <> 'queued') AND j.attempt = coalesce(:attempt::bigint, j.attempt)
    AND NOT EXISTS (SELECT FROM jobs o WHERE o.provider = j.provider AND o.task_id = :task_id AND o.id <> j.id)
RETURNING j.id;

-- name: end_job
-- End jobs; the first end wins. Failures release the hold in the same commit, and callbacks are stored or settled in
-- it. A report about a task that is not the job's own, or belongs to another job, ends nothing. A job without its secret
-- was never submitted, or was erased: it takes no late result. A report about an earlier attempt than the current one is
-- recorded with that attempt and changes nothing else. What the provider should not have done is noted as an anomaly.
WITH item AS (
    SELECT * FROM unnest(
        :job_id::bigint[], :token::bigint[], :state::text[], :parts::text[], :task_id::text[], :error_code::text[],
        :error_text::text[], :cancelled_by::text[], :cost::bigint[], :callback_id::bigint[], :provider::text[],
        :secret_hash::text[], :body::text[], :attempt::bigint[]
    ) AS t (job_id, token, state, parts, task_id, error_code, error_text, cancelled_by, cost, callback_id, provider,
            secret_hash, body, attempt)
), found AS MATERIALIZED (
    SELECT i.*, coalesce(i.attempt, j.attempt) AS number,
        CASE WHEN i.body IS NOT NULL THEN nextval('inbox_id_seq') END AS stored_id,
        CASE
            WHEN i.token <> j.lease_token THEN 'stale'
            WHEN i.attempt <> j.attempt OR i.attempt > 0 AND j.state = 'queued' AND j.secret_hash IS NULL THEN 'abandoned'
            WHEN i.task_id <> j.task_id OR j.task_id IS NULL AND EXISTS (
                SELECT FROM jobs o WHERE o.provider = j.provider AND o.task_id = i.task_id)
            THEN 'wrong_task'
            WHEN j.state IN ('queued', 'submitting', 'running') THEN 'won'
            WHEN j.state IN ('expired', 'failed') AND i.state = 'succeeded' AND NOT j.late
                AND j.error_code <> 'broken_result' AND j.secret_hash IS NOT NULL
            THEN CASE WHEN j.lease_owner IS NULL THEN 'late' ELSE 'busy' END
            WHEN j.state = 'cancelled' THEN 'cancelled'
            WHEN j.state = 'succeeded' AND i.state = 'failed' THEN 'contradiction'
            ELSE 'duplicate' END AS verdict
    FROM item i JOIN jobs j ON j.id = i.job_id
        AND (i.body IS NULL OR j.secret_hash = i.secret_hash AND j.provider = i.provider)
    ORDER BY j.id FOR NO KEY UPDATE OF j
), ended AS (
    UPDATE jobs j
    SET state = CASE WHEN f.verdict = 'late' THEN j.state ELSE f.state END,
        late = f.verdict = 'late',
        -- The message about the end may still be on its way to the placeholder, so a late result gets a new message.
        placeholder = CASE WHEN f.verdict = 'late' THEN NULL ELSE j.placeholder END,
        -- What does not show an end yet, or perhaps not, gets it when the result is shown.
        progress_message = CASE
            WHEN f.verdict = 'late' AND j.delivery <> 'delivered'
            THEN coalesce(j.progress_message, j.parts::json -> 0 ->> 'message', j.placeholder)
            ELSE j.progress_message END,
        task_id = coalesce(j.task_id, f.task_id), parts = f.parts,
        error_code = CASE WHEN f.verdict = 'late' THEN j.error_code ELSE f.error_code END,
        error_text = CASE WHEN f.verdict = 'late' THEN j.error_text ELSE f.error_text END,
        cancelled_by = CASE WHEN f.verdict = 'late' THEN j.cancelled_by ELSE f.cancelled_by END,
        cost = coalesce(f.cost, j.cost),
        hold_state = CASE WHEN j.hold_state = 'held' AND f.state <> 'succeeded' THEN 'released' ELSE j.hold_state END,
        delivery = CASE WHEN :owner::text IS NULL THEN 'pending' ELSE 'sending' END,
        delivered_at = NULL, notice = CASE WHEN j.notice = 'none' THEN 'none' ELSE 'wanted' END,
        attention_code = NULL, attention_reason = NULL, attempts = 0, crash_count = 0, grace_until = NULL,
        ended_at = :now,
        due_at = :now + make_interval(secs => :seconds::float8),
        lease_owner = :owner::text, lease_token = j.lease_token + 1
    FROM found f WHERE j.id = f.job_id AND f.verdict IN ('won', 'late')
    RETURNING f.verdict, f.stored_id AS callback_id, j.*
), freed AS (
    SELECT id, account_id, price FROM ended WHERE hold_state = 'released' AND NOT late
), locked AS MATERIALIZED (
    -- also of the jobs that are no longer counted as open, and of the free runs that are returned: the triggers take the
    -- wallets in the order of the jobs
    SELECT id FROM accounts
    WHERE id = ANY (ARRAY(
        SELECT account_id FROM ended
        WHERE api_key_id IS NOT NULL OR hold_state = 'released' OR hold_state = 'free' AND state <> 'succeeded'))
    ORDER BY id FOR NO KEY UPDATE
), sums AS (
    SELECT account_id, min(id) AS job_id, sum(price)::bigint AS amount FROM freed GROUP BY account_id
), owed AS MATERIALIZED (
    SELECT s.*, least(wallet.debt, s.amount) AS repaid
    FROM sums s JOIN accounts wallet ON wallet.id = s.account_id
    WHERE (SELECT count(*) FROM locked) >= 0
    FOR NO KEY UPDATE OF wallet  -- reads the debt of the locked row, not of the snapshot
), refunded AS (
    UPDATE accounts wallet
    SET available = wallet.available + o.amount - o.repaid, held = wallet.held - o.amount, debt = wallet.debt - o.repaid
    FROM owed o WHERE wallet.id = o.account_id
), repayment AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'repay:settle:' || job_id, account_id, job_id, 'repay', 'available', 'house', repaid, :now
    FROM owed WHERE repaid > 0
), line AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'settle:' || id, account_id, id, 'release', 'held', 'available', price, :now
    FROM freed
), loss AS (
    UPDATE jobs j
    SET cost = f.cost,  -- now that the cost is known, the status query is no longer needed
        due_at = CASE WHEN j.delivery = 'delivered' AND j.notice <> 'due' AND j.lease_owner IS NULL
                     AND j.progress_message IS NULL
                 THEN NULL ELSE j.due_at END
    FROM found f WHERE j.id = f.job_id AND f.verdict = 'cancelled' AND f.cost IS NOT NULL
), closed AS (
    UPDATE attempts a
    SET outcome = e.state, error_code = e.error_code, cost = coalesce(e.cost, a.cost), ended_at = :now
    FROM ended e WHERE a.job_id = e.id AND a.number = e.attempt AND e.verdict = 'won' AND a.outcome IS NULL
), reported AS (
    UPDATE attempts a SET late_report = f.state, cost = greatest(f.cost, a.cost)
    FROM found f
    WHERE f.verdict IN ('late', 'cancelled', 'contradiction', 'abandoned') AND a.job_id = f.job_id
        AND a.number = f.number AND f.state IN ('succeeded', 'failed')
), settled AS (
    UPDATE inbox b SET state = 'done', due_at = NULL, task_id = f.task_id, note = f.verdict
    FROM found f WHERE b.id = f.callback_id AND f.verdict <> 'busy'
), stored AS (
    INSERT INTO inbox (id, provider, job_id, attempt, task_id, body, state, note, due_at, received_at)
    OVERRIDING SYSTEM VALUE
    SELECT stored_id, provider, job_id, number, task_id, convert_to(body, 'UTF8'),
        CASE WHEN verdict = 'busy' THEN 'new' ELSE 'done' END, verdict,
        CASE WHEN verdict = 'busy' THEN :now + make_interval(secs => :hold_seconds::float8) END, :now
    FROM found WHERE body IS NOT NULL
), anomaly AS (
    INSERT INTO job_anomalies (job_id, kind, at)
    SELECT job_id, CASE WHEN cost > 0 AND verdict IN ('cancelled', 'abandoned') THEN 'loss'
                   WHEN verdict = 'abandoned' THEN 'contradiction' ELSE verdict END, :now FROM found
    WHERE verdict IN ('contradiction', 'wrong_task') OR verdict = 'cancelled' AND cost > 0
        OR verdict = 'abandoned' AND (state = 'succeeded' OR cost > 0)
    UNION ALL
    SELECT id, 'contradiction', :now FROM ended WHERE verdict = 'late' AND state = 'failed'
    ON CONFLICT (job_id, kind) DO NOTHING
)
SELECT *, ended_at AS read_at FROM ended
WHERE (SELECT count(*) FROM locked) >= 0  -- reads it, so that its locks are always taken
UNION ALL
SELECT f.verdict, f.stored_id, j.*, :now
FROM found f JOIN jobs j ON j.id = f.job_id WHERE verdict NOT IN ('won', 'late');

-- name: fail_over
-- End the current attempt, and queue the job again for another provider. Nothing may be known to have been accepted and
-- billed: the caller proves it. A report must be about the attempt's own task.
WITH found AS MATERIALIZED (
    SELECT j.id, j.attempt, j.task_id, j.handle, j.provider FROM jobs j
    WHERE j.id = :job_id AND j.attempt = coalesce(:attempt::bigint, j.attempt) AND j.state IN ('submitting', 'running')
        AND j.lease_token = coalesce(:token::bigint, j.lease_token)
        AND (:task_id::text IS NULL OR j.task_id = :task_id::text OR j.task_id IS NULL AND NOT EXISTS (
            SELECT FROM jobs o WHERE o.provider = j.provider AND o.task_id = :task_id::text))
    FOR NO KEY UPDATE OF j
), closed AS (
    UPDATE attempts a
    SET outcome = :outcome, error_code = :error_code, cost = coalesce(:cost::bigint, a.cost), ended_at = :now,
        task_id = coalesce(f.task_id, :task_id::text), handle = f.handle
    FROM found f WHERE a.job_id = f.id AND a.number = f.attempt
), settled AS (
    UPDATE inbox b SET state = 'done', due_at = NULL, task_id = :task_id::text, note = 'failed over'
    FROM found f WHERE b.id = :callback_id::bigint
)
UPDATE jobs j
SET state = 'queued', task_id = NULL, handle = '', secret_hash = NULL, grace_until = NULL, attempts = 0, crash_count = 0,
    lease_owner = NULL, lease_token = j.lease_token + 1, due_at = :now
FROM found f WHERE j.id = f.id
RETURNING j.id;

-- name: attempts
-- Return the attempts of a job, in their order.
SELECT a.*, j.attempt = a.number AS current, j.task_id AS current_task, j.handle AS current_handle, j.state AS job_state,
    j.ended_at AS job_ended_at
FROM attempts a JOIN jobs j ON j.id = a.job_id WHERE a.job_id = :job_id ORDER BY a.number;

-- name: known_tasks
-- Return those of some task ids that belong to a job or to an attempt.
SELECT task_id FROM jobs WHERE provider = :provider AND task_id = ANY(:task_ids::text[])
UNION
SELECT task_id FROM attempts WHERE provider = :provider AND task_id = ANY(:task_ids::text[]);

-- name: mark_result_invalid
-- Turn a success or a late result that is invalid, and not paid for, into a failure and release its hold.
WITH found AS MATERIALIZED (
    SELECT id, account_id, price, state = 'succeeded' AND hold_state = 'held' AS held FROM jobs
    WHERE id = :job_id AND lease_token = :token AND delivery = 'sending'
        AND (state = 'succeeded' AND hold_state IN ('held', 'free') OR state = 'failed' OR late)
    FOR NO KEY UPDATE
), locked AS MATERIALIZED (
    SELECT a.id, least(a.debt, f.price) AS repaid FROM accounts a JOIN found f ON f.account_id = a.id AND f.held
    FOR NO KEY UPDATE OF a
), refunded AS (
    UPDATE accounts wallet
    SET available = wallet.available + f.price - l.repaid, held = wallet.held - f.price, debt = wallet.debt - l.repaid
    FROM found f, locked l WHERE wallet.id = l.id
), repayment AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'repay:settle:' || f.id, f.account_id, f.id, 'repay', 'available', 'house', l.repaid, :now
    FROM found f, locked l WHERE l.repaid > 0
), line AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'settle:' || id, account_id, id, 'release', 'held', 'available', price, :now FROM found WHERE held
)
UPDATE jobs j
SET state = 'failed', late = false, error_code = :error_code, error_text = :error_text, parts = :parts,
    hold_state = CASE WHEN f.held THEN 'released' ELSE j.hold_state END
FROM found f WHERE j.id = f.id
RETURNING j.*, :now AS read_at;

-- name: change_address
-- Set the new address of a job's chat. The placeholder exists only at the old address, where no edit is possible.
UPDATE jobs SET address = :address, parts = :parts, placeholder = NULL, progress_message = NULL
WHERE id = :job_id AND lease_token = :token
RETURNING id;

-- name: save_parts
-- Record the progress of a delivery and renew its lease.
UPDATE jobs j
SET parts = i.parts,
    -- An unchanged due_at keeps the update out of the indexes. The holder trusts its lease for less than 0.9 of it.
    due_at = CASE WHEN j.due_at > :now + make_interval(secs => :seconds::float8 * 0.9) THEN j.due_at
             ELSE :now + make_interval(secs => :seconds::float8) END
FROM unnest(:job_id::bigint[], :token::bigint[], :parts::text[]) AS i (id, token, parts)
WHERE j.id = i.id AND j.lease_token = i.token AND j.delivery = 'sending'
RETURNING j.id;

-- name: finish_delivery
-- End deliveries: capture the hold of delivered results and release any other hold, in the same commit. The user is
-- notified of a delivery, and always of one whose outcome is unknown. A cancelled job stays due until the cost of its
-- task is known, and a message that a progress edit may still overwrite is due to be put again: of a result that was
-- given up only when a resend has shown it.
WITH item AS (
    SELECT * FROM unnest(
        :job_id::bigint[], :token::bigint[], :delivery::text[], :parts::text[], :placeholder::text[],
        :attention_code::text[], :attention_reason::text[], :overwritable::boolean[]
    ) AS t (job_id, token, delivery, parts, placeholder, attention_code, attention_reason, overwritable)
), found AS MATERIALIZED (
    SELECT i.*, j.account_id, j.price, j.hold_state = 'held' AS held,
        CASE
            WHEN j.hold_state <> 'held' THEN j.hold_state
            WHEN i.delivery = 'delivered' AND j.state = 'succeeded' THEN 'captured'
            ELSE 'released' END AS hold_state,
        CASE
            WHEN i.delivery = 'unknown' OR i.attention_code = 'unknown_delivery' THEN 'due'
            WHEN i.delivery = 'delivered' AND j.notice = 'wanted' THEN 'due'
            ELSE j.notice END AS notice
    FROM item i JOIN jobs j ON j.id = i.job_id
    WHERE j.lease_token = i.token AND j.delivery = 'sending'
    ORDER BY j.id FOR NO KEY UPDATE OF j
), done AS (
    UPDATE jobs j
    SET delivery = f.delivery, parts = f.parts, placeholder = coalesce(f.placeholder, j.placeholder),
        attention_code = f.attention_code, attention_reason = f.attention_reason, hold_state = f.hold_state,
        notice = f.notice, attempts = 0, crash_count = 0,
        progress_message = CASE WHEN f.overwritable OR f.delivery <> 'delivered' THEN j.progress_message END,
        delivered_at = CASE WHEN f.delivery = 'delivered' THEN :now END,
        lease_owner = CASE WHEN f.notice = 'due' THEN :owner::text END,
        due_at = CASE
            -- An unchanged due_at keeps the update out of the indexes; the lease is hardly shorter.
            WHEN f.notice = 'due' AND j.due_at > :now + make_interval(secs => :seconds::float8 * 0.9) THEN j.due_at
            WHEN f.notice = 'due' THEN :now + make_interval(secs => :seconds::float8)
            WHEN j.state = 'cancelled' AND j.task_id IS NOT NULL AND j.cost IS NULL AND j.deadline_at > :now
            THEN :now
            WHEN f.overwritable THEN :now + interval '4 seconds' END
    FROM found f WHERE j.id = f.job_id
    RETURNING j.id, j.hold_state, j.notice
), moved AS (
    SELECT job_id, token, account_id, price, hold_state FROM found WHERE held
), sums AS (
    SELECT account_id, min(job_id) AS job_id, (array_agg(token ORDER BY job_id))[1] AS token, sum(price)::bigint AS amount,
        sum(CASE WHEN hold_state = 'released' THEN price ELSE 0 END)::bigint AS back
    FROM moved GROUP BY account_id
), locked AS MATERIALIZED (
    SELECT s.*, least(wallet.debt, s.back) AS repaid FROM sums s JOIN accounts wallet ON wallet.id = s.account_id
    ORDER BY wallet.id FOR NO KEY UPDATE OF wallet
), settled AS (
    UPDATE accounts wallet
    SET held = wallet.held - l.amount, available = wallet.available + l.back - l.repaid, debt = wallet.debt - l.repaid
    FROM locked l WHERE wallet.id = l.account_id
), repayment AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'repay:settle:' || job_id || ':' || token, account_id, job_id, 'repay', 'available', 'house', repaid, :now
    FROM locked WHERE repaid > 0
), line AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'settle:' || job_id, account_id, job_id,
        CASE WHEN hold_state = 'captured' THEN 'capture' ELSE 'release' END, 'held',
        CASE WHEN hold_state = 'captured' THEN 'house' ELSE 'available' END, price, :now
    FROM moved
)
SELECT id, hold_state, notice FROM done;

-- name: begin_notice
-- Record the notice before it is sent and release the job. A cancelled job stays due until the cost of its task is
-- known, and a message that a progress edit may still overwrite is due to be put again.
UPDATE jobs j
SET notice = 'sent', notice_token = j.lease_token, lease_owner = NULL, crash_count = 0,
    due_at = CASE
        WHEN j.state = 'cancelled' AND j.task_id IS NOT NULL AND j.cost IS NULL AND j.deadline_at > :now
        THEN :now
        WHEN j.progress_message IS NOT NULL THEN :now + interval '4 seconds' END
FROM unnest(:job_id::bigint[], :token::bigint[]) AS i (id, token)
WHERE j.id = i.id AND j.lease_token = i.token AND j.notice = 'due'
RETURNING j.id;

-- name: return_notice
-- Make a notice due again that was journaled and then provably not sent. The job may be leased again meanwhile, or its
-- result be on its way again: then the release of that lease, or the end of that delivery, makes the notice due.
UPDATE jobs j
SET notice = CASE WHEN j.delivery IN ('pending', 'sending') THEN 'wanted' ELSE 'due' END, notice_token = NULL,
    attempts = CASE WHEN j.lease_owner IS NULL THEN j.attempts + i.failed::int ELSE j.attempts END,
    due_at = CASE WHEN j.lease_owner IS NULL AND j.delivery NOT IN ('pending', 'sending')
             THEN :now + make_interval(secs => i.after) ELSE j.due_at END
FROM unnest(:job_id::bigint[], :token::bigint[], :after::float8[], :failed::boolean[]) AS i (id, token, after, failed)
WHERE j.id = i.id AND j.notice = 'sent' AND j.notice_token = i.token
RETURNING j.id;

-- name: claim_jobs
-- Lease due jobs, the longest overdue first. An expired lease is due again; if another instance had it, that counts as
-- a crash. For `due_since` and the row that is returned also if nothing is due, see `DueScan`.
WITH due AS MATERIALIZED (
    SELECT id, due_at FROM jobs
    WHERE due_at > least(coalesce(:due_since::timestamptz, '-infinity'), :now) - interval '30 seconds' AND due_at <= :now
        AND crash_count = 0
    ORDER BY due_at LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
), claimed AS (
    UPDATE jobs j
    SET lease_owner = :owner::text, lease_token = j.lease_token + 1,
        due_at = :now + make_interval(secs => :seconds::float8),
        crash_count = j.crash_count + CASE WHEN j.lease_owner <> :owner::text THEN 1 ELSE 0 END,
        delivery = CASE WHEN j.delivery = 'pending' THEN 'sending' ELSE j.delivery END
    FROM due WHERE j.id = due.id
    RETURNING j.*, due.due_at AS was_due_at
)
SELECT c.*, :now AS read_at FROM (SELECT 1) always LEFT JOIN claimed c ON true;

-- name: claim_poison_jobs
-- Lease due jobs whose worker crashed: for each number of crashes as many as there are free slots; the last slot is for
-- that number and more. `NOT (due_at > …)` keeps the planner from using the index of all due jobs.
WITH crashed AS MATERIALIZED (
    SELECT id, due_at, least(crash_count, cardinality(:slots::int[])) AS level
    FROM jobs WHERE crash_count > 0 AND NOT (due_at > :now)
), ranked AS MATERIALIZED (
    SELECT id, level, row_number() OVER (PARTITION BY level ORDER BY due_at, id) AS place FROM crashed
), due AS MATERIALIZED (
    SELECT j.id FROM ranked r JOIN jobs j ON j.id = r.id
    WHERE r.place <= (:slots::int[])[r.level] AND NOT (j.due_at > :now)
    FOR NO KEY UPDATE OF j SKIP LOCKED
)
UPDATE jobs j
SET lease_owner = :owner::text, lease_token = j.lease_token + 1,
    due_at = :now + make_interval(secs => :seconds::float8),
    crash_count = j.crash_count + CASE WHEN j.lease_owner <> :owner::text THEN 1 ELSE 0 END,
    delivery = CASE WHEN j.delivery = 'pending' THEN 'sending' ELSE j.delivery END
FROM due WHERE j.id = due.id
RETURNING j.*, :now AS read_at;

-- name: renew_lease
-- Renew the leases of jobs that take long.
UPDATE jobs j SET due_at = :now + make_interval(secs => :seconds::float8)
FROM unnest(:job_id::bigint[], :token::bigint[]) AS i (id, token)
WHERE j.id = i.id AND j.lease_token = i.token AND j.lease_owner = :owner
RETURNING j.id;

-- name: begin_progress
-- Record that a progress edit of the placeholder may be on its way, and renew the lease.
UPDATE jobs j SET progress_message = j.placeholder, due_at = :now + make_interval(secs => :seconds::float8)
FROM unnest(:job_id::bigint[], :token::bigint[]) AS i (id, token)
WHERE j.id = i.id AND j.lease_token = i.token AND j.lease_owner = :owner
RETURNING j.id;

-- name: reschedule
-- Release jobs until later, or without a time until an operator acts, and set what has changed. A submit that is queued
-- again was provably not accepted: its attempt is made again under the same number. A notice that became due meanwhile
-- keeps the job due.
WITH released AS (
UPDATE jobs j
SET lease_owner = NULL,
    state = coalesce(i.state, j.state), delivery = coalesce(i.delivery, j.delivery),
    parts = coalesce(i.parts, j.parts),
    attempts = CASE i.failed WHEN true THEN j.attempts + 1 WHEN false THEN 0 ELSE j.attempts END,
    crash_count = CASE WHEN i.failed IS NULL THEN j.crash_count ELSE 0 END,
    attention_code = coalesce(i.attention_code, j.attention_code),
    attention_reason = coalesce(i.attention_reason, j.attention_reason),
    progress_message = CASE WHEN i.progress_settled THEN NULL ELSE j.progress_message END,
    grace_until = CASE WHEN i.grace
        THEN :now + make_interval(secs => i.after) ELSE j.grace_until END,
    due_at = CASE
        WHEN i.after IS NULL AND j.notice = 'due' AND i.attention_code IS NULL THEN :now
        WHEN i.after IS NULL THEN NULL
        WHEN i.grace OR j.delivery <> 'none' OR j.deadline_at <= :now
        THEN :now + make_interval(secs => i.after)
        ELSE least(j.deadline_at, :now + make_interval(secs => i.after)) END
FROM unnest(
    :job_id::bigint[], :token::bigint[], :after::float8[], :state::text[], :delivery::text[], :parts::text[],
    :grace::boolean[], :failed::boolean[], :progress_settled::boolean[], :attention_code::text[],
    :attention_reason::text[]
) AS i (id, token, after, state, delivery, parts, grace, failed, progress_settled, attention_code,
        attention_reason)
WHERE j.id = i.id AND j.lease_token = i.token
RETURNING j.id, j.attempt, i.state
), refused AS (
    UPDATE attempts a SET outcome = 'busy', ended_at = :now
    FROM released r WHERE r.state = 'queued' AND a.job_id = r.id AND a.number = r.attempt AND a.outcome IS NULL
)
SELECT id FROM released;

-- name: retry_job
-- Make a waiting or parked job due now, or a notice that failed in every attempt: then what needs attention stays. An
-- order that the provider may have accepted is queued again, as another attempt, only with the token that was read when
-- this was decided.
WITH found AS MATERIALIZED (
    SELECT id, attempt FROM jobs
    WHERE id = :job_id AND lease_owner IS NULL AND state = 'submitting' AND due_at IS NULL
        AND lease_token = :resubmit::bigint
    FOR NO KEY UPDATE
), unknown AS (
    UPDATE attempts a SET outcome = 'unknown', ended_at = :now
    FROM found f WHERE a.job_id = f.id AND a.number = f.attempt AND a.outcome IS NULL
)
UPDATE jobs
SET due_at = :now, lease_token = lease_token + 1, attempts = 0, crash_count = 0,
    attention_code = CASE WHEN delivery IN ('none', 'pending', 'sending') THEN NULL ELSE attention_code END,
    attention_reason = CASE WHEN delivery IN ('none', 'pending', 'sending') THEN NULL ELSE attention_reason END,
    state = CASE WHEN state = 'submitting' AND due_at IS NULL THEN 'queued' ELSE state END
WHERE id = :job_id AND lease_owner IS NULL AND (SELECT count(*) FROM found) >= 0
    AND (state IN ('queued', 'submitting', 'running') OR delivery IN ('pending', 'sending')
        OR notice = 'due' AND due_at IS NULL)
    AND (lease_token = :resubmit::bigint OR NOT (
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
WHERE id = :job_id AND lease_token = coalesce(:token::bigint, lease_token)
    AND delivery IN ('delivered', 'undeliverable', 'unknown')
RETURNING id;

-- name: resend_paid_job
-- Resend a result that could not be delivered, as `resend_job` does, and hold its released price again, in the same
-- commit. The ledger entries of the earlier hold get the old lease token appended to their keys, so that the new hold
-- settles under the usual keys.
WITH job AS MATERIALIZED (
    SELECT id, account_id, price FROM jobs
    WHERE id = :job_id AND lease_token = :token AND state = 'succeeded' AND delivery = 'undeliverable'
        AND hold_state = 'released'
    FOR NO KEY UPDATE
), paid AS (
    UPDATE accounts wallet SET available = wallet.available - job.price, held = wallet.held + job.price
    FROM job WHERE wallet.id = job.account_id AND wallet.available >= job.price
    RETURNING wallet.id
), before AS (
    UPDATE ledger SET key = key || ':' || :token::bigint
    FROM job, paid WHERE key IN ('hold:' || job.id, 'settle:' || job.id)
    RETURNING kind
), line AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'hold:' || job.id, job.account_id, job.id, 'hold', 'available', 'held', job.price, :now
    FROM job, paid WHERE EXISTS (SELECT FROM before WHERE kind = 'hold')
)
UPDATE jobs j
SET hold_state = 'held', delivery = 'pending', delivered_at = NULL, parts = :parts, placeholder = NULL, due_at = :now,
    lease_owner = NULL, lease_token = j.lease_token + 1, attempts = 0, crash_count = 0, attention_code = NULL,
    attention_reason = NULL, progress_message = coalesce(j.progress_message, j.placeholder),
    notice = CASE WHEN j.notice = 'due' THEN 'wanted' ELSE j.notice END
FROM job, paid WHERE j.id = job.id
RETURNING j.id;
