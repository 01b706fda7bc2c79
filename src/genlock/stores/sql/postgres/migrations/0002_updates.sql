-- Updates of the chat, the lanes they are worked off in, and small facts that all instances share.

CREATE TABLE updates (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bot          text NOT NULL,
    update_id    bigint NOT NULL,
    lane         text NOT NULL,
    kind         text NOT NULL,
    urgent       boolean NOT NULL,
    press        text,
    body         text NOT NULL,
    state        text NOT NULL,
    note         text NOT NULL DEFAULT '',
    received_at  timestamptz NOT NULL,
    CONSTRAINT updates_once UNIQUE (bot, update_id),
    CONSTRAINT updates_state_known CHECK (state IN ('new', 'done', 'repeated', 'aside'))
);

CREATE INDEX updates_waiting ON updates (bot, lane, id) WHERE state = 'new';
CREATE INDEX updates_aside ON updates (id) WHERE state = 'aside';
CREATE INDEX updates_presses ON updates (bot, lane, press) WHERE press IS NOT NULL;

-- One row per person: whoever holds its lease works off that person's updates. `waiting` counts the new ones.
CREATE TABLE lanes (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bot          text NOT NULL,
    name         text NOT NULL,
    urgent       boolean NOT NULL,
    waiting      bigint NOT NULL,
    attempts     integer NOT NULL DEFAULT 0,
    due_at       timestamptz,
    lease_owner  text,
    lease_token  bigint NOT NULL DEFAULT 0,
    CONSTRAINT lanes_once UNIQUE (bot, name),
    CONSTRAINT lanes_due_while_waiting CHECK ((due_at IS NOT NULL) = (waiting > 0)),
    CONSTRAINT lanes_lease_has_an_end CHECK (lease_owner IS NULL OR due_at IS NOT NULL)
) WITH (fillfactor = 80);

CREATE INDEX lanes_due ON lanes (urgent, due_at) WHERE due_at IS NOT NULL;

CREATE TABLE facts (
    key    text PRIMARY KEY,
    value  text NOT NULL,
    at     timestamptz NOT NULL
);
