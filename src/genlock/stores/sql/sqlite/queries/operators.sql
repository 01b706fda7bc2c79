-- name: operators
-- use: operator
-- Return every operator whose role was set in the dashboard.
SELECT id, role, name FROM operators ORDER BY added_at, id;

-- name: operator
-- use: operator
-- Return one operator.
SELECT id, role, name FROM operators WHERE id = :id;

-- name: set_operator
-- use: operator
-- Add an operator or change the role. Returns the row as it was before.
SELECT id, role, name FROM operators WHERE id = :id;
INSERT INTO operators (id, role, name, added_by, added_at) VALUES (:id, :role, :name, :added_by, :now)
ON CONFLICT (id) DO UPDATE SET role = excluded.role, name = excluded.name;

-- name: remove_operator
-- use: operator
-- Remove an operator with the operator's sessions and links. Returns the row as it was before.
DELETE FROM dashboard_sessions WHERE operator_id = :id;
DELETE FROM login_links WHERE operator_id = :id;
DELETE FROM operators WHERE id = :id RETURNING id, role, name;

-- name: add_login_link
-- use: operator
-- Store a one-time link, and delete links and sessions that expired long ago.
DELETE FROM login_links WHERE expires_at < :now - 86400000000;
DELETE FROM dashboard_sessions WHERE expires_at < :now - 2592000000000;
INSERT INTO login_links (secret_hash, operator_id, method, expires_at)
VALUES (:secret_hash, :operator_id, :method, :now + CAST(:seconds * 1000000 AS INTEGER));

-- name: login_link
-- use: operator
-- Return the operator of a link that can still be used.
SELECT operator_id FROM login_links WHERE secret_hash = :secret_hash AND used_at IS NULL AND expires_at > :now;

-- name: use_login_link
-- use: operator
-- Use a link up and open a session for its operator. No row: the link was used, has expired or never existed.
UPDATE login_links SET used_at = :now WHERE secret_hash = :link_hash AND used_at IS NULL AND expires_at > :now;
INSERT INTO dashboard_sessions (secret_hash, operator_id, method, remote, agent, created_at, seen_at, expires_at)
SELECT :session_hash, operator_id, method, :remote, :agent, :now, :now, :now + CAST(:seconds * 1000000 AS INTEGER)
FROM login_links WHERE secret_hash = :link_hash AND changes() = 1
RETURNING *;

-- name: begin_session
-- use: operator
-- Open a session, and delete sessions that expired long ago.
DELETE FROM dashboard_sessions WHERE expires_at < :now - 2592000000000;
INSERT INTO dashboard_sessions (secret_hash, operator_id, method, remote, agent, created_at, seen_at, expires_at)
VALUES (:session_hash, :operator_id, :method, :remote, :agent, :now, :now,
        :now + CAST(:seconds * 1000000 AS INTEGER))
RETURNING *;

-- name: session_by_secret
-- use: operator
-- Return an open session.
SELECT *, :now AS read_at FROM dashboard_sessions WHERE secret_hash = :session_hash AND expires_at > :now;

-- name: touch_session
-- use: operator
-- Record that a session was used.
UPDATE dashboard_sessions SET seen_at = :now WHERE id = :id;

-- name: sessions
-- use: operator
-- Return the open sessions, the one that was used last first.
SELECT * FROM dashboard_sessions WHERE expires_at > :now ORDER BY seen_at DESC, id DESC LIMIT :limit;

-- name: end_session
-- use: operator
-- End an open session.
UPDATE dashboard_sessions SET expires_at = :now WHERE id = :id AND expires_at > :now RETURNING id;
