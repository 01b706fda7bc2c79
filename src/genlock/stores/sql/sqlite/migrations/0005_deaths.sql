-- How many instances died with a job in hand, one after the other: it may be what they died of.

ALTER TABLE jobs ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_suspects ON jobs (due_at) WHERE deaths > 0 AND due_at IS NOT NULL;
