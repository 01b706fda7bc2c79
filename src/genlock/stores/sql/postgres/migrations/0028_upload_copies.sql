-- Where each provider keeps a copy of a user's file, for its own models to read, until it deletes the copy.
CREATE TABLE upload_copies (
    -- of the upload
    address     text NOT NULL,
    provider    text NOT NULL,
    url         text NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (address, provider)
);

CREATE INDEX upload_copies_url ON upload_copies (url);
CREATE INDEX upload_copies_expires ON upload_copies (expires_at);
