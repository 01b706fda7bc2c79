-- Files that no order was made of are forgotten in the end. Those of before are kept: nobody knows which orders they have.
ALTER TABLE uploads ADD COLUMN ordered INTEGER NOT NULL DEFAULT 1;
CREATE INDEX uploads_unordered ON uploads (at) WHERE ordered = 0;

-- What a broadcast looks like, and its file.
ALTER TABLE broadcasts ADD COLUMN content TEXT NOT NULL DEFAULT '';
