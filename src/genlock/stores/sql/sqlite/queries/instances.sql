-- name: heartbeat
-- Record that an instance is alive; return the instances without a recent heartbeat. A heartbeat of the future is from
-- before the clock was set back: an instance that does not repeat it is silent from now on.
INSERT INTO instances (id, started_at, seen_at) VALUES (:instance, :now, :now)
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at;
UPDATE instances SET seen_at = :now WHERE seen_at > :now + CAST(:silent_seconds * 1000000 AS INTEGER);
SELECT id FROM instances WHERE id <> :instance AND seen_at < :now - CAST(:silent_seconds * 1000000 AS INTEGER);

-- name: live_instances
-- use: periodic
-- Return the instances with a recent heartbeat, the longest running first.
SELECT id, started_at FROM instances
WHERE seen_at >= :now - CAST(:silent_seconds * 1000000 AS INTEGER) ORDER BY started_at;

-- name: release_leases
-- Release the jobs of an instance, and delete the instance unless some jobs are excepted. After a crash, count it for
-- each job, and delay jobs with many crashes so that others run first.
DELETE FROM instances WHERE id = :instance AND json_array_length(:keep) = 0;
UPDATE jobs
SET lease_owner = NULL, crash_count = crash_count + :crashed,
    due_at = :now + CASE WHEN :crashed AND crash_count + 1 >= :isolated_from
        THEN 1000000 << min(crash_count + 1 - :isolated_from, 6) ELSE 0 END
WHERE due_at IS NOT NULL AND lease_owner = :instance AND id NOT IN (SELECT value FROM json_each(:keep))
RETURNING id;

-- name: take_role
-- Take or renew a role if no other instance has it; return the holder.
INSERT INTO roles (name, holder, epoch, until) VALUES (:name, :instance, 1, :now + CAST(:seconds * 1000000 AS INTEGER))
ON CONFLICT (name) DO UPDATE
SET epoch = epoch + CASE WHEN holder = excluded.holder THEN 0 ELSE 1 END,
    holder = excluded.holder, until = excluded.until
WHERE holder = excluded.holder OR until < :now;
SELECT holder, epoch FROM roles WHERE name = :name;

-- name: release_role
-- Give up a role at once.
UPDATE roles SET until = 0 WHERE name = :name AND holder = :instance;
