-- The totals of an hour are kept for each provider: their credits have different values in US dollars. The totals of all
-- providers together become 0.
UPDATE job_figures
SET orders = 0, delivered = 0, failed = 0, cancelled = 0, refunded = 0, revenue = 0, cost = 0, loss = 0, last_failed_job = 0
WHERE span = 'hour_total' AND provider = '';
INSERT INTO job_figures
SELECT 'hour_total', start, bot, provider, '', sum(orders), sum(delivered), sum(failed), sum(cancelled),
    sum(refunded), sum(revenue), sum(cost), sum(loss), max(last_failed_job)
FROM job_figures WHERE span = 'hour' AND provider <> '' GROUP BY start, bot, provider;
