-- SQLite. The same names and parameters as for PostgreSQL; times are microseconds, `:now` is the process's clock.
-- SQLite cannot write inside a CTE, so a name may hold several statements: they run in order, in one transaction,
-- once per item of a batch. Money moves only when its ledger line was new: `changes() = 1` right behind the line.

-- name: person
-- Find or make the person a bot knows by an outside id.
INSERT INTO people (channel, bot, outside_id, created_at) VALUES (:channel, :bot, :outside_id, :now)
ON CONFLICT (channel, bot, outside_id) DO NOTHING;
SELECT id FROM people WHERE channel = :channel AND bot = :bot AND outside_id = :outside_id;

-- name: wallet
-- What a person has.
SELECT id AS person_id, available, held FROM people WHERE id = :person_id;

-- name: transfer
-- Move money between a person and the house, once per key. No row: the key was used, or the money is not there.
INSERT INTO ledger (key, person_id, kind, debit, credit, amount, reason, at)
SELECT :key, id, :kind, :debit, :credit, :amount, :reason, :now FROM people
WHERE id = :person_id AND (:debit <> 'available' OR available >= :amount)
ON CONFLICT (key) DO NOTHING;
UPDATE people SET available = available + CASE WHEN :credit = 'available' THEN :amount ELSE -:amount END
WHERE id = :person_id AND changes() = 1
RETURNING id;

-- name: movement
-- The movement a key stands for.
SELECT * FROM ledger WHERE key = :key;

-- name: movements
-- A person's last movements, newest first.
SELECT * FROM ledger WHERE person_id = :person_id ORDER BY at DESC, key DESC LIMIT :limit;

-- name: accept
-- Write a job with its hold.
INSERT INTO jobs (
    person_id, request_key, request_hash, correlation, provider, channel, address, placeholder, model, input,
    price, purse, state, notice, due_at, deadline_at, lease_owner, lease_token, created_at)
SELECT
    id, :request_key, :request_hash, :correlation, :provider, :channel, :address, :placeholder, :model, :input,
    :price, CASE WHEN :price > 0 THEN 'held' ELSE 'free' END, 'queued', :notice,
    :now + CAST(:seconds * 1000000 AS INTEGER), :now + CAST(:deadline_seconds * 1000000 AS INTEGER), :owner, 1, :now
FROM people WHERE id = :person_id AND available >= :price
ON CONFLICT (person_id, request_key) DO NOTHING
RETURNING *, :now AS read_at;
INSERT INTO ledger (key, person_id, job_id, kind, debit, credit, amount, at)
SELECT 'hold:' || id, person_id, id, 'hold', 'available', 'held', price, created_at
FROM jobs WHERE changes() = 1 AND id = last_insert_rowid() AND price > 0;
UPDATE people SET available = available - :price, held = held + :price
WHERE changes() = 1 AND id = :person_id AND :price > 0;

-- name: accept_lookup
-- Why an order was not written: the job its key stands for, or what its person has.
SELECT p.available, j.*, :now AS read_at
FROM people p LEFT JOIN jobs j ON j.person_id = p.id AND j.request_key = :request_key
WHERE p.id = :person_id;

-- name: begin_submit
-- Commit the intent to call the provider. A repeat under the same token is the same intent.
UPDATE jobs
SET state = 'submitting', secret_hash = :secret_hash, placeholder = coalesce(:placeholder, placeholder),
    submitted_at = :now
WHERE id = :job_id AND lease_token = :token AND state IN ('queued', 'submitting')
RETURNING id;

-- name: submitted
-- The task is known: give the job back until its first poll, or at once if an orphan was waiting for it.
UPDATE jobs
SET state = 'running', task_id = :task_id, lease_owner = NULL, attempts = 0,
    due_at = CASE
        WHEN EXISTS (SELECT 1 FROM inbox b
                     WHERE b.state = 'orphan' AND b.provider = jobs.provider AND b.task_id = :task_id)
        THEN :now
        ELSE min(deadline_at, :now + CAST(:poll_after * 1000000 AS INTEGER)) END
WHERE id = :job_id AND lease_token = :token AND state IN ('submitting', 'running')
RETURNING id;
UPDATE inbox SET state = 'matched', job_id = :job_id
WHERE changes() = 1 AND state = 'orphan' AND task_id = :task_id
    AND provider = (SELECT provider FROM jobs WHERE id = :job_id);

-- name: end
-- End a job: the first end wins. A failure gives the money back in the same commit; its callback is settled in it.
-- `verdict` is a temporary table of one row, empty again at the end.
INSERT INTO verdict SELECT CASE
    WHEN :token <> lease_token THEN 'stale'
    WHEN state IN ('queued', 'submitting', 'running') THEN 'won'
    WHEN state = 'expired' AND :state = 'succeeded' AND NOT late THEN 'late'
    WHEN state = 'cancelled' THEN 'cancelled'
    WHEN state IN ('succeeded', 'failed') AND :state IN ('succeeded', 'failed') AND state <> :state
    THEN 'contradiction'
    ELSE 'duplicate' END
FROM jobs WHERE id = :job_id;
SELECT :job_id AS ended_id, verdict FROM verdict;
UPDATE jobs
SET state = CASE WHEN state = 'expired' THEN state ELSE :state END,
    late = state = 'expired',
    parts = :parts, task_id = coalesce(task_id, :task_id), error_code = :error_code, error_text = :error_text,
    cost = coalesce(:cost, cost),
    purse = CASE WHEN purse = 'held' AND :state <> 'succeeded' THEN 'released' ELSE purse END,
    delivery = CASE WHEN :owner IS NULL THEN 'pending' ELSE 'sending' END,
    delivered_at = NULL, notice = CASE WHEN notice = 'none' THEN 'none' ELSE 'wanted' END,
    attention = NULL, attempts = 0, grace_until = NULL, ended_at = :now,
    due_at = :now + CAST(:seconds * 1000000 AS INTEGER), lease_owner = :owner, lease_token = lease_token + 1
WHERE id = :job_id AND (SELECT verdict FROM verdict) IN ('won', 'late')
RETURNING *, :job_id AS ended_id, :now AS read_at;
INSERT INTO ledger (key, person_id, job_id, kind, debit, credit, amount, at)
SELECT 'settle:' || id, person_id, id, 'release', 'held', 'available', price, :now
FROM jobs WHERE changes() = 1 AND id = :job_id AND purse = 'released' AND NOT late;
UPDATE people SET available = available + j.price, held = held - j.price
FROM jobs j WHERE changes() = 1 AND j.id = :job_id AND people.id = j.person_id;
UPDATE jobs SET cost = :cost
WHERE id = :job_id AND :cost IS NOT NULL AND (SELECT verdict FROM verdict) = 'cancelled';
UPDATE inbox
SET state = 'done', due_at = NULL, task_id = :task_id, note = coalesce((SELECT verdict FROM verdict), 'missing')
WHERE id = :callback_id;
DELETE FROM verdict;

-- name: save_parts
-- Journal how far a delivery has come and renew its lease.
UPDATE jobs SET parts = :parts, due_at = :now + CAST(:seconds * 1000000 AS INTEGER)
WHERE id = :job_id AND lease_token = :token AND delivery = 'sending'
RETURNING id;

-- name: finish
-- End a delivery: a delivered result is captured, anything else still held goes back, in the same commit.
UPDATE jobs
SET delivery = :delivery, parts = :parts, placeholder = coalesce(:placeholder, placeholder), attention = :attention,
    purse = CASE
        WHEN purse <> 'held' THEN purse
        WHEN :delivery = 'delivered' AND state = 'succeeded' THEN 'captured'
        ELSE 'released' END,
    notice = CASE WHEN :delivery = 'delivered' AND notice = 'wanted' THEN 'due' ELSE notice END,
    attempts = 0, delivered_at = CASE WHEN :delivery = 'delivered' THEN :now END,
    lease_owner = CASE WHEN :delivery = 'delivered' AND notice = 'wanted' THEN :owner END,
    due_at = CASE WHEN :delivery = 'delivered' AND notice = 'wanted' THEN :now + CAST(:seconds * 1000000 AS INTEGER) END
WHERE id = :job_id AND lease_token = :token AND delivery = 'sending'
RETURNING *, :now AS read_at;
INSERT INTO ledger (key, person_id, job_id, kind, debit, credit, amount, at)
SELECT 'settle:' || id, person_id, id, CASE WHEN purse = 'captured' THEN 'capture' ELSE 'release' END, 'held',
    CASE WHEN purse = 'captured' THEN 'house' ELSE 'available' END, price, :now
FROM jobs WHERE changes() = 1 AND id = :job_id AND purse IN ('captured', 'released')
ON CONFLICT (key) DO NOTHING;
UPDATE people SET held = held - j.price, available = available + CASE WHEN j.purse = 'released' THEN j.price ELSE 0 END
FROM jobs j WHERE changes() = 1 AND j.id = :job_id AND people.id = j.person_id;

-- name: begin_notice
-- Journal the notice before it is sent; the job is done with this.
UPDATE jobs SET notice = 'sent', due_at = NULL, lease_owner = NULL
WHERE id = :job_id AND lease_token = :token AND notice = 'due'
RETURNING id;

-- name: wait
-- Give a job back until later (or, without a time, until an operator acts), setting what changed meanwhile.
UPDATE jobs
SET lease_owner = NULL,
    state = coalesce(:state, state), delivery = coalesce(:delivery, delivery), notice = coalesce(:notice, notice),
    parts = coalesce(:parts, parts), attempts = CASE :failed WHEN 1 THEN attempts + 1 WHEN 0 THEN 0 ELSE attempts END,
    attention = coalesce(:attention, attention),
    grace_until = CASE WHEN :grace THEN :now + CAST(:after * 1000000 AS INTEGER) ELSE grace_until END,
    due_at = CASE
        WHEN :after IS NULL THEN NULL
        WHEN :grace OR delivery <> 'none' THEN :now + CAST(:after * 1000000 AS INTEGER)
        ELSE min(max(deadline_at, :now), :now + CAST(:after * 1000000 AS INTEGER)) END
WHERE id = :job_id AND lease_token = :token
RETURNING id;

-- name: renew
-- Keep long work leased.
UPDATE jobs SET due_at = :now + CAST(:seconds * 1000000 AS INTEGER)
WHERE id = :job_id AND lease_token = :token AND lease_owner = :owner
RETURNING id;

-- name: claim
-- Take due jobs, the longest overdue first. An expired lease is simply due again.
UPDATE jobs
SET lease_owner = :owner, lease_token = lease_token + 1, due_at = :now + CAST(:seconds * 1000000 AS INTEGER),
    delivery = CASE WHEN delivery = 'pending' THEN 'sending' ELSE delivery END
WHERE id IN (SELECT id FROM jobs WHERE due_at <= :now ORDER BY due_at LIMIT :limit)
RETURNING *, :now AS read_at;

-- name: store_callback
-- Keep a callback raw, with the job whose secret it knew.
INSERT INTO inbox (provider, job_id, body, state, due_at, received_at)
VALUES (
    :provider,
    (SELECT id FROM jobs WHERE id = :job_id AND secret_hash = :secret_hash AND provider = :provider),
    :body, 'new', :now + CAST(:hold_seconds * 1000000 AS INTEGER), :now)
RETURNING id, job_id, received_at, (SELECT correlation FROM jobs WHERE jobs.id = inbox.job_id) AS correlation;

-- name: claim_callbacks
-- Stored callbacks that nobody has dealt with in time.
UPDATE inbox SET due_at = :now + CAST(:hold_seconds * 1000000 AS INTEGER)
WHERE id IN (SELECT id FROM inbox WHERE due_at <= :now ORDER BY due_at LIMIT :limit)
RETURNING *, (SELECT correlation FROM jobs WHERE jobs.id = inbox.job_id) AS correlation;

-- name: settle_callback
-- A callback is dealt with.
UPDATE inbox SET state = :state, due_at = NULL, task_id = coalesce(:task_id, task_id), note = :note
WHERE id = :callback_id
RETURNING id;

-- name: hint
-- A callback we may not believe: ask the provider about its job soon, or keep it as an orphan.
UPDATE jobs SET due_at = :now
WHERE provider = :provider AND task_id = :task_id AND state = 'running' AND lease_owner IS NULL;
UPDATE inbox
SET job_id = (SELECT id FROM jobs WHERE provider = :provider AND task_id = :task_id),
    state = CASE WHEN EXISTS (SELECT 1 FROM jobs WHERE provider = :provider AND task_id = :task_id)
            THEN 'matched' ELSE 'orphan' END,
    task_id = :task_id, due_at = NULL
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
SELECT *, (SELECT correlation FROM jobs WHERE jobs.id = inbox.job_id) AS correlation
FROM inbox WHERE state = :state ORDER BY id DESC LIMIT :limit;

-- name: heartbeat
-- Say that we live, and see who has been silent.
INSERT INTO instances (id, started_at, seen_at) VALUES (:instance, :now, :now)
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at;
SELECT id FROM instances WHERE id <> :instance AND seen_at < :now - CAST(:silent_seconds * 1000000 AS INTEGER);

-- name: rescue
-- Make due what an instance holds, and forget the instance unless part of its work goes on.
DELETE FROM instances WHERE id = :instance AND json_array_length(:but) = 0;
UPDATE jobs SET due_at = :now, lease_owner = NULL
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
WHERE (:state IS NULL OR state = :state) AND (:person_id IS NULL OR person_id = :person_id)
    AND (:before IS NULL OR id < :before)
ORDER BY id DESC LIMIT :limit;

-- name: attention
-- What an operator should look at, oldest first.
SELECT *, :now AS read_at FROM jobs WHERE attention IS NOT NULL ORDER BY id LIMIT :limit;

-- name: retry
-- Make a waiting or parked job due now; a parked submit is queued again.
UPDATE jobs
SET due_at = :now, lease_token = lease_token + 1, attempts = 0, attention = NULL,
    state = CASE WHEN state = 'submitting' AND due_at IS NULL THEN 'queued' ELSE state END
WHERE id = :job_id AND lease_owner IS NULL
    AND (state IN ('queued', 'submitting', 'running') OR delivery IN ('pending', 'sending'))
RETURNING id;

-- name: resend
-- Deliver an ended job's parts anew, on messages of their own.
UPDATE jobs
SET delivery = 'pending', delivered_at = NULL, parts = :parts, placeholder = NULL, due_at = :now,
    lease_owner = NULL, lease_token = lease_token + 1, attempts = 0, attention = NULL
WHERE id = :job_id AND delivery IN ('delivered', 'undeliverable', 'unknown')
RETURNING id;

-- name: counts
-- Jobs in progress by state, and what is due, waiting in the inbox or on the operator's list.
SELECT state AS name, count(*) AS count FROM jobs WHERE due_at IS NOT NULL GROUP BY state
UNION ALL SELECT 'due', count(*) FROM jobs WHERE due_at <= :now
UNION ALL SELECT 'callbacks', count(*) FROM inbox WHERE due_at IS NOT NULL
UNION ALL SELECT 'orphans', count(*) FROM inbox WHERE state = 'orphan'
UNION ALL SELECT 'attention', count(*) FROM jobs WHERE attention IS NOT NULL;

-- name: check_wallets
-- Every balance is the sum of its movements.
SELECT CAST(p.id AS TEXT) AS subject,
    printf('available %d, ledger %d; held %d, ledger %d', p.available, l.available, p.held, l.held) AS detail
FROM people p
JOIN (SELECT q.id,
          coalesce(sum(CASE 'available' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS available,
          coalesce(sum(CASE 'held' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS held
      FROM people q LEFT JOIN ledger ON person_id = q.id GROUP BY q.id) l ON l.id = p.id
WHERE p.available <> l.available OR p.held <> l.held;

-- name: check_zero_sum
-- What people have is what the house owes.
SELECT 'all' AS subject, printf('people %d, house %d', people, house) AS detail
FROM (SELECT coalesce(sum(available + held), 0) AS people FROM people) p,
     (SELECT coalesce(sum(CASE 'house' WHEN credit THEN amount WHEN debit THEN -amount END), 0) AS house FROM ledger) h
WHERE people + house <> 0;

-- name: check_purses
-- A job's purse says what the ledger says: held once, settled at most once, for its price.
SELECT CAST(j.id AS TEXT) AS subject,
    printf('purse %s, price %d, hold %s, %s %s', j.purse, j.price, h.amount, s.kind, s.amount) AS detail
FROM jobs j
LEFT JOIN ledger h ON h.key = 'hold:' || j.id
LEFT JOIN ledger s ON s.key = 'settle:' || j.id
WHERE NOT CASE j.purse
    WHEN 'free' THEN j.price = 0 AND h.key IS NULL AND s.key IS NULL
    WHEN 'held' THEN h.amount = j.price AND s.key IS NULL
    WHEN 'captured' THEN h.amount = j.price AND s.amount = j.price AND s.kind = 'capture'
    ELSE h.amount = j.price AND s.amount = j.price AND s.kind = 'release' END IS TRUE;

-- name: check_ends
-- Money is held only while a job is open or its result is on the way; only a delivered result is paid for.
SELECT CAST(id AS TEXT) AS subject, printf('state %s, delivery %s, purse %s', state, delivery, purse) AS detail
FROM jobs
WHERE purse = 'held' AND (state IN ('failed', 'cancelled', 'expired')
                          OR delivery IN ('delivered', 'undeliverable', 'unknown'))
    OR purse = 'captured' AND state <> 'succeeded'
    OR purse = 'released' AND state IN ('queued', 'submitting', 'running');

-- name: check_due
-- Whatever is not finished is due some time, or on the operator's list.
SELECT CAST(id AS TEXT) AS subject, printf('state %s, delivery %s, notice %s', state, delivery, notice) AS detail
FROM jobs
WHERE due_at IS NULL AND attention IS NULL
    AND (state IN ('queued', 'submitting', 'running') OR delivery IN ('pending', 'sending') OR notice = 'due');

-- name: settled_jobs
-- When no work is left, no job is open, leased or on its way.
SELECT CAST(id AS TEXT) AS subject, printf('state %s, delivery %s, lease %s', state, delivery, lease_owner) AS detail
FROM jobs WHERE due_at IS NOT NULL OR lease_owner IS NOT NULL;

-- name: settled_inbox
-- When no work is left, every callback has been dealt with.
SELECT CAST(id AS TEXT) AS subject, printf('state %s', state) AS detail FROM inbox WHERE due_at IS NOT NULL;
