-- Slots of providers that may work on a limited number of tasks at once.

CREATE TABLE task_slots (
    provider  text NOT NULL,
    number    bigint NOT NULL,
    -- the last job that took the slot; the slot is free unless that job is being submitted or runs at this provider
    job_id    bigint,
    -- grows whenever the slot is taken
    token     bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, number)
);
