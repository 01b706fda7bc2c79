-- The dashboard's figures. Hours and days are counted from 1970, UTC. An order's figures belong to the hour in which it was
-- accepted; `engine/hourly_figures.py` says how they are kept.

-- What changed after the figures of its block were final: a job that had ended and needed no work, or a payment.
CREATE TABLE figure_changes (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id        bigint,
    payment_hour  bigint
);

CREATE INDEX figure_changes_job ON figure_changes (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX figure_changes_payment ON figure_changes (payment_hour) WHERE payment_hour IS NOT NULL;

-- Blocks of successive job ids. A block without `due_at` is final until one of its jobs changes.
CREATE TABLE figure_blocks (
    block        bigint PRIMARY KEY,
    last_job_id  bigint NOT NULL,
    -- when its figures changed last
    changed_at   timestamptz NOT NULL,
    due_at       timestamptz
);

CREATE INDEX figure_blocks_due ON figure_blocks (due_at) WHERE due_at IS NOT NULL;

-- The figures of each block, as they are contained in `job_figures`.
CREATE TABLE block_figures (
    block           bigint NOT NULL,
    hour            bigint NOT NULL,
    bot             text NOT NULL,
    provider        text NOT NULL,
    model           text NOT NULL,
    orders          bigint NOT NULL DEFAULT 0,
    delivered       bigint NOT NULL DEFAULT 0,
    failed          bigint NOT NULL DEFAULT 0,
    cancelled       bigint NOT NULL DEFAULT 0,
    refunded        bigint NOT NULL DEFAULT 0,
    revenue         bigint NOT NULL DEFAULT 0,
    cost            bigint NOT NULL DEFAULT 0,
    loss            bigint NOT NULL DEFAULT 0,
    last_failed_job bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (block, hour, bot, provider, model)
) WITH (fillfactor = 80);

-- The sums of all blocks: by model for each hour, day and 30 days, and by hour for all models together (`hour_total`).
CREATE TABLE job_figures (
    span            text NOT NULL,
    start           bigint NOT NULL,
    bot             text NOT NULL,
    provider        text NOT NULL,
    model           text NOT NULL,
    orders          bigint NOT NULL DEFAULT 0,
    delivered       bigint NOT NULL DEFAULT 0,
    failed          bigint NOT NULL DEFAULT 0,
    cancelled       bigint NOT NULL DEFAULT 0,
    refunded        bigint NOT NULL DEFAULT 0,
    revenue         bigint NOT NULL DEFAULT 0,
    cost            bigint NOT NULL DEFAULT 0,
    loss            bigint NOT NULL DEFAULT 0,
    last_failed_job bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (span, start, bot, provider, model),
    CONSTRAINT job_figures_span_known CHECK (span IN ('hour', 'day', '30days', 'hour_total'))
) WITH (fillfactor = 80);

-- Histograms: from the order to the result by day and model (`result`), from the result to the chat by hour (`delivery`).
CREATE TABLE block_durations (
    block     bigint NOT NULL,
    kind      text NOT NULL,
    start     bigint NOT NULL,
    bot       text NOT NULL,
    provider  text NOT NULL,
    model     text NOT NULL,
    bucket    bigint NOT NULL,
    jobs      bigint NOT NULL,
    PRIMARY KEY (block, kind, start, bot, provider, model, bucket)
) WITH (fillfactor = 80);

CREATE TABLE job_durations (
    kind      text NOT NULL,
    start     bigint NOT NULL,
    bot       text NOT NULL,
    provider  text NOT NULL,
    model     text NOT NULL,
    bucket    bigint NOT NULL,
    jobs      bigint NOT NULL,
    PRIMARY KEY (kind, start, bot, provider, model, bucket),
    CONSTRAINT job_durations_kind_known CHECK (kind IN ('result', 'delivery'))
) WITH (fillfactor = 80);

-- Payments by the hour in which they were made; a refund is counted in the hour of its payment.
CREATE TABLE topup_figures (
    hour            bigint NOT NULL,
    bot             text NOT NULL,
    topups          bigint NOT NULL,
    stars           bigint NOT NULL,
    credits         bigint NOT NULL,
    -- those that were not the first payment of their account
    repeated        bigint NOT NULL,
    refunds         bigint NOT NULL,
    refunded_stars  bigint NOT NULL,
    PRIMARY KEY (hour, bot)
);

-- Sets of accounts, in pieces of successive account ids: `members` is a compressed bitmap, `size` counts its bits.
CREATE TABLE account_sets (
    kind     text NOT NULL,
    span     text NOT NULL,
    start    bigint NOT NULL,
    bot      text NOT NULL,
    piece    bigint NOT NULL,
    size     bigint NOT NULL,
    members  text NOT NULL,
    PRIMARY KEY (kind, span, start, bot, piece),
    CONSTRAINT account_sets_span_known CHECK (span IN ('hour', 'day', 'ever'))
) WITH (fillfactor = 80);

-- How far the sets have been filled.
CREATE TABLE figure_positions (
    name      text PRIMARY KEY,
    position  text NOT NULL
);

CREATE OR REPLACE FUNCTION record_job_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO figure_changes (job_id) VALUES (NEW.id); RETURN NULL; END $$;

CREATE OR REPLACE FUNCTION record_payment_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    INSERT INTO figure_changes (payment_hour) VALUES (floor(date_part('epoch', NEW.at) / 3600)::bigint);
    RETURN NULL;
END $$;

-- The updates of a job's usual way do not fire it: the job is due until all of its work is done.
CREATE TRIGGER jobs_changed_later AFTER UPDATE OF state, delivery, hold_state, cost ON jobs FOR EACH ROW
WHEN (OLD.due_at IS NULL AND OLD.ended_at IS NOT NULL AND (
    OLD.state <> NEW.state OR OLD.delivery <> NEW.delivery OR OLD.hold_state <> NEW.hold_state
    OR OLD.cost IS DISTINCT FROM NEW.cost))
EXECUTE FUNCTION record_job_change();

CREATE TRIGGER payments_changed AFTER UPDATE OF state ON payments FOR EACH ROW
WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION record_payment_change();

-- The version of genlock that an instance runs.
ALTER TABLE instances ADD COLUMN version text NOT NULL DEFAULT '';
