-- name: heartbeat
-- Record that an instance is alive; return the instances without a recent heartbeat. The commit does not wait for the
-- disk: after a crash of the server the next heartbeat comes within a second. A heartbeat of the future is from before the
-- clock was set back: an instance that does not repeat it is silent from now on.
WITH me AS (
    INSERT INTO instances (id, started_at, seen_at)
    SELECT :instance::text, :now, :now WHERE set_config('synchronous_commit', 'off', true) = 'off'
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
), ahead AS (
    UPDATE instances SET seen_at = :now WHERE id IN (
        SELECT id FROM instances
        WHERE id <> :instance AND seen_at > :now + make_interval(secs => :silent_seconds::float8)
        FOR UPDATE SKIP LOCKED)  -- a row that is locked gets its heartbeat
)
SELECT id FROM instances
WHERE id <> :instance AND seen_at < :now - make_interval(secs => :silent_seconds::float8);

-- name: live_instances
-- use: periodic
-- Return the instances with a recent heartbeat, the longest running first.
SELECT id, started_at FROM instances
WHERE seen_at >= :now - make_interval(secs => :silent_seconds::float8) ORDER BY started_at;

-- name: release_leases
-- Release the jobs of an instance, and delete the instance unless some jobs are excepted. After a crash, count it for
-- each job, and delay jobs with many crashes so that others run first. An instance renews the leases that it uses: those
-- that ended long before its last heartbeat are due anyway. The limit spares the entries of the index that PostgreSQL
-- cannot remove yet.
WITH gone AS (
    DELETE FROM instances WHERE id = :instance AND cardinality(:keep::bigint[]) = 0
), held AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE due_at > (
            SELECT coalesce(min(least(seen_at, :now)), '-infinity') - interval '1 minute' FROM instances WHERE id = :instance)
        AND lease_owner = :instance AND NOT (id = ANY (:keep::bigint[]))
    ORDER BY id FOR NO KEY UPDATE
)
UPDATE jobs j
SET lease_owner = NULL, crash_count = j.crash_count + CASE WHEN :crashed::boolean THEN 1 ELSE 0 END,
    due_at = :now + CASE
        WHEN :crashed::boolean AND j.crash_count + 1 >= :isolated_from::int
        THEN make_interval(secs => 1 << least(j.crash_count + 1 - :isolated_from::int, 6))
        ELSE interval '0' END
FROM held WHERE j.id = held.id
RETURNING j.id;

-- name: take_role
-- Take or renew a role if no other instance has it; return the holder.
WITH taken AS (
    INSERT INTO roles AS r (name, holder, epoch, until)
    VALUES (:name, :instance, 1, :now + make_interval(secs => :seconds::float8))
    ON CONFLICT (name) DO UPDATE
    SET epoch = r.epoch + CASE WHEN r.holder = excluded.holder THEN 0 ELSE 1 END,
        holder = excluded.holder, until = excluded.until
    WHERE r.holder = excluded.holder OR r.until < :now
    RETURNING holder, epoch
), known AS MATERIALIZED (  -- locked, so that a holder that has just taken it is seen
    SELECT holder, epoch FROM roles WHERE name = :name FOR SHARE
)
SELECT holder, epoch FROM taken
UNION ALL
SELECT holder, epoch FROM known
LIMIT 1;

-- name: release_role
-- Give up a role at once.
UPDATE roles SET until = '-infinity' WHERE name = :name AND holder = :instance;
