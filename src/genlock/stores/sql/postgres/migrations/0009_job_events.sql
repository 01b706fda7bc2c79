-- concurrently
-- What happened to jobs, for the time line that operators see, and what waits for an operator.

-- One row for each job and each time an instance writes its events, about once a second.
CREATE TABLE IF NOT EXISTS job_events (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    correlation_id  text NOT NULL,
    instance        text NOT NULL,
    -- counts the rows of the instance: a row that was written twice has the same number
    number          bigint NOT NULL,
    -- [[milliseconds before `at`, event, fields], …], JSON
    events          text NOT NULL,
    at              timestamptz NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);
CREATE INDEX IF NOT EXISTS job_events_correlation_id ON job_events (correlation_id);

-- What the provider did and should not have done, until an operator has handled it.
CREATE TABLE IF NOT EXISTS job_anomalies (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id      bigint NOT NULL,
    kind        text NOT NULL,
    at          timestamptz NOT NULL,
    handled_at  timestamptz,
    CONSTRAINT job_anomalies_once UNIQUE (job_id, kind),
    CONSTRAINT job_anomalies_kind_known CHECK (kind IN ('contradiction', 'wrong_task', 'loss'))
);
CREATE INDEX IF NOT EXISTS job_anomalies_open ON job_anomalies (kind, id) WHERE handled_at IS NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_attention_code ON jobs (attention_code, id)
    WHERE attention_reason IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS inbox_kept ON inbox (state, id) WHERE state IN ('expired', 'unreadable');
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_subject ON audit (subject, id);
