-- name: add_catalog_change
-- Store an edit of a model, if its newest change is still the one that the edit follows. The same request key again finds
-- the same change. The next id is taken here, so that changes become visible in the order of their ids: of two concurrent
-- changes with the same id, the second waits for the first and then adds nothing.
WITH added AS (
    INSERT INTO catalog_changes (id, at, model, before, after, author, request_key, undoes)
    SELECT (SELECT coalesce(max(id), 0) + 1 FROM catalog_changes), :now, :model::text, :before, :after, :author,
        :request_key::text, :undoes::bigint
    WHERE coalesce((SELECT max(id) FROM catalog_changes WHERE model = :model), 0) = :follows::bigint
    ON CONFLICT DO NOTHING
    RETURNING *
)
SELECT * FROM added
UNION ALL
SELECT * FROM catalog_changes WHERE request_key = :request_key
LIMIT 1;

-- name: newest_catalog_change
-- use: periodic
-- Return the id of the newest change; 0 if there is none.
SELECT coalesce(max(id), 0) AS id FROM catalog_changes;

-- name: catalog_changes_after
-- use: periodic
-- Return the next changes after one, oldest first.
SELECT * FROM catalog_changes WHERE id > :change_id ORDER BY id LIMIT :limit;

-- name: newest_catalog_changes
-- use: operator
-- Return the changes of all models before an id, newest first.
SELECT * FROM catalog_changes WHERE id < :before_id ORDER BY id DESC LIMIT :limit;

-- name: catalog_changes_of
-- use: operator
-- Return the changes of a model before an id, newest first. An array as in `account_jobs`.
SELECT * FROM catalog_changes WHERE model = ANY (ARRAY[:model::text]) AND id < :before_id
ORDER BY model DESC, id DESC LIMIT :limit;

-- name: catalog_change
-- use: operator
-- Return one change.
SELECT * FROM catalog_changes WHERE id = :change_id;

-- name: catalog_change_of_request
-- use: operator
-- Return the change that a request made.
SELECT * FROM catalog_changes WHERE request_key = :request_key;
