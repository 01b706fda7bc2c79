-- The chat product: people's choices, drafts of orders, payments, gifts, operators' deeds.
-- Times are microseconds since 1970, UTC.

CREATE TABLE profiles (
    person_id    INTEGER PRIMARY KEY,
    language     TEXT NOT NULL,
    name         TEXT NOT NULL,
    username     TEXT NOT NULL,
    referred_by  INTEGER,
    rewarded_at  INTEGER,
    last_model   TEXT NOT NULL DEFAULT '',
    -- grows with every free run, so that two at once are told apart
    free_turns   INTEGER NOT NULL DEFAULT 0,
    banned_at    INTEGER,
    ban_reason   TEXT NOT NULL DEFAULT '',
    blocked_at   INTEGER,
    created_at   INTEGER NOT NULL,
    seen_at      INTEGER NOT NULL,
    -- Whoever invites was here before: nobody invites themselves, and no circle can close.
    CONSTRAINT profiles_invited_by_an_older_one CHECK (referred_by < person_id)
) STRICT;

CREATE INDEX profiles_username ON profiles (username);
CREATE INDEX profiles_unrewarded ON profiles (person_id) WHERE referred_by IS NOT NULL AND rewarded_at IS NULL;

CREATE TABLE drafts (
    person_id   INTEGER NOT NULL,
    chat        INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    message     INTEGER,
    body        TEXT NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (person_id, chat)
) STRICT;

CREATE INDEX drafts_message ON drafts (chat, message) WHERE message IS NOT NULL;

CREATE TABLE uploads (
    address    TEXT PRIMARY KEY,
    person_id  INTEGER NOT NULL,
    file       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    seconds    REAL,
    at         INTEGER NOT NULL
) STRICT;

CREATE INDEX uploads_person ON uploads (person_id, at);

CREATE TABLE payments (
    charge     TEXT PRIMARY KEY,
    person_id  INTEGER NOT NULL,
    stars      INTEGER NOT NULL,
    amount     INTEGER NOT NULL,
    state      TEXT NOT NULL,
    refunds    INTEGER NOT NULL DEFAULT 0,
    at         INTEGER NOT NULL,
    CONSTRAINT payments_state_known CHECK (state IN ('paid', 'refunding', 'refunded')),
    CONSTRAINT payments_of_something CHECK (stars > 0 AND amount > 0)
) STRICT;

CREATE INDEX payments_person ON payments (person_id, at);
CREATE INDEX payments_at ON payments (at);

CREATE TABLE free_runs (
    person_id    INTEGER NOT NULL,
    request_key  TEXT NOT NULL,
    source       TEXT NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (person_id, request_key),
    CONSTRAINT free_runs_source_known CHECK (source IN ('day', 'gift'))
) STRICT;

CREATE TABLE promos (
    code        TEXT PRIMARY KEY,
    amount      INTEGER NOT NULL,
    runs        INTEGER NOT NULL,
    used        INTEGER NOT NULL DEFAULT 0,
    uses_max    INTEGER,
    per_person  INTEGER NOT NULL,
    until_at    INTEGER,
    closed_at   INTEGER,
    author      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    CONSTRAINT promos_give_one_thing CHECK ((amount > 0) <> (runs > 0) AND amount >= 0 AND runs >= 0),
    CONSTRAINT promos_not_overused CHECK (used <= uses_max)
) STRICT;

CREATE TABLE promo_uses (
    code         TEXT NOT NULL,
    person_id    INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    request_key  TEXT NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (code, person_id, number),
    CONSTRAINT promo_uses_request_once UNIQUE (person_id, request_key)
) STRICT;

CREATE TABLE broadcasts (
    id          INTEGER PRIMARY KEY,
    text        TEXT NOT NULL,
    author      TEXT NOT NULL,
    request_key TEXT NOT NULL,
    state       TEXT NOT NULL,
    reached     INTEGER NOT NULL DEFAULT 0,
    sent        INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    total       INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    CONSTRAINT broadcasts_request_once UNIQUE (request_key),
    CONSTRAINT broadcasts_state_known CHECK (state IN ('running', 'stopped', 'done'))
) STRICT;

CREATE INDEX broadcasts_running ON broadcasts (id) WHERE state = 'running';

CREATE TABLE audit (
    id       INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    key      TEXT NOT NULL,
    actor    TEXT NOT NULL,
    action   TEXT NOT NULL,
    subject  TEXT NOT NULL,
    detail   TEXT NOT NULL,
    CONSTRAINT audit_once UNIQUE (key)
) STRICT;
