-- Slots of providers that may work on a limited number of tasks at once.

CREATE TABLE task_slots (
    provider  TEXT NOT NULL,
    number    INTEGER NOT NULL,
    -- the last job that took the slot; the slot is free unless that job is being submitted or runs at this provider
    job_id    INTEGER,
    -- grows whenever the slot is taken
    token     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, number)
) STRICT;
