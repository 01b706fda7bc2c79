-- name: open_slots
-- Create the slots of a provider before their first use.
INSERT INTO task_slots (provider, number)
WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < :most)
SELECT :provider, number FROM numbers WHERE true
ON CONFLICT (provider, number) DO NOTHING;

-- name: slots_used
-- Count the slots of a provider whose job is being submitted or runs there.
SELECT count(*) AS used FROM task_slots s JOIN jobs j ON j.id = s.job_id AND j.provider = s.provider
WHERE s.provider = :provider AND j.state IN ('submitting', 'running');

-- name: begin_limited_submit
-- As `begin_submit`, together with one of the provider's slots; without one only the placeholder is stored. `fenced`
-- says whether the lease was valid: if so and nothing began, no slot is free.
UPDATE task_slots SET job_id = :job_id, token = token + 1
WHERE provider = :provider AND number = (
    SELECT s.number FROM task_slots s
    WHERE s.provider = :provider AND s.number <= :most AND (s.job_id = :job_id OR NOT EXISTS (
        SELECT 1 FROM jobs j
        WHERE j.id = s.job_id AND j.provider = s.provider AND j.state IN ('submitting', 'running')))
    ORDER BY s.job_id IS :job_id DESC, s.number LIMIT 1)
    AND EXISTS (
        SELECT 1 FROM jobs WHERE id = :job_id AND lease_token = :token AND lease_owner IS NOT NULL
            AND state IN ('queued', 'submitting'));
UPDATE jobs
SET state = 'submitting', secret_hash = :secret_hash, placeholder = coalesce(:placeholder, placeholder),
    submitted_at = :now, grace_until = NULL, provider = :provider,
    attempt = CASE WHEN state = 'submitting' OR attempt > 0 AND secret_hash IS NOT NULL AND EXISTS (
        SELECT 1 FROM attempts a WHERE a.job_id = jobs.id AND a.number = jobs.attempt AND a.outcome = 'busy')
        THEN attempt ELSE attempt + 1 END
WHERE id = :job_id AND lease_token = :token AND lease_owner IS NOT NULL AND state IN ('queued', 'submitting')
    AND EXISTS (
        SELECT 1 FROM task_slots s WHERE s.provider = :provider AND s.number <= :most AND s.job_id = :job_id);
INSERT INTO attempts (job_id, number, provider, offer, sent_input, secret_hash, started_at)
SELECT id, attempt, provider, :offer, :sent_input, secret_hash, :now FROM jobs
WHERE id = :job_id AND lease_token = :token AND lease_owner IS NOT NULL AND state = 'submitting'
    AND secret_hash = :secret_hash
ON CONFLICT (job_id, number) DO UPDATE
SET provider = excluded.provider, offer = excluded.offer, sent_input = excluded.sent_input,
    secret_hash = excluded.secret_hash, outcome = NULL, error_code = '', ended_at = NULL,
    started_at = CASE WHEN attempts.provider = excluded.provider THEN attempts.started_at ELSE excluded.started_at END;
UPDATE jobs SET placeholder = :placeholder
WHERE id = :job_id AND lease_token = :token AND lease_owner IS NOT NULL AND state = 'queued' AND placeholder IS NULL
    AND :placeholder IS NOT NULL;
SELECT count(*) AS fenced, coalesce(max(state = 'submitting' AND secret_hash = :secret_hash), 0) AS begun
FROM jobs WHERE id = :job_id AND lease_token = :token AND lease_owner IS NOT NULL
    AND state IN ('queued', 'submitting');
