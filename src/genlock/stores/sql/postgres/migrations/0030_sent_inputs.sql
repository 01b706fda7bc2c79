-- The input as the provider was asked for it, by which the task of a lost answer is found; NULL: the job's own input.
ALTER TABLE attempts ADD COLUMN sent_input text;
