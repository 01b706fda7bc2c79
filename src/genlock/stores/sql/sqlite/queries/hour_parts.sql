-- Parts of hours: where days of the viewer's time zone begin within an hour of UTC. The orders of each provider are summed
-- up from quarters of an hour, the rest is counted from the rows. Each statement counts several parts, which have numbers.

-- name: part_quarters
-- use: operator
-- Return the figures of each part by provider.
SELECT p.value ->> 'number' AS number, f.provider, '' AS model, sum(f.orders) AS orders, sum(f.delivered) AS delivered,
    sum(f.failed) AS failed, sum(f.cancelled) AS cancelled, sum(f.refunded) AS refunded, sum(f.revenue) AS revenue,
    sum(f.cost) AS cost, sum(f.loss) AS loss, 0 AS last_failed_job
FROM json_each(:items) p CROSS JOIN quarter_figures f
WHERE f.quarter >= (p.value ->> 'since_us') / 900000000 AND f.quarter < (p.value ->> 'until_us') / 900000000
GROUP BY p.key, f.provider ORDER BY p.key, f.provider;

-- name: first_jobs_since
-- use: operator
-- Return for each of several times the id from which on jobs were ordered then or later, as `first_job_since` does.
WITH RECURSIVE search (at_us, low, high) AS (
    SELECT value, coalesce((SELECT min(id) FROM jobs), 0), coalesce((SELECT max(id) FROM jobs), -1) + 1
    FROM json_each(:times_us)
    UNION ALL
    SELECT s.at_us, CASE WHEN (
            SELECT j.created_at < s.at_us FROM jobs j WHERE j.id >= (s.low + s.high) / 2 ORDER BY j.id LIMIT 1)
            THEN (s.low + s.high) / 2 + 1 ELSE s.low END,
        CASE WHEN (
            SELECT j.created_at < s.at_us FROM jobs j WHERE j.id >= (s.low + s.high) / 2 ORDER BY j.id LIMIT 1)
            THEN s.high ELSE (s.low + s.high) / 2 END
    FROM search s WHERE s.low < s.high
)
SELECT at_us, low AS id FROM search WHERE low >= high;

-- name: part_jobs
-- use: operator
-- Return the figures of each part by provider and model, of the jobs of ranges of ids that were ordered in a time; as
-- `fold_jobs` counts them.
WITH part AS MATERIALIZED (
    SELECT value ->> 'number' AS number, value ->> 'low' AS low, value ->> 'high' AS high, value ->> 'since_us' AS since_us,
        value ->> 'until_us' AS until_us
    FROM json_each(:items)
), job AS MATERIALIZED (
    SELECT p.number, j.id, j.provider, j.model, j.state,
        j.state = 'succeeded' AND j.delivery = 'delivered' AS delivered, j.hold_state, j.price,
        coalesce((SELECT amount FROM ledger WHERE kind = 'refund'
            AND CASE WHEN key GLOB 'refund:[0-9]*' THEN CAST(substr(key, 8) AS INTEGER) END = +j.id), 0) AS refund,
        coalesce(j.cost, 0) AS cost, j.cost IS NULL AS cost_unknown, j.attempt
    FROM part p CROSS JOIN jobs j
    WHERE j.id >= p.low AND j.id < p.high AND j.created_at >= p.since_us AND j.created_at < p.until_us
)
SELECT number, provider, model, sum(orders) AS orders, sum(delivered) AS delivered, sum(failed) AS failed,
    sum(cancelled) AS cancelled, sum(refunded) AS refunded, sum(revenue) AS revenue, sum(cost) AS cost,
    sum(loss) AS loss, max(last_failed_job) AS last_failed_job
FROM (
    SELECT number, provider, model, count(*) AS orders, count(*) FILTER (WHERE delivered) AS delivered,
        count(*) FILTER (WHERE state IN ('failed', 'expired')) AS failed,
        count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
        count(*) FILTER (WHERE hold_state = 'released' OR refund > 0) AS refunded,
        coalesce(sum(price - refund) FILTER (WHERE hold_state = 'captured'), 0) AS revenue, sum(cost) AS cost,
        coalesce(sum(cost) FILTER (WHERE hold_state <> 'captured' OR refund > 0), 0) AS loss,
        coalesce(max(id) FILTER (WHERE state IN ('failed', 'expired')), 0) AS last_failed_job
    FROM job GROUP BY number, provider, model
    UNION ALL
    SELECT j.number, a.provider, j.model, 0, 0, 0, 0, 0, 0, a.cost,
        CASE WHEN a.number <> j.attempt OR j.hold_state <> 'captured' OR j.refund > 0 THEN a.cost ELSE 0 END, 0
    FROM job j JOIN attempts a ON a.job_id = j.id
    WHERE (j.attempt > 1 OR j.cost_unknown) AND a.cost > 0 AND (a.number <> j.attempt OR j.cost_unknown)
)
GROUP BY number, provider, model ORDER BY number, provider, model;

-- name: part_orders
-- use: operator
-- Return the accounts that ordered in each part.
SELECT DISTINCT p.value ->> 'number' AS number, j.account_id
FROM json_each(:items) p CROSS JOIN jobs j
WHERE j.id >= p.value ->> 'low' AND j.id < p.value ->> 'high' AND j.created_at >= p.value ->> 'since_us'
    AND j.created_at < p.value ->> 'until_us';

-- name: sets_of_hours
-- use: operator
-- Return the pieces of the sets of accounts of several hours.
SELECT s.start AS hour, s.piece, s.members
FROM json_each(:hours) h CROSS JOIN account_sets s
WHERE s.kind = :kind AND s.span = 'hour' AND s.start = h.value;

-- name: part_accounts
-- use: operator
-- Return those of the accounts that started in the part beside which they stand.
SELECT p.value ->> 'number' AS number, a.id
FROM json_each(:items) p CROSS JOIN accounts a
WHERE a.id = p.value ->> 'account_id' AND a.created_at >= p.value ->> 'since_us' AND a.created_at < p.value ->> 'until_us';

-- name: count_part_accounts
-- use: operator
-- Count the accounts of ranges of ids that started in each part.
SELECT p.value ->> 'number' AS number, count(*) AS accounts
FROM json_each(:items) p CROSS JOIN accounts a
WHERE a.id >= p.value ->> 'low' AND a.id <= p.value ->> 'high' AND a.created_at >= p.value ->> 'since_us'
    AND a.created_at < p.value ->> 'until_us'
GROUP BY p.key;

-- name: part_first_orders
-- use: operator
-- Return those of the accounts whose first order was made in the part beside which they stand.
SELECT number, id FROM (
    SELECT p.value ->> 'number' AS number, p.value ->> 'account_id' AS id, p.value ->> 'since_us' AS since_us,
        p.value ->> 'until_us' AS until_us,
        (SELECT created_at FROM jobs WHERE account_id = p.value ->> 'account_id' ORDER BY id LIMIT 1) AS at
    FROM json_each(:items) p
) WHERE at >= since_us AND at < until_us;

-- name: part_topups
-- use: operator
-- Return the payments of each part, as `fold_topups` counts them.
SELECT r.value ->> 'number' AS number, count(*) FILTER (WHERE p.state = 'paid') AS topups,
    coalesce(sum(p.stars) FILTER (WHERE p.state = 'paid'), 0) AS paid_amount,
    coalesce(sum(p.amount) FILTER (WHERE p.state = 'paid'), 0) AS credits,
    count(*) FILTER (WHERE p.state = 'paid' AND EXISTS (
        SELECT 1 FROM payments e WHERE e.account_id = p.account_id AND e.at < p.at)) AS repeated,
    count(*) FILTER (WHERE p.state <> 'paid') AS refunds,
    coalesce(sum(p.stars) FILTER (WHERE p.state <> 'paid'), 0) AS refunded_amount
FROM json_each(:items) r CROSS JOIN payments p
WHERE p.at >= r.value ->> 'since_us' AND p.at < r.value ->> 'until_us' GROUP BY r.key;
