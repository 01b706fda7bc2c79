-- What happened to jobs, for the time line that operators see, and what waits for an operator.

-- One row for each job and each time an instance writes its events, about once a second.
CREATE TABLE job_events (
    id              INTEGER PRIMARY KEY,
    correlation_id  TEXT NOT NULL,
    instance        TEXT NOT NULL,
    -- counts the rows of the instance: a row that was written twice has the same number
    number          INTEGER NOT NULL,
    -- [[milliseconds before `at`, event, fields], …], JSON
    events          TEXT NOT NULL,
    at              INTEGER NOT NULL
) STRICT;

CREATE INDEX job_events_correlation_id ON job_events (correlation_id);

-- What the provider did and should not have done, until an operator has handled it.
CREATE TABLE job_anomalies (
    id          INTEGER PRIMARY KEY,
    job_id      INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    at          INTEGER NOT NULL,
    handled_at  INTEGER,
    CONSTRAINT job_anomalies_once UNIQUE (job_id, kind),
    CONSTRAINT job_anomalies_kind_known CHECK (kind IN ('contradiction', 'wrong_task', 'loss'))
) STRICT;

CREATE INDEX job_anomalies_open ON job_anomalies (kind, id) WHERE handled_at IS NULL;

CREATE INDEX jobs_attention_code ON jobs (attention_code, id) WHERE attention_reason IS NOT NULL;
CREATE INDEX inbox_kept ON inbox (state, id) WHERE state IN ('expired', 'unreadable');
CREATE INDEX audit_subject ON audit (subject, id);
