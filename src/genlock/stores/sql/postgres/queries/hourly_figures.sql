-- The figures of the dashboard. Every statement that writes them locks the row of the role until it ends, so that the
-- statements of a new leader begin after those of the old one.

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
(SELECT block FROM figure_blocks WHERE due_at <= :now ORDER BY due_at LIMIT :limit)
UNION
(SELECT block FROM figure_blocks WHERE quarters_at IS DISTINCT FROM changed_at ORDER BY block DESC LIMIT :limit)
UNION
(SELECT (job_id - 1) / :size::bigint FROM (
    SELECT job_id FROM figure_changes WHERE job_id IS NOT NULL ORDER BY job_id LIMIT :limit) changed);

-- name: fold_jobs
-- use: periodic
-- Count the jobs of a block again and add the difference to the figures of the hours and days; what attempts that were
-- given up cost is a loss. A result that was sent again has no time to the chat: it was sent when a user or an operator
-- asked for it. The marks of the changes that this statement sees are deleted; a later change leaves a new one.
WITH role AS MATERIALIZED (
    SELECT epoch FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch FOR SHARE
), changes AS (
    DELETE FROM figure_changes c USING role WHERE c.job_id > :after AND c.job_id <= :until RETURNING c.id
), refund AS MATERIALIZED (
    SELECT CASE WHEN key ~ '^refund:[0-9]{1,18}$' THEN substr(key, 8)::bigint END AS job_id, amount FROM ledger
    WHERE kind = 'refund' AND CASE WHEN key ~ '^refund:[0-9]{1,18}$' THEN substr(key, 8)::bigint END > :after
        AND CASE WHEN key ~ '^refund:[0-9]{1,18}$' THEN substr(key, 8)::bigint END <= :until
), job AS MATERIALIZED (
    SELECT j.id, j.created_at, floor(date_part('epoch', j.created_at) / 900)::bigint AS quarter, j.bot, j.provider, j.model, j.state,
        j.state = 'succeeded' AND j.delivery = 'delivered' AS delivered, j.hold_state, j.price, coalesce(r.amount, 0) AS refund,
        coalesce(j.cost, 0) AS cost, j.cost IS NULL AS cost_unknown, j.attempt,
        j.due_at IS NOT NULL OR j.ended_at IS NULL AS open,
        date_part('epoch', j.ended_at - j.created_at) AS result_seconds,
        CASE WHEN strpos(j.parts, '"repeated":') = 0 THEN date_part('epoch', j.delivered_at - j.ended_at) END AS delivery_seconds
    FROM role CROSS JOIN jobs j LEFT JOIN refund r ON r.job_id = j.id WHERE j.id > :after AND j.id <= :until
), counted AS MATERIALIZED (
    SELECT quarter, bot, provider, model, count(*) AS orders, count(*) FILTER (WHERE delivered) AS delivered,
        count(*) FILTER (WHERE state IN ('failed', 'expired')) AS failed,
        count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
        count(*) FILTER (WHERE hold_state = 'released' OR refund > 0) AS refunded,
        coalesce(sum(price - refund) FILTER (WHERE hold_state = 'captured'), 0) AS revenue, sum(cost) AS cost,
        coalesce(sum(cost) FILTER (WHERE hold_state <> 'captured' OR refund > 0), 0) AS loss,
        coalesce(max(id) FILTER (WHERE state IN ('failed', 'expired')), 0) AS last_failed_job
    FROM job GROUP BY quarter, bot, provider, model
    UNION ALL
    SELECT j.quarter, j.bot, a.provider, j.model, 0, 0, 0, 0, 0, 0, a.cost,
        CASE WHEN a.number <> j.attempt OR j.hold_state <> 'captured' OR j.refund > 0 THEN a.cost ELSE 0 END, 0
    FROM job j CROSS JOIN LATERAL (SELECT * FROM attempts WHERE job_id = j.id OFFSET 0) a
    WHERE (j.attempt > 1 OR j.cost_unknown) AND a.cost > 0 AND (a.number <> j.attempt OR j.cost_unknown)
), difference AS MATERIALIZED (
    SELECT hour, bot, provider, model, sum(orders)::bigint AS orders, sum(delivered)::bigint AS delivered,
        sum(failed)::bigint AS failed, sum(cancelled)::bigint AS cancelled, sum(refunded)::bigint AS refunded,
        sum(revenue)::bigint AS revenue, sum(cost)::bigint AS cost, sum(loss)::bigint AS loss,
        max(last_failed_job) AS last_failed_job
    FROM (
        SELECT quarter / 4 AS hour, bot, provider, model, orders, delivered, failed, cancelled, refunded, revenue, cost,
            loss, last_failed_job
        FROM counted
        UNION ALL
        SELECT hour, bot, provider, model, -orders, -delivered, -failed, -cancelled, -refunded, -revenue, -cost, -loss, 0
        FROM role CROSS JOIN block_figures WHERE block = :block
    ) parts GROUP BY hour, bot, provider, model
    HAVING sum(orders) <> 0 OR sum(delivered) <> 0 OR sum(failed) <> 0 OR sum(cancelled) <> 0 OR sum(refunded) <> 0
        OR sum(revenue) <> 0 OR sum(cost) <> 0 OR sum(loss) <> 0
), by_quarter AS MATERIALIZED (
    SELECT quarter, bot, provider, sum(orders)::bigint AS orders, sum(delivered)::bigint AS delivered,
        sum(failed)::bigint AS failed, sum(cancelled)::bigint AS cancelled, sum(refunded)::bigint AS refunded,
        sum(revenue)::bigint AS revenue, sum(cost)::bigint AS cost, sum(loss)::bigint AS loss
    FROM counted GROUP BY quarter, bot, provider
), durations AS MATERIALIZED (
    SELECT kind, start, bot, provider, model, bucket, sum(jobs)::bigint AS jobs
    FROM (
        SELECT 'result' AS kind, quarter / 96 AS start, bot, provider, model,
            width_bucket(result_seconds, :bounds::float8[])::bigint AS bucket, 1 AS jobs
        FROM job WHERE state = 'succeeded'
        UNION ALL
        SELECT 'delivery', quarter / 4, bot, '', '', width_bucket(delivery_seconds, :bounds::float8[])::bigint, 1
        FROM job WHERE delivered AND delivery_seconds IS NOT NULL
        UNION ALL
        SELECT kind, start, bot, provider, model, bucket, -jobs FROM role CROSS JOIN block_durations WHERE block = :block
    ) parts GROUP BY kind, start, bot, provider, model, bucket HAVING sum(jobs) <> 0
), block AS (
    INSERT INTO block_figures AS f
    SELECT :block, d.* FROM difference d
    ON CONFLICT (block, hour, bot, provider, model) DO UPDATE
    SET orders = f.orders + excluded.orders, delivered = f.delivered + excluded.delivered,
        failed = f.failed + excluded.failed, cancelled = f.cancelled + excluded.cancelled,
        refunded = f.refunded + excluded.refunded, revenue = f.revenue + excluded.revenue,
        cost = f.cost + excluded.cost, loss = f.loss + excluded.loss,
        last_failed_job = greatest(f.last_failed_job, excluded.last_failed_job)
), sums AS (
    INSERT INTO job_figures AS f
    SELECT 'hour', d.* FROM difference d
    UNION ALL
    SELECT 'day', hour / 24, bot, provider, model, sum(orders)::bigint, sum(delivered)::bigint, sum(failed)::bigint,
        sum(cancelled)::bigint, sum(refunded)::bigint, sum(revenue)::bigint, sum(cost)::bigint, sum(loss)::bigint,
        max(last_failed_job)
    FROM difference GROUP BY hour / 24, bot, provider, model
    UNION ALL
    SELECT '30days', hour / 720, bot, provider, model, sum(orders)::bigint, sum(delivered)::bigint, sum(failed)::bigint,
        sum(cancelled)::bigint, sum(refunded)::bigint, sum(revenue)::bigint, sum(cost)::bigint, sum(loss)::bigint,
        max(last_failed_job)
    FROM difference GROUP BY hour / 720, bot, provider, model
    UNION ALL
    SELECT 'hour_total', hour, bot, provider, '', sum(orders)::bigint, sum(delivered)::bigint, sum(failed)::bigint,
        sum(cancelled)::bigint, sum(refunded)::bigint, sum(revenue)::bigint, sum(cost)::bigint, sum(loss)::bigint,
        max(last_failed_job)
    FROM difference GROUP BY hour, bot, provider
    ON CONFLICT (span, start, bot, provider, model) DO UPDATE
    SET orders = f.orders + excluded.orders, delivered = f.delivered + excluded.delivered,
        failed = f.failed + excluded.failed, cancelled = f.cancelled + excluded.cancelled,
        refunded = f.refunded + excluded.refunded, revenue = f.revenue + excluded.revenue,
        cost = f.cost + excluded.cost, loss = f.loss + excluded.loss,
        last_failed_job = greatest(f.last_failed_job, excluded.last_failed_job)
), quarters AS (
    INSERT INTO quarter_figures AS f
    SELECT quarter, bot, provider, :block, orders, delivered, failed, cancelled, refunded, revenue, cost, loss FROM by_quarter
    ON CONFLICT (quarter, bot, provider, block) DO UPDATE
    SET orders = excluded.orders, delivered = excluded.delivered, failed = excluded.failed,
        cancelled = excluded.cancelled, refunded = excluded.refunded, revenue = excluded.revenue, cost = excluded.cost,
        loss = excluded.loss
    WHERE (f.orders, f.delivered, f.failed, f.cancelled, f.refunded, f.revenue, f.cost, f.loss)
        <> (excluded.orders, excluded.delivered, excluded.failed, excluded.cancelled, excluded.refunded, excluded.revenue,
            excluded.cost, excluded.loss)
), other_quarters AS (
    -- the job went on to another provider
    DELETE FROM quarter_figures f USING role WHERE f.block = :block AND NOT EXISTS (
        SELECT FROM by_quarter q WHERE q.quarter = f.quarter AND q.bot = f.bot AND q.provider = f.provider)
), block_histogram AS (
    INSERT INTO block_durations AS f
    SELECT :block, d.* FROM durations d
    ON CONFLICT (block, kind, start, bot, provider, model, bucket) DO UPDATE SET jobs = f.jobs + excluded.jobs
), histogram AS (
    INSERT INTO job_durations AS f
    SELECT * FROM durations
    ON CONFLICT (kind, start, bot, provider, model, bucket) DO UPDATE SET jobs = f.jobs + excluded.jobs
), found AS MATERIALIZED (
    SELECT coalesce((SELECT max(id) FROM job), :after::bigint) AS last_job_id,
        coalesce((SELECT bool_or(open) FROM job), false) AS open,
        coalesce((SELECT max(created_at) > :now - make_interval(secs => :settled_seconds::float8) FROM job), false) AS young,
        EXISTS (SELECT FROM difference) OR EXISTS (SELECT FROM durations) OR EXISTS (SELECT FROM changes) AS changed
    FROM role
)
INSERT INTO figure_blocks AS b (block, last_job_id, changed_at, due_at, quarters_at)
SELECT :block, last_job_id, :now, CASE
    WHEN open THEN :now + make_interval(secs => :recheck_seconds::float8)
    WHEN young THEN :now + make_interval(secs => :settled_seconds::float8)
    END, :now
FROM found
ON CONFLICT (block) DO UPDATE
SET last_job_id = excluded.last_job_id,
    changed_at = CASE WHEN (SELECT changed FROM found) THEN excluded.changed_at ELSE b.changed_at END,
    quarters_at = CASE WHEN (SELECT changed FROM found) THEN excluded.changed_at ELSE b.changed_at END,
    due_at = CASE
        WHEN (SELECT changed OR NOT open FROM found) THEN excluded.due_at
        ELSE :now + least(interval '1 hour', greatest(make_interval(secs => :recheck_seconds::float8), (:now - b.changed_at) / 8))
        END
RETURNING b.block;

-- name: topup_hours
-- use: periodic
-- Return hours of payments that changed later.
SELECT DISTINCT payment_hour AS hour FROM (
    SELECT payment_hour FROM figure_changes WHERE payment_hour IS NOT NULL ORDER BY payment_hour LIMIT :limit) changed;

-- name: fold_topups
-- use: periodic
-- Count the payments of an hour again.
WITH role AS MATERIALIZED (
    SELECT epoch FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch FOR SHARE
), changes AS (
    DELETE FROM figure_changes c USING role WHERE c.payment_hour = :hour::bigint
)
INSERT INTO topup_figures (hour, bot, topups, stars, credits, repeated, refunds, refunded_stars)
SELECT :hour::bigint, a.bot, count(*) FILTER (WHERE p.state = 'paid'),
    coalesce(sum(p.stars) FILTER (WHERE p.state = 'paid'), 0), coalesce(sum(p.amount) FILTER (WHERE p.state = 'paid'), 0),
    count(*) FILTER (WHERE p.state = 'paid' AND EXISTS (
        SELECT FROM payments e WHERE e.account_id = p.account_id AND e.at < p.at)),
    count(*) FILTER (WHERE p.state <> 'paid'), coalesce(sum(p.stars) FILTER (WHERE p.state <> 'paid'), 0)
FROM role CROSS JOIN payments p JOIN accounts a ON a.id = p.account_id
WHERE p.at >= to_timestamp(:hour::bigint * 3600) AND p.at < to_timestamp((:hour::bigint + 1) * 3600)
GROUP BY a.bot
ON CONFLICT (hour, bot) DO UPDATE
SET topups = excluded.topups, stars = excluded.stars, credits = excluded.credits, repeated = excluded.repeated,
    refunds = excluded.refunds, refunded_stars = excluded.refunded_stars;

-- name: figure_position
-- use: periodic
-- Return how far the sets of accounts have been filled from a table.
SELECT position FROM figure_positions WHERE name = :name;

-- name: orders_after
-- use: periodic
-- Return the next orders after an id, each with whether it is its account's first, and whether it is old enough that every
-- order with a lower id is committed. An array as in `account_jobs`.
WITH next AS MATERIALIZED (SELECT id, account_id, bot, created_at FROM jobs WHERE id > :after ORDER BY id LIMIT :limit)
SELECT n.id, n.account_id, n.bot, floor(date_part('epoch', n.created_at) / 3600)::bigint AS hour,
    n.created_at < :now - make_interval(secs => :commit_seconds::float8) AS settled,
    n.id = (SELECT id FROM jobs WHERE account_id = ANY (ARRAY[n.account_id]) ORDER BY account_id, id LIMIT 1) AS first
FROM next n ORDER BY n.id;

-- name: accounts_after
-- use: periodic
-- Return the next accounts after an id, and whether each is old enough that every account with a lower id is committed.
SELECT id, bot, floor(date_part('epoch', created_at) / 3600)::bigint AS hour,
    created_at < :now - make_interval(secs => :commit_seconds::float8) AS settled
FROM accounts WHERE id > :after ORDER BY id LIMIT :limit;

-- name: payments_after
-- use: periodic
-- Return the next payments after a time in microseconds, each with whether its account had paid before.
SELECT p.account_id, a.bot, (extract(epoch FROM p.at) * 1000000)::bigint AS at,
    p.at < :now - make_interval(secs => :commit_seconds::float8) AS settled,
    EXISTS (SELECT FROM payments e WHERE e.account_id = p.account_id AND e.at < p.at) AS repeated
FROM payments p JOIN accounts a ON a.id = p.account_id
WHERE p.at > timestamptz 'epoch' + :after::bigint * interval '1 microsecond' ORDER BY p.at LIMIT :limit;

-- name: read_account_sets
-- use: periodic
-- Return pieces of sets of accounts.
SELECT s.kind, s.span, s.start, s.bot, s.piece, s.members
FROM unnest(:kind::text[], :span::text[], :start::bigint[], :bot::text[], :piece::bigint[])
    AS i (kind, span, start, bot, piece)
JOIN account_sets s ON s.kind = i.kind AND s.span = i.span AND s.start = i.start AND s.bot = i.bot AND s.piece = i.piece;

-- name: save_account_sets
-- use: periodic
-- Write pieces of sets of accounts together with the position up to which they are filled, unless the position is
-- another one than was read.
WITH role AS MATERIALIZED (
    SELECT epoch FROM roles WHERE name = 'active' AND holder = :holder AND epoch = :epoch FOR SHARE
), moved AS (
    INSERT INTO figure_positions AS p (name, position) SELECT :name, :position FROM role
    WHERE :expected::text = '' OR EXISTS (SELECT FROM figure_positions known WHERE known.name = :name)
    ON CONFLICT (name) DO UPDATE SET position = excluded.position WHERE p.position = :expected::text
    RETURNING p.name
), saved AS (
    INSERT INTO account_sets AS s (kind, span, start, bot, piece, size, members)
    SELECT i.* FROM moved CROSS JOIN unnest(
        :kind::text[], :span::text[], :start::bigint[], :bot::text[], :piece::bigint[], :size::bigint[], :members::text[]
    ) AS i (kind, span, start, bot, piece, size, members)
    WHERE i.size > 0
    ON CONFLICT (kind, span, start, bot, piece) DO UPDATE SET size = excluded.size, members = excluded.members
)
SELECT name FROM moved;

-- name: clear_figures
-- use: operator
-- Delete all figures, so that the leader counts everything again.
TRUNCATE figure_blocks, block_figures, job_figures, quarter_figures, block_durations, job_durations, topup_figures, account_sets,
    figure_changes, figure_positions;

-- name: period_figures
-- use: operator
-- Return the figures of successive periods of some hours each, of one bot or of all.
SELECT :since::bigint + (start - :since::bigint) / :hours::bigint * :hours::bigint AS start, sum(orders)::bigint AS orders, sum(delivered)::bigint AS delivered, sum(failed)::bigint AS failed,
    sum(cancelled)::bigint AS cancelled, sum(refunded)::bigint AS refunded, sum(revenue)::bigint AS revenue,
    sum(cost)::bigint AS cost, sum(loss)::bigint AS loss, max(last_failed_job) AS last_failed_job
FROM job_figures
WHERE span = 'hour_total' AND start >= :since AND start < :until AND (:bot::text IS NULL OR bot = :bot)
GROUP BY 1 ORDER BY 1;

-- name: provider_figures
-- use: operator
-- Return the figures of each provider in successive periods of some hours each.
SELECT :since::bigint + (start - :since::bigint) / :hours::bigint * :hours::bigint AS start, provider, '' AS model,
    sum(orders)::bigint AS orders, sum(delivered)::bigint AS delivered, sum(failed)::bigint AS failed,
    sum(cancelled)::bigint AS cancelled, sum(refunded)::bigint AS refunded, sum(revenue)::bigint AS revenue,
    sum(cost)::bigint AS cost, sum(loss)::bigint AS loss, max(last_failed_job) AS last_failed_job
FROM job_figures WHERE span = 'hour_total' AND start >= :since AND start < :until
GROUP BY 1, 2 ORDER BY 1, 2;

-- name: model_figures
-- use: operator
-- Return the figures of each model: 30 days at a time, and the days and hours before and after them.
SELECT provider, model, sum(orders)::bigint AS orders, sum(delivered)::bigint AS delivered, sum(failed)::bigint AS failed,
    sum(cancelled)::bigint AS cancelled, sum(refunded)::bigint AS refunded, sum(revenue)::bigint AS revenue,
    sum(cost)::bigint AS cost, sum(loss)::bigint AS loss, max(last_failed_job) AS last_failed_job
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
WHERE (:bot::text IS NULL OR bot = :bot)
GROUP BY provider, model ORDER BY provider, model;

-- name: model_durations
-- use: operator
-- Return the histogram from the order to the result of each model, for whole days.
SELECT provider, model, bucket, sum(jobs)::bigint AS jobs FROM job_durations
WHERE kind = 'result' AND start >= :first_day AND start < :last_day AND (:bot::text IS NULL OR bot = :bot)
GROUP BY provider, model, bucket HAVING sum(jobs) > 0;

-- name: delivery_durations
-- use: operator
-- Return the histogram from the result to the chat.
SELECT bucket, sum(jobs)::bigint AS jobs FROM job_durations
WHERE kind = 'delivery' AND start >= :since AND start < :until AND (:bot::text IS NULL OR bot = :bot)
GROUP BY bucket HAVING sum(jobs) > 0;

-- name: topup_figures
-- use: operator
-- Return the payments of successive periods of some hours each, of one bot or of all.
SELECT :since::bigint + (hour - :since::bigint) / :hours::bigint * :hours::bigint AS start, sum(topups)::bigint AS topups, sum(stars)::bigint AS paid_amount, sum(credits)::bigint AS credits,
    sum(repeated)::bigint AS repeated, sum(refunds)::bigint AS refunds, sum(refunded_stars)::bigint AS refunded_amount
FROM topup_figures WHERE hour >= :since AND hour < :until AND (:bot::text IS NULL OR bot = :bot)
GROUP BY 1 ORDER BY 1;

-- name: account_set_sizes
-- use: operator
-- Return the sum of the sizes of a set of accounts in the hours of successive periods.
SELECT :since::bigint + (start - :since::bigint) / :hours::bigint * :hours::bigint AS start, sum(size)::bigint AS size FROM account_sets
WHERE kind = :kind AND span = 'hour' AND start >= :since AND start < :until AND (:bot::text IS NULL OR bot = :bot)
GROUP BY 1;

-- name: account_set_days
-- use: operator
-- Return the size of a set of accounts on each day.
SELECT start AS day, sum(size)::bigint AS size FROM account_sets
WHERE kind = :kind AND span = 'day' AND start >= :first_day AND start < :last_day
GROUP BY start;

-- name: account_sets_of_days
-- use: operator
-- Return the pieces of a set of accounts on several days.
SELECT s.start AS day, s.piece, s.members
FROM unnest(:days::bigint[]) AS d (day) CROSS JOIN LATERAL (
    SELECT * FROM account_sets WHERE kind = :kind AND span = 'day' AND start = d.day OFFSET 0) s;

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
WHERE (:bot::text IS NULL OR bot = :bot);

-- name: describe_instance
-- Record the version that an instance runs.
UPDATE instances SET version = :version WHERE id = :instance AND version <> :version;

-- name: instances
-- use: operator
-- Return the instances, the longest running first, with the seconds since their last heartbeat.
SELECT id, version, started_at, date_part('epoch', :now - seen_at) AS silent_seconds,
    EXISTS (SELECT FROM roles r WHERE r.name = 'active' AND r.holder = instances.id AND r.until > :now) AS active
FROM instances ORDER BY started_at, id;
