-- Slots of providers that may work on a limited number of tasks at once, and the late costs of attempts in the figures.

CREATE TABLE task_slots (
    provider  text NOT NULL,
    number    bigint NOT NULL,
    -- the last job that took the slot; the slot is free unless that job is being submitted or runs at this provider
    job_id    bigint,
    -- grows whenever the slot is taken
    token     bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, number)
);

-- What a given-up attempt cost is the operator's loss, and changes the figures of the job.
CREATE OR REPLACE FUNCTION record_attempt_cost() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO figure_changes (job_id) VALUES (NEW.job_id); RETURN NULL; END $$;

CREATE TRIGGER attempts_cost_later AFTER UPDATE OF cost ON attempts FOR EACH ROW
WHEN (NEW.late_report IS NOT NULL AND OLD.cost IS DISTINCT FROM NEW.cost) EXECUTE FUNCTION record_attempt_cost();
