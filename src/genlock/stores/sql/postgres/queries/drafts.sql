-- name: draft
-- Return the draft of an account in a chat.
SELECT version, message, body, uploads FROM drafts WHERE account_id = :account_id AND chat = :chat;

-- name: save_draft
-- Write a draft if its version has not changed meanwhile; return the new version.
INSERT INTO drafts AS d (account_id, chat, version, message, body, uploads, updated_at)
VALUES (:account_id, :chat, :version::bigint + 1, :message, :body, :uploads::text[], :now)
ON CONFLICT (account_id, chat) DO UPDATE
SET version = d.version + 1, message = excluded.message, body = excluded.body, uploads = excluded.uploads,
    updated_at = excluded.updated_at
WHERE d.version = :version
RETURNING d.version;

-- name: set_draft_message
-- Set which message shows a version of the draft, which stays; return it, or nothing if the draft has changed meanwhile.
UPDATE drafts SET message = :message WHERE account_id = :account_id AND chat = :chat AND version = :version
RETURNING version;

-- name: draft_owner
-- Return the account whose draft a message shows.
SELECT account_id FROM drafts WHERE chat = :chat AND message = :message LIMIT 1;

-- name: add_upload
-- Record a file that was uploaded to the provider.
INSERT INTO uploads (address, account_id, file, kind, seconds, at, ordered)
VALUES (:address, :account_id, :file, :kind, :seconds, :now, false)
ON CONFLICT (address) DO UPDATE SET at = excluded.at, file = excluded.file;

-- name: mark_upload_used
-- Record that an order uses a file, so that it is not pruned. coalesce keeps the planner from reading all files that no
-- order uses.
UPDATE uploads SET ordered = true WHERE address = :address AND NOT coalesce(ordered, false);

-- name: upload
-- Return the upload at a URL.
SELECT *, extract(epoch FROM :now - at)::float8 AS age_seconds FROM uploads WHERE address = :address;

-- name: input_file
-- Return the upload that a URL in an order's input stands for: its own address, or that of a provider's copy.
WITH found AS (
    SELECT address, 0 AS place FROM uploads WHERE address = :url
    UNION ALL
    SELECT address, 1 FROM upload_copies WHERE url = :url
)
SELECT u.*, extract(epoch FROM :now - u.at)::float8 AS age_seconds FROM found f JOIN uploads u ON u.address = f.address ORDER BY f.place LIMIT 1;

-- name: upload_copies
-- Return where providers keep copies of an upload, those that last longest first.
SELECT address, provider, url, extract(epoch FROM expires_at - :now)::float8 AS left_seconds FROM upload_copies
WHERE address = :address ORDER BY expires_at DESC, provider;

-- name: save_upload_copy
-- Record where a provider keeps its copy of an upload, unless the copy that is recorded lasts as long as needed. Return the
-- URL that is recorded then. Without `needed`, the older copy is always replaced.
INSERT INTO upload_copies (address, provider, url, expires_at)
VALUES (:address, :provider, :url, :now + make_interval(secs => :seconds::float8))
ON CONFLICT (address, provider) DO UPDATE
SET url = CASE WHEN upload_copies.expires_at >= :now + make_interval(secs => :needed::float8)
        THEN upload_copies.url ELSE excluded.url END,
    expires_at = CASE WHEN upload_copies.expires_at >= :now + make_interval(secs => :needed::float8)
        THEN upload_copies.expires_at ELSE excluded.expires_at END
RETURNING url;
