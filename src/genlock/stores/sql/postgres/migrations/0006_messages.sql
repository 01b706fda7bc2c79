-- Files that no order was made of are forgotten in the end. Those of before are kept: nobody knows which orders they have.
ALTER TABLE uploads ADD COLUMN ordered boolean NOT NULL DEFAULT true;
CREATE INDEX uploads_unordered ON uploads (at) WHERE NOT ordered;

-- What a broadcast looks like, and its file.
ALTER TABLE broadcasts ADD COLUMN content text NOT NULL DEFAULT '';
