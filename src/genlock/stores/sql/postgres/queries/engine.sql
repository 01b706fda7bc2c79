-- PostgreSQL. `:now` is the database's own clock, unless a simulation brings another.
-- Statements over arrays serve many callers at once, each item on its own row. They join CTEs only with tables, by
-- their keys: a join of two CTEs is quadratic under the plans we ask for. `count(*) FROM locked` makes one part wait
-- for the locks of another, which are taken in the order of ids so that two batches cannot deadlock.

-- name: ensure_account
-- Find or make the person a bot knows by an outside id.
WITH added AS (
    INSERT INTO accounts (channel, bot, external_id, created_at)
    VALUES (:channel, :bot, :external_id, :now)
    ON CONFLICT (channel, bot, external_id) DO NOTHING
    RETURNING id
)
SELECT id FROM added
UNION ALL
SELECT id FROM accounts WHERE channel = :channel AND bot = :bot AND external_id = :external_id
LIMIT 1;

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
WITH locked AS MATERIALIZED (
    SELECT id, available FROM accounts WHERE id = :account_id FOR NO KEY UPDATE
), line AS (
    INSERT INTO ledger (key, account_id, kind, debit, credit, amount, reason, at)
    SELECT :key, id, :kind, :debit, :credit, :amount::bigint, :reason, :now FROM locked
    WHERE :debit <> 'available' OR available >= :amount
    ON CONFLICT (key) DO NOTHING
    RETURNING account_id, credit, amount
)
UPDATE accounts p
SET available = p.available + CASE WHEN line.credit = 'available' THEN line.amount ELSE -line.amount END
FROM line WHERE p.id = line.account_id
RETURNING p.id;

-- name: ledger_entry
-- The movement a key stands for.
SELECT * FROM ledger WHERE key = :key;

-- name: ledger_entries
-- A person's last movements, newest first.
SELECT * FROM ledger
WHERE account_id = :account_id ORDER BY at DESC, key DESC LIMIT :limit;

-- name: accept
-- Write jobs with their holds. The batch holds each person once; wallets are locked in the order of their ids.
WITH item AS (
    SELECT * FROM unnest(
        :account_id::bigint[], :request_key::text[], :request_hash::text[], :correlation_id::text[], :provider::text[],
        :channel::text[], :bot::text[], :address::text[], :placeholder::text[], :model::text[], :input::text[], :price::bigint[],
        :deadline_seconds::float8[], :notice::text[]
    ) AS t (account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, placeholder,
            model, input, price, deadline_seconds, notice)
), affordable AS MATERIALIZED (
    SELECT i.*, p.available FROM item i JOIN accounts p ON p.id = i.account_id
    ORDER BY p.id FOR NO KEY UPDATE OF p
), added AS (
    INSERT INTO jobs (
        account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, placeholder, model, input,
        price, hold_state, state, notice, due_at, deadline_at, lease_owner, lease_token, created_at)
    SELECT
        i.account_id, i.request_key, i.request_hash, i.correlation_id, i.provider, i.channel, i.bot, i.address,
        i.placeholder, i.model, i.input, i.price, CASE WHEN i.price > 0 THEN 'held' ELSE 'free' END, 'queued', i.notice,
        :now + make_interval(secs => :seconds::float8),
        :now + make_interval(secs => i.deadline_seconds),
        :owner::text, 1, :now
    FROM affordable i WHERE i.price <= i.available
    ON CONFLICT (account_id, request_key) DO NOTHING
    RETURNING id, account_id, price, due_at, deadline_at, created_at
), held AS (
    UPDATE accounts p SET available = p.available - a.price, held = p.held + a.price
    FROM added a WHERE p.id = a.account_id AND a.price > 0
), line AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'hold:' || id, account_id, id, 'hold', 'available', 'held', price, created_at FROM added WHERE price > 0
)
SELECT id, account_id, due_at, deadline_at, created_at FROM added;

-- name: accept_lookup
-- Why an order was not written: the job its key stands for, or what its person has.
SELECT p.available, j.*, :now AS read_at
FROM accounts p LEFT JOIN jobs j ON j.account_id = p.id AND j.request_key = :request_key
WHERE p.id = :account_id;

-- name: begin_submit
-- Commit the intent to call the provider, under a lease that nobody has begun to take over. A repeat under the same
-- token is the same intent.
UPDATE jobs j
SET state = 'submitting', secret_hash = i.secret_hash, placeholder = coalesce(i.placeholder, j.placeholder),
    submitted_at = :now, grace_until = NULL
FROM unnest(:job_id::bigint[], :token::bigint[], :secret_hash::text[], :placeholder::text[])
    AS i (id, token, secret_hash, placeholder)
WHERE j.id = i.id AND j.lease_token = i.token AND j.lease_owner IS NOT NULL AND j.state IN ('queued', 'submitting')
RETURNING j.id;

-- name: mark_submitted
-- The task is known: give the job back until its first poll, or at once if an orphan was waiting for it.
WITH moved AS (
    UPDATE jobs j
    SET state = 'running', task_id = i.task_id, lease_owner = NULL, attempts = 0, crash_count = 0,
        due_at = CASE
            WHEN EXISTS (SELECT FROM inbox b
                         WHERE b.state = 'orphan' AND b.provider = j.provider AND b.task_id = i.task_id)
            THEN :now
            ELSE least(j.deadline_at, :now + make_interval(secs => i.poll_after)) END
    FROM unnest(:job_id::bigint[], :token::bigint[], :task_id::text[], :poll_after::float8[])
        AS i (id, token, task_id, poll_after)
    WHERE j.id = i.id AND j.lease_token = i.token AND j.state IN ('submitting', 'running')
    RETURNING j.id, j.provider, j.task_id
), matched AS (
    UPDATE inbox b SET state = 'matched', job_id = m.id
    FROM moved m WHERE b.state = 'orphan' AND b.provider = m.provider AND b.task_id = m.task_id
)
SELECT id FROM moved;

-- name: adopt_task
-- A task whose submitter lost the lease meanwhile: the secret proves that this call made it. Without a secret it was
-- the job's own callback that named it.
UPDATE jobs j
SET task_id = :task_id,
    state = CASE WHEN j.state = 'submitting' THEN 'running' ELSE j.state END,
    due_at = CASE
        WHEN j.state = 'submitting' OR j.state = 'cancelled' AND j.delivery = 'delivered' AND j.lease_owner IS NULL
        THEN :now
        ELSE j.due_at END,
    lease_owner = CASE WHEN j.state = 'submitting' THEN NULL ELSE j.lease_owner END,
    lease_token = CASE WHEN j.state = 'submitting' THEN j.lease_token + 1 ELSE j.lease_token END
WHERE j.id = :job_id AND j.task_id IS NULL AND j.secret_hash = coalesce(:secret_hash::text, j.secret_hash)
    AND (:secret_hash::text IS NOT NULL OR j.state <> 'queued')
    AND NOT EXISTS (SELECT FROM jobs o WHERE o.provider = j.provider AND o.task_id = :task_id)
RETURNING j.id;

-- name: end_job
-- End jobs: the first end wins. Failures give the money back in the same commit; callbacks are kept or settled in it.
-- What is said of a task that is not the job's own, or that is another job's, ends nothing.
WITH item AS (
    SELECT * FROM unnest(
        :job_id::bigint[], :token::bigint[], :state::text[], :parts::text[], :task_id::text[], :error_code::text[],
        :error_text::text[], :cancelled_by::text[], :cost::bigint[], :callback_id::bigint[], :provider::text[], :secret_hash::text[],
        :body::text[]
    ) AS t (job_id, token, state, parts, task_id, error_code, error_text, cancelled_by, cost, callback_id, provider, secret_hash,
            body)
), found AS MATERIALIZED (
    SELECT i.*, CASE WHEN i.body IS NOT NULL THEN nextval('inbox_id_seq') END AS kept_id,
        CASE
            WHEN i.token <> j.lease_token THEN 'stale'
            WHEN i.task_id <> j.task_id OR j.task_id IS NULL AND EXISTS (
                SELECT FROM jobs o WHERE o.provider = j.provider AND o.task_id = i.task_id)
            THEN 'foreign'
            WHEN j.state IN ('queued', 'submitting', 'running') THEN 'won'
            WHEN j.state = 'expired' AND i.state = 'succeeded' AND NOT j.late
            THEN CASE WHEN j.lease_owner IS NULL THEN 'late' ELSE 'busy' END
            WHEN j.state = 'cancelled' THEN 'cancelled'
            WHEN j.state IN ('succeeded', 'failed') AND i.state IN ('succeeded', 'failed') AND j.state <> i.state
            THEN 'contradiction'
            ELSE 'duplicate' END AS verdict,
        j.state = 'running' AND j.lease_owner IS NOT NULL AND i.token IS NULL AS interrupted
    FROM item i JOIN jobs j ON j.id = i.job_id
        AND (i.body IS NULL OR j.secret_hash = i.secret_hash AND j.provider = i.provider)
    ORDER BY j.id FOR NO KEY UPDATE OF j
), ended AS (
    UPDATE jobs j
    SET state = CASE WHEN f.verdict = 'late' THEN j.state ELSE f.state END,
        late = f.verdict = 'late',
        -- Words about a job that expired may still be on their way to its message: a late result gets its own.
        placeholder = CASE WHEN f.verdict = 'late' THEN NULL ELSE j.placeholder END,
        task_id = coalesce(j.task_id, f.task_id), parts = f.parts, error_code = f.error_code,
        error_text = f.error_text,
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
    RETURNING f.verdict, f.interrupted, f.kept_id AS callback_id, j.*
), freed AS (
    SELECT id, account_id, price FROM ended WHERE hold_state = 'released' AND NOT late
), locked AS MATERIALIZED (
    SELECT id FROM accounts WHERE id IN (SELECT account_id FROM freed) ORDER BY id FOR NO KEY UPDATE
), refunded AS (
    UPDATE accounts p SET available = p.available + s.amount, held = p.held - s.amount
    FROM (SELECT account_id, sum(price)::bigint AS amount FROM freed GROUP BY account_id) s
    WHERE p.id = s.account_id AND (SELECT count(*) FROM locked) > 0
), line AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'settle:' || id, account_id, id, 'release', 'held', 'available', price, :now
    FROM freed
), loss AS (
    UPDATE jobs j
    SET cost = f.cost,  -- with that, nobody needs to ask for it any more
        due_at = CASE WHEN j.delivery = 'delivered' AND j.notice <> 'due' AND j.lease_owner IS NULL THEN NULL
                 ELSE j.due_at END
    FROM found f WHERE j.id = f.job_id AND f.verdict = 'cancelled' AND f.cost IS NOT NULL
), settled AS (
    UPDATE inbox b SET state = 'done', due_at = NULL, task_id = f.task_id, note = f.verdict
    FROM found f WHERE b.id = f.callback_id AND f.verdict <> 'busy'
), kept AS (
    INSERT INTO inbox (id, provider, job_id, task_id, body, state, note, due_at, received_at)
    OVERRIDING SYSTEM VALUE
    SELECT kept_id, provider, job_id, task_id, convert_to(body, 'UTF8'),
        CASE WHEN verdict = 'busy' THEN 'new' ELSE 'done' END, verdict,
        CASE WHEN verdict = 'busy' THEN :now + make_interval(secs => :hold_seconds::float8) END, :now
    FROM found WHERE body IS NOT NULL
)
SELECT *, ended_at AS read_at FROM ended
UNION ALL
SELECT f.verdict, f.interrupted, f.kept_id, j.*, :now
FROM found f JOIN jobs j ON j.id = f.job_id WHERE verdict NOT IN ('won', 'late');

-- name: mark_result_invalid
-- A result that nobody has paid for turns out to be none: the job has failed, its money goes back in the same commit.
WITH found AS MATERIALIZED (
    SELECT id, account_id, price, state = 'succeeded' AND hold_state = 'held' AS held FROM jobs
    WHERE id = :job_id AND lease_token = :token AND delivery = 'sending'
        AND (state = 'succeeded' AND hold_state IN ('held', 'free') OR state = 'failed')
    FOR NO KEY UPDATE
), refunded AS (
    UPDATE accounts p SET available = p.available + f.price, held = p.held - f.price
    FROM found f WHERE p.id = f.account_id AND f.held
), line AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'settle:' || id, account_id, id, 'release', 'held', 'available', price, :now FROM found WHERE held
)
UPDATE jobs j
SET state = 'failed', error_code = :error_code, error_text = :error_text, parts = :parts,
    hold_state = CASE WHEN f.held THEN 'released' ELSE j.hold_state END
FROM found f WHERE j.id = f.id
RETURNING j.*, :now AS read_at;

-- name: change_address
-- The chat has another address now; the placeholder stayed behind.
UPDATE jobs SET address = :address, parts = :parts, placeholder = NULL
WHERE id = :job_id AND lease_token = :token
RETURNING id;

-- name: save_parts
-- Journal how far a delivery has come and renew its lease.
UPDATE jobs j
SET parts = i.parts, due_at = :now + make_interval(secs => :seconds::float8)
FROM unnest(:job_id::bigint[], :token::bigint[], :parts::text[]) AS i (id, token, parts)
WHERE j.id = i.id AND j.lease_token = i.token AND j.delivery = 'sending'
RETURNING j.id;

-- name: finish_delivery
-- End deliveries: delivered results are captured, everything else still held goes back, in the same commit.
-- A cancelled job's task is asked after until we know what it cost.
WITH item AS (
    SELECT * FROM unnest(
        :job_id::bigint[], :token::bigint[], :delivery::text[], :parts::text[], :placeholder::text[],
        :attention_code::text[], :attention_reason::text[]
    ) AS t (job_id, token, delivery, parts, placeholder, attention_code, attention_reason)
), found AS MATERIALIZED (
    SELECT i.*, j.account_id, j.price, j.hold_state = 'held' AS held,
        CASE
            WHEN j.hold_state <> 'held' THEN j.hold_state
            WHEN i.delivery = 'delivered' AND j.state = 'succeeded' THEN 'captured'
            ELSE 'released' END AS hold_state,
        CASE WHEN i.delivery = 'delivered' AND j.notice = 'wanted' THEN 'due' ELSE j.notice END AS notice
    FROM item i JOIN jobs j ON j.id = i.job_id
    WHERE j.lease_token = i.token AND j.delivery = 'sending'
    ORDER BY j.id FOR NO KEY UPDATE OF j
), done AS (
    UPDATE jobs j
    SET delivery = f.delivery, parts = f.parts, placeholder = coalesce(f.placeholder, j.placeholder),
        attention_code = f.attention_code, attention_reason = f.attention_reason, hold_state = f.hold_state, notice = f.notice, attempts = 0, crash_count = 0,
        delivered_at = CASE WHEN f.delivery = 'delivered' THEN :now END,
        lease_owner = CASE WHEN f.notice = 'due' THEN :owner::text END,
        due_at = CASE
            WHEN f.notice = 'due' THEN :now + make_interval(secs => :seconds::float8)
            WHEN j.state = 'cancelled' AND j.task_id IS NOT NULL AND j.cost IS NULL AND j.deadline_at > :now
            THEN :now END
    FROM found f WHERE j.id = f.job_id
    RETURNING j.id, j.hold_state, j.notice
), moved AS (
    SELECT job_id, account_id, price, hold_state FROM found WHERE held
), locked AS MATERIALIZED (
    SELECT id FROM accounts WHERE id IN (SELECT account_id FROM moved) ORDER BY id FOR NO KEY UPDATE
), settled AS (
    UPDATE accounts p SET held = p.held - s.amount, available = p.available + s.back
    FROM (SELECT account_id, sum(price)::bigint AS amount,
                 sum(CASE WHEN hold_state = 'released' THEN price ELSE 0 END)::bigint AS back
          FROM moved GROUP BY account_id) s
    WHERE p.id = s.account_id AND (SELECT count(*) FROM locked) > 0
), line AS (
    INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
    SELECT 'settle:' || job_id, account_id, job_id,
        CASE WHEN hold_state = 'captured' THEN 'capture' ELSE 'release' END, 'held',
        CASE WHEN hold_state = 'captured' THEN 'house' ELSE 'available' END, price, :now
    FROM moved
)
SELECT id, hold_state, notice FROM done;

-- name: begin_notice
-- Journal the notice before it is sent; the job is done with this, but for a cancelled one's bill.
UPDATE jobs j
SET notice = 'sent', lease_owner = NULL, crash_count = 0,
    due_at = CASE
        WHEN j.state = 'cancelled' AND j.task_id IS NOT NULL AND j.cost IS NULL AND j.deadline_at > :now
        THEN :now END
FROM unnest(:job_id::bigint[], :token::bigint[]) AS i (id, token)
WHERE j.id = i.id AND j.lease_token = i.token AND j.notice = 'due'
RETURNING j.id;

-- name: reschedule
-- Give jobs back until later (or, without a time, until an operator acts), setting what changed meanwhile.
UPDATE jobs j
SET lease_owner = NULL,
    state = coalesce(i.state, j.state), delivery = coalesce(i.delivery, j.delivery),
    notice = coalesce(i.notice, j.notice), parts = coalesce(i.parts, j.parts),
    attempts = CASE i.failed WHEN true THEN j.attempts + 1 WHEN false THEN 0 ELSE j.attempts END,
    crash_count = CASE WHEN i.failed IS NULL THEN j.crash_count ELSE 0 END,
    attention_code = coalesce(i.attention_code, j.attention_code),
    attention_reason = coalesce(i.attention_reason, j.attention_reason),
    grace_until = CASE WHEN i.grace
        THEN :now + make_interval(secs => i.after) ELSE j.grace_until END,
    due_at = CASE
        WHEN i.after IS NULL THEN NULL
        WHEN i.grace OR j.delivery <> 'none' OR j.deadline_at <= :now
        THEN :now + make_interval(secs => i.after)
        ELSE least(j.deadline_at, :now + make_interval(secs => i.after)) END
FROM unnest(
    :job_id::bigint[], :token::bigint[], :after::float8[], :state::text[], :delivery::text[], :notice::text[],
    :parts::text[], :grace::boolean[], :failed::boolean[], :attention_code::text[], :attention_reason::text[]
) AS i (id, token, after, state, delivery, notice, parts, grace, failed, attention_code, attention_reason)
WHERE j.id = i.id AND j.lease_token = i.token
RETURNING j.id;

-- name: renew
-- Keep long work leased.
UPDATE jobs j SET due_at = :now + make_interval(secs => :seconds::float8)
FROM unnest(:job_id::bigint[], :token::bigint[]) AS i (id, token)
WHERE j.id = i.id AND j.lease_token = i.token AND j.lease_owner = :owner
RETURNING j.id;

-- name: claim
-- Take due jobs, the longest overdue first. An expired lease is simply due again; its holder may have died.
WITH due AS MATERIALIZED (
    SELECT id FROM jobs WHERE due_at <= :now AND crash_count = 0
    ORDER BY due_at LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs j
SET lease_owner = :owner::text, lease_token = j.lease_token + 1,
    due_at = :now + make_interval(secs => :seconds::float8),
    crash_count = j.crash_count + CASE WHEN j.lease_owner <> :owner::text THEN 1 ELSE 0 END,
    delivery = CASE WHEN j.delivery = 'pending' THEN 'sending' ELSE j.delivery END
FROM due WHERE j.id = due.id
RETURNING j.*, :now AS read_at;

-- name: claim_poison_jobs
-- Take due jobs that were in hand when their instance died: of each number of deaths as many as there is room for, the
-- last room being for that number and more. `NOT (due_at > …)`: the index of all that is due is not to be tried.
WITH suspect AS MATERIALIZED (
    SELECT id, due_at, least(crash_count, cardinality(:slots::int[])) AS level
    FROM jobs WHERE crash_count > 0 AND NOT (due_at > :now)
), ranked AS MATERIALIZED (
    SELECT id, level, row_number() OVER (PARTITION BY level ORDER BY due_at, id) AS place FROM suspect
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

-- name: store_callback
-- Keep callbacks raw, each with the job whose secret it knew.
WITH item AS MATERIALIZED (
    SELECT nextval('inbox_id_seq') AS id, t.*, j.id AS job_id, j.correlation_id
    FROM unnest(:ord::bigint[], :provider::text[], :job_id::bigint[], :secret_hash::text[], :body::bytea[])
        AS t (ord, provider, claimed_job, secret_hash, body)
    LEFT JOIN jobs j ON j.id = t.claimed_job AND j.secret_hash = t.secret_hash AND j.provider = t.provider
), added AS (
    INSERT INTO inbox (id, provider, job_id, body, state, due_at, received_at)
    OVERRIDING SYSTEM VALUE
    SELECT id, provider, job_id, body, 'new', :now + make_interval(secs => :hold_seconds::float8),
        :now
    FROM item
)
SELECT ord, id, job_id, correlation_id, :now AS received_at FROM item;

-- name: count_unauthenticated_callbacks
-- How many callbacks of the last while no job vouches for; counted up to a limit.
SELECT count(*) AS number FROM (
    SELECT 1 AS one FROM inbox WHERE job_id IS NULL AND received_at > :now - make_interval(secs => :older_than::float8) LIMIT :limit::bigint
) AS lately;

-- name: is_secret
-- Whether this is the secret of a job's callback address.
SELECT id FROM jobs WHERE id = :job_id AND provider = :provider AND secret_hash = :secret_hash;

-- name: claim_callbacks
-- Stored callbacks that nobody has dealt with in time.
WITH due AS MATERIALIZED (
    SELECT id FROM inbox WHERE due_at <= :now
    ORDER BY due_at LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE inbox b SET due_at = :now + make_interval(secs => :hold_seconds::float8)
FROM due WHERE b.id = due.id
RETURNING b.*, (SELECT correlation_id FROM jobs j WHERE j.id = b.job_id) AS correlation_id;

-- name: settle_callback
-- A callback is dealt with without an effect on a job. Of a stranger's the beginning is kept.
UPDATE inbox b SET state = i.state, due_at = NULL, task_id = coalesce(i.task_id, b.task_id), note = i.note,
    body = CASE WHEN b.job_id IS NULL THEN substring(b.body FROM 1 FOR 2000) ELSE b.body END
FROM unnest(:callback_id::bigint[], :state::text[], :task_id::text[], :note::text[]) AS i (id, state, task_id, note)
WHERE b.id = i.id
RETURNING b.id;

-- name: expire_callback
-- A callback that nobody can read has waited long enough.
UPDATE inbox SET state = 'expired', due_at = NULL, note = :note
WHERE id = :callback_id AND state = 'new' AND received_at < :now - make_interval(secs => :older_than::float8)
RETURNING id;

-- name: note_untrusted_callback
-- A callback we may not believe: ask the provider about its job soon, or keep its beginning as an orphan.
WITH job AS MATERIALIZED (
    SELECT id FROM jobs WHERE provider = :provider AND task_id = :task_id FOR NO KEY UPDATE
), nudged AS (
    UPDATE jobs j SET due_at = :now
    FROM job WHERE j.id = job.id AND j.state = 'running' AND j.lease_owner IS NULL
)
UPDATE inbox SET state = CASE WHEN EXISTS (SELECT FROM job) THEN 'matched' ELSE 'orphan' END,
    job_id = (SELECT id FROM job), task_id = :task_id, due_at = NULL, body = substring(body FROM 1 FOR 2000)
WHERE id = :callback_id
RETURNING job_id;

-- name: match_orphans
-- Orphans whose job is known by now; running jobs among them are made due for a status query.
WITH pair AS MATERIALIZED (
    SELECT b.id AS callback_id, j.id AS job_id
    FROM inbox b JOIN jobs j ON j.provider = b.provider AND j.task_id = b.task_id
    WHERE b.state = 'orphan' ORDER BY j.id LIMIT :limit FOR NO KEY UPDATE OF j
), nudged AS (
    UPDATE jobs j SET due_at = :now
    WHERE j.id IN (SELECT job_id FROM pair) AND j.state = 'running' AND j.lease_owner IS NULL
)
UPDATE inbox b SET state = 'matched', job_id = pair.job_id
FROM pair WHERE b.id = pair.callback_id
RETURNING pair.callback_id, pair.job_id;

-- name: expire_orphans
-- Orphans nobody claimed; only the holder of the active role, in its own epoch, may say so.
UPDATE inbox SET state = 'expired'
WHERE state = 'orphan' AND received_at < :now - make_interval(secs => :older_than::float8)
    AND EXISTS (SELECT FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
RETURNING id;

-- name: callbacks
-- The newest callbacks in a state.
SELECT *, (SELECT correlation_id FROM jobs j WHERE j.id = b.job_id) AS correlation_id
FROM inbox b WHERE state = :state ORDER BY id DESC LIMIT :limit;

-- name: heartbeat
-- Say that we live, and see who has been silent.
WITH me AS (
    INSERT INTO instances (id, started_at, seen_at)
    VALUES (:instance, :now, :now)
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
)
SELECT id FROM instances
WHERE id <> :instance AND seen_at < :now - make_interval(secs => :silent_seconds::float8);

-- name: release_leases
-- Make due what an instance holds, and forget the instance unless part of its work goes on. If it died, that is
-- counted, and whatever has been in hand often is left for a while, so that others are served in between.
WITH gone AS (
    DELETE FROM instances WHERE id = :instance AND cardinality(:but::bigint[]) = 0
), held AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE due_at > '-infinity' AND lease_owner = :instance AND NOT (id = ANY (:but::bigint[]))
    ORDER BY id FOR NO KEY UPDATE
)
UPDATE jobs j
SET lease_owner = NULL, crash_count = j.crash_count + CASE WHEN :died::boolean THEN 1 ELSE 0 END,
    due_at = :now + CASE
        WHEN :died::boolean AND j.crash_count + 1 >= :isolated_from::int
        THEN make_interval(secs => 1 << least(j.crash_count + 1 - :isolated_from::int, 6))
        ELSE interval '0' END
FROM held WHERE j.id = held.id
RETURNING j.id;

-- name: take_role
-- Take or renew a role if nobody else holds it; say who does.
WITH taken AS (
    INSERT INTO roles AS r (name, holder, epoch, until)
    VALUES (:name, :instance, 1, :now + make_interval(secs => :seconds::float8))
    ON CONFLICT (name) DO UPDATE
    SET epoch = r.epoch + CASE WHEN r.holder = excluded.holder THEN 0 ELSE 1 END,
        holder = excluded.holder, until = excluded.until
    WHERE r.holder = excluded.holder OR r.until < :now
    RETURNING holder, epoch
), known AS MATERIALIZED (  -- locked, so that whoever took it a moment before is seen
    SELECT holder, epoch FROM roles WHERE name = :name FOR SHARE
)
SELECT holder, epoch FROM taken
UNION ALL
SELECT holder, epoch FROM known
LIMIT 1;

-- name: leave_role
-- Give a role up at once.
UPDATE roles SET until = '-infinity' WHERE name = :name AND holder = :instance;

-- name: open_limit
-- A limit's row, before its first use.
INSERT INTO limits (key, next_at) VALUES (:key, :now - interval '1 day')
ON CONFLICT (key) DO NOTHING;

-- name: reserve
-- Reserve turns of a shared limit, `interval` apart, at most `horizon` ahead; unused turns add up to a burst.
-- Two rows: the seconds to the first turn before and after.
WITH turn AS MATERIALIZED (
    SELECT key,
        greatest(next_at, :now - make_interval(secs => (:burst::int - 1) * :interval::float8)) AS first
    FROM limits WHERE key = :key FOR NO KEY UPDATE
), granted AS (
    SELECT key, first, greatest(0, least(:count::int, 1 + floor(
        extract(epoch FROM :now + make_interval(secs => :horizon::float8) - first) / :interval::float8
    ))) AS count FROM turn
), moved AS (
    UPDATE limits l SET next_at = g.first + make_interval(secs => g.count * :interval::float8)
    FROM granted g WHERE l.key = g.key
    RETURNING g.first, l.next_at
)
SELECT extract(epoch FROM first - :now)::float8 AS wait FROM moved
UNION ALL
SELECT extract(epoch FROM next_at - :now)::float8 FROM moved;

-- name: job
-- One job.
SELECT *, :now AS read_at FROM jobs WHERE id = :job_id;

-- name: jobs
-- Jobs, newest first, by state and person where given, below an id where given.
SELECT *, :now AS read_at FROM jobs
WHERE (:state::text IS NULL OR state = :state) AND (:account_id::bigint IS NULL OR account_id = :account_id)
    AND (:before::bigint IS NULL OR id < :before)
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
WHERE id = :job_id AND lease_token = coalesce(:token::bigint, lease_token)
    AND delivery IN ('delivered', 'undeliverable', 'unknown')
RETURNING id;

-- name: resend_paid
-- As resend, for a result that could not be delivered and whose money went back: it is held again in the same commit.
-- The lines of the hold before get the token of its end into their keys, so that the new ones settle as any others.
WITH job AS MATERIALIZED (
    SELECT id, account_id, price FROM jobs
    WHERE id = :job_id AND lease_token = :token AND state = 'succeeded' AND delivery = 'undeliverable'
        AND hold_state = 'released'
    FOR NO KEY UPDATE
), paid AS (
    UPDATE accounts p SET available = p.available - job.price, held = p.held + job.price
    FROM job WHERE p.id = job.account_id AND p.available >= job.price
    RETURNING p.id
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
    attention_reason = NULL
FROM job, paid WHERE j.id = job.id
RETURNING j.id;

-- name: counts
-- Jobs in progress by state, and what is due, waiting in the inbox or on the operator's list.
SELECT state AS name, count(*) FROM jobs WHERE due_at IS NOT NULL GROUP BY state
UNION ALL SELECT 'due', count(*) FROM jobs WHERE due_at <= :now
UNION ALL SELECT 'callbacks', count(*) FROM inbox WHERE due_at IS NOT NULL
UNION ALL SELECT 'orphans', count(*) FROM inbox WHERE state = 'orphan'
UNION ALL SELECT 'attention', count(*) FROM jobs WHERE attention_reason IS NOT NULL;

-- name: check_wallets
-- Every balance is the sum of its movements.
SELECT p.id::text AS subject,
    format('available %s, ledger %s; held %s, ledger %s', p.available, l.available, p.held, l.held) AS detail
FROM accounts p
CROSS JOIN LATERAL (
    SELECT coalesce(sum(CASE 'available' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS available,
           coalesce(sum(CASE 'held' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS held
    FROM ledger WHERE account_id = p.id
) l
WHERE (p.available <> l.available OR p.held <> l.held);

-- name: check_zero_sum
-- What people have is what the house owes.
SELECT 'all' AS subject, format('accounts %s, house %s', accounts, house) AS detail
FROM (SELECT coalesce(sum(available + held), 0) AS accounts FROM accounts) p,
     (SELECT coalesce(sum(CASE 'house' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS house FROM ledger) h
WHERE accounts + house <> 0;

-- name: check_hold_states
-- A job's purse says what the ledger says: held once, settled at most once, for its price.
SELECT j.id::text AS subject,
    format('hold_state %s, price %s, hold %s, %s %s', j.hold_state, j.price, h.amount, s.kind, s.amount) AS detail
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
SELECT id::text AS subject, format('state %s, delivery %s, hold_state %s', state, delivery, hold_state) AS detail
FROM jobs
WHERE (
    hold_state = 'held' AND (state IN ('failed', 'cancelled', 'expired')
                        OR delivery IN ('delivered', 'undeliverable', 'unknown'))
    OR hold_state = 'captured' AND state <> 'succeeded'
    OR hold_state = 'released' AND state IN ('queued', 'submitting', 'running'));

-- name: check_due
-- Whatever is not finished is due some time, or on the operator's list.
SELECT id::text AS subject, format('state %s, delivery %s, notice %s', state, delivery, notice) AS detail
FROM jobs
WHERE due_at IS NULL AND attention_reason IS NULL
    AND (state IN ('queued', 'submitting', 'running') OR delivery IN ('pending', 'sending') OR notice = 'due');

-- name: settled_jobs
-- When no work is left, no job is open, leased or on its way.
SELECT id::text AS subject, format('state %s, delivery %s, lease %s', state, delivery, lease_owner) AS detail
FROM jobs WHERE (due_at IS NOT NULL OR lease_owner IS NOT NULL);

-- name: settled_inbox
-- When no work is left, every callback has been dealt with.
SELECT id::text AS subject, format('state %s', state) AS detail
FROM inbox WHERE due_at IS NOT NULL;
