-- Accounts, jobs, money, callbacks, updates, instances, and what the bot stores.
-- Times are microseconds since 1970, UTC.

CREATE TABLE accounts (
    id           INTEGER PRIMARY KEY,
    channel      TEXT NOT NULL,
    bot          TEXT NOT NULL,
    external_id  TEXT NOT NULL,
    -- where the channel reaches the user outside a job; opaque, '' when unknown
    address      TEXT NOT NULL DEFAULT '',
    available    INTEGER NOT NULL DEFAULT 0,
    held         INTEGER NOT NULL DEFAULT 0,
    -- free runs taken; compared when one is taken, so that two orders cannot take the same run
    free_run_count INTEGER NOT NULL DEFAULT 0,
    created_at   INTEGER NOT NULL,
    -- credits that were refunded in Stars after they had been spent; the next paid top-up repays them
    debt         INTEGER NOT NULL DEFAULT 0,
    -- jobs of API keys that have not ended; triggers count them
    open_api_jobs INTEGER NOT NULL DEFAULT 0,
    -- free runs from promo codes that count as used; triggers count them
    gift_runs_used INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT accounts_external_id_once UNIQUE (channel, bot, external_id),
    CONSTRAINT accounts_available_not_negative CHECK (available >= 0),
    CONSTRAINT accounts_held_not_negative CHECK (held >= 0),
    CONSTRAINT accounts_debt_not_negative CHECK (debt >= 0)
) STRICT;

CREATE INDEX accounts_debt ON accounts (id) WHERE debt > 0;
CREATE INDEX accounts_external_id ON accounts (external_id);

CREATE TABLE jobs (
    id                INTEGER PRIMARY KEY,
    account_id        INTEGER NOT NULL,
    request_key       TEXT NOT NULL,
    request_hash      TEXT NOT NULL,
    correlation_id    TEXT NOT NULL,
    provider          TEXT NOT NULL,
    channel           TEXT NOT NULL,
    bot               TEXT NOT NULL,
    address           TEXT NOT NULL,
    placeholder       TEXT,
    model             TEXT NOT NULL,
    input             TEXT NOT NULL,
    price             INTEGER NOT NULL,
    hold_state        TEXT NOT NULL,
    state             TEXT NOT NULL,
    secret_hash       TEXT,
    task_id           TEXT,
    error_code        TEXT NOT NULL DEFAULT '',
    error_text        TEXT NOT NULL DEFAULT '',
    cancelled_by      TEXT NOT NULL DEFAULT '',
    cost              INTEGER,
    late              INTEGER NOT NULL DEFAULT 0,
    parts             TEXT NOT NULL DEFAULT '[]',
    delivery          TEXT NOT NULL DEFAULT 'none',
    notice            TEXT NOT NULL,
    attention_code    TEXT,
    attention_reason  TEXT,
    attempts          INTEGER NOT NULL DEFAULT 0,
    due_at            INTEGER,
    deadline_at       INTEGER NOT NULL,
    grace_until       INTEGER,
    lease_owner       TEXT,
    lease_token       INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    submitted_at      INTEGER,
    ended_at          INTEGER,
    delivered_at      INTEGER,
    -- consecutive worker crashes while this job was being processed
    crash_count       INTEGER NOT NULL DEFAULT 0,
    -- the message that a progress edit with an unknown outcome may still overwrite
    progress_message  TEXT,
    -- when the user removed the result from the gallery and the history
    hidden_at         INTEGER,
    -- what the provider needs besides the task's id to find the task again
    handle            TEXT NOT NULL DEFAULT '',
    -- the number of the current attempt; 0 before the first
    attempt           INTEGER NOT NULL DEFAULT 0,
    -- the API key that the order was made with
    api_key_id        INTEGER,
    -- the fencing token under which the notice was journaled as sent; NULL once it is known that it was not sent
    notice_token      INTEGER,
    CONSTRAINT jobs_request_once UNIQUE (account_id, request_key),
    CONSTRAINT jobs_price_not_negative CHECK (price >= 0),
    CONSTRAINT jobs_hold_state_known CHECK (hold_state IN ('free', 'held', 'captured', 'released')),
    CONSTRAINT jobs_state_known CHECK (
        state IN ('queued', 'submitting', 'running', 'succeeded', 'failed', 'cancelled', 'expired')),
    CONSTRAINT jobs_delivery_known CHECK (
        delivery IN ('none', 'pending', 'sending', 'delivered', 'undeliverable', 'unknown')),
    CONSTRAINT jobs_cancelled_by_known CHECK (cancelled_by IN ('', 'user', 'operator', 'system')),
    CONSTRAINT jobs_cancelled_by_means_cancelled CHECK (cancelled_by = '' OR state = 'cancelled'),
    CONSTRAINT jobs_attention_code_known CHECK (
        attention_code IN ('poison', 'stage_error', 'retries_exhausted', 'undeliverable', 'unknown_delivery', 'parked',
                           'other')),
    CONSTRAINT jobs_attention_has_code_and_reason CHECK ((attention_code IS NULL) = (attention_reason IS NULL)),
    CONSTRAINT jobs_notice_known CHECK (notice IN ('none', 'wanted', 'due', 'sent')),
    CONSTRAINT jobs_delivery_begins_at_the_end CHECK (
        (delivery = 'none') = (state IN ('queued', 'submitting', 'running'))),
    CONSTRAINT jobs_delivered_at_means_delivered CHECK ((delivered_at IS NULL) = (delivery <> 'delivered')),
    CONSTRAINT jobs_captured_means_succeeded CHECK (hold_state <> 'captured' OR state = 'succeeded'),
    CONSTRAINT jobs_leased_means_due CHECK (lease_owner IS NULL OR due_at IS NOT NULL),
    CONSTRAINT jobs_running_means_task_known CHECK (state <> 'running' OR task_id IS NOT NULL)
) STRICT;

-- The index that workers claim from: it contains only jobs that are due at some time, not the finished ones.
CREATE INDEX jobs_due ON jobs (due_at) WHERE due_at IS NOT NULL;
CREATE UNIQUE INDEX jobs_task_once ON jobs (provider, task_id) WHERE task_id IS NOT NULL;
CREATE INDEX jobs_poison ON jobs (crash_count) WHERE crash_count > 0;
CREATE INDEX jobs_attention ON jobs (id) WHERE attention_reason IS NOT NULL;
CREATE INDEX jobs_attention_code ON jobs (attention_code, id) WHERE attention_reason IS NOT NULL;
-- An account's jobs by id: its history.
CREATE INDEX jobs_account ON jobs (account_id, id);
-- The few jobs that have not ended. `ended_at` is written once, so that no update of an open job touches this index.
CREATE INDEX jobs_open ON jobs (account_id, id) WHERE ended_at IS NULL;
-- An account's jobs of API keys by id.
CREATE INDEX jobs_api ON jobs (account_id, id) WHERE api_key_id IS NOT NULL;
-- The few of them that have ended and are not finished: their result is being delivered, or waits for an operator.
CREATE INDEX jobs_api_undelivered ON jobs (account_id, id)
    WHERE api_key_id IS NOT NULL AND ended_at IS NOT NULL AND (due_at IS NOT NULL OR attention_reason IS NOT NULL);
CREATE INDEX jobs_cancelled ON jobs (account_id, ended_at) WHERE cancelled_by <> '';
-- The gallery: delivered results by model. Only the commit of a delivery and its user's removal write to it.
CREATE INDEX jobs_results ON jobs (account_id, model, id)
    WHERE delivered_at IS NOT NULL AND hidden_at IS NULL AND (hold_state <> 'released' OR late = 1);

-- Each try to have a job made by one provider. The row is written in the commit that begins the submit, before the call.
CREATE TABLE attempts (
    job_id       INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    provider     TEXT NOT NULL,
    -- the provider's own id of the model
    offer        TEXT NOT NULL,
    secret_hash  TEXT,
    -- set when the job goes on to another attempt; those of the current attempt are in the job's row
    task_id      TEXT,
    handle       TEXT NOT NULL DEFAULT '',
    -- NULL while the provider may still work on it
    outcome      TEXT,
    error_code   TEXT NOT NULL DEFAULT '',
    -- in thousandths of the provider's credit
    cost         INTEGER,
    -- what the provider reported after the attempt had ended
    late_report  TEXT,
    started_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    -- the input as the provider was asked for it; NULL: the job's own input, or erased
    sent_input   TEXT,
    PRIMARY KEY (job_id, number),
    CONSTRAINT attempts_outcome_known CHECK (
        outcome IN ('succeeded', 'failed', 'refused', 'busy', 'unknown', 'cancelled', 'expired')),
    CONSTRAINT attempts_late_report_known CHECK (late_report IN ('succeeded', 'failed')),
    CONSTRAINT attempts_ended_means_outcome CHECK ((ended_at IS NULL) = (outcome IS NULL))
) STRICT;

CREATE INDEX attempts_task ON attempts (provider, task_id) WHERE task_id IS NOT NULL;

-- Slots of providers that may work on a limited number of tasks at once.
CREATE TABLE task_slots (
    provider  TEXT NOT NULL,
    number    INTEGER NOT NULL,
    -- the last job that took the slot; the slot is free unless that job is being submitted or runs at this provider
    job_id    INTEGER,
    -- grows whenever the slot is taken
    token     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, number)
) STRICT;

-- Circuit breakers: which providers, or models of a provider, are left alone after failing again and again.
CREATE TABLE breakers (
    provider     TEXT NOT NULL,
    -- '' for the whole provider
    model        TEXT NOT NULL,
    -- consecutive failures
    failures     INTEGER NOT NULL,
    -- how often it has opened since it last let an order succeed
    opened       INTEGER NOT NULL DEFAULT 0,
    -- no order before this time, then one at a time; NULL: closed
    open_until   INTEGER,
    -- until when the order that tries the provider again has time
    probe_until  INTEGER,
    reason       TEXT NOT NULL,
    changed_at   INTEGER NOT NULL,
    PRIMARY KEY (provider, model)
) STRICT;

CREATE TABLE ledger (
    key         TEXT PRIMARY KEY,
    account_id  INTEGER NOT NULL,
    job_id      INTEGER,
    kind        TEXT NOT NULL,
    debit       TEXT NOT NULL,
    credit      TEXT NOT NULL,
    amount      INTEGER NOT NULL,
    reason      TEXT NOT NULL DEFAULT '',
    at          INTEGER NOT NULL,
    CONSTRAINT ledger_amount_positive CHECK (amount > 0),
    CONSTRAINT ledger_sides_differ CHECK (debit <> credit),
    CONSTRAINT ledger_accounts_known CHECK (
        debit IN ('available', 'held', 'house') AND credit IN ('available', 'held', 'house'))
) STRICT;

CREATE INDEX ledger_account ON ledger (account_id, at);
-- What changes balances outside orders, for the lists of operators.
CREATE INDEX ledger_moves ON ledger (kind, at, key) WHERE kind NOT IN ('hold', 'capture', 'release');
-- Refunds of orders by operators, by the job: the figures by hour subtract them. No order writes to this index.
CREATE INDEX ledger_job_refunds ON ledger ((CASE WHEN key GLOB 'refund:[0-9]*' THEN CAST(substr(key, 8) AS INTEGER) END)) WHERE kind = 'refund';

-- The sums of an account's ledger entries up to a time, so that the check of an account with many entries reads only
-- the newer ones.
CREATE TABLE ledger_checkpoints (
    account_id  INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    available   INTEGER NOT NULL,
    held        INTEGER NOT NULL
);

CREATE TABLE inbox (
    id           INTEGER PRIMARY KEY,
    provider     TEXT NOT NULL,
    job_id       INTEGER,
    task_id      TEXT,
    body         BLOB NOT NULL,
    state        TEXT NOT NULL,
    note         TEXT NOT NULL DEFAULT '',
    due_at       INTEGER,
    received_at  INTEGER NOT NULL,
    -- the attempt whose secret the callback's URL carried; NULL: the job's attempt of that time
    attempt      INTEGER,
    CONSTRAINT inbox_state_known CHECK (state IN ('new', 'done', 'orphan', 'matched', 'expired', 'unreadable')),
    CONSTRAINT inbox_due_means_new CHECK ((due_at IS NOT NULL) = (state = 'new'))
) STRICT;

CREATE INDEX inbox_due ON inbox (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX inbox_orphans ON inbox (provider, task_id) WHERE state = 'orphan';
CREATE INDEX inbox_unauthenticated ON inbox (received_at) WHERE job_id IS NULL;
CREATE INDEX inbox_kept ON inbox (state, id) WHERE state IN ('expired', 'unreadable');

CREATE TABLE instances (
    id          TEXT PRIMARY KEY,
    started_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    version     TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE roles (
    name    TEXT PRIMARY KEY,
    holder  TEXT NOT NULL,
    epoch   INTEGER NOT NULL,
    until   INTEGER NOT NULL
) STRICT;

CREATE TABLE limits (
    key      TEXT PRIMARY KEY,
    next_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE updates (
    id            INTEGER PRIMARY KEY,
    bot           TEXT NOT NULL,
    update_id     INTEGER NOT NULL,
    ordering_key  TEXT NOT NULL,
    kind          TEXT NOT NULL,
    urgent        INTEGER NOT NULL,
    dedup_key     TEXT,
    body          TEXT NOT NULL,
    state         TEXT NOT NULL,
    note          TEXT NOT NULL DEFAULT '',
    received_at   INTEGER NOT NULL,
    CONSTRAINT updates_once UNIQUE (bot, update_id),
    CONSTRAINT updates_state_known CHECK (state IN ('new', 'done', 'repeated', 'dead'))
) STRICT;

CREATE INDEX updates_waiting ON updates (bot, ordering_key, id) WHERE state = 'new';
CREATE INDEX updates_dead ON updates (id) WHERE state = 'dead';
CREATE INDEX updates_dedup ON updates (bot, ordering_key, dedup_key) WHERE dedup_key IS NOT NULL;

-- One row per user: the instance that has its lease handles the user's updates in order. `waiting` counts the new ones.
CREATE TABLE update_queues (
    id           INTEGER PRIMARY KEY,
    bot          TEXT NOT NULL,
    name         TEXT NOT NULL,
    urgent       INTEGER NOT NULL,
    waiting      INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    due_at       INTEGER,
    lease_owner  TEXT,
    lease_token  INTEGER NOT NULL DEFAULT 0,
    crash_count  INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT update_queues_once UNIQUE (bot, name),
    CONSTRAINT update_queues_due_means_waiting CHECK ((due_at IS NOT NULL) = (waiting > 0)),
    CONSTRAINT update_queues_leased_means_due CHECK (lease_owner IS NULL OR due_at IS NOT NULL)
) STRICT;

CREATE INDEX update_queues_due ON update_queues (urgent, due_at) WHERE due_at IS NOT NULL;

CREATE TABLE kv (
    key    TEXT NOT NULL,
    -- '' for entries of the whole installation
    bot    TEXT NOT NULL DEFAULT '',
    value  TEXT NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (key, bot)
) STRICT;

CREATE TABLE profiles (
    account_id      INTEGER PRIMARY KEY,
    language        TEXT NOT NULL,
    name            TEXT NOT NULL,
    username        TEXT NOT NULL,
    referred_by     INTEGER,
    rewarded_at     INTEGER,
    last_model      TEXT NOT NULL DEFAULT '',
    banned_at       INTEGER,
    ban_reason      TEXT NOT NULL DEFAULT '',
    blocked_at      INTEGER,
    created_at      INTEGER NOT NULL,
    seen_at         INTEGER NOT NULL,
    -- An inviter is older than the invited account, so there are no self-invitations and no cycles.
    CONSTRAINT profiles_inviter_is_older CHECK (referred_by < account_id)
) STRICT;

CREATE INDEX profiles_created_at ON profiles (created_at);
CREATE INDEX profiles_username ON profiles (username);
CREATE INDEX profiles_unrewarded ON profiles (account_id) WHERE referred_by IS NOT NULL AND rewarded_at IS NULL;
CREATE INDEX profiles_banned ON profiles (account_id) WHERE banned_at IS NOT NULL;
CREATE INDEX profiles_invited ON profiles (referred_by, account_id) WHERE referred_by IS NOT NULL;

CREATE TABLE drafts (
    account_id  INTEGER NOT NULL,
    chat        INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    message     INTEGER,
    body        TEXT NOT NULL,
    -- addresses of the uploads that the draft uses, JSON
    uploads     TEXT NOT NULL DEFAULT '[]',
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (account_id, chat)
) STRICT;

CREATE INDEX drafts_message ON drafts (chat, message) WHERE message IS NOT NULL;

CREATE TABLE favourites (
    account_id  INTEGER NOT NULL,
    model       TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (account_id, model)
) STRICT;

-- The settings that an account last ordered a model with, JSON.
CREATE TABLE model_settings (
    account_id  INTEGER NOT NULL,
    model       TEXT NOT NULL,
    body        TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (account_id, model)
) STRICT;

CREATE TABLE uploads (
    address     TEXT PRIMARY KEY,
    account_id  INTEGER NOT NULL,
    file        TEXT NOT NULL,
    kind        TEXT NOT NULL,
    seconds     REAL,
    at          INTEGER NOT NULL,
    -- whether an order uses it; an order may be repeated at any time, so the file is not pruned
    ordered     INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE INDEX uploads_account ON uploads (account_id, at);
CREATE INDEX uploads_ordered ON uploads (at) WHERE ordered = 1;
CREATE INDEX uploads_unordered ON uploads (at) WHERE ordered = 0;

-- Where each provider keeps a copy of a user's file, for its own models to read, until it deletes the copy.
CREATE TABLE upload_copies (
    -- of the upload
    address     TEXT NOT NULL,
    provider    TEXT NOT NULL,
    url         TEXT NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (address, provider)
) STRICT;

CREATE INDEX upload_copies_url ON upload_copies (url);
CREATE INDEX upload_copies_expires ON upload_copies (expires_at);

CREATE TABLE payments (
    charge      TEXT PRIMARY KEY,
    account_id  INTEGER NOT NULL,
    -- what was paid, in the smallest unit of the currency: `Payment.paid_amount`
    stars       INTEGER NOT NULL,
    amount      INTEGER NOT NULL,
    state       TEXT NOT NULL,
    refunds     INTEGER NOT NULL DEFAULT 0,
    at          INTEGER NOT NULL,
    -- the part of the amount that the user no longer had when the payment service refunded the payment
    owed        INTEGER NOT NULL DEFAULT 0,
    -- when a refund that was not made by an operator of ours was booked
    external_refund_at INTEGER,
    CONSTRAINT payments_state_known CHECK (state IN ('paid', 'refunding', 'refunded')),
    CONSTRAINT payments_amounts_positive CHECK (stars > 0 AND amount > 0),
    CONSTRAINT payments_owed_within_amount CHECK (owed BETWEEN 0 AND amount)
) STRICT;

CREATE INDEX payments_account ON payments (account_id, at);
CREATE INDEX payments_at ON payments (at);
CREATE INDEX payments_owed ON payments (account_id) WHERE owed > 0;
CREATE INDEX payments_external_refund ON payments (external_refund_at) WHERE external_refund_at IS NOT NULL;
CREATE INDEX payments_refunds ON payments (state, at, charge) WHERE state <> 'paid';

CREATE TABLE free_runs (
    account_id   INTEGER NOT NULL,
    request_key  TEXT NOT NULL,
    source       TEXT NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (account_id, request_key),
    CONSTRAINT free_runs_source_known CHECK (source IN ('day', 'gift'))
) STRICT;

CREATE INDEX free_runs_account ON free_runs (account_id, source, at);

CREATE TRIGGER free_runs_gift_taken AFTER INSERT ON free_runs FOR EACH ROW
WHEN NEW.source = 'gift'
BEGIN
    UPDATE accounts SET gift_runs_used = gift_runs_used + 1 WHERE id = NEW.account_id AND NOT EXISTS (
        SELECT 1 FROM jobs WHERE account_id = NEW.account_id AND request_key = NEW.request_key
            AND (state IN ('failed', 'expired') OR state = 'cancelled' AND submitted_at IS NULL));
END;

-- A run whose job failed does not count, and one that was cancelled counts only after its submit.
CREATE TRIGGER jobs_gift_run_returned AFTER UPDATE OF state ON jobs FOR EACH ROW
WHEN (OLD.state IN ('failed', 'expired') OR OLD.state = 'cancelled' AND OLD.submitted_at IS NULL)
    <> (NEW.state IN ('failed', 'expired') OR NEW.state = 'cancelled' AND NEW.submitted_at IS NULL)
BEGIN
    UPDATE accounts SET gift_runs_used = gift_runs_used
        + CASE WHEN NEW.state IN ('failed', 'expired') OR NEW.state = 'cancelled' AND NEW.submitted_at IS NULL THEN -1 ELSE 1 END
    WHERE id = NEW.account_id AND EXISTS (
        SELECT 1 FROM free_runs WHERE account_id = NEW.account_id AND request_key = NEW.request_key AND source = 'gift');
END;

CREATE TABLE promos (
    code         TEXT PRIMARY KEY,
    -- '' for codes that users of every bot may use
    bot          TEXT NOT NULL DEFAULT '',
    amount       INTEGER NOT NULL,
    runs         INTEGER NOT NULL,
    used         INTEGER NOT NULL DEFAULT 0,
    uses_max     INTEGER,
    per_account  INTEGER NOT NULL,
    until_at     INTEGER,
    closed_at    INTEGER,
    author       TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    CONSTRAINT promos_credits_or_runs CHECK ((amount > 0) <> (runs > 0) AND amount >= 0 AND runs >= 0),
    CONSTRAINT promos_not_overused CHECK (used <= uses_max)
) STRICT;

CREATE INDEX promos_created ON promos (created_at, code);

CREATE TABLE promo_uses (
    code         TEXT NOT NULL,
    account_id   INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    request_key  TEXT NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (code, account_id, number),
    CONSTRAINT promo_uses_request_once UNIQUE (account_id, request_key)
) STRICT;

CREATE TABLE broadcasts (
    id           INTEGER PRIMARY KEY,
    bot          TEXT NOT NULL,
    text         TEXT NOT NULL,
    author       TEXT NOT NULL,
    request_key  TEXT NOT NULL,
    state        TEXT NOT NULL,
    reached      INTEGER NOT NULL DEFAULT 0,
    sent         INTEGER NOT NULL DEFAULT 0,
    failed       INTEGER NOT NULL DEFAULT 0,
    total        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    -- the formatted text and the file, JSON; empty when `text` is HTML
    content      TEXT NOT NULL DEFAULT '',
    -- Whom it goes to: users with this language, if it is not empty; users who have paid, or never have; users who
    -- were not seen since a time. Without any of these, every user who can be reached.
    language     TEXT NOT NULL DEFAULT '',
    paid         INTEGER,
    silent_since INTEGER,
    -- recipients whose message may or may not have arrived
    unknown      INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT broadcasts_request_once UNIQUE (bot, request_key),
    CONSTRAINT broadcasts_state_known CHECK (state IN ('running', 'stopped', 'done'))
) STRICT;

CREATE INDEX broadcasts_running ON broadcasts (id) WHERE state = 'running';

-- Recipients of broadcasts between being taken and the outcome of their message. A sender that stops reporting is
-- replaced, unless its call may have been made.
CREATE TABLE broadcast_recipients (
    broadcast_id INTEGER NOT NULL,
    account_id   INTEGER NOT NULL,
    -- whether the call may have been made
    sending      INTEGER NOT NULL DEFAULT 0,
    -- grows each time the recipient is taken: a sender that was replaced must not send
    token        INTEGER NOT NULL DEFAULT 1,
    -- when the recipient may be taken again, or, while it is being sent to, when the outcome counts as unknown
    due_at       INTEGER NOT NULL,
    PRIMARY KEY (broadcast_id, account_id)
) STRICT;

CREATE INDEX broadcast_recipients_due ON broadcast_recipients (due_at);

CREATE TABLE audit (
    id       INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    bot      TEXT NOT NULL DEFAULT '',
    key      TEXT NOT NULL,
    actor    TEXT NOT NULL,
    action   TEXT NOT NULL,
    subject  TEXT NOT NULL,
    detail   TEXT NOT NULL,
    CONSTRAINT audit_once UNIQUE (bot, key)
) STRICT;

CREATE TABLE bulk_actions (
    id             INTEGER PRIMARY KEY,
    kind           TEXT NOT NULL,
    -- filters or job ids, JSON
    selection      TEXT NOT NULL,
    author         TEXT NOT NULL,
    request_key    TEXT NOT NULL,
    state          TEXT NOT NULL,
    -- the jobs below this id are still to be looked at
    below          INTEGER NOT NULL,
    -- the jobs of the step that has begun, with their fencing tokens, JSON
    step           TEXT NOT NULL DEFAULT '[]',
    version        INTEGER NOT NULL DEFAULT 0,
    expected       INTEGER NOT NULL,
    expected_kind  TEXT NOT NULL,
    done           INTEGER NOT NULL DEFAULT 0,
    failed         INTEGER NOT NULL DEFAULT 0,
    created_at     INTEGER NOT NULL,
    -- NULL while a worker must look at it
    ended_at       INTEGER,
    CONSTRAINT bulk_actions_request_once UNIQUE (request_key),
    CONSTRAINT bulk_actions_kind_known CHECK (kind IN ('retry', 'resend', 'cancel', 'refund')),
    CONSTRAINT bulk_actions_state_known CHECK (state IN ('running', 'stopped', 'done')),
    CONSTRAINT bulk_actions_ended_between_steps CHECK (ended_at IS NULL OR step = '[]')
) STRICT;

CREATE INDEX bulk_actions_open ON bulk_actions (id) WHERE ended_at IS NULL;

-- Jobs that a bulk action left out, and why.
CREATE TABLE bulk_failures (
    bulk_id  INTEGER NOT NULL,
    job_id   INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    detail   TEXT NOT NULL,
    PRIMARY KEY (bulk_id, job_id)
) STRICT;

CREATE INDEX audit_subject ON audit (subject, id);


-- One row for each job and each time an instance writes its events, about once a second.
CREATE TABLE job_events (
    id              INTEGER PRIMARY KEY,
    correlation_id  TEXT NOT NULL,
    instance        TEXT NOT NULL,
    -- counts the rows of the instance: a row that was written twice has the same number
    number          INTEGER NOT NULL,
    -- [[milliseconds before `at`, event, fields], …], JSON
    events          TEXT NOT NULL,
    at              INTEGER NOT NULL
) STRICT;

CREATE INDEX job_events_correlation_id ON job_events (correlation_id);

-- What the provider did and should not have done, until an operator has handled it.
CREATE TABLE job_anomalies (
    id          INTEGER PRIMARY KEY,
    job_id      INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    at          INTEGER NOT NULL,
    handled_at  INTEGER,
    CONSTRAINT job_anomalies_once UNIQUE (job_id, kind),
    CONSTRAINT job_anomalies_kind_known CHECK (kind IN ('contradiction', 'wrong_task', 'loss'))
) STRICT;

CREATE INDEX job_anomalies_open ON job_anomalies (kind, id) WHERE handled_at IS NULL;

-- Roles that were set in the dashboard. The ids in GENLOCK_ADMIN_IDS are owners without a row.
CREATE TABLE operators (
    id        TEXT PRIMARY KEY,
    role      TEXT NOT NULL,
    name      TEXT NOT NULL,
    added_by  TEXT NOT NULL,
    added_at  INTEGER NOT NULL,
    CONSTRAINT operators_role_known CHECK (role IN ('owner', 'support', 'viewer'))
) STRICT;

CREATE TABLE login_links (
    secret_hash  TEXT PRIMARY KEY,
    operator_id  TEXT NOT NULL,
    method       TEXT NOT NULL,
    expires_at   INTEGER NOT NULL,
    used_at      INTEGER
) STRICT;

CREATE INDEX login_links_expires_at ON login_links (expires_at);

CREATE TABLE dashboard_sessions (
    id           INTEGER PRIMARY KEY,
    secret_hash  TEXT NOT NULL,
    operator_id  TEXT NOT NULL,
    method       TEXT NOT NULL,
    remote       TEXT NOT NULL,
    agent        TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    seen_at      INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    CONSTRAINT dashboard_sessions_secret_once UNIQUE (secret_hash)
) STRICT;

CREATE INDEX dashboard_sessions_expires_at ON dashboard_sessions (expires_at);

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
    due_at       INTEGER,
    -- when its figures changed last as the quarters of an hour were counted
    quarters_at  INTEGER
) STRICT;

CREATE INDEX figure_blocks_due ON figure_blocks (due_at) WHERE due_at IS NOT NULL;
-- Blocks whose quarters of an hour were not counted when their figures changed last.
CREATE INDEX figure_blocks_quarters ON figure_blocks (block) WHERE quarters_at IS NOT changed_at;

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

-- The sums of all blocks: by model for each hour, day and 30 days, and by hour for all models of a provider together
-- (`hour_total`).
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

-- The orders of each block by provider and quarter of an hour (counted from 1970, UTC): days begin at quarters of an hour in
-- some time zones.
CREATE TABLE quarter_figures (
    quarter    INTEGER NOT NULL,
    bot        TEXT NOT NULL,
    provider   TEXT NOT NULL,
    block      INTEGER NOT NULL,
    orders     INTEGER NOT NULL,
    delivered  INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    cancelled  INTEGER NOT NULL,
    refunded   INTEGER NOT NULL,
    revenue    INTEGER NOT NULL,
    cost       INTEGER NOT NULL,
    loss       INTEGER NOT NULL,
    PRIMARY KEY (quarter, bot, provider, block)
) STRICT;

CREATE INDEX quarter_figures_block ON quarter_figures (block);

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

-- A long period is read from these indexes alone, without the rows: they are wide, or lie between those of the models.
CREATE INDEX job_figures_totals ON job_figures (
    start, bot, provider, orders, delivered, failed, cancelled, refunded, revenue, cost, loss, last_failed_job)
    WHERE span = 'hour_total';
CREATE INDEX account_sets_sizes ON account_sets (kind, span, start, bot, size);

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

-- A refund of an order by an operator changes its figures.
CREATE TRIGGER ledger_job_refunded AFTER INSERT ON ledger FOR EACH ROW
WHEN NEW.kind = 'refund' AND NEW.key GLOB 'refund:[0-9]*'
BEGIN
    INSERT INTO figure_changes (job_id) VALUES (CAST(substr(NEW.key, 8) AS INTEGER));
END;

-- What a given-up attempt cost is the operator's loss, and changes the figures of the job.
CREATE TRIGGER attempts_cost_later AFTER UPDATE OF cost ON attempts FOR EACH ROW
WHEN NEW.late_report IS NOT NULL AND OLD.cost IS NOT NEW.cost
BEGIN
    INSERT INTO figure_changes (job_id) VALUES (NEW.job_id);
END;

-- Edits of models by operators. The newest change of a model decides; the others are its history.
CREATE TABLE catalog_changes (
    id           INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    model        TEXT NOT NULL,
    -- what is changed in the model, in the form of its table in the overlay file, as JSON
    before       TEXT NOT NULL,
    after        TEXT NOT NULL,
    author       TEXT NOT NULL,
    request_key  TEXT NOT NULL,
    -- the change that this one takes back
    undoes       INTEGER,
    CONSTRAINT catalog_changes_request_once UNIQUE (request_key)
) STRICT;

CREATE INDEX catalog_changes_model ON catalog_changes (model, id);

-- Keys of API clients. `spent` is what the orders of `spent_day` (days since 1970, UTC) cost that were not refunded.
CREATE TABLE api_keys (
    id            INTEGER PRIMARY KEY,
    account_id    INTEGER NOT NULL,
    name          TEXT NOT NULL,
    -- separated by spaces
    scopes        TEXT NOT NULL,
    -- the start of the secret
    shown         TEXT NOT NULL,
    secret_hash   TEXT NOT NULL,
    spend_limit   INTEGER,
    spent         INTEGER NOT NULL DEFAULT 0,
    spent_day     INTEGER NOT NULL DEFAULT 0,
    request_key   TEXT NOT NULL,
    author        TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    last_used_at  INTEGER,
    revoked_at    INTEGER,
    CONSTRAINT api_keys_secret_once UNIQUE (secret_hash),
    CONSTRAINT api_keys_request_once UNIQUE (request_key),
    CONSTRAINT api_keys_spent_not_negative CHECK (spent >= 0)
) STRICT;

CREATE INDEX api_keys_account ON api_keys (account_id, id);

-- What an order cost counts against its key's limit only while it is held or charged.
CREATE TRIGGER jobs_spend_changed AFTER UPDATE OF hold_state ON jobs FOR EACH ROW
WHEN NEW.api_key_id IS NOT NULL AND (OLD.hold_state = 'released') <> (NEW.hold_state = 'released')
BEGIN
    UPDATE api_keys
    SET spent = max(spent + CASE WHEN NEW.hold_state = 'released' THEN -NEW.price ELSE NEW.price END, 0)
    WHERE id = NEW.api_key_id AND spent_day = NEW.created_at / 86400000000;
END;

-- An order is refused above a number of open jobs: counted here, it is exact and does not read the jobs.
CREATE TRIGGER jobs_api_opened AFTER INSERT ON jobs FOR EACH ROW
WHEN NEW.api_key_id IS NOT NULL AND NEW.ended_at IS NULL
BEGIN
    UPDATE accounts SET open_api_jobs = open_api_jobs + 1 WHERE id = NEW.account_id;
END;

CREATE TRIGGER jobs_api_ended AFTER UPDATE OF ended_at ON jobs FOR EACH ROW
WHEN NEW.api_key_id IS NOT NULL AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL
BEGIN
    UPDATE accounts SET open_api_jobs = open_api_jobs - 1 WHERE id = NEW.account_id;
END;

CREATE TABLE webhooks (
    id                     INTEGER PRIMARY KEY,
    account_id             INTEGER NOT NULL,
    public_id              TEXT NOT NULL,
    url                    TEXT NOT NULL,
    -- separated by spaces, with a space at both ends; a single space means all
    events                 TEXT NOT NULL,
    description            TEXT NOT NULL,
    enabled                INTEGER NOT NULL DEFAULT 1,
    disabled_reason        TEXT NOT NULL DEFAULT '',
    secret_number          INTEGER NOT NULL DEFAULT 1,
    previous_secret_until  INTEGER,
    -- an instance sends its events until then, or it waits until then after a failure
    held_until             INTEGER NOT NULL,
    created_at             INTEGER NOT NULL,
    -- sealed with a key of the settings; '' in a row of an earlier version: derived from the bot's token
    secret                 TEXT NOT NULL DEFAULT '',
    -- the one before the last rotation
    previous_secret        TEXT NOT NULL DEFAULT '',
    -- the instance that sends its events, until then; empty: none
    held_by                TEXT NOT NULL DEFAULT '',
    -- consecutive times that nothing could be delivered, and since when
    failures               INTEGER NOT NULL DEFAULT 0,
    failing_since          INTEGER,
    -- whether it answered slowly the last time
    slow                   INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT webhooks_public_id_once UNIQUE (public_id)
) STRICT;
CREATE INDEX webhooks_account ON webhooks (account_id, id);
CREATE INDEX webhooks_held ON webhooks (held_by) WHERE held_by <> '';

CREATE TABLE webhook_deliveries (
    id            INTEGER PRIMARY KEY,
    public_id     TEXT NOT NULL,
    webhook_id    INTEGER NOT NULL,
    job_id        INTEGER,
    event         TEXT NOT NULL,
    event_at      INTEGER NOT NULL,
    state         TEXT NOT NULL DEFAULT 'pending',
    attempts      INTEGER NOT NULL DEFAULT 0,
    due_at        INTEGER,
    last_status   INTEGER,
    last_error    TEXT NOT NULL DEFAULT '',
    delivered_at  INTEGER,
    -- the start of the last answer's body
    last_answer   TEXT NOT NULL DEFAULT '',
    CONSTRAINT webhook_deliveries_public_id_once UNIQUE (public_id),
    CONSTRAINT webhook_deliveries_state_known CHECK (state IN ('pending', 'delivered', 'failed')),
    CONSTRAINT webhook_deliveries_pending_means_due CHECK ((state = 'pending') = (due_at IS NOT NULL))
) STRICT;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_job ON webhook_deliveries (webhook_id, job_id, id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_job ON webhook_deliveries (job_id, id) WHERE job_id IS NOT NULL;
CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX webhook_deliveries_state ON webhook_deliveries (webhook_id, state, event_at, id);
-- A disabled endpoint gets tests only: they are found without reading the events that wait for it.
CREATE INDEX webhook_deliveries_test ON webhook_deliveries (webhook_id, due_at, id)
    WHERE due_at IS NOT NULL AND event = 'webhook.test';

CREATE TRIGGER jobs_webhook_event AFTER UPDATE OF state, delivery ON jobs FOR EACH ROW
WHEN NEW.api_key_id IS NOT NULL AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = NEW.account_id AND enabled)
BEGIN
    INSERT INTO webhook_deliveries (public_id, webhook_id, job_id, event, event_at, due_at)
    SELECT 'msg_' || lower(hex(randomblob(16))), w.id, NEW.id, e.happened, e.at,
        -- not before an earlier event of the job that is still to be sent
        max(e.at, coalesce((SELECT max(d.due_at) FROM webhook_deliveries d
            WHERE d.webhook_id = w.id AND d.job_id = NEW.id AND d.due_at IS NOT NULL), e.at))
    FROM (
        SELECT happened, earlier,
            coalesce(CASE WHEN happened = 'job.started' THEN NEW.submitted_at
                ELSE coalesce(NEW.delivered_at, NEW.ended_at) END, NEW.created_at) AS at
        FROM (
            SELECT CASE
                    WHEN NEW.state = 'running' THEN 'job.started'
                    WHEN NEW.state = 'failed' THEN 'job.failed'
                    WHEN NEW.state = 'cancelled' THEN 'job.canceled'
                    WHEN NEW.state = 'expired' THEN 'job.expired'
                    WHEN NEW.state = 'succeeded' AND NEW.delivery = 'delivered' THEN 'job.succeeded'
                    WHEN NEW.state = 'succeeded' AND NEW.delivery IN ('undeliverable', 'unknown') THEN 'job.failed'
                END AS happened,
                CASE
                    WHEN OLD.state = 'running' THEN 'job.started'
                    WHEN OLD.state = 'failed' THEN 'job.failed'
                    WHEN OLD.state = 'cancelled' THEN 'job.canceled'
                    WHEN OLD.state = 'expired' THEN 'job.expired'
                    WHEN OLD.state = 'succeeded' AND OLD.delivery = 'delivered' THEN 'job.succeeded'
                    WHEN OLD.state = 'succeeded' AND OLD.delivery IN ('undeliverable', 'unknown') THEN 'job.failed'
                END AS earlier
        )
    ) e JOIN webhooks w ON w.account_id = NEW.account_id AND w.enabled
        AND (w.events = ' ' OR instr(w.events, ' ' || e.happened || ' ') > 0)
    WHERE e.happened IS NOT NULL AND e.happened IS NOT e.earlier;
END;
