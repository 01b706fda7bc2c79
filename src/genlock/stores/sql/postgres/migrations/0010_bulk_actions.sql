-- What operators have done to many jobs at once.

CREATE TABLE bulk_actions (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind           text NOT NULL,
    -- filters or job ids, JSON
    selection      text NOT NULL,
    author         text NOT NULL,
    request_key    text NOT NULL,
    state          text NOT NULL,
    -- the jobs below this id are still to be looked at
    below          bigint NOT NULL,
    -- the jobs of the step that has begun, with their fencing tokens, JSON
    step           text NOT NULL DEFAULT '[]',
    version        bigint NOT NULL DEFAULT 0,
    expected       bigint NOT NULL,
    expected_kind  text NOT NULL,
    done           bigint NOT NULL DEFAULT 0,
    failed         bigint NOT NULL DEFAULT 0,
    created_at     timestamptz NOT NULL,
    -- NULL while a worker must look at it
    ended_at       timestamptz,
    CONSTRAINT bulk_actions_request_once UNIQUE (request_key),
    CONSTRAINT bulk_actions_kind_known CHECK (kind IN ('retry', 'resend', 'cancel', 'refund')),
    CONSTRAINT bulk_actions_state_known CHECK (state IN ('running', 'stopped', 'done')),
    CONSTRAINT bulk_actions_ended_between_steps CHECK (ended_at IS NULL OR step = '[]')
);

CREATE INDEX bulk_actions_open ON bulk_actions (id) WHERE ended_at IS NULL;

-- Jobs that a bulk action left out, and why.
CREATE TABLE bulk_failures (
    bulk_id  bigint NOT NULL,
    job_id   bigint NOT NULL,
    reason   text NOT NULL,
    detail   text NOT NULL,
    PRIMARY KEY (bulk_id, job_id)
);
