-- name: breakers
-- Return all circuit breakers that have counted a failure.
SELECT *, :now AS read_at FROM breakers ORDER BY provider, model;

-- name: count_failure
-- Count a failure of a provider, or of a model there. The breaker opens after this many in a row, or if the order that tried
-- the provider again has failed; each time for twice as long. A count without a failure for a while begins again.
INSERT INTO breakers AS b (provider, model, failures, opened, open_until, reason, changed_at)
VALUES (
    :provider, :model, 1, CASE WHEN :threshold::bigint <= 1 THEN 1 ELSE 0 END,
    CASE WHEN :threshold::bigint <= 1 THEN :now + make_interval(secs => :open_seconds::float8) END, :reason, :now)
ON CONFLICT (provider, model) DO UPDATE
SET failures = CASE WHEN b.open_until IS NULL AND b.changed_at < :now - make_interval(secs => :failures_seconds::float8) THEN 1
               ELSE b.failures + 1 END,
    opened = CASE
        WHEN b.open_until > :now AND b.probe_until IS NULL THEN b.opened
        WHEN b.open_until IS NOT NULL OR (b.failures + 1 >= :threshold::bigint AND b.changed_at >= :now - make_interval(secs => :failures_seconds::float8)) THEN b.opened + 1 ELSE b.opened END,
    open_until = CASE
        WHEN b.open_until > :now AND b.probe_until IS NULL THEN b.open_until
        WHEN b.open_until IS NOT NULL OR (b.failures + 1 >= :threshold::bigint AND b.changed_at >= :now - make_interval(secs => :failures_seconds::float8))
        THEN :now + make_interval(secs => least(:open_seconds_max::float8, :open_seconds::float8 * power(2, least(b.opened, 10)))) END,
    probe_until = NULL, reason = :reason, changed_at = :now
RETURNING *, :now AS read_at;

-- name: take_probe
-- Let one order try a provider again whose pause is over; others wait until it has ended, or its time is over.
UPDATE breakers SET probe_until = :now + make_interval(secs => :seconds::float8), changed_at = :now
WHERE provider = :provider AND model = :model AND open_until <= :now AND (probe_until IS NULL OR probe_until <= :now)
RETURNING provider;

-- name: reset_breakers
-- Delete the failures of a provider; with a model only those of the model there.
DELETE FROM breakers WHERE provider = :provider AND model = coalesce(:model::text, model)
RETURNING provider, model, open_until IS NOT NULL AS open;
