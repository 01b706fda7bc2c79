-- SQLite. The names and parameters are the same as for PostgreSQL; times are microseconds, and `:now` is the time of
-- the process. SQLite cannot write inside a CTE, so a name may have several statements: they run in order, in one
-- transaction. A batch comes as one JSON array, `:items`. Where several statements need it, it is first copied to a
-- temporary table, which is empty again at the end. What is marked `reads by key` runs in the event loop, on a connection
-- that only reads.

-- name: temporary
-- Create the temporary tables for batches; they belong to the connection.
CREATE TEMP TABLE accept_item (
    account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, placeholder, model, input,
    price, deadline_seconds, notice, api_key_id, fresh);
CREATE TEMP TABLE end_item (
    job_id, token, state, parts, task_id, error_code, error_text, cancelled_by, cost, callback_id, provider, body,
    stored_id,
    account_id, price, held, attempt, verdict);
CREATE TEMP TABLE finish_item (
    job_id, token, delivery, parts, placeholder, attention_code, attention_reason, overwritable, account_id, price,
    held, hold_state, notice);
CREATE TEMP TABLE update_item (bot, update_id, ordering_key, kind, urgent, dedup_key, body, state);
CREATE TEMP TABLE queue_item (queue_id);
CREATE TEMP TABLE permit_item (key);
CREATE TEMP TABLE settle_item (queue_id, token, id, state, note);
CREATE TEMP TABLE figure_job (
    id, created_at, quarter, bot, provider, model, state, delivered, hold_state, price, refund, cost, open, result_seconds, delivery_seconds);
CREATE TEMP TABLE figure_counted (
    quarter, bot, provider, model, orders, delivered, failed, cancelled, refunded, revenue, cost, loss, last_failed_job);
CREATE TEMP TABLE figure_difference (
    hour, bot, provider, model, orders, delivered, failed, cancelled, refunded, revenue, cost, loss, last_failed_job);
CREATE TEMP TABLE figure_duration (kind, start, bot, provider, model, bucket, jobs);
CREATE TEMP TABLE figure_found (last_job_id, open, young, changed);
CREATE TEMP TABLE figure_moved (moved);
