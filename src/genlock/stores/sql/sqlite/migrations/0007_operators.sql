-- The dashboard: operators, one-time links and sessions. Of every secret only the hash is stored.

-- Roles that were set in the dashboard. The ids in GENLOCK_ADMIN_IDS are owners without a row.
CREATE TABLE operators (
    id        TEXT PRIMARY KEY,
    role      TEXT NOT NULL,
    name      TEXT NOT NULL,
    added_by  TEXT NOT NULL,
    added_at  INTEGER NOT NULL,
    CONSTRAINT operators_role_known CHECK (role IN ('owner', 'support', 'viewer'))
) STRICT;

CREATE TABLE login_links (
    secret_hash  TEXT PRIMARY KEY,
    operator_id  TEXT NOT NULL,
    method       TEXT NOT NULL,
    expires_at   INTEGER NOT NULL,
    used_at      INTEGER
) STRICT;

CREATE INDEX login_links_expires_at ON login_links (expires_at);

CREATE TABLE dashboard_sessions (
    id           INTEGER PRIMARY KEY,
    secret_hash  TEXT NOT NULL,
    operator_id  TEXT NOT NULL,
    method       TEXT NOT NULL,
    remote       TEXT NOT NULL,
    agent        TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    seen_at      INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    CONSTRAINT dashboard_sessions_secret_once UNIQUE (secret_hash)
) STRICT;

CREATE INDEX dashboard_sessions_expires_at ON dashboard_sessions (expires_at);
