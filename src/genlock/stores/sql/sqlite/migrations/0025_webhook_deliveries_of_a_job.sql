-- What was sent about a job, for the page of the job.
CREATE INDEX webhook_deliveries_of_job ON webhook_deliveries (job_id, id) WHERE job_id IS NOT NULL;
