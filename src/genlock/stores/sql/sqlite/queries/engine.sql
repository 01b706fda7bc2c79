-- SQLite. The same names and parameters as for PostgreSQL; times are microseconds, `:now` is the process's clock.
-- SQLite cannot write inside a CTE, so a name may hold several statements: they run in order, in one transaction.
-- Batches come as one JSON array, `:items`; where several statements need them they are laid out in a temporary table
-- of the same name first, which is empty again at the end.

-- name: temporary
-- The tables that batches are laid out in; they belong to the connection.
CREATE TEMP TABLE accept_item (
    account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, placeholder, model, input,
    price, deadline_seconds, notice, fresh);
CREATE TEMP TABLE end_item (
    job_id, token, state, parts, task_id, error_code, error_text, cancelled_by, cost, callback_id, provider, body, kept_id,
    account_id, price, held, verdict, interrupted);
CREATE TEMP TABLE finish_item (
    job_id, token, delivery, parts, placeholder, attention_code, attention_reason, account_id, price, held, hold_state,
    notice);
CREATE TEMP TABLE update_item (bot, update_id, ordering_key, kind, urgent, dedup_key, body, state);
CREATE TEMP TABLE lane_item (queue_id);
CREATE TEMP TABLE settle_item (queue_id, token, id, state, note);

-- name: ensure_account
-- Find or make the person a bot knows by an outside id.
INSERT INTO accounts (channel, bot, external_id, created_at) VALUES (:channel, :bot, :external_id, :now)
ON CONFLICT (channel, bot, external_id) DO NOTHING;
SELECT id FROM accounts WHERE channel = :channel AND bot = :bot AND external_id = :external_id;

-- name: account
-- One account.
SELECT id, channel, bot, external_id, address FROM accounts WHERE id = :account_id;

-- name: set_account_address
-- Remember where the channel reaches the user of an account.
UPDATE accounts SET address = :address WHERE id = :account_id AND address <> :address;

-- name: wallet
-- What a person has.
SELECT id AS account_id, available, held FROM accounts WHERE id = :account_id;

-- name: transfer
-- Move money between a person and the house, once per key. No row: the key was used, or the money is not there.
INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
SELECT :key, id, :kind, :debit, :credit, :amount, :reason, :now FROM accounts
WHERE id = :account_id AND (:debit <> 'available' OR available >= :amount)
ON CONFLICT (key) DO NOTHING;
UPDATE accounts SET available = available + CASE WHEN :credit = 'available' THEN :amount ELSE -:amount END
WHERE id = :account_id AND changes() = 1  -- only if the line above was new
RETURNING id;

-- name: ledger_entry
-- The movement a key stands for.
SELECT * FROM ledger WHERE key = :key;

-- name: ledger_entries
-- A person's last movements, newest first.
SELECT * FROM ledger WHERE account_id = :account_id ORDER BY at DESC, key DESC LIMIT :limit;

-- name: accept
-- Write jobs with their holds. The batch holds each person once.
INSERT INTO accept_item
SELECT
    i.account_id, i.request_key, value ->> 'request_hash', value ->> 'correlation_id', value ->> 'provider',
    value ->> 'channel', value ->> 'bot', value ->> 'address', value ->> 'placeholder', value ->> 'model', value ->> 'input', i.price,
    value ->> 'deadline_seconds', value ->> 'notice',
    i.price <= p.available AND NOT EXISTS (
        SELECT 1 FROM jobs j WHERE j.account_id = i.account_id AND j.request_key = i.request_key)
FROM (SELECT value, value ->> 'account_id' AS account_id, value ->> 'request_key' AS request_key,
          value ->> 'price' AS price FROM json_each(:items)) i
JOIN accounts p ON p.id = i.account_id;
INSERT INTO jobs (
    account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, placeholder, model, input,
    price, hold_state, state, notice, due_at, deadline_at, lease_owner, lease_token, created_at)
SELECT
    account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, placeholder, model, input,
    price, CASE WHEN price > 0 THEN 'held' ELSE 'free' END, 'queued', notice,
    :now + CAST(:seconds * 1000000 AS INTEGER), :now + CAST(deadline_seconds * 1000000 AS INTEGER), :owner, 1, :now
FROM accept_item WHERE fresh
RETURNING id, account_id, due_at, deadline_at, created_at;
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'hold:' || j.id, j.account_id, j.id, 'hold', 'available', 'held', j.price, :now
FROM accept_item i JOIN jobs j ON j.account_id = i.account_id AND j.request_key = i.request_key
WHERE i.fresh AND i.price > 0;
UPDATE accounts SET available = available - i.price, held = held + i.price
FROM accept_item i WHERE i.fresh AND accounts.id = i.account_id;
DELETE FROM accept_item;

-- name: accept_lookup
-- Why an order was not written: the job its key stands for, or what its person has.
SELECT p.available, j.*, :now AS read_at
FROM accounts p LEFT JOIN jobs j ON j.account_id = p.id AND j.request_key = :request_key
WHERE p.id = :account_id;

-- name: begin_submit
-- Commit the intent to call the provider, under a lease that nobody has begun to take over. A repeat under the same
-- token is the same intent.
UPDATE jobs
SET state = 'submitting', secret_hash = i.value ->> 'secret_hash',
    placeholder = coalesce(i.value ->> 'placeholder', placeholder), submitted_at = :now, grace_until = NULL
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND lease_token = i.value ->> 'token' AND lease_owner IS NOT NULL
    AND state IN ('queued', 'submitting')
RETURNING id;

-- name: mark_submitted
-- The task is known: give the job back until its first poll, or at once if an orphan was waiting for it.
UPDATE jobs
SET state = 'running', task_id = i.value ->> 'task_id', lease_owner = NULL, attempts = 0, crash_count = 0,
    due_at = CASE
        WHEN EXISTS (SELECT 1 FROM inbox b
                     WHERE b.state = 'orphan' AND b.provider = jobs.provider AND b.task_id = i.value ->> 'task_id')
        THEN :now
        ELSE min(deadline_at, :now + CAST((i.value ->> 'poll_after') * 1000000 AS INTEGER)) END
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND lease_token = i.value ->> 'token' AND state IN ('submitting', 'running')
RETURNING id;
UPDATE inbox SET state = 'matched', job_id = j.id
FROM json_each(:items) i JOIN jobs j ON j.id = i.value ->> 'job_id' AND j.task_id = i.value ->> 'task_id'
WHERE inbox.state = 'orphan' AND inbox.provider = j.provider AND inbox.task_id = j.task_id;

-- name: adopt_task
-- A task whose submitter lost the lease meanwhile: the secret proves that this call made it. Without a secret it was
-- the job's own callback that named it.
UPDATE jobs
SET task_id = :task_id,
    state = CASE WHEN state = 'submitting' THEN 'running' ELSE state END,
    due_at = CASE
        WHEN state = 'submitting' OR state = 'cancelled' AND delivery = 'delivered' AND lease_owner IS NULL
        THEN :now
        ELSE due_at END,
    lease_owner = CASE WHEN state = 'submitting' THEN NULL ELSE lease_owner END,
    lease_token = CASE WHEN state = 'submitting' THEN lease_token + 1 ELSE lease_token END
WHERE id = :job_id AND task_id IS NULL AND secret_hash = coalesce(:secret_hash, secret_hash)
    AND (:secret_hash IS NOT NULL OR state <> 'queued')
    AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.provider = jobs.provider AND o.task_id = :task_id)
RETURNING id;

-- name: end_job
-- End jobs: the first end wins. Failures give the money back in the same commit; callbacks are kept or settled in it.
-- What is said of a task that is not the job's own, or that is another job's, ends nothing.
INSERT INTO end_item
SELECT
    i.job_id, i.token, i.state, value ->> 'parts', i.task_id, value ->> 'error_code',
    value ->> 'error_text', value ->> 'cancelled_by', value ->> 'cost', value ->> 'callback_id', j.provider, i.body,
    CASE WHEN i.body IS NOT NULL THEN (SELECT coalesce(max(id), 0) FROM inbox) + row_number() OVER () END,
    j.account_id, j.price, j.hold_state = 'held',
    CASE
        WHEN i.token <> j.lease_token THEN 'stale'
        WHEN i.task_id <> j.task_id OR j.task_id IS NULL AND EXISTS (
            SELECT 1 FROM jobs o WHERE o.provider = j.provider AND o.task_id = i.task_id)
        THEN 'foreign'
        WHEN j.state IN ('queued', 'submitting', 'running') THEN 'won'
        WHEN j.state = 'expired' AND i.state = 'succeeded' AND NOT j.late
        THEN CASE WHEN j.lease_owner IS NULL THEN 'late' ELSE 'busy' END
        WHEN j.state = 'cancelled' THEN 'cancelled'
        WHEN j.state IN ('succeeded', 'failed') AND i.state IN ('succeeded', 'failed') AND j.state <> i.state
        THEN 'contradiction'
        ELSE 'duplicate' END,
    j.state = 'running' AND j.lease_owner IS NOT NULL AND i.token IS NULL
FROM (SELECT value, value ->> 'job_id' AS job_id, value ->> 'token' AS token, value ->> 'state' AS state,
          value ->> 'body' AS body, value ->> 'task_id' AS task_id
      FROM json_each(:items)) i
JOIN jobs j ON j.id = i.job_id
    AND (i.body IS NULL OR j.secret_hash = value ->> 'secret_hash' AND j.provider = value ->> 'provider');
UPDATE jobs
SET state = CASE WHEN i.verdict = 'late' THEN jobs.state ELSE i.state END,
    late = i.verdict = 'late',
    -- Words about a job that expired may still be on their way to its message: a late result gets its own.
    placeholder = CASE WHEN i.verdict = 'late' THEN NULL ELSE placeholder END,
    task_id = coalesce(jobs.task_id, i.task_id), parts = i.parts, error_code = i.error_code,
    error_text = i.error_text, cancelled_by = CASE WHEN i.verdict = 'late' THEN jobs.cancelled_by ELSE i.cancelled_by END,
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
UPDATE jobs
SET cost = i.cost,  -- with that, nobody needs to ask for it any more
    due_at = CASE WHEN delivery = 'delivered' AND notice <> 'due' AND lease_owner IS NULL THEN NULL ELSE due_at END
FROM end_item i WHERE jobs.id = i.job_id AND i.verdict = 'cancelled' AND i.cost IS NOT NULL;
UPDATE inbox SET state = 'done', due_at = NULL, task_id = i.task_id, note = i.verdict
FROM end_item i WHERE inbox.id = i.callback_id AND i.verdict <> 'busy';
INSERT INTO inbox (id, provider, job_id, task_id, body, state, note, due_at, received_at)
SELECT kept_id, provider, job_id, task_id, CAST(body AS BLOB), CASE WHEN verdict = 'busy' THEN 'new' ELSE 'done' END,
    verdict, CASE WHEN verdict = 'busy' THEN :now + CAST(:hold_seconds * 1000000 AS INTEGER) END, :now
FROM end_item WHERE body IS NOT NULL;
SELECT i.verdict, i.interrupted, i.kept_id AS callback_id, j.*, :now AS read_at
FROM end_item i JOIN jobs j ON j.id = i.job_id;
DELETE FROM end_item;

-- name: mark_result_invalid
-- A result that nobody has paid for turns out to be none: the job has failed, its money goes back in the same commit.
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'settle:' || id, account_id, id, 'release', 'held', 'available', price, :now
FROM jobs WHERE id = :job_id AND lease_token = :token AND delivery = 'sending' AND state = 'succeeded' AND hold_state = 'held';
UPDATE accounts SET available = available + j.price, held = held - j.price
FROM jobs j WHERE j.id = :job_id AND j.lease_token = :token AND j.delivery = 'sending' AND j.state = 'succeeded'
    AND j.hold_state = 'held' AND accounts.id = j.account_id;
UPDATE jobs
SET state = 'failed', error_code = :error_code, error_text = :error_text, parts = :parts,
    hold_state = CASE WHEN hold_state = 'held' THEN 'released' ELSE hold_state END
WHERE id = :job_id AND lease_token = :token AND delivery = 'sending'
    AND (state = 'succeeded' AND hold_state IN ('held', 'free') OR state = 'failed')
RETURNING *, :now AS read_at;

-- name: change_address
-- The chat has another address now; the placeholder stayed behind.
UPDATE jobs SET address = :address, parts = :parts, placeholder = NULL
WHERE id = :job_id AND lease_token = :token
RETURNING id;

-- name: save_parts
-- Journal how far a delivery has come and renew its lease.
UPDATE jobs SET parts = i.value ->> 'parts', due_at = :now + CAST(:seconds * 1000000 AS INTEGER)
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND lease_token = i.value ->> 'token' AND delivery = 'sending'
RETURNING id;

-- name: finish_delivery
-- End deliveries: delivered results are captured, everything else still held goes back, in the same commit.
-- A cancelled job's task is asked after until we know what it cost.
INSERT INTO finish_item
SELECT
    i.job_id, i.token, i.delivery, value ->> 'parts', value ->> 'placeholder',
    value ->> 'attention_code', value ->> 'attention_reason',
    j.account_id, j.price, j.hold_state = 'held',
    CASE
        WHEN j.hold_state <> 'held' THEN j.hold_state
        WHEN i.delivery = 'delivered' AND j.state = 'succeeded' THEN 'captured'
        ELSE 'released' END,
    CASE WHEN i.delivery = 'delivered' AND j.notice = 'wanted' THEN 'due' ELSE j.notice END
FROM (SELECT value, value ->> 'job_id' AS job_id, value ->> 'token' AS token, value ->> 'delivery' AS delivery
      FROM json_each(:items)) i
JOIN jobs j ON j.id = i.job_id
WHERE j.lease_token = i.token AND j.delivery = 'sending';
UPDATE jobs
SET delivery = i.delivery, parts = i.parts, placeholder = coalesce(i.placeholder, jobs.placeholder),
    attention_code = i.attention_code, attention_reason = i.attention_reason, hold_state = i.hold_state, notice = i.notice, attempts = 0, crash_count = 0,
    delivered_at = CASE WHEN i.delivery = 'delivered' THEN :now END,
    lease_owner = CASE WHEN i.notice = 'due' THEN :owner END,
    due_at = CASE
        WHEN i.notice = 'due' THEN :now + CAST(:seconds * 1000000 AS INTEGER)
        WHEN state = 'cancelled' AND task_id IS NOT NULL AND cost IS NULL AND deadline_at > :now THEN :now END
FROM finish_item i WHERE jobs.id = i.job_id
RETURNING id, hold_state, notice;
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'settle:' || job_id, account_id, job_id, CASE WHEN hold_state = 'captured' THEN 'capture' ELSE 'release' END, 'held',
    CASE WHEN hold_state = 'captured' THEN 'house' ELSE 'available' END, price, :now
FROM finish_item WHERE held;
UPDATE accounts SET held = held - s.amount, available = available + s.back
FROM (SELECT account_id, sum(price) AS amount, sum(CASE WHEN hold_state = 'released' THEN price ELSE 0 END) AS back
      FROM finish_item WHERE held GROUP BY account_id) s
WHERE accounts.id = s.account_id;
DELETE FROM finish_item;

-- name: begin_notice
-- Journal the notice before it is sent; the job is done with this, but for a cancelled one's bill.
UPDATE jobs
SET notice = 'sent', lease_owner = NULL, crash_count = 0,
    due_at = CASE
        WHEN state = 'cancelled' AND task_id IS NOT NULL AND cost IS NULL AND deadline_at > :now THEN :now END
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND lease_token = i.value ->> 'token' AND notice = 'due'
RETURNING id;

-- name: reschedule
-- Give jobs back until later (or, without a time, until an operator acts), setting what changed meanwhile.
UPDATE jobs
SET lease_owner = NULL,
    state = coalesce(i.state, jobs.state), delivery = coalesce(i.delivery, jobs.delivery),
    notice = coalesce(i.notice, jobs.notice), parts = coalesce(i.parts, jobs.parts),
    attempts = CASE i.failed WHEN 1 THEN attempts + 1 WHEN 0 THEN 0 ELSE attempts END,
    crash_count = CASE WHEN i.failed IS NULL THEN crash_count ELSE 0 END,
    attention_code = coalesce(i.attention_code, jobs.attention_code),
    attention_reason = coalesce(i.attention_reason, jobs.attention_reason),
    grace_until = CASE WHEN i.grace THEN :now + CAST(i.after * 1000000 AS INTEGER) ELSE grace_until END,
    due_at = CASE
        WHEN i.after IS NULL THEN NULL
        WHEN i.grace OR jobs.delivery <> 'none' OR deadline_at <= :now
        THEN :now + CAST(i.after * 1000000 AS INTEGER)
        ELSE min(deadline_at, :now + CAST(i.after * 1000000 AS INTEGER)) END
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'token' AS token, value ->> 'after' AS after,
          value ->> 'state' AS state, value ->> 'delivery' AS delivery, value ->> 'notice' AS notice,
          value ->> 'parts' AS parts, value ->> 'grace' AS grace, value ->> 'failed' AS failed,
          value ->> 'attention_code' AS attention_code, value ->> 'attention_reason' AS attention_reason
      FROM json_each(:items)) i
WHERE jobs.id = i.job_id AND lease_token = i.token
RETURNING id;

-- name: renew
-- Keep long work leased.
UPDATE jobs SET due_at = :now + CAST(:seconds * 1000000 AS INTEGER)
FROM json_each(:items) i
WHERE jobs.id = i.value ->> 'job_id' AND lease_token = i.value ->> 'token' AND lease_owner = :owner
RETURNING id;

-- name: claim
-- Take due jobs, the longest overdue first. An expired lease is simply due again; its holder may have died.
UPDATE jobs
SET lease_owner = :owner, lease_token = lease_token + 1, due_at = :now + CAST(:seconds * 1000000 AS INTEGER),
    crash_count = crash_count + CASE WHEN lease_owner <> :owner THEN 1 ELSE 0 END,
    delivery = CASE WHEN delivery = 'pending' THEN 'sending' ELSE delivery END
WHERE id IN (SELECT id FROM jobs WHERE due_at <= :now AND crash_count = 0 ORDER BY due_at LIMIT :limit)
RETURNING *, :now AS read_at;

-- name: claim_poison_jobs
-- Take due jobs that were in hand when their instance died: of each number of deaths as many as there is room for, the
-- last room being for that number and more. `NOT (due_at > …)`: the index of all that is due is not to be tried.
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

-- name: store_callback
-- Keep a callback raw, with the job whose secret it knew.
INSERT INTO inbox (provider, job_id, body, state, due_at, received_at)
VALUES (
    :provider,
    (SELECT id FROM jobs WHERE id = :job_id AND secret_hash = :secret_hash AND provider = :provider),
    :body, 'new', :now + CAST(:hold_seconds * 1000000 AS INTEGER), :now)
RETURNING id, job_id, received_at, (SELECT correlation_id FROM jobs WHERE jobs.id = inbox.job_id) AS correlation_id;

-- name: count_unauthenticated_callbacks
-- How many callbacks of the last while no job vouches for; counted up to a limit.
SELECT count(*) AS number FROM (
    SELECT 1 AS one FROM inbox WHERE job_id IS NULL AND received_at > :now - CAST(:older_than * 1000000 AS INTEGER) LIMIT :limit
) AS lately;

-- name: is_secret
-- Whether this is the secret of a job's callback address.
SELECT id FROM jobs WHERE id = :job_id AND provider = :provider AND secret_hash = :secret_hash;

-- name: claim_callbacks
-- Stored callbacks that nobody has dealt with in time.
UPDATE inbox SET due_at = :now + CAST(:hold_seconds * 1000000 AS INTEGER)
WHERE id IN (SELECT id FROM inbox WHERE due_at <= :now ORDER BY due_at LIMIT :limit)
RETURNING *, (SELECT correlation_id FROM jobs WHERE jobs.id = inbox.job_id) AS correlation_id;

-- name: settle_callback
-- Callbacks are dealt with without an effect on a job. Of a stranger's the beginning is kept.
UPDATE inbox
SET state = i.value ->> 'state', due_at = NULL, task_id = coalesce(i.value ->> 'task_id', task_id),
    note = i.value ->> 'note',
    body = CASE WHEN job_id IS NULL AND length(body) > 2000 THEN substr(body, 1, 2000) ELSE body END
FROM json_each(:items) i WHERE inbox.id = i.value ->> 'callback_id'
RETURNING id;

-- name: expire_callback
-- A callback that nobody can read has waited long enough.
UPDATE inbox SET state = 'expired', due_at = NULL, note = :note
WHERE id = :callback_id AND state = 'new' AND received_at < :now - CAST(:older_than * 1000000 AS INTEGER)
RETURNING id;

-- name: note_untrusted_callback
-- A callback we may not believe: ask the provider about its job soon, or keep its beginning as an orphan.
UPDATE jobs SET due_at = :now
WHERE provider = :provider AND task_id = :task_id AND state = 'running' AND lease_owner IS NULL;
UPDATE inbox
SET job_id = (SELECT id FROM jobs WHERE provider = :provider AND task_id = :task_id),
    state = CASE WHEN EXISTS (SELECT 1 FROM jobs WHERE provider = :provider AND task_id = :task_id)
            THEN 'matched' ELSE 'orphan' END,
    task_id = :task_id, due_at = NULL,
    body = CASE WHEN length(body) > 2000 THEN substr(body, 1, 2000) ELSE body END
WHERE id = :callback_id
RETURNING job_id;

-- name: match_orphans
-- Orphans whose job is known by now; running jobs among them are made due for a status query.
UPDATE jobs SET due_at = :now
WHERE state = 'running' AND lease_owner IS NULL AND id IN (
    SELECT j.id FROM inbox b JOIN jobs j ON j.provider = b.provider AND j.task_id = b.task_id
    WHERE b.state = 'orphan' ORDER BY j.id LIMIT :limit);
UPDATE inbox SET state = 'matched', job_id = pair.job_id
FROM (SELECT b.id AS callback_id, j.id AS job_id
      FROM inbox b JOIN jobs j ON j.provider = b.provider AND j.task_id = b.task_id
      WHERE b.state = 'orphan' ORDER BY j.id LIMIT :limit) AS pair
WHERE inbox.id = pair.callback_id
RETURNING id AS callback_id, job_id;

-- name: expire_orphans
-- Orphans nobody claimed; only the holder of the active role, in its own epoch, may say so.
UPDATE inbox SET state = 'expired'
WHERE state = 'orphan' AND received_at < :now - CAST(:older_than * 1000000 AS INTEGER)
    AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: callbacks
-- The newest callbacks in a state.
SELECT *, (SELECT correlation_id FROM jobs WHERE jobs.id = inbox.job_id) AS correlation_id
FROM inbox WHERE state = :state ORDER BY id DESC LIMIT :limit;

-- name: heartbeat
-- Say that we live, and see who has been silent.
INSERT INTO instances (id, started_at, seen_at) VALUES (:instance, :now, :now)
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at;
SELECT id FROM instances WHERE id <> :instance AND seen_at < :now - CAST(:silent_seconds * 1000000 AS INTEGER);

-- name: release_leases
-- Make due what an instance holds, and forget the instance unless part of its work goes on. If it died, that is
-- counted, and whatever has been in hand often is left for a while, so that others are served in between.
DELETE FROM instances WHERE id = :instance AND json_array_length(:but) = 0;
UPDATE jobs
SET lease_owner = NULL, crash_count = crash_count + :died,
    due_at = :now + CASE WHEN :died AND crash_count + 1 >= :isolated_from THEN 1000000 << min(crash_count + 1 - :isolated_from, 6) ELSE 0 END
WHERE due_at IS NOT NULL AND lease_owner = :instance AND id NOT IN (SELECT value FROM json_each(:but))
RETURNING id;

-- name: take_role
-- Take or renew a role if nobody else holds it; say who does.
INSERT INTO roles (name, holder, epoch, until) VALUES (:name, :instance, 1, :now + CAST(:seconds * 1000000 AS INTEGER))
ON CONFLICT (name) DO UPDATE
SET epoch = epoch + CASE WHEN holder = excluded.holder THEN 0 ELSE 1 END,
    holder = excluded.holder, until = excluded.until
WHERE holder = excluded.holder OR until < :now;
SELECT holder, epoch FROM roles WHERE name = :name;

-- name: leave_role
-- Give a role up at once.
UPDATE roles SET until = 0 WHERE name = :name AND holder = :instance;

-- name: open_limit
-- A limit's row, before its first use.
INSERT INTO limits (key, next_at) VALUES (:key, :now - 86400000000) ON CONFLICT (key) DO NOTHING;

-- name: reserve
-- Reserve turns of a shared limit, `interval` apart, at most `horizon` ahead; unused turns add up to a burst.
-- Two rows: the seconds to the first turn before and after.
UPDATE limits SET next_at = max(next_at, :now - CAST((:burst - 1) * :interval * 1000000 AS INTEGER))
WHERE key = :key
RETURNING (next_at - :now) / 1000000.0 AS wait;
UPDATE limits
SET next_at = next_at + CAST(:interval * 1000000 * CASE
    WHEN next_at > :now + :horizon * 1000000 THEN 0
    ELSE min(:count, 1 + CAST((:now + :horizon * 1000000 - next_at) / (:interval * 1000000) AS INTEGER))
    END AS INTEGER)
WHERE key = :key
RETURNING (next_at - :now) / 1000000.0 AS wait;

-- name: job
-- One job.
SELECT *, :now AS read_at FROM jobs WHERE id = :job_id;

-- name: jobs
-- Jobs, newest first, by state and person where given, below an id where given.
SELECT *, :now AS read_at FROM jobs
WHERE (:state IS NULL OR state = :state) AND (:account_id IS NULL OR account_id = :account_id)
    AND (:before IS NULL OR id < :before)
ORDER BY id DESC LIMIT :limit;

-- name: jobs_needing_attention
-- What an operator should look at, oldest first.
SELECT *, :now AS read_at FROM jobs WHERE attention_reason IS NOT NULL ORDER BY id LIMIT :limit;

-- name: retry
-- Make a waiting or parked job due now; a parked submit is queued again.
UPDATE jobs
SET due_at = :now, lease_token = lease_token + 1, attempts = 0, crash_count = 0, attention_code = NULL,
    attention_reason = NULL,
    state = CASE WHEN state = 'submitting' AND due_at IS NULL THEN 'queued' ELSE state END
WHERE id = :job_id AND lease_owner IS NULL
    AND (state IN ('queued', 'submitting', 'running') OR delivery IN ('pending', 'sending'))
RETURNING id;

-- name: resend
-- Deliver an ended job's parts anew, on messages of their own.
UPDATE jobs
SET delivery = 'pending', delivered_at = NULL, parts = :parts, placeholder = NULL, due_at = :now,
    lease_owner = NULL, lease_token = lease_token + 1, attempts = 0, crash_count = 0, attention_code = NULL,
    attention_reason = NULL,
    notice = CASE WHEN notice = 'due' THEN 'wanted' ELSE notice END
WHERE id = :job_id AND lease_token = coalesce(:token, lease_token)
    AND delivery IN ('delivered', 'undeliverable', 'unknown')
RETURNING id;

-- name: resend_paid
-- As resend, for a result that could not be delivered and whose money went back: it is held again in the same commit.
-- The lines of the hold before get the token of its end into their keys, so that the new ones settle as any others.
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
    attention_reason = NULL
WHERE id = :job_id AND changes() = 1
RETURNING id;

-- name: counts
-- Jobs in progress by state, and what is due, waiting in the inbox or on the operator's list.
SELECT state AS name, count(*) AS count FROM jobs WHERE due_at IS NOT NULL GROUP BY state
UNION ALL SELECT 'due', count(*) FROM jobs WHERE due_at <= :now
UNION ALL SELECT 'callbacks', count(*) FROM inbox WHERE due_at IS NOT NULL
UNION ALL SELECT 'orphans', count(*) FROM inbox WHERE state = 'orphan'
UNION ALL SELECT 'attention', count(*) FROM jobs WHERE attention_reason IS NOT NULL;

-- name: check_wallets
-- Every balance is the sum of its movements.
SELECT CAST(p.id AS TEXT) AS subject,
    printf('available %d, ledger %d; held %d, ledger %d', p.available, l.available, p.held, l.held) AS detail
FROM accounts p
JOIN (SELECT q.id,
          coalesce(sum(CASE 'available' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS available,
          coalesce(sum(CASE 'held' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS held
      FROM accounts q LEFT JOIN ledger ON account_id = q.id GROUP BY q.id) l ON l.id = p.id
WHERE p.available <> l.available OR p.held <> l.held;

-- name: check_zero_sum
-- What people have is what the house owes.
SELECT 'all' AS subject, printf('accounts %d, house %d', accounts, house) AS detail
FROM (SELECT coalesce(sum(available + held), 0) AS accounts FROM accounts) p,
     (SELECT coalesce(sum(CASE 'house' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS house FROM ledger) h
WHERE accounts + house <> 0;

-- name: check_hold_states
-- A job's purse says what the ledger says: held once, settled at most once, for its price.
SELECT CAST(j.id AS TEXT) AS subject,
    printf('hold_state %s, price %d, hold %s, %s %s', j.hold_state, j.price, h.amount, s.kind, s.amount) AS detail
FROM jobs j
LEFT JOIN ledger h ON h.key = 'hold:' || j.id
LEFT JOIN ledger s ON s.key = 'settle:' || j.id
WHERE NOT CASE j.hold_state
    WHEN 'free' THEN j.price = 0 AND h.key IS NULL AND s.key IS NULL
    WHEN 'held' THEN h.amount = j.price AND s.key IS NULL
    WHEN 'captured' THEN h.amount = j.price AND s.amount = j.price AND s.kind = 'capture'
    ELSE h.amount = j.price AND s.amount = j.price AND s.kind = 'release' END IS TRUE;

-- name: check_ends
-- Money is held only while a job is open or its result is on the way; only a delivered result is paid for.
SELECT CAST(id AS TEXT) AS subject, printf('state %s, delivery %s, hold_state %s', state, delivery, hold_state) AS detail
FROM jobs
WHERE hold_state = 'held' AND (state IN ('failed', 'cancelled', 'expired')
                          OR delivery IN ('delivered', 'undeliverable', 'unknown'))
    OR hold_state = 'captured' AND state <> 'succeeded'
    OR hold_state = 'released' AND state IN ('queued', 'submitting', 'running');

-- name: check_due
-- Whatever is not finished is due some time, or on the operator's list.
SELECT CAST(id AS TEXT) AS subject, printf('state %s, delivery %s, notice %s', state, delivery, notice) AS detail
FROM jobs
WHERE due_at IS NULL AND attention_reason IS NULL
    AND (state IN ('queued', 'submitting', 'running') OR delivery IN ('pending', 'sending') OR notice = 'due');

-- name: settled_jobs
-- When no work is left, no job is open, leased or on its way.
SELECT CAST(id AS TEXT) AS subject, printf('state %s, delivery %s, lease %s', state, delivery, lease_owner) AS detail
FROM jobs WHERE due_at IS NOT NULL OR lease_owner IS NOT NULL;

-- name: settled_inbox
-- When no work is left, every callback has been dealt with.
SELECT CAST(id AS TEXT) AS subject, printf('state %s', state) AS detail FROM inbox WHERE due_at IS NOT NULL;
