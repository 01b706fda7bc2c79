-- concurrently
-- Autovacuum by a fixed number of changes: a share of a table with millions of rows would leave it unattended for weeks.
-- Every update of a job changes an indexed column, so that free space left in its pages is not used.

ALTER TABLE jobs SET (
    fillfactor = 100, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000);
ALTER TABLE ledger SET (
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);
ALTER TABLE accounts SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
ALTER TABLE updates SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
ALTER TABLE inbox SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);

-- What retention deletes.
CREATE INDEX CONCURRENTLY IF NOT EXISTS uploads_ordered ON uploads (at) WHERE ordered;
