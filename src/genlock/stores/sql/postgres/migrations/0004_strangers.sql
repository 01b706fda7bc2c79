-- Callbacks that no job vouches for: how many came lately, and which are to be forgotten.

CREATE INDEX inbox_strangers ON inbox (received_at) WHERE job_id IS NULL;
