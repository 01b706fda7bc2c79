-- What retention deletes.
CREATE INDEX uploads_ordered ON uploads (at) WHERE ordered = 1;
