-- Free runs from promo codes that an account has used, counted per account: reading them all takes longer with every run.

ALTER TABLE accounts ADD COLUMN gift_runs_used INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER free_runs_gift_taken AFTER INSERT ON free_runs FOR EACH ROW
WHEN NEW.source = 'gift'
BEGIN
    UPDATE accounts SET gift_runs_used = gift_runs_used + 1 WHERE id = NEW.account_id AND NOT EXISTS (
        SELECT 1 FROM jobs WHERE account_id = NEW.account_id AND request_key = NEW.request_key
            AND (state IN ('failed', 'expired') OR state = 'cancelled' AND submitted_at IS NULL));
END;

-- A run whose job failed does not count, and one that was cancelled counts only after its submit.
CREATE TRIGGER jobs_gift_run_returned AFTER UPDATE OF state ON jobs FOR EACH ROW
WHEN (OLD.state IN ('failed', 'expired') OR OLD.state = 'cancelled' AND OLD.submitted_at IS NULL)
    <> (NEW.state IN ('failed', 'expired') OR NEW.state = 'cancelled' AND NEW.submitted_at IS NULL)
BEGIN
    UPDATE accounts SET gift_runs_used = gift_runs_used
        + CASE WHEN NEW.state IN ('failed', 'expired') OR NEW.state = 'cancelled' AND NEW.submitted_at IS NULL THEN -1 ELSE 1 END
    WHERE id = NEW.account_id AND EXISTS (
        SELECT 1 FROM free_runs WHERE account_id = NEW.account_id AND request_key = NEW.request_key AND source = 'gift');
END;

UPDATE accounts SET gift_runs_used = g.used
FROM (
    SELECT f.account_id, count(*) AS used FROM free_runs f
    LEFT JOIN jobs j ON j.account_id = f.account_id AND j.request_key = f.request_key
    WHERE f.source = 'gift' AND (coalesce(j.state, '') NOT IN ('failed', 'cancelled', 'expired')
        OR j.state = 'cancelled' AND j.submitted_at IS NOT NULL)
    GROUP BY f.account_id
) g
WHERE accounts.id = g.account_id;

-- The orders of each block by provider and quarter of an hour (counted from 1970, UTC): days begin at quarters of an hour in
-- some time zones.
CREATE TABLE quarter_figures (
    quarter    INTEGER NOT NULL,
    bot        TEXT NOT NULL,
    provider   TEXT NOT NULL,
    block      INTEGER NOT NULL,
    orders     INTEGER NOT NULL,
    delivered  INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    cancelled  INTEGER NOT NULL,
    refunded   INTEGER NOT NULL,
    revenue    INTEGER NOT NULL,
    cost       INTEGER NOT NULL,
    loss       INTEGER NOT NULL,
    PRIMARY KEY (quarter, bot, provider, block)
) STRICT;

CREATE INDEX quarter_figures_block ON quarter_figures (block);

-- Every block is counted once more for it. An instance of an older version does not write the column.
ALTER TABLE figure_blocks ADD COLUMN quarters_at INTEGER;
CREATE INDEX figure_blocks_quarters ON figure_blocks (block) WHERE quarters_at IS NOT changed_at;

-- A long period is read from these indexes alone, without the rows: they are wide, or lie between those of the models.
CREATE INDEX job_figures_totals ON job_figures (
    start, bot, provider, orders, delivered, failed, cancelled, refunded, revenue, cost, loss, last_failed_job)
    WHERE span = 'hour_total';
CREATE INDEX account_sets_sizes ON account_sets (kind, span, start, bot, size);
