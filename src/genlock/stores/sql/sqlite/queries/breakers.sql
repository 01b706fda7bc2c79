-- name: breakers
-- Return all circuit breakers that have counted a failure.
SELECT *, :now AS read_at FROM breakers ORDER BY provider, model;

-- name: count_failure
-- Count a failure of a provider, or of a model there. The breaker opens after this many in a row, or if the order that tried
-- the provider again has failed; each time for twice as long. A count without a failure for a while begins again.
INSERT INTO breakers (provider, model, failures, opened, open_until, reason, changed_at)
VALUES (
    :provider, :model, 1, CASE WHEN :threshold <= 1 THEN 1 ELSE 0 END,
    CASE WHEN :threshold <= 1 THEN :now + CAST((:open_seconds) * 1000000 AS INTEGER) END, :reason, :now)
ON CONFLICT (provider, model) DO UPDATE
SET failures = CASE WHEN breakers.open_until IS NULL AND breakers.changed_at < :now - CAST((:failures_seconds) * 1000000 AS INTEGER) THEN 1
               ELSE breakers.failures + 1 END,
    opened = CASE
        WHEN breakers.open_until > :now AND breakers.probe_until IS NULL THEN breakers.opened
        WHEN breakers.open_until IS NOT NULL OR (breakers.failures + 1 >= :threshold AND breakers.changed_at >= :now - CAST((:failures_seconds) * 1000000 AS INTEGER)) THEN breakers.opened + 1 ELSE breakers.opened END,
    open_until = CASE
        WHEN breakers.open_until > :now AND breakers.probe_until IS NULL THEN breakers.open_until
        WHEN breakers.open_until IS NOT NULL OR (breakers.failures + 1 >= :threshold AND breakers.changed_at >= :now - CAST((:failures_seconds) * 1000000 AS INTEGER))
        THEN :now + CAST((min(:open_seconds_max, :open_seconds * (1 << min(breakers.opened, 10)))) * 1000000 AS INTEGER) END,
    probe_until = NULL, reason = :reason, changed_at = :now
RETURNING *, :now AS read_at;

-- name: take_probe
-- Let one order try a provider again whose pause is over; others wait until it has ended, or its time is over.
UPDATE breakers SET probe_until = :now + CAST((:seconds) * 1000000 AS INTEGER), changed_at = :now
WHERE provider = :provider AND model = :model AND open_until <= :now AND (probe_until IS NULL OR probe_until <= :now)
RETURNING provider;

-- name: reset_breakers
-- Delete the failures of a provider; with a model only those of the model there.
DELETE FROM breakers WHERE provider = :provider AND model = coalesce(:model, model)
RETURNING provider, model, open_until IS NOT NULL AS open;
