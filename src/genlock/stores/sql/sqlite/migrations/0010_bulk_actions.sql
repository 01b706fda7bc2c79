-- What operators have done to many jobs at once.

CREATE TABLE bulk_actions (
    id             INTEGER PRIMARY KEY,
    kind           TEXT NOT NULL,
    -- filters or job ids, JSON
    selection      TEXT NOT NULL,
    author         TEXT NOT NULL,
    request_key    TEXT NOT NULL,
    state          TEXT NOT NULL,
    -- the jobs below this id are still to be looked at
    below          INTEGER NOT NULL,
    -- the jobs of the step that has begun, with their fencing tokens, JSON
    step           TEXT NOT NULL DEFAULT '[]',
    version        INTEGER NOT NULL DEFAULT 0,
    expected       INTEGER NOT NULL,
    expected_kind  TEXT NOT NULL,
    done           INTEGER NOT NULL DEFAULT 0,
    failed         INTEGER NOT NULL DEFAULT 0,
    created_at     INTEGER NOT NULL,
    -- NULL while a worker must look at it
    ended_at       INTEGER,
    CONSTRAINT bulk_actions_request_once UNIQUE (request_key),
    CONSTRAINT bulk_actions_kind_known CHECK (kind IN ('retry', 'resend', 'cancel', 'refund')),
    CONSTRAINT bulk_actions_state_known CHECK (state IN ('running', 'stopped', 'done')),
    CONSTRAINT bulk_actions_ended_between_steps CHECK (ended_at IS NULL OR step = '[]')
) STRICT;

CREATE INDEX bulk_actions_open ON bulk_actions (id) WHERE ended_at IS NULL;

-- Jobs that a bulk action left out, and why.
CREATE TABLE bulk_failures (
    bulk_id  INTEGER NOT NULL,
    job_id   INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    detail   TEXT NOT NULL,
    PRIMARY KEY (bulk_id, job_id)
) STRICT;
