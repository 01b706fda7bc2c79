-- How many instances died with a job or a lane in hand, one after the other: it may be what they died of.

ALTER TABLE jobs ADD COLUMN deaths integer NOT NULL DEFAULT 0;
ALTER TABLE lanes ADD COLUMN deaths integer NOT NULL DEFAULT 0;
CREATE INDEX jobs_suspects ON jobs (deaths) WHERE deaths > 0;
