-- Parts of hours: where days of the viewer's time zone begin within an hour of UTC. The orders of each provider are summed
-- up from quarters of an hour, the rest is counted from the rows. Each statement counts several parts, which have numbers.

-- name: part_quarters
-- use: operator
-- Return the figures of each part by provider.
SELECT p.number, f.provider, '' AS model, sum(f.orders)::bigint AS orders, sum(f.delivered)::bigint AS delivered,
    sum(f.failed)::bigint AS failed, sum(f.cancelled)::bigint AS cancelled, sum(f.refunded)::bigint AS refunded,
    sum(f.revenue)::bigint AS revenue, sum(f.cost)::bigint AS cost, sum(f.loss)::bigint AS loss, 0 AS last_failed_job
FROM unnest(:number::bigint[], :since_us::bigint[], :until_us::bigint[]) AS p (number, since_us, until_us)
CROSS JOIN LATERAL (
    SELECT * FROM quarter_figures WHERE quarter >= p.since_us / 900000000 AND quarter < p.until_us / 900000000 OFFSET 0) f
GROUP BY p.number, f.provider ORDER BY p.number, f.provider;

-- name: first_jobs_since
-- use: operator
-- Return for each of several times the id from which on jobs were ordered then or later, as `first_job_since` does.
WITH RECURSIVE search (at_us, low, high) AS (
    SELECT times.at_us, ids.low, ids.high FROM unnest(:times_us::bigint[]) AS times (at_us)
    CROSS JOIN (SELECT coalesce(min(id), 0) AS low, coalesce(max(id), -1) + 1 AS high FROM jobs) ids
    UNION ALL
    SELECT step.at_us, CASE WHEN step.older THEN step.middle + 1 ELSE step.low END,
        CASE WHEN step.older THEN step.high ELSE step.middle END
    FROM (SELECT s.at_us, s.low, s.high, (s.low + s.high) / 2 AS middle, (
              SELECT j.created_at < timestamptz 'epoch' + s.at_us * interval '1 microsecond' FROM jobs j
              WHERE j.id >= (s.low + s.high) / 2 ORDER BY j.id LIMIT 1) AS older
          FROM search s WHERE s.low < s.high) step
)
SELECT at_us, low AS id FROM search WHERE low >= high;

-- name: part_jobs
-- use: operator
-- Return the figures of each part by provider and model, of the jobs of ranges of ids that were ordered in a time; as
-- `fold_jobs` counts them. The ranges of parts beside each other overlap: refunds are matched by part.
WITH part AS MATERIALIZED (
    SELECT number, low, high, timestamptz 'epoch' + since_us * interval '1 microsecond' AS since,
        timestamptz 'epoch' + until_us * interval '1 microsecond' AS until
    FROM unnest(:number::bigint[], :low::bigint[], :high::bigint[], :since_us::bigint[], :until_us::bigint[])
        AS p (number, low, high, since_us, until_us)
), refund AS MATERIALIZED (
    SELECT p.number, r.* FROM part p CROSS JOIN LATERAL (
        SELECT CASE WHEN key ~ '^refund:[0-9]{1,18}$' THEN substr(key, 8)::bigint END AS job_id, amount FROM ledger
        WHERE kind = 'refund' AND CASE WHEN key ~ '^refund:[0-9]{1,18}$' THEN substr(key, 8)::bigint END >= p.low
            AND CASE WHEN key ~ '^refund:[0-9]{1,18}$' THEN substr(key, 8)::bigint END < p.high OFFSET 0) r
), job AS MATERIALIZED (
    SELECT p.number, j.id, j.provider, j.model, j.state,
        j.state = 'succeeded' AND j.delivery = 'delivered' AS delivered, j.hold_state, j.price,
        coalesce((SELECT r.amount FROM refund r WHERE r.number = p.number AND r.job_id = j.id), 0) AS refund,
        coalesce(j.cost, 0) AS cost, j.cost IS NULL AS cost_unknown, j.attempt
    FROM part p CROSS JOIN LATERAL (
        SELECT * FROM jobs WHERE id >= p.low AND id < p.high AND created_at >= p.since AND created_at < p.until OFFSET 0) j
)
SELECT number, provider, model, sum(orders)::bigint AS orders, sum(delivered)::bigint AS delivered,
    sum(failed)::bigint AS failed, sum(cancelled)::bigint AS cancelled, sum(refunded)::bigint AS refunded,
    sum(revenue)::bigint AS revenue, sum(cost)::bigint AS cost, sum(loss)::bigint AS loss,
    max(last_failed_job) AS last_failed_job
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
    FROM job j CROSS JOIN LATERAL (SELECT * FROM attempts WHERE job_id = j.id OFFSET 0) a
    WHERE (j.attempt > 1 OR j.cost_unknown) AND a.cost > 0 AND (a.number <> j.attempt OR j.cost_unknown)
) parts
GROUP BY number, provider, model ORDER BY number, provider, model;

-- name: part_orders
-- use: operator
-- Return the accounts that ordered in each part.
SELECT DISTINCT p.number, j.account_id
FROM unnest(:number::bigint[], :low::bigint[], :high::bigint[], :since_us::bigint[], :until_us::bigint[])
    AS p (number, low, high, since_us, until_us)
CROSS JOIN LATERAL (
    SELECT account_id FROM jobs
    WHERE id >= p.low AND id < p.high AND created_at >= timestamptz 'epoch' + p.since_us * interval '1 microsecond'
        AND created_at < timestamptz 'epoch' + p.until_us * interval '1 microsecond' OFFSET 0) j;

-- name: sets_of_hours
-- use: operator
-- Return the pieces of the sets of accounts of several hours.
SELECT s.start AS hour, s.piece, s.members
FROM unnest(:hours::bigint[]) AS h (hour) CROSS JOIN LATERAL (
    SELECT * FROM account_sets WHERE kind = :kind AND span = 'hour' AND start = h.hour OFFSET 0) s;

-- name: part_accounts
-- use: operator
-- Return those of the accounts that started in the part beside which they stand.
SELECT p.number, a.id
FROM unnest(:number::bigint[], :account_id::bigint[], :since_us::bigint[], :until_us::bigint[])
    AS p (number, account_id, since_us, until_us)
JOIN accounts a ON a.id = p.account_id
WHERE a.created_at >= timestamptz 'epoch' + p.since_us * interval '1 microsecond'
    AND a.created_at < timestamptz 'epoch' + p.until_us * interval '1 microsecond';

-- name: count_part_accounts
-- use: operator
-- Count the accounts of ranges of ids that started in each part.
SELECT p.number, count(*) AS accounts
FROM unnest(:number::bigint[], :low::bigint[], :high::bigint[], :since_us::bigint[], :until_us::bigint[])
    AS p (number, low, high, since_us, until_us)
CROSS JOIN LATERAL (
    SELECT FROM accounts
    WHERE id >= p.low AND id <= p.high AND created_at >= timestamptz 'epoch' + p.since_us * interval '1 microsecond'
        AND created_at < timestamptz 'epoch' + p.until_us * interval '1 microsecond' OFFSET 0) a
GROUP BY p.number;

-- name: part_first_orders
-- use: operator
-- Return those of the accounts whose first order was made in the part beside which they stand. An array as in
-- `account_jobs`.
SELECT p.number, p.account_id AS id
FROM unnest(:number::bigint[], :account_id::bigint[], :since_us::bigint[], :until_us::bigint[])
    AS p (number, account_id, since_us, until_us)
CROSS JOIN LATERAL (
    SELECT created_at FROM jobs WHERE account_id = ANY (ARRAY[p.account_id]) ORDER BY account_id, id LIMIT 1) j
WHERE j.created_at >= timestamptz 'epoch' + p.since_us * interval '1 microsecond'
    AND j.created_at < timestamptz 'epoch' + p.until_us * interval '1 microsecond';

-- name: part_topups
-- use: operator
-- Return the payments of each part, as `fold_topups` counts them.
SELECT p.number, count(*) FILTER (WHERE s.state = 'paid') AS topups,
    coalesce(sum(s.stars) FILTER (WHERE s.state = 'paid'), 0)::bigint AS paid_amount,
    coalesce(sum(s.amount) FILTER (WHERE s.state = 'paid'), 0)::bigint AS credits,
    count(*) FILTER (WHERE s.state = 'paid' AND EXISTS (
        SELECT FROM payments e WHERE e.account_id = s.account_id AND e.at < s.at)) AS repeated,
    count(*) FILTER (WHERE s.state <> 'paid') AS refunds,
    coalesce(sum(s.stars) FILTER (WHERE s.state <> 'paid'), 0)::bigint AS refunded_amount
FROM unnest(:number::bigint[], :since_us::bigint[], :until_us::bigint[]) AS p (number, since_us, until_us)
CROSS JOIN LATERAL (
    SELECT * FROM payments
    WHERE at >= timestamptz 'epoch' + p.since_us * interval '1 microsecond'
        AND at < timestamptz 'epoch' + p.until_us * interval '1 microsecond' OFFSET 0) s
GROUP BY p.number;
