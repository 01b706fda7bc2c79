-- Slots of providers that may work on a limited number of tasks at once, and the late costs of attempts in the figures.

CREATE TABLE task_slots (
    provider  TEXT NOT NULL,
    number    INTEGER NOT NULL,
    -- the last job that took the slot; the slot is free unless that job is being submitted or runs at this provider
    job_id    INTEGER,
    -- grows whenever the slot is taken
    token     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, number)
) STRICT;

-- What a given-up attempt cost is the operator's loss, and changes the figures of the job.
CREATE TRIGGER attempts_cost_later AFTER UPDATE OF cost ON attempts FOR EACH ROW
WHEN NEW.late_report IS NOT NULL AND OLD.cost IS NOT NEW.cost
BEGIN
    INSERT INTO figure_changes (job_id) VALUES (NEW.job_id);
END;
