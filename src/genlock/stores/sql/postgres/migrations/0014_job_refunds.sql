-- Refunds of orders by operators, by the job: the figures by hour subtract them. No order writes to this index.
CREATE INDEX ledger_job_refunds ON ledger ((CASE WHEN key ~ '^refund:[0-9]{1,18}$' THEN substr(key, 8)::bigint END)) WHERE kind = 'refund';

CREATE OR REPLACE FUNCTION record_job_refund() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO figure_changes (job_id) VALUES (substr(NEW.key, 8)::bigint); RETURN NULL; END $$;

-- A refund of an order by an operator changes its figures.
CREATE TRIGGER ledger_job_refunded AFTER INSERT ON ledger FOR EACH ROW
WHEN (NEW.kind = 'refund' AND NEW.key ~ '^refund:[0-9]{1,18}$') EXECUTE FUNCTION record_job_refund();

-- Refunds made before are subtracted when their blocks are counted again.
INSERT INTO figure_changes (job_id)
SELECT CASE WHEN key ~ '^refund:[0-9]{1,18}$' THEN substr(key, 8)::bigint END FROM ledger WHERE kind = 'refund' AND CASE WHEN key ~ '^refund:[0-9]{1,18}$' THEN substr(key, 8)::bigint END IS NOT NULL;
