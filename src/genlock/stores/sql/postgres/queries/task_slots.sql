-- name: open_slots
-- Create the slots of a provider before their first use.
INSERT INTO task_slots (provider, number) SELECT :provider, number FROM generate_series(1, :most::int) AS s (number)
ON CONFLICT (provider, number) DO NOTHING;

-- name: slots_used
-- Count the slots of a provider whose job is being submitted or runs there.
SELECT count(*) AS used FROM task_slots s JOIN jobs j ON j.id = s.job_id AND j.provider = s.provider
WHERE s.provider = :provider AND j.state IN ('submitting', 'running');

-- name: begin_limited_submit
-- As `begin_submit`, together with one of the provider's slots; without one only the placeholder is stored. `fenced`
-- says whether the lease was valid: if so and nothing began, no slot is free. A slot that changed since this statement
-- began is left alone: whether its new job works cannot be seen here.
WITH free AS MATERIALIZED (
    SELECT s.provider, s.number, s.token, s.job_id IS NOT DISTINCT FROM :job_id::bigint AS own FROM task_slots s
    WHERE s.provider = :provider::text AND s.number <= :most::int AND (s.job_id = :job_id::bigint OR NOT EXISTS (
        SELECT FROM jobs j
        WHERE j.id = s.job_id AND j.provider = s.provider AND j.state IN ('submitting', 'running')))
), slot AS MATERIALIZED (
    SELECT s.provider, s.number FROM free JOIN task_slots s ON s.provider = free.provider AND s.number = free.number
    WHERE s.token = free.token ORDER BY free.own DESC, s.number LIMIT 1 FOR NO KEY UPDATE OF s SKIP LOCKED
), begun AS (
    UPDATE jobs j
    SET state = 'submitting', secret_hash = :secret_hash::text, placeholder = coalesce(:placeholder::text, j.placeholder),
        submitted_at = :now, grace_until = NULL, provider = :provider::text,
        attempt = CASE WHEN j.state = 'submitting' OR j.attempt > 0 AND j.secret_hash IS NOT NULL AND EXISTS (
            SELECT FROM attempts a WHERE a.job_id = j.id AND a.number = j.attempt AND a.outcome = 'busy')
            THEN j.attempt ELSE j.attempt + 1 END
    FROM slot
    WHERE j.id = :job_id::bigint AND j.lease_token = :token::bigint AND j.lease_owner IS NOT NULL
        AND j.state IN ('queued', 'submitting')
    RETURNING j.id, j.attempt, j.provider, j.secret_hash, slot.number
), kept AS (
    UPDATE jobs j SET placeholder = :placeholder::text
    WHERE j.id = :job_id::bigint AND j.lease_token = :token::bigint AND j.lease_owner IS NOT NULL
        AND j.state = 'queued' AND j.placeholder IS NULL AND :placeholder::text IS NOT NULL
        AND NOT EXISTS (SELECT FROM slot)
), taken AS (
    UPDATE task_slots s SET job_id = b.id, token = s.token + 1
    FROM begun b WHERE s.provider = b.provider AND s.number = b.number
), attempt AS (
    INSERT INTO attempts AS a (job_id, number, provider, offer, sent_input, secret_hash, started_at)
    SELECT id, attempt, provider, :offer::text, :sent_input::text, secret_hash, :now FROM begun
    ON CONFLICT (job_id, number) DO UPDATE
    SET provider = excluded.provider, offer = excluded.offer, sent_input = excluded.sent_input,
        secret_hash = excluded.secret_hash, outcome = NULL, error_code = '', ended_at = NULL,
        started_at = CASE WHEN a.provider = excluded.provider THEN a.started_at ELSE excluded.started_at END
)
SELECT EXISTS (SELECT FROM begun) AS begun, EXISTS (
    SELECT FROM jobs WHERE id = :job_id::bigint AND lease_token = :token::bigint AND lease_owner IS NOT NULL
        AND state IN ('queued', 'submitting')) AS fenced;
