-- name: add_audit
-- Add a line to the audit log; the same key again adds nothing.
INSERT INTO audit (at, bot, key, actor, action, subject, detail)
VALUES (:now, :bot, :key, :actor, :action, :subject, :detail)
ON CONFLICT (bot, key) DO NOTHING;

-- name: newest_audit
-- use: operator
-- Return the newest lines of the audit log.
SELECT * FROM audit ORDER BY id DESC LIMIT :limit;

-- name: audit_id_range
-- use: operator
-- Return the lowest and the highest id of the audit log.
SELECT min(id) AS first, max(id) AS last FROM audit;

-- name: audit_between
-- use: operator
-- Return the lines of a bot within a range of ids, newest first. coalesce keeps the planner from reading all lines of the
-- bot.
SELECT * FROM audit WHERE id >= :floor AND id < :before AND coalesce(bot, '') = :bot ORDER BY id DESC LIMIT :limit;

-- name: search_audit
-- use: operator
-- Return the lines within a range of ids that match every filter that is set, newest first.
SELECT * FROM audit
WHERE id >= :floor AND id < :before
    AND (:actor::text = '' OR actor = :actor) AND (:action::text = '' OR action = :action)
    AND at >= timestamptz 'epoch' + :since_us::bigint * interval '1 microsecond'
    AND at < timestamptz 'epoch' + :until_us::bigint * interval '1 microsecond'
ORDER BY id DESC LIMIT :limit;

-- name: audit_of_subject
-- use: operator
-- Return the lines about a subject within a range of ids, newest first. Compared as pairs, so that only the index of
-- subjects can serve it.
SELECT * FROM audit
WHERE (subject, id) >= (:subject::text, :floor::bigint) AND (subject, id) < (:subject::text, :before::bigint)
ORDER BY subject DESC, id DESC LIMIT :limit;

-- name: first_audit_since
-- use: operator
-- Return the id from which on lines were written at a time or later, by halving the range of ids: they follow the order
-- of time.
WITH RECURSIVE search (low, high) AS (
    SELECT coalesce(min(id), 0), coalesce(max(id), -1) + 1 FROM audit
    UNION ALL
    SELECT CASE WHEN step.older THEN step.middle + 1 ELSE step.low END,
        CASE WHEN step.older THEN step.high ELSE step.middle END
    FROM (SELECT s.low, s.high, (s.low + s.high) / 2 AS middle, (
              SELECT a.at < timestamptz 'epoch' + :at_us::bigint * interval '1 microsecond' FROM audit a
              WHERE a.id >= (s.low + s.high) / 2 ORDER BY a.id LIMIT 1) AS older
          FROM search s WHERE s.low < s.high) step
)
SELECT low AS id FROM search WHERE low >= high LIMIT 1;
