-- Jobs of API keys that have not ended, counted per account: an order is refused above a limit, exactly and without
-- reading the jobs.

ALTER TABLE accounts ADD COLUMN open_api_jobs INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER jobs_api_opened AFTER INSERT ON jobs FOR EACH ROW
WHEN NEW.api_key_id IS NOT NULL AND NEW.ended_at IS NULL
BEGIN
    UPDATE accounts SET open_api_jobs = open_api_jobs + 1 WHERE id = NEW.account_id;
END;

CREATE TRIGGER jobs_api_ended AFTER UPDATE OF ended_at ON jobs FOR EACH ROW
WHEN NEW.api_key_id IS NOT NULL AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL
BEGIN
    UPDATE accounts SET open_api_jobs = open_api_jobs - 1 WHERE id = NEW.account_id;
END;

UPDATE accounts SET open_api_jobs = o.jobs
FROM (SELECT account_id, count(*) AS jobs FROM jobs WHERE ended_at IS NULL AND api_key_id IS NOT NULL GROUP BY account_id) o
WHERE accounts.id = o.account_id;
