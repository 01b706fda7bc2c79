-- The chat product: people's choices, drafts of orders, payments, gifts, operators' deeds.

CREATE TABLE profiles (
    person_id    bigint PRIMARY KEY,
    language     text NOT NULL,
    name         text NOT NULL,
    username     text NOT NULL,
    referred_by  bigint,
    rewarded_at  timestamptz,
    last_model   text NOT NULL DEFAULT '',
    -- grows with every free run, so that two at once are told apart
    free_turns   bigint NOT NULL DEFAULT 0,
    banned_at    timestamptz,
    ban_reason   text NOT NULL DEFAULT '',
    blocked_at   timestamptz,
    created_at   timestamptz NOT NULL,
    seen_at      timestamptz NOT NULL,
    -- Whoever invites was here before: nobody invites themselves, and no circle can close.
    CONSTRAINT profiles_invited_by_an_older_one CHECK (referred_by < person_id)
);

CREATE INDEX profiles_username ON profiles (username);
CREATE INDEX profiles_unrewarded ON profiles (person_id) WHERE referred_by IS NOT NULL AND rewarded_at IS NULL;

CREATE TABLE drafts (
    person_id   bigint NOT NULL,
    chat        bigint NOT NULL,
    version     bigint NOT NULL,
    message     bigint,
    body        text NOT NULL,
    updated_at  timestamptz NOT NULL,
    PRIMARY KEY (person_id, chat)
);

CREATE INDEX drafts_message ON drafts (chat, message) WHERE message IS NOT NULL;

CREATE TABLE uploads (
    address    text PRIMARY KEY,
    person_id  bigint NOT NULL,
    file       text NOT NULL,
    kind       text NOT NULL,
    seconds    double precision,
    at         timestamptz NOT NULL
);

CREATE INDEX uploads_person ON uploads (person_id, at);

CREATE TABLE payments (
    charge     text PRIMARY KEY,
    person_id  bigint NOT NULL,
    stars      bigint NOT NULL,
    amount     bigint NOT NULL,
    state      text NOT NULL,
    refunds    integer NOT NULL DEFAULT 0,
    at         timestamptz NOT NULL,
    CONSTRAINT payments_state_known CHECK (state IN ('paid', 'refunding', 'refunded')),
    CONSTRAINT payments_of_something CHECK (stars > 0 AND amount > 0)
);

CREATE INDEX payments_person ON payments (person_id, at);
CREATE INDEX payments_at ON payments (at);

CREATE TABLE free_runs (
    person_id    bigint NOT NULL,
    request_key  text NOT NULL,
    source       text NOT NULL,
    at           timestamptz NOT NULL,
    PRIMARY KEY (person_id, request_key),
    CONSTRAINT free_runs_source_known CHECK (source IN ('day', 'gift'))
);

CREATE TABLE promos (
    code        text PRIMARY KEY,
    amount      bigint NOT NULL,
    runs        integer NOT NULL,
    used        integer NOT NULL DEFAULT 0,
    uses_max    integer,
    per_person  integer NOT NULL,
    until_at    timestamptz,
    closed_at   timestamptz,
    author      text NOT NULL,
    created_at  timestamptz NOT NULL,
    CONSTRAINT promos_give_one_thing CHECK ((amount > 0) <> (runs > 0) AND amount >= 0 AND runs >= 0),
    CONSTRAINT promos_not_overused CHECK (used <= uses_max)
);

CREATE TABLE promo_uses (
    code         text NOT NULL,
    person_id    bigint NOT NULL,
    number       integer NOT NULL,
    request_key  text NOT NULL,
    at           timestamptz NOT NULL,
    PRIMARY KEY (code, person_id, number),
    CONSTRAINT promo_uses_request_once UNIQUE (person_id, request_key)
);

CREATE TABLE broadcasts (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    text        text NOT NULL,
    author      text NOT NULL,
    request_key text NOT NULL,
    state       text NOT NULL,
    reached     bigint NOT NULL DEFAULT 0,
    sent        bigint NOT NULL DEFAULT 0,
    failed      bigint NOT NULL DEFAULT 0,
    total       bigint NOT NULL,
    created_at  timestamptz NOT NULL,
    CONSTRAINT broadcasts_request_once UNIQUE (request_key),
    CONSTRAINT broadcasts_state_known CHECK (state IN ('running', 'stopped', 'done'))
);

CREATE INDEX broadcasts_running ON broadcasts (id) WHERE state = 'running';

CREATE TABLE audit (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL,
    key      text NOT NULL,
    actor    text NOT NULL,
    action   text NOT NULL,
    subject  text NOT NULL,
    detail   text NOT NULL,
    CONSTRAINT audit_once UNIQUE (key)
);
