-- Where each provider keeps a copy of a user's file, for its own models to read, until it deletes the copy.
CREATE TABLE upload_copies (
    -- of the upload
    address     TEXT NOT NULL,
    provider    TEXT NOT NULL,
    url         TEXT NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (address, provider)
) STRICT;

CREATE INDEX upload_copies_url ON upload_copies (url);
CREATE INDEX upload_copies_expires ON upload_copies (expires_at);
