-- name: draft
-- Return the draft of an account in a chat.
SELECT version, message, body, uploads FROM drafts WHERE account_id = :account_id AND chat = :chat;

-- name: save_draft
-- Write a draft if its version has not changed meanwhile; return the new version.
INSERT INTO drafts (account_id, chat, version, message, body, uploads, updated_at)
VALUES (:account_id, :chat, :version + 1, :message, :body, :uploads, :now)
ON CONFLICT (account_id, chat) DO UPDATE
SET version = version + 1, message = excluded.message, body = excluded.body, uploads = excluded.uploads,
    updated_at = excluded.updated_at
WHERE version = :version
RETURNING version;

-- name: set_draft_message
-- Set which message shows the draft; its version stays.
UPDATE drafts SET message = :message WHERE account_id = :account_id AND chat = :chat;

-- name: draft_owner
-- Return the account whose draft a message shows.
SELECT account_id FROM drafts WHERE chat = :chat AND message = :message LIMIT 1;

-- name: add_upload
-- Record a file that was uploaded to the provider.
INSERT INTO uploads (address, account_id, file, kind, seconds, at, ordered)
VALUES (:address, :account_id, :file, :kind, :seconds, :now, 0)
ON CONFLICT (address) DO UPDATE SET at = excluded.at, file = excluded.file;

-- name: mark_upload_used
-- Record that an order uses a file, so that it is not pruned.
UPDATE uploads SET ordered = 1 WHERE address = :address AND ordered = 0;

-- name: upload
-- Return the upload at a URL.
SELECT *, (:now - at) / 1000000.0 AS age_seconds FROM uploads WHERE address = :address;
