-- Attempts of jobs at several providers, and circuit breakers.

-- The number of the current attempt; 0 before the first.
ALTER TABLE jobs ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
-- The attempt whose secret the callback's URL carried; NULL: the job's attempt of that time.
ALTER TABLE inbox ADD COLUMN attempt INTEGER;

-- Each try to have a job made by one provider. The row is written in the commit that begins the submit, before the call.
CREATE TABLE attempts (
    job_id       INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    provider     TEXT NOT NULL,
    -- the provider's own id of the model
    offer        TEXT NOT NULL,
    secret_hash  TEXT,
    -- set when the job goes on to another attempt; those of the current attempt are in the job's row
    task_id      TEXT,
    handle       TEXT NOT NULL DEFAULT '',
    -- NULL while the provider may still work on it
    outcome      TEXT,
    error_code   TEXT NOT NULL DEFAULT '',
    -- in thousandths of the provider's credit
    cost         INTEGER,
    -- what the provider reported after the attempt had ended
    late_report  TEXT,
    started_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    PRIMARY KEY (job_id, number),
    CONSTRAINT attempts_outcome_known CHECK (
        outcome IN ('succeeded', 'failed', 'refused', 'busy', 'unknown', 'cancelled', 'expired')),
    CONSTRAINT attempts_late_report_known CHECK (late_report IN ('succeeded', 'failed')),
    CONSTRAINT attempts_ended_means_outcome CHECK ((ended_at IS NULL) = (outcome IS NULL))
) STRICT;

CREATE INDEX attempts_task ON attempts (provider, task_id) WHERE task_id IS NOT NULL;

-- Circuit breakers: which providers, or models of a provider, are left alone after failing again and again.
CREATE TABLE breakers (
    provider     TEXT NOT NULL,
    -- '' for the whole provider
    model        TEXT NOT NULL,
    -- consecutive failures
    failures     INTEGER NOT NULL,
    -- how often it has opened since it last let an order succeed
    opened       INTEGER NOT NULL DEFAULT 0,
    -- no order before this time, then one at a time; NULL: closed
    open_until   INTEGER,
    -- until when the order that tries the provider again has time
    probe_until  INTEGER,
    reason       TEXT NOT NULL,
    changed_at   INTEGER NOT NULL,
    PRIMARY KEY (provider, model)
) STRICT;

-- Only open jobs get a row; a job that has ended without one had one attempt, which its own row describes.
INSERT INTO attempts (job_id, number, provider, offer, secret_hash, started_at)
SELECT id, 1, provider, model, secret_hash, coalesce(submitted_at, created_at) FROM jobs
WHERE ended_at IS NULL AND secret_hash IS NOT NULL;
UPDATE jobs SET attempt = 1 WHERE ended_at IS NULL AND secret_hash IS NOT NULL;
