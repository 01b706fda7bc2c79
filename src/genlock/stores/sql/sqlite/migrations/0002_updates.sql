-- Updates of the chat, the lanes they are worked off in, and small facts.

CREATE TABLE updates (
    id           INTEGER PRIMARY KEY,
    bot          TEXT NOT NULL,
    update_id    INTEGER NOT NULL,
    lane         TEXT NOT NULL,
    kind         TEXT NOT NULL,
    urgent       INTEGER NOT NULL,
    press        TEXT,
    body         TEXT NOT NULL,
    state        TEXT NOT NULL,
    note         TEXT NOT NULL DEFAULT '',
    received_at  INTEGER NOT NULL,
    CONSTRAINT updates_once UNIQUE (bot, update_id),
    CONSTRAINT updates_state_known CHECK (state IN ('new', 'done', 'repeated', 'aside'))
) STRICT;

CREATE INDEX updates_waiting ON updates (bot, lane, id) WHERE state = 'new';
CREATE INDEX updates_aside ON updates (id) WHERE state = 'aside';
CREATE INDEX updates_presses ON updates (bot, lane, press) WHERE press IS NOT NULL;

-- One row per person: whoever holds its lease works off that person's updates. `waiting` counts the new ones.
CREATE TABLE lanes (
    id           INTEGER PRIMARY KEY,
    bot          TEXT NOT NULL,
    name         TEXT NOT NULL,
    urgent       INTEGER NOT NULL,
    waiting      INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    due_at       INTEGER,
    lease_owner  TEXT,
    lease_token  INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT lanes_once UNIQUE (bot, name),
    CONSTRAINT lanes_due_while_waiting CHECK ((due_at IS NOT NULL) = (waiting > 0)),
    CONSTRAINT lanes_lease_has_an_end CHECK (lease_owner IS NULL OR due_at IS NOT NULL)
) STRICT;

CREATE INDEX lanes_due ON lanes (urgent, due_at) WHERE due_at IS NOT NULL;

CREATE TABLE facts (
    key    TEXT PRIMARY KEY,
    value  TEXT NOT NULL,
    at     INTEGER NOT NULL
) STRICT;
