-- What a provider needs besides the task's id to find the task again, such as addresses.

ALTER TABLE jobs ADD COLUMN handle text NOT NULL DEFAULT '';
