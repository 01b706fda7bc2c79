-- name: job_blocks
-- use: periodic
-- Return the newest job, and the last job that the figures contain.
SELECT coalesce((SELECT max(id) FROM jobs), 0) AS newest, (SELECT min(id) FROM jobs) AS oldest,
    (SELECT last_job_id FROM figure_blocks ORDER BY block DESC LIMIT 1) AS contained,
    (SELECT max(block) FROM figure_blocks) AS last_block;

-- name: due_job_blocks
-- use: periodic
-- Return blocks whose figures may have changed: jobs of theirs were open, or changed later. A block that an older version
-- has counted is counted again for the quarters of an hour, the newest first.
SELECT block FROM (SELECT block FROM figure_blocks WHERE due_at <= :now ORDER BY due_at LIMIT :limit)
UNION
SELECT block FROM (SELECT block FROM figure_blocks WHERE quarters_at IS NOT changed_at ORDER BY block DESC LIMIT :limit)
UNION
SELECT (job_id - 1) / :size FROM (
    SELECT job_id FROM figure_changes WHERE job_id IS NOT NULL ORDER BY job_id LIMIT :limit);

-- name: fold_jobs
-- use: periodic
-- Count the jobs of a block again and add the difference to the figures of the hours and days; what attempts that were
-- given up cost is a loss. A result that was sent again has no time to the chat: it was sent when a user or an operator asked for it.
-- The marks of the changes are deleted; a later change leaves a new one.
-- The + takes the type from the id: the index is of an expression, which has none, and would be read to its end.
INSERT INTO figure_job
SELECT id, created_at, created_at / 900000000, bot, provider, model, state, state = 'succeeded' AND delivery = 'delivered',
    hold_state, price, coalesce((SELECT amount FROM ledger WHERE kind = 'refund'
        AND CASE WHEN key GLOB 'refund:[0-9]*' THEN CAST(substr(key, 8) AS INTEGER) END = +jobs.id), 0), coalesce(cost, 0), due_at IS NOT NULL OR ended_at IS NULL, (ended_at - created_at) / 1e6,
    CASE WHEN instr(parts, '"repeated":') = 0 THEN (delivered_at - ended_at) / 1e6 END
FROM jobs WHERE id > :after AND id <= :until AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch);
INSERT INTO figure_counted
SELECT quarter, bot, provider, model, count(*) AS orders, count(*) FILTER (WHERE delivered) AS delivered,
    count(*) FILTER (WHERE state IN ('failed', 'expired')) AS failed,
    count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
    count(*) FILTER (WHERE hold_state = 'released' OR refund > 0) AS refunded,
    coalesce(sum(price - refund) FILTER (WHERE hold_state = 'captured'), 0) AS revenue, sum(cost) AS cost,
    coalesce(sum(cost) FILTER (WHERE hold_state <> 'captured' OR refund > 0), 0) AS loss,
    coalesce(max(id) FILTER (WHERE state IN ('failed', 'expired')), 0) AS last_failed_job
FROM figure_job GROUP BY quarter, bot, provider, model
UNION ALL
SELECT f.quarter, f.bot, a.provider, f.model, 0, 0, 0, 0, 0, 0, a.cost,
    CASE WHEN a.number <> j.attempt OR f.hold_state <> 'captured' OR f.refund > 0 THEN a.cost ELSE 0 END, 0
FROM figure_job f JOIN jobs j ON j.id = f.id JOIN attempts a ON a.job_id = f.id
WHERE a.cost > 0 AND (a.number <> j.attempt OR j.cost IS NULL);
DELETE FROM quarter_figures
WHERE block = :block AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch);
INSERT INTO quarter_figures
SELECT quarter, bot, provider, :block, sum(orders), sum(delivered), sum(failed), sum(cancelled), sum(refunded),
    sum(revenue), sum(cost), sum(loss)
FROM figure_counted GROUP BY quarter, bot, provider;
INSERT INTO figure_difference
SELECT hour, bot, provider, model, sum(orders), sum(delivered), sum(failed), sum(cancelled), sum(refunded),
    sum(revenue), sum(cost), sum(loss), max(last_failed_job)
FROM (
    SELECT quarter / 4 AS hour, bot, provider, model, orders, delivered, failed, cancelled, refunded, revenue, cost, loss,
        last_failed_job
    FROM figure_counted
    UNION ALL
    SELECT hour, bot, provider, model, -orders, -delivered, -failed, -cancelled, -refunded, -revenue, -cost, -loss, 0
    FROM block_figures WHERE block = :block AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
) GROUP BY hour, bot, provider, model
HAVING sum(orders) <> 0 OR sum(delivered) <> 0 OR sum(failed) <> 0 OR sum(cancelled) <> 0 OR sum(refunded) <> 0
    OR sum(revenue) <> 0 OR sum(cost) <> 0 OR sum(loss) <> 0;
INSERT INTO figure_duration
WITH bound AS MATERIALIZED (SELECT value AS seconds FROM json_each(:bounds))
SELECT kind, start, bot, provider, model, bucket, sum(jobs)
FROM (
    SELECT 'result' AS kind, quarter / 96 AS start, bot, provider, model,
        (SELECT count(*) FROM bound WHERE seconds <= result_seconds) AS bucket, 1 AS jobs
    FROM figure_job WHERE state = 'succeeded'
    UNION ALL
    SELECT 'delivery', quarter / 4, bot, '', '', (SELECT count(*) FROM bound WHERE seconds <= delivery_seconds), 1
    FROM figure_job WHERE delivered AND delivery_seconds IS NOT NULL
    UNION ALL
    SELECT kind, start, bot, provider, model, bucket, -jobs FROM block_durations WHERE block = :block AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
) GROUP BY kind, start, bot, provider, model, bucket HAVING sum(jobs) <> 0;
INSERT INTO block_figures
SELECT :block, d.* FROM figure_difference d WHERE true
ON CONFLICT (block, hour, bot, provider, model) DO UPDATE
SET orders = orders + excluded.orders, delivered = delivered + excluded.delivered,
    failed = failed + excluded.failed, cancelled = cancelled + excluded.cancelled,
    refunded = refunded + excluded.refunded, revenue = revenue + excluded.revenue,
    cost = cost + excluded.cost, loss = loss + excluded.loss,
    last_failed_job = max(last_failed_job, excluded.last_failed_job);
INSERT INTO job_figures
SELECT * FROM (
    SELECT 'hour', d.* FROM figure_difference d
    UNION ALL
    SELECT 'day', hour / 24, bot, provider, model, sum(orders), sum(delivered), sum(failed), sum(cancelled),
        sum(refunded), sum(revenue), sum(cost), sum(loss), max(last_failed_job)
    FROM figure_difference GROUP BY hour / 24, bot, provider, model
    UNION ALL
    SELECT '30days', hour / 720, bot, provider, model, sum(orders), sum(delivered), sum(failed), sum(cancelled),
        sum(refunded), sum(revenue), sum(cost), sum(loss), max(last_failed_job)
    FROM figure_difference GROUP BY hour / 720, bot, provider, model
    UNION ALL
    SELECT 'hour_total', hour, bot, provider, '', sum(orders), sum(delivered), sum(failed), sum(cancelled), sum(refunded),
        sum(revenue), sum(cost), sum(loss), max(last_failed_job)
    FROM figure_difference GROUP BY hour, bot, provider
) WHERE true
ON CONFLICT (span, start, bot, provider, model) DO UPDATE
SET orders = orders + excluded.orders, delivered = delivered + excluded.delivered,
    failed = failed + excluded.failed, cancelled = cancelled + excluded.cancelled,
    refunded = refunded + excluded.refunded, revenue = revenue + excluded.revenue,
    cost = cost + excluded.cost, loss = loss + excluded.loss,
    last_failed_job = max(last_failed_job, excluded.last_failed_job);
INSERT INTO block_durations
SELECT :block, d.* FROM figure_duration d WHERE true
ON CONFLICT (block, kind, start, bot, provider, model, bucket) DO UPDATE SET jobs = jobs + excluded.jobs;
INSERT INTO job_durations
SELECT * FROM figure_duration WHERE true
ON CONFLICT (kind, start, bot, provider, model, bucket) DO UPDATE SET jobs = jobs + excluded.jobs;
INSERT INTO figure_found
SELECT coalesce((SELECT max(id) FROM figure_job), :after), coalesce((SELECT max(open) FROM figure_job), 0),
    coalesce((SELECT max(created_at) > :now - CAST(:settled_seconds * 1000000 AS INTEGER) FROM figure_job), 0),
    EXISTS (SELECT 1 FROM figure_difference) OR EXISTS (SELECT 1 FROM figure_duration)
    OR EXISTS (SELECT 1 FROM figure_changes WHERE job_id > :after AND job_id <= :until)
WHERE EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch);
INSERT INTO figure_blocks (block, last_job_id, changed_at, due_at, quarters_at)
SELECT :block, last_job_id, :now, CASE
    WHEN open THEN :now + CAST(:recheck_seconds * 1000000 AS INTEGER)
    WHEN young THEN :now + CAST(:settled_seconds * 1000000 AS INTEGER)
    END, :now
FROM figure_found WHERE true
ON CONFLICT (block) DO UPDATE
SET last_job_id = excluded.last_job_id,
    changed_at = CASE WHEN (SELECT changed FROM figure_found) THEN excluded.changed_at ELSE changed_at END,
    quarters_at = CASE WHEN (SELECT changed FROM figure_found) THEN excluded.changed_at ELSE changed_at END,
    due_at = CASE
        WHEN (SELECT changed OR NOT open FROM figure_found) THEN excluded.due_at
        ELSE :now + min(3600000000, max(CAST(:recheck_seconds * 1000000 AS INTEGER), (:now - changed_at) / 8))
        END
RETURNING block;
DELETE FROM figure_changes WHERE job_id > :after AND job_id <= :until AND EXISTS (SELECT 1 FROM figure_found);
DELETE FROM figure_job;
DELETE FROM figure_counted;
DELETE FROM figure_difference;
DELETE FROM figure_duration;
DELETE FROM figure_found;

-- name: topup_hours
-- use: periodic
-- Return hours of payments that changed later.
SELECT DISTINCT payment_hour AS hour FROM (
    SELECT payment_hour FROM figure_changes WHERE payment_hour IS NOT NULL ORDER BY payment_hour LIMIT :limit);

-- name: fold_topups
-- use: periodic
-- Count the payments of an hour again.
INSERT INTO topup_figures (hour, bot, topups, stars, credits, repeated, refunds, refunded_stars)
SELECT :hour, a.bot, count(*) FILTER (WHERE p.state = 'paid'),
    coalesce(sum(p.stars) FILTER (WHERE p.state = 'paid'), 0), coalesce(sum(p.amount) FILTER (WHERE p.state = 'paid'), 0),
    count(*) FILTER (WHERE p.state = 'paid' AND EXISTS (
        SELECT 1 FROM payments e WHERE e.account_id = p.account_id AND e.at < p.at)),
    count(*) FILTER (WHERE p.state <> 'paid'), coalesce(sum(p.stars) FILTER (WHERE p.state <> 'paid'), 0)
FROM payments p JOIN accounts a ON a.id = p.account_id
WHERE p.at >= :hour * 3600000000 AND p.at < (:hour + 1) * 3600000000 AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch)
GROUP BY a.bot
ON CONFLICT (hour, bot) DO UPDATE
SET topups = excluded.topups, stars = excluded.stars, credits = excluded.credits, repeated = excluded.repeated,
    refunds = excluded.refunds, refunded_stars = excluded.refunded_stars;
DELETE FROM figure_changes WHERE payment_hour = :hour AND EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch);

-- name: figure_position
-- use: periodic
-- Return how far the sets of accounts have been filled from a table.
SELECT position FROM figure_positions WHERE name = :name;

-- name: orders_after
-- use: periodic
-- Return the next orders after an id, each with whether it is its account's first, and whether it is old enough that every
-- order with a lower id is committed.
WITH next AS MATERIALIZED (SELECT id, account_id, bot, created_at FROM jobs WHERE id > :after ORDER BY id LIMIT :limit)
SELECT n.id, n.account_id, n.bot, n.created_at / 3600000000 AS hour,
    n.created_at < :now - CAST(:commit_seconds * 1000000 AS INTEGER) AS settled,
    NOT EXISTS (SELECT 1 FROM jobs e WHERE e.account_id = n.account_id AND e.id < n.id) AS first
FROM next n ORDER BY n.id;

-- name: accounts_after
-- use: periodic
-- Return the next accounts after an id, and whether each is old enough that every account with a lower id is committed.
SELECT id, bot, created_at / 3600000000 AS hour,
    created_at < :now - CAST(:commit_seconds * 1000000 AS INTEGER) AS settled
FROM accounts WHERE id > :after ORDER BY id LIMIT :limit;

-- name: payments_after
-- use: periodic
-- Return the next payments after a time in microseconds, each with whether its account had paid before.
SELECT p.account_id, a.bot, p.at, p.at < :now - CAST(:commit_seconds * 1000000 AS INTEGER) AS settled,
    EXISTS (SELECT 1 FROM payments e WHERE e.account_id = p.account_id AND e.at < p.at) AS repeated
FROM payments p JOIN accounts a ON a.id = p.account_id WHERE p.at > :after ORDER BY p.at LIMIT :limit;

-- name: read_account_sets
-- use: periodic
-- Return pieces of sets of accounts.
SELECT s.kind, s.span, s.start, s.bot, s.piece, s.members
FROM json_each(:items) i
JOIN account_sets s ON s.kind = i.value ->> 'kind' AND s.span = i.value ->> 'span' AND s.start = i.value ->> 'start'
    AND s.bot = i.value ->> 'bot' AND s.piece = i.value ->> 'piece';

-- name: save_account_sets
-- use: periodic
-- Write pieces of sets of accounts together with the position up to which they are filled, unless the position is
-- another one than was read.
INSERT INTO figure_moved
SELECT 1 WHERE EXISTS (SELECT 1 FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch) AND (SELECT coalesce(max(position), '') FROM figure_positions WHERE name = :name) = :expected;
INSERT INTO figure_positions (name, position) SELECT :name, :position FROM figure_moved WHERE true
ON CONFLICT (name) DO UPDATE SET position = excluded.position
RETURNING name;
INSERT INTO account_sets (kind, span, start, bot, piece, size, members)
SELECT i.value ->> 'kind', i.value ->> 'span', i.value ->> 'start', i.value ->> 'bot', i.value ->> 'piece',
    i.value ->> 'size', i.value ->> 'members'
FROM figure_moved, json_each(:items) i WHERE i.value ->> 'size' > 0
ON CONFLICT (kind, span, start, bot, piece) DO UPDATE SET size = excluded.size, members = excluded.members;
DELETE FROM figure_moved;

-- name: clear_figures
-- use: operator
-- Delete all figures, so that the leader counts everything again.
DELETE FROM figure_blocks;
DELETE FROM block_figures;
DELETE FROM job_figures;
DELETE FROM quarter_figures;
DELETE FROM block_durations;
DELETE FROM job_durations;
DELETE FROM topup_figures;
DELETE FROM account_sets;
DELETE FROM figure_changes;
DELETE FROM figure_positions;

-- name: period_figures
-- use: operator
-- Return the figures of successive periods of some hours each, of one bot or of all.
SELECT :since + (start - :since) / :hours * :hours AS start, sum(orders) AS orders, sum(delivered) AS delivered, sum(failed) AS failed,
    sum(cancelled) AS cancelled, sum(refunded) AS refunded, sum(revenue) AS revenue,
    sum(cost) AS cost, sum(loss) AS loss, max(last_failed_job) AS last_failed_job
FROM job_figures
WHERE span = 'hour_total' AND start >= :since AND start < :until AND bot = coalesce(:bot, bot)
GROUP BY 1 ORDER BY 1;

-- name: provider_figures
-- use: operator
-- Return the figures of each provider in successive periods of some hours each.
SELECT :since + (start - :since) / :hours * :hours AS start, provider, '' AS model,
    sum(orders) AS orders, sum(delivered) AS delivered, sum(failed) AS failed, sum(cancelled) AS cancelled,
    sum(refunded) AS refunded, sum(revenue) AS revenue, sum(cost) AS cost, sum(loss) AS loss,
    max(last_failed_job) AS last_failed_job
FROM job_figures WHERE span = 'hour_total' AND start >= :since AND start < :until
GROUP BY 1, 2 ORDER BY 1, 2;

-- name: model_figures
-- use: operator
-- Return the figures of each model: 30 days at a time, and the days and hours before and after them.
SELECT provider, model, sum(orders) AS orders, sum(delivered) AS delivered, sum(failed) AS failed,
    sum(cancelled) AS cancelled, sum(refunded) AS refunded, sum(revenue) AS revenue,
    sum(cost) AS cost, sum(loss) AS loss, max(last_failed_job) AS last_failed_job
FROM (
    SELECT * FROM job_figures WHERE span = '30days' AND start >= :first_month AND start < :last_month
    UNION ALL
    SELECT * FROM job_figures WHERE span = 'day' AND start >= :first_day AND start < :days_before
    UNION ALL
    SELECT * FROM job_figures WHERE span = 'day' AND start >= :days_after AND start < :last_day
    UNION ALL
    SELECT * FROM job_figures WHERE span = 'hour' AND start >= :since AND start < :hours_before
    UNION ALL
    SELECT * FROM job_figures WHERE span = 'hour' AND start >= :hours_after AND start < :until
) parts
WHERE bot = coalesce(:bot, bot)
GROUP BY provider, model ORDER BY provider, model;

-- name: model_durations
-- use: operator
-- Return the histogram from the order to the result of each model, for whole days.
SELECT provider, model, bucket, sum(jobs) AS jobs FROM job_durations
WHERE kind = 'result' AND start >= :first_day AND start < :last_day AND bot = coalesce(:bot, bot)
GROUP BY provider, model, bucket HAVING sum(jobs) > 0;

-- name: delivery_durations
-- use: operator
-- Return the histogram from the result to the chat.
SELECT bucket, sum(jobs) AS jobs FROM job_durations
WHERE kind = 'delivery' AND start >= :since AND start < :until AND bot = coalesce(:bot, bot)
GROUP BY bucket HAVING sum(jobs) > 0;

-- name: topup_figures
-- use: operator
-- Return the payments of successive periods of some hours each, of one bot or of all.
SELECT :since + (hour - :since) / :hours * :hours AS start, sum(topups) AS topups, sum(stars) AS paid_amount, sum(credits) AS credits,
    sum(repeated) AS repeated, sum(refunds) AS refunds, sum(refunded_stars) AS refunded_amount
FROM topup_figures WHERE hour >= :since AND hour < :until AND bot = coalesce(:bot, bot)
GROUP BY 1 ORDER BY 1;

-- name: account_set_sizes
-- use: operator
-- Return the sum of the sizes of a set of accounts in the hours of successive periods.
SELECT :since + (start - :since) / :hours * :hours AS start, sum(size) AS size FROM account_sets
WHERE kind = :kind AND span = 'hour' AND start >= :since AND start < :until AND bot = coalesce(:bot, bot)
GROUP BY 1;

-- name: account_set_days
-- use: operator
-- Return the size of a set of accounts on each day.
SELECT start AS day, sum(size) AS size FROM account_sets
WHERE kind = :kind AND span = 'day' AND start >= :first_day AND start < :last_day
GROUP BY start;

-- name: account_sets_of_days
-- use: operator
-- Return the pieces of a set of accounts on several days.
SELECT s.start AS day, s.piece, s.members
FROM json_each(:days) d CROSS JOIN account_sets s
WHERE s.kind = :kind AND s.span = 'day' AND s.start = d.value;

-- name: account_set_pieces
-- use: operator
-- Return the pieces of a set of accounts: whole days, and the hours before and after them.
SELECT piece, members FROM (
    SELECT * FROM account_sets WHERE kind = :kind AND span = 'day' AND start >= :first_day AND start < :last_day
    UNION ALL
    SELECT * FROM account_sets WHERE kind = :kind AND span = 'hour' AND start >= :since AND start < :hours_before
    UNION ALL
    SELECT * FROM account_sets WHERE kind = :kind AND span = 'hour' AND start >= :hours_after AND start < :until
    UNION ALL
    SELECT * FROM account_sets WHERE kind = :kind AND span = 'ever'
) parts
WHERE bot = coalesce(:bot, bot);

-- name: describe_instance
-- Record the version that an instance runs.
UPDATE instances SET version = :version WHERE id = :instance AND version <> :version;

-- name: instances
-- use: operator
-- Return the instances, the longest running first, with the seconds since their last heartbeat.
SELECT id, version, started_at, (:now - seen_at) / 1e6 AS silent_seconds,
    EXISTS (SELECT 1 FROM roles r WHERE r.name = 'active' AND r.holder = instances.id AND r.until > :now) AS active
FROM instances ORDER BY started_at, id;
