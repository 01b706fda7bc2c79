-- Jobs of API keys that have not ended, counted per account: an order is refused above a limit, exactly and without
-- reading the jobs.

ALTER TABLE accounts ADD COLUMN open_api_jobs bigint NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION count_open_api_job() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    UPDATE accounts SET open_api_jobs = open_api_jobs + CASE WHEN TG_OP = 'INSERT' THEN 1 ELSE -1 END
    WHERE id = NEW.account_id;
    RETURN NULL;
END $$;

-- Triggers, so that instances of an older version count too while they still run.
CREATE TRIGGER jobs_api_opened AFTER INSERT ON jobs FOR EACH ROW
WHEN (NEW.api_key_id IS NOT NULL AND NEW.ended_at IS NULL) EXECUTE FUNCTION count_open_api_job();

CREATE TRIGGER jobs_api_ended AFTER UPDATE OF ended_at ON jobs FOR EACH ROW
WHEN (NEW.api_key_id IS NOT NULL AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL)
EXECUTE FUNCTION count_open_api_job();

UPDATE accounts SET open_api_jobs = o.jobs
FROM (SELECT account_id, count(*) AS jobs FROM jobs WHERE ended_at IS NULL AND api_key_id IS NOT NULL GROUP BY account_id) o
WHERE accounts.id = o.account_id;
