-- name: roles
-- use: operator
-- Return every role with its holder; there are a few.
SELECT name, holder, epoch, until, until > :now AS held FROM roles ORDER BY name;

-- name: applied_migrations
-- use: operator
-- Return the applied migrations, the newest first.
SELECT number, name, applied_at FROM migrations ORDER BY number DESC;

-- name: database_facts
-- use: operator
-- Return the version of the database program, and how large the database is.
SELECT 'SQLite ' || sqlite_version() AS version, p.page_count * s.page_size AS bytes
FROM pragma_page_count() p, pragma_page_size() s;
