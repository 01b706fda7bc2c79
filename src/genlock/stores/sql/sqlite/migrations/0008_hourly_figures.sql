-- The dashboard's figures. Hours and days are counted from 1970, UTC. An order's figures belong to the hour in which it was
-- accepted; `engine/hourly_figures.py` says how they are kept.

-- What changed after the figures of its block were final: a job that had ended and needed no work, or a payment.
CREATE TABLE figure_changes (
    id            INTEGER PRIMARY KEY,
    job_id        INTEGER,
    payment_hour  INTEGER
) STRICT;

CREATE INDEX figure_changes_job ON figure_changes (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX figure_changes_payment ON figure_changes (payment_hour) WHERE payment_hour IS NOT NULL;

-- Blocks of successive job ids. A block without `due_at` is final until one of its jobs changes.
CREATE TABLE figure_blocks (
    block        INTEGER PRIMARY KEY,
    last_job_id  INTEGER NOT NULL,
    -- when its figures changed last
    changed_at   INTEGER NOT NULL,
    due_at       INTEGER
) STRICT;

CREATE INDEX figure_blocks_due ON figure_blocks (due_at) WHERE due_at IS NOT NULL;

-- The figures of each block, as they are contained in `job_figures`.
CREATE TABLE block_figures (
    block           INTEGER NOT NULL,
    hour            INTEGER NOT NULL,
    bot             TEXT NOT NULL,
    provider        TEXT NOT NULL,
    model           TEXT NOT NULL,
    orders          INTEGER NOT NULL DEFAULT 0,
    delivered       INTEGER NOT NULL DEFAULT 0,
    failed          INTEGER NOT NULL DEFAULT 0,
    cancelled       INTEGER NOT NULL DEFAULT 0,
    refunded        INTEGER NOT NULL DEFAULT 0,
    revenue         INTEGER NOT NULL DEFAULT 0,
    cost            INTEGER NOT NULL DEFAULT 0,
    loss            INTEGER NOT NULL DEFAULT 0,
    last_failed_job INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (block, hour, bot, provider, model)
) STRICT;

-- The sums of all blocks: by model for each hour, day and 30 days, and by hour for all models together (`hour_total`).
CREATE TABLE job_figures (
    span            TEXT NOT NULL,
    start           INTEGER NOT NULL,
    bot             TEXT NOT NULL,
    provider        TEXT NOT NULL,
    model           TEXT NOT NULL,
    orders          INTEGER NOT NULL DEFAULT 0,
    delivered       INTEGER NOT NULL DEFAULT 0,
    failed          INTEGER NOT NULL DEFAULT 0,
    cancelled       INTEGER NOT NULL DEFAULT 0,
    refunded        INTEGER NOT NULL DEFAULT 0,
    revenue         INTEGER NOT NULL DEFAULT 0,
    cost            INTEGER NOT NULL DEFAULT 0,
    loss            INTEGER NOT NULL DEFAULT 0,
    last_failed_job INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (span, start, bot, provider, model),
    CONSTRAINT job_figures_span_known CHECK (span IN ('hour', 'day', '30days', 'hour_total'))
) STRICT;

-- Histograms: from the order to the result by day and model (`result`), from the result to the chat by hour (`delivery`).
CREATE TABLE block_durations (
    block     INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    start     INTEGER NOT NULL,
    bot       TEXT NOT NULL,
    provider  TEXT NOT NULL,
    model     TEXT NOT NULL,
    bucket    INTEGER NOT NULL,
    jobs      INTEGER NOT NULL,
    PRIMARY KEY (block, kind, start, bot, provider, model, bucket)
) STRICT;

CREATE TABLE job_durations (
    kind      TEXT NOT NULL,
    start     INTEGER NOT NULL,
    bot       TEXT NOT NULL,
    provider  TEXT NOT NULL,
    model     TEXT NOT NULL,
    bucket    INTEGER NOT NULL,
    jobs      INTEGER NOT NULL,
    PRIMARY KEY (kind, start, bot, provider, model, bucket),
    CONSTRAINT job_durations_kind_known CHECK (kind IN ('result', 'delivery'))
) STRICT;

-- Payments by the hour in which they were made; a refund is counted in the hour of its payment.
CREATE TABLE topup_figures (
    hour            INTEGER NOT NULL,
    bot             TEXT NOT NULL,
    topups          INTEGER NOT NULL,
    stars           INTEGER NOT NULL,
    credits         INTEGER NOT NULL,
    -- those that were not the first payment of their account
    repeated        INTEGER NOT NULL,
    refunds         INTEGER NOT NULL,
    refunded_stars  INTEGER NOT NULL,
    PRIMARY KEY (hour, bot)
) STRICT;

-- Sets of accounts, in pieces of successive account ids: `members` is a compressed bitmap, `size` counts its bits.
CREATE TABLE account_sets (
    kind     TEXT NOT NULL,
    span     TEXT NOT NULL,
    start    INTEGER NOT NULL,
    bot      TEXT NOT NULL,
    piece    INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    members  TEXT NOT NULL,
    PRIMARY KEY (kind, span, start, bot, piece),
    CONSTRAINT account_sets_span_known CHECK (span IN ('hour', 'day', 'ever'))
) STRICT;

-- How far the sets have been filled.
CREATE TABLE figure_positions (
    name      TEXT PRIMARY KEY,
    position  TEXT NOT NULL
) STRICT;

-- The updates of a job's usual way do not fire it: the job is due until all of its work is done.
CREATE TRIGGER jobs_changed_later AFTER UPDATE OF state, delivery, hold_state, cost ON jobs FOR EACH ROW
WHEN OLD.due_at IS NULL AND OLD.ended_at IS NOT NULL AND (
    OLD.state <> NEW.state OR OLD.delivery <> NEW.delivery OR OLD.hold_state <> NEW.hold_state
    OR OLD.cost IS NOT NEW.cost)
BEGIN
    INSERT INTO figure_changes (job_id) VALUES (NEW.id);
END;

CREATE TRIGGER payments_changed AFTER UPDATE OF state ON payments FOR EACH ROW
WHEN OLD.state <> NEW.state
BEGIN
    INSERT INTO figure_changes (payment_hour) VALUES (NEW.at / 3600000000);
END;

-- The version of genlock that an instance runs.
ALTER TABLE instances ADD COLUMN version TEXT NOT NULL DEFAULT '';
