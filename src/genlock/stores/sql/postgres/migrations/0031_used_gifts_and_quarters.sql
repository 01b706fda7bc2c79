-- All locks at once, also those of the next migration: a statement that waits for one of these tables must not hold
-- another.
LOCK TABLE jobs, accounts, free_runs, figure_blocks, broadcasts IN ACCESS EXCLUSIVE MODE;

-- Free runs from promo codes that an account has used, counted per account: reading them all takes longer with every run.

ALTER TABLE accounts ADD COLUMN gift_runs_used bigint NOT NULL DEFAULT 0;

-- Triggers, so that instances of an older version count too while they still run.
CREATE OR REPLACE FUNCTION count_gift_run() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    UPDATE accounts SET gift_runs_used = gift_runs_used + 1 WHERE id = NEW.account_id AND NOT EXISTS (
        SELECT FROM jobs WHERE account_id = NEW.account_id AND request_key = NEW.request_key
            AND (state IN ('failed', 'expired') OR state = 'cancelled' AND submitted_at IS NULL));
    RETURN NULL;
END $$;

CREATE TRIGGER free_runs_gift_taken AFTER INSERT ON free_runs FOR EACH ROW
WHEN (NEW.source = 'gift') EXECUTE FUNCTION count_gift_run();

CREATE OR REPLACE FUNCTION return_gift_run() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    UPDATE accounts SET gift_runs_used = gift_runs_used
        + CASE WHEN NEW.state IN ('failed', 'expired') OR NEW.state = 'cancelled' AND NEW.submitted_at IS NULL THEN -1 ELSE 1 END
    WHERE id = NEW.account_id AND EXISTS (
        SELECT FROM free_runs WHERE account_id = NEW.account_id AND request_key = NEW.request_key AND source = 'gift');
    RETURN NULL;
END $$;

-- A run whose job failed does not count, and one that was cancelled counts only after its submit.
CREATE TRIGGER jobs_gift_run_returned AFTER UPDATE OF state ON jobs FOR EACH ROW
WHEN ((OLD.state IN ('failed', 'expired') OR OLD.state = 'cancelled' AND OLD.submitted_at IS NULL)
    <> (NEW.state IN ('failed', 'expired') OR NEW.state = 'cancelled' AND NEW.submitted_at IS NULL))
EXECUTE FUNCTION return_gift_run();

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
    quarter    bigint NOT NULL,
    bot        text NOT NULL,
    provider   text NOT NULL,
    block      bigint NOT NULL,
    orders     bigint NOT NULL,
    delivered  bigint NOT NULL,
    failed     bigint NOT NULL,
    cancelled  bigint NOT NULL,
    refunded   bigint NOT NULL,
    revenue    bigint NOT NULL,
    cost       bigint NOT NULL,
    loss       bigint NOT NULL,
    PRIMARY KEY (quarter, bot, provider, block)
) WITH (fillfactor = 80);

CREATE INDEX quarter_figures_block ON quarter_figures (block);

-- Every block is counted once more for it. An instance of an older version does not write the column.
ALTER TABLE figure_blocks ADD COLUMN quarters_at timestamptz;
CREATE INDEX figure_blocks_quarters ON figure_blocks (block) WHERE quarters_at IS DISTINCT FROM changed_at;

-- A long period is read from these indexes alone, without the rows: they are wide, or lie between those of the models.
CREATE INDEX job_figures_totals ON job_figures (start, bot, provider)
    INCLUDE (orders, delivered, failed, cancelled, refunded, revenue, cost, loss, last_failed_job) WHERE span = 'hour_total';
CREATE INDEX account_sets_sizes ON account_sets (kind, span, start, bot) INCLUDE (size);
