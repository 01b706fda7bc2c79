-- The message that a progress edit with an unknown outcome may still overwrite.
ALTER TABLE jobs ADD COLUMN progress_message text;
