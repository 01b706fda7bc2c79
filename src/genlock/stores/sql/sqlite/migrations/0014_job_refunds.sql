-- Refunds of orders by operators, by the job: the figures by hour subtract them. No order writes to this index.
CREATE INDEX ledger_job_refunds ON ledger ((CASE WHEN key GLOB 'refund:[0-9]*' THEN CAST(substr(key, 8) AS INTEGER) END)) WHERE kind = 'refund';

-- A refund of an order by an operator changes its figures.
CREATE TRIGGER ledger_job_refunded AFTER INSERT ON ledger FOR EACH ROW
WHEN NEW.kind = 'refund' AND NEW.key GLOB 'refund:[0-9]*'
BEGIN
    INSERT INTO figure_changes (job_id) VALUES (CAST(substr(NEW.key, 8) AS INTEGER));
END;

-- Refunds made before are subtracted when their blocks are counted again.
INSERT INTO figure_changes (job_id)
SELECT CASE WHEN key GLOB 'refund:[0-9]*' THEN CAST(substr(key, 8) AS INTEGER) END FROM ledger WHERE kind = 'refund' AND CASE WHEN key GLOB 'refund:[0-9]*' THEN CAST(substr(key, 8) AS INTEGER) END IS NOT NULL;
