-- The dashboard: operators, one-time links and sessions. Of every secret only the hash is stored.

-- Roles that were set in the dashboard. The ids in GENLOCK_ADMIN_IDS are owners without a row.
CREATE TABLE operators (
    id        text PRIMARY KEY,
    role      text NOT NULL,
    name      text NOT NULL,
    added_by  text NOT NULL,
    added_at  timestamptz NOT NULL,
    CONSTRAINT operators_role_known CHECK (role IN ('owner', 'support', 'viewer'))
);

CREATE TABLE login_links (
    secret_hash  text PRIMARY KEY,
    operator_id  text NOT NULL,
    method       text NOT NULL,
    expires_at   timestamptz NOT NULL,
    used_at      timestamptz
);

CREATE INDEX login_links_expires_at ON login_links (expires_at);

CREATE TABLE dashboard_sessions (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    secret_hash  text NOT NULL,
    operator_id  text NOT NULL,
    method       text NOT NULL,
    remote       text NOT NULL,
    agent        text NOT NULL,
    created_at   timestamptz NOT NULL,
    seen_at      timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    CONSTRAINT dashboard_sessions_secret_once UNIQUE (secret_hash)
);

CREATE INDEX dashboard_sessions_expires_at ON dashboard_sessions (expires_at);
