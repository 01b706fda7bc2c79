-- Whom a broadcast goes to. Without any of these, to every user of the bot who can be reached.
ALTER TABLE broadcasts ADD COLUMN language text NOT NULL DEFAULT '';
-- whether they have ever paid
ALTER TABLE broadcasts ADD COLUMN paid boolean;
-- users who were not seen since
ALTER TABLE broadcasts ADD COLUMN silent_since timestamptz;
