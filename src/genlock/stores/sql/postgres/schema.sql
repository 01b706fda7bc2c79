-- Accounts, jobs, money, callbacks, updates, instances, and what the bot stores.

CREATE TABLE accounts (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel      text NOT NULL,
    bot          text NOT NULL,
    external_id  text NOT NULL,
    -- where the channel reaches the user outside a job; opaque, '' when unknown
    address      text NOT NULL DEFAULT '',
    available    bigint NOT NULL DEFAULT 0,
    held         bigint NOT NULL DEFAULT 0,
    -- free runs taken; compared when one is taken, so that two orders cannot take the same run
    free_run_count bigint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL,
    -- credits that were refunded in Stars after they had been spent; the next paid top-up repays them
    debt         bigint NOT NULL DEFAULT 0,
    -- jobs of API keys that have not ended; triggers count them
    open_api_jobs bigint NOT NULL DEFAULT 0,
    -- free runs from promo codes that count as used; triggers count them
    gift_runs_used bigint NOT NULL DEFAULT 0,
    CONSTRAINT accounts_external_id_once UNIQUE (channel, bot, external_id),
    CONSTRAINT accounts_available_not_negative CHECK (available >= 0),
    CONSTRAINT accounts_held_not_negative CHECK (held >= 0),
    CONSTRAINT accounts_debt_not_negative CHECK (debt >= 0)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);

CREATE INDEX accounts_debt ON accounts (id) WHERE debt > 0;
CREATE INDEX accounts_external_id ON accounts (external_id);

CREATE TABLE jobs (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id        bigint NOT NULL,
    request_key       text NOT NULL,
    request_hash      text NOT NULL,
    correlation_id    text NOT NULL,
    provider          text NOT NULL,
    channel           text NOT NULL,
    bot               text NOT NULL,
    address           text NOT NULL,
    placeholder       text,
    model             text NOT NULL,
    input             text NOT NULL,
    price             bigint NOT NULL,
    hold_state        text NOT NULL,
    state             text NOT NULL,
    secret_hash       text,
    task_id           text,
    error_code        text NOT NULL DEFAULT '',
    error_text        text NOT NULL DEFAULT '',
    cancelled_by      text NOT NULL DEFAULT '',
    cost              bigint,
    late              boolean NOT NULL DEFAULT false,
    parts             text NOT NULL DEFAULT '[]',
    delivery          text NOT NULL DEFAULT 'none',
    notice            text NOT NULL,
    attention_code    text,
    attention_reason  text,
    attempts          integer NOT NULL DEFAULT 0,
    due_at            timestamptz,
    deadline_at       timestamptz NOT NULL,
    grace_until       timestamptz,
    lease_owner       text,
    lease_token       bigint NOT NULL,
    created_at        timestamptz NOT NULL,
    submitted_at      timestamptz,
    ended_at          timestamptz,
    delivered_at      timestamptz,
    -- consecutive worker crashes while this job was being processed
    crash_count       integer NOT NULL DEFAULT 0,
    -- the message that a progress edit with an unknown outcome may still overwrite
    progress_message  text,
    -- when the user removed the result from the gallery and the history
    hidden_at         timestamptz,
    -- what the provider needs besides the task's id to find the task again
    handle            text NOT NULL DEFAULT '',
    -- the number of the current attempt; 0 before the first
    attempt           bigint NOT NULL DEFAULT 0,
    -- the API key that the order was made with
    api_key_id        bigint,
    -- the fencing token under which the notice was journaled as sent; NULL once it is known that it was not sent
    notice_token      bigint,
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
) WITH (
    fillfactor = 100, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000);

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
    WHERE delivered_at IS NOT NULL AND hidden_at IS NULL AND (hold_state <> 'released' OR late);

-- Each try to have a job made by one provider. The row is written in the commit that begins the submit, before the call.
CREATE TABLE attempts (
    job_id       bigint NOT NULL,
    number       bigint NOT NULL,
    provider     text NOT NULL,
    -- the provider's own id of the model
    offer        text NOT NULL,
    secret_hash  text,
    -- set when the job goes on to another attempt; those of the current attempt are in the job's row
    task_id      text,
    handle       text NOT NULL DEFAULT '',
    -- NULL while the provider may still work on it
    outcome      text,
    error_code   text NOT NULL DEFAULT '',
    -- in thousandths of the provider's credit
    cost         bigint,
    -- what the provider reported after the attempt had ended
    late_report  text,
    started_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    -- the input as the provider was asked for it; NULL: the job's own input, or erased
    sent_input   text,
    PRIMARY KEY (job_id, number),
    CONSTRAINT attempts_outcome_known CHECK (
        outcome IN ('succeeded', 'failed', 'refused', 'busy', 'unknown', 'cancelled', 'expired')),
    CONSTRAINT attempts_late_report_known CHECK (late_report IN ('succeeded', 'failed')),
    CONSTRAINT attempts_ended_means_outcome CHECK ((ended_at IS NULL) = (outcome IS NULL))
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);

CREATE INDEX attempts_task ON attempts (provider, task_id) WHERE task_id IS NOT NULL;

-- Slots of providers that may work on a limited number of tasks at once.
CREATE TABLE task_slots (
    provider  text NOT NULL,
    number    bigint NOT NULL,
    -- the last job that took the slot; the slot is free unless that job is being submitted or runs at this provider
    job_id    bigint,
    -- grows whenever the slot is taken
    token     bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, number)
);

-- Circuit breakers: which providers, or models of a provider, are left alone after failing again and again.
CREATE TABLE breakers (
    provider     text NOT NULL,
    -- '' for the whole provider
    model        text NOT NULL,
    -- consecutive failures
    failures     bigint NOT NULL,
    -- how often it has opened since it last let an order succeed
    opened       bigint NOT NULL DEFAULT 0,
    -- no order before this time, then one at a time; NULL: closed
    open_until   timestamptz,
    -- until when the order that tries the provider again has time
    probe_until  timestamptz,
    reason       text NOT NULL,
    changed_at   timestamptz NOT NULL,
    PRIMARY KEY (provider, model)
);

CREATE TABLE ledger (
    key         text PRIMARY KEY,
    account_id  bigint NOT NULL,
    job_id      bigint,
    kind        text NOT NULL,
    debit       text NOT NULL,
    credit      text NOT NULL,
    amount      bigint NOT NULL,
    reason      text NOT NULL DEFAULT '',
    at          timestamptz NOT NULL,
    CONSTRAINT ledger_amount_positive CHECK (amount > 0),
    CONSTRAINT ledger_sides_differ CHECK (debit <> credit),
    CONSTRAINT ledger_accounts_known CHECK (
        debit IN ('available', 'held', 'house') AND credit IN ('available', 'held', 'house'))
) WITH (
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);

CREATE INDEX ledger_account ON ledger (account_id, at);
-- What changes balances outside orders, for the lists of operators.
CREATE INDEX ledger_moves ON ledger (kind, at, key) WHERE kind NOT IN ('hold', 'capture', 'release');
-- Refunds of orders by operators, by the job: the figures by hour subtract them. No order writes to this index.
CREATE INDEX ledger_job_refunds ON ledger ((CASE WHEN key ~ '^refund:[0-9]{1,18}$' THEN substr(key, 8)::bigint END)) WHERE kind = 'refund';

-- The sums of an account's ledger entries up to a time, so that the check of an account with many entries reads only
-- the newer ones.
CREATE TABLE ledger_checkpoints (
    account_id  bigint PRIMARY KEY,
    at          timestamptz NOT NULL,
    available   bigint NOT NULL,
    held        bigint NOT NULL
);

CREATE TABLE inbox (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    provider     text NOT NULL,
    job_id       bigint,
    task_id      text,
    body         bytea NOT NULL,
    state        text NOT NULL,
    note         text NOT NULL DEFAULT '',
    due_at       timestamptz,
    received_at  timestamptz NOT NULL,
    -- the attempt whose secret the callback's URL carried; NULL: the job's attempt of that time
    attempt      bigint,
    CONSTRAINT inbox_state_known CHECK (state IN ('new', 'done', 'orphan', 'matched', 'expired', 'unreadable')),
    CONSTRAINT inbox_due_means_new CHECK ((due_at IS NOT NULL) = (state = 'new'))
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);

CREATE INDEX inbox_due ON inbox (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX inbox_orphans ON inbox (provider, task_id) WHERE state = 'orphan';
CREATE INDEX inbox_unauthenticated ON inbox (received_at) WHERE job_id IS NULL;
CREATE INDEX inbox_kept ON inbox (state, id) WHERE state IN ('expired', 'unreadable');

CREATE TABLE instances (
    id          text PRIMARY KEY,
    started_at  timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL,
    version     text NOT NULL DEFAULT ''
);

CREATE TABLE roles (
    name    text PRIMARY KEY,
    holder  text NOT NULL,
    epoch   bigint NOT NULL,
    until   timestamptz NOT NULL
);

CREATE TABLE limits (
    key      text PRIMARY KEY,
    next_at  timestamptz NOT NULL
);

CREATE TABLE updates (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bot           text NOT NULL,
    update_id     bigint NOT NULL,
    ordering_key  text NOT NULL,
    kind          text NOT NULL,
    urgent        boolean NOT NULL,
    dedup_key     text,
    body          text NOT NULL,
    state         text NOT NULL,
    note          text NOT NULL DEFAULT '',
    received_at   timestamptz NOT NULL,
    CONSTRAINT updates_once UNIQUE (bot, update_id),
    CONSTRAINT updates_state_known CHECK (state IN ('new', 'done', 'repeated', 'dead'))
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);

CREATE INDEX updates_waiting ON updates (bot, ordering_key, id) WHERE state = 'new';
CREATE INDEX updates_dead ON updates (id) WHERE state = 'dead';
CREATE INDEX updates_dedup ON updates (bot, ordering_key, dedup_key) WHERE dedup_key IS NOT NULL;

-- One row per user: the instance that has its lease handles the user's updates in order. `waiting` counts the new ones.
CREATE TABLE update_queues (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bot          text NOT NULL,
    name         text NOT NULL,
    urgent       boolean NOT NULL,
    waiting      bigint NOT NULL,
    attempts     integer NOT NULL DEFAULT 0,
    due_at       timestamptz,
    lease_owner  text,
    lease_token  bigint NOT NULL DEFAULT 0,
    crash_count  integer NOT NULL DEFAULT 0,
    CONSTRAINT update_queues_once UNIQUE (bot, name),
    CONSTRAINT update_queues_due_means_waiting CHECK ((due_at IS NOT NULL) = (waiting > 0)),
    CONSTRAINT update_queues_leased_means_due CHECK (lease_owner IS NULL OR due_at IS NOT NULL)
) WITH (fillfactor = 80);

CREATE INDEX update_queues_due ON update_queues (urgent, due_at) WHERE due_at IS NOT NULL;

CREATE TABLE kv (
    key    text NOT NULL,
    -- '' for entries of the whole installation
    bot    text NOT NULL DEFAULT '',
    value  text NOT NULL,
    at     timestamptz NOT NULL,
    PRIMARY KEY (key, bot)
);

CREATE TABLE profiles (
    account_id      bigint PRIMARY KEY,
    language        text NOT NULL,
    name            text NOT NULL,
    username        text NOT NULL,
    referred_by     bigint,
    rewarded_at     timestamptz,
    last_model      text NOT NULL DEFAULT '',
    banned_at       timestamptz,
    ban_reason      text NOT NULL DEFAULT '',
    blocked_at      timestamptz,
    created_at      timestamptz NOT NULL,
    seen_at         timestamptz NOT NULL,
    -- An inviter is older than the invited account, so there are no self-invitations and no cycles.
    CONSTRAINT profiles_inviter_is_older CHECK (referred_by < account_id)
);

CREATE INDEX profiles_created_at ON profiles (created_at);
CREATE INDEX profiles_username ON profiles (username);
CREATE INDEX profiles_unrewarded ON profiles (account_id) WHERE referred_by IS NOT NULL AND rewarded_at IS NULL;
CREATE INDEX profiles_banned ON profiles (account_id) WHERE banned_at IS NOT NULL;
CREATE INDEX profiles_invited ON profiles (referred_by, account_id) WHERE referred_by IS NOT NULL;

CREATE TABLE drafts (
    account_id  bigint NOT NULL,
    chat        bigint NOT NULL,
    version     bigint NOT NULL,
    message     bigint,
    body        text NOT NULL,
    -- addresses of the uploads that the draft uses
    uploads     text[] NOT NULL DEFAULT '{}',
    updated_at  timestamptz NOT NULL,
    PRIMARY KEY (account_id, chat)
);

CREATE INDEX drafts_message ON drafts (chat, message) WHERE message IS NOT NULL;

CREATE TABLE favourites (
    account_id  bigint NOT NULL,
    model       text NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (account_id, model)
);

-- The settings that an account last ordered a model with, JSON.
CREATE TABLE model_settings (
    account_id  bigint NOT NULL,
    model       text NOT NULL,
    body        text NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (account_id, model)
);

CREATE TABLE uploads (
    address     text PRIMARY KEY,
    account_id  bigint NOT NULL,
    file        text NOT NULL,
    kind        text NOT NULL,
    seconds     double precision,
    at          timestamptz NOT NULL,
    -- whether an order uses it; an order may be repeated at any time, so the file is not pruned
    ordered     boolean NOT NULL DEFAULT true
);

CREATE INDEX uploads_account ON uploads (account_id, at);
CREATE INDEX uploads_ordered ON uploads (at) WHERE ordered;
CREATE INDEX uploads_unordered ON uploads (at) WHERE NOT ordered;

-- Where each provider keeps a copy of a user's file, for its own models to read, until it deletes the copy.
CREATE TABLE upload_copies (
    -- of the upload
    address     text NOT NULL,
    provider    text NOT NULL,
    url         text NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (address, provider)
);

CREATE INDEX upload_copies_url ON upload_copies (url);
CREATE INDEX upload_copies_expires ON upload_copies (expires_at);

CREATE TABLE payments (
    charge      text PRIMARY KEY,
    account_id  bigint NOT NULL,
    -- what was paid, in the smallest unit of the currency: `Payment.paid_amount`
    stars       bigint NOT NULL,
    amount      bigint NOT NULL,
    state       text NOT NULL,
    refunds     integer NOT NULL DEFAULT 0,
    at          timestamptz NOT NULL,
    -- the part of the amount that the user no longer had when the payment service refunded the payment
    owed        bigint NOT NULL DEFAULT 0,
    -- when a refund that was not made by an operator of ours was booked
    external_refund_at timestamptz,
    CONSTRAINT payments_state_known CHECK (state IN ('paid', 'refunding', 'refunded')),
    CONSTRAINT payments_amounts_positive CHECK (stars > 0 AND amount > 0),
    CONSTRAINT payments_owed_within_amount CHECK (owed BETWEEN 0 AND amount)
);

CREATE INDEX payments_account ON payments (account_id, at);
CREATE INDEX payments_at ON payments (at);
CREATE INDEX payments_owed ON payments (account_id) WHERE owed > 0;
CREATE INDEX payments_external_refund ON payments (external_refund_at) WHERE external_refund_at IS NOT NULL;
CREATE INDEX payments_refunds ON payments (state, at, charge) WHERE state <> 'paid';

CREATE TABLE free_runs (
    account_id   bigint NOT NULL,
    request_key  text NOT NULL,
    source       text NOT NULL,
    at           timestamptz NOT NULL,
    PRIMARY KEY (account_id, request_key),
    CONSTRAINT free_runs_source_known CHECK (source IN ('day', 'gift'))
);

CREATE INDEX free_runs_account ON free_runs (account_id, source, at);

CREATE OR REPLACE FUNCTION count_gift_run() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    UPDATE accounts SET gift_runs_used = gift_runs_used + 1 WHERE id = NEW.account_id AND NOT EXISTS (
        SELECT FROM jobs WHERE account_id = NEW.account_id AND request_key = NEW.request_key
            AND (state IN ('failed', 'expired') OR state = 'cancelled' AND submitted_at IS NULL));
    RETURN NULL;
END $$;

CREATE TRIGGER free_runs_gift_taken AFTER INSERT ON free_runs FOR EACH ROW
WHEN (NEW.source = 'gift') EXECUTE FUNCTION count_gift_run();

CREATE OR REPLACE FUNCTION return_gift_run() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    UPDATE accounts SET gift_runs_used = gift_runs_used
        + CASE WHEN NEW.state IN ('failed', 'expired') OR NEW.state = 'cancelled' AND NEW.submitted_at IS NULL THEN -1 ELSE 1 END
    WHERE id = NEW.account_id AND EXISTS (
        SELECT FROM free_runs WHERE account_id = NEW.account_id AND request_key = NEW.request_key AND source = 'gift');
    RETURN NULL;
END $$;

-- A run whose job failed does not count, and one that was cancelled counts only after its submit.
CREATE TRIGGER jobs_gift_run_returned AFTER UPDATE OF state ON jobs FOR EACH ROW
WHEN ((OLD.state IN ('failed', 'expired') OR OLD.state = 'cancelled' AND OLD.submitted_at IS NULL)
    <> (NEW.state IN ('failed', 'expired') OR NEW.state = 'cancelled' AND NEW.submitted_at IS NULL))
EXECUTE FUNCTION return_gift_run();

CREATE TABLE promos (
    code         text PRIMARY KEY,
    -- '' for codes that users of every bot may use
    bot          text NOT NULL DEFAULT '',
    amount       bigint NOT NULL,
    runs         integer NOT NULL,
    used         integer NOT NULL DEFAULT 0,
    uses_max     integer,
    per_account  integer NOT NULL,
    until_at     timestamptz,
    closed_at    timestamptz,
    author       text NOT NULL,
    created_at   timestamptz NOT NULL,
    CONSTRAINT promos_credits_or_runs CHECK ((amount > 0) <> (runs > 0) AND amount >= 0 AND runs >= 0),
    CONSTRAINT promos_not_overused CHECK (used <= uses_max)
);

CREATE INDEX promos_created ON promos (created_at, code);

CREATE TABLE promo_uses (
    code         text NOT NULL,
    account_id   bigint NOT NULL,
    number       integer NOT NULL,
    request_key  text NOT NULL,
    at           timestamptz NOT NULL,
    PRIMARY KEY (code, account_id, number),
    CONSTRAINT promo_uses_request_once UNIQUE (account_id, request_key)
);

CREATE TABLE broadcasts (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bot          text NOT NULL,
    text         text NOT NULL,
    author       text NOT NULL,
    request_key  text NOT NULL,
    state        text NOT NULL,
    reached      bigint NOT NULL DEFAULT 0,
    sent         bigint NOT NULL DEFAULT 0,
    failed       bigint NOT NULL DEFAULT 0,
    total        bigint NOT NULL,
    created_at   timestamptz NOT NULL,
    -- the formatted text and the file, JSON; empty when `text` is HTML
    content      text NOT NULL DEFAULT '',
    -- Whom it goes to: users with this language, if it is not empty; users who have paid, or never have; users who
    -- were not seen since a time. Without any of these, every user who can be reached.
    language     text NOT NULL DEFAULT '',
    paid         boolean,
    silent_since timestamptz,
    -- recipients whose message may or may not have arrived
    unknown      bigint NOT NULL DEFAULT 0,
    CONSTRAINT broadcasts_request_once UNIQUE (bot, request_key),
    CONSTRAINT broadcasts_state_known CHECK (state IN ('running', 'stopped', 'done'))
);

CREATE INDEX broadcasts_running ON broadcasts (id) WHERE state = 'running';

-- Recipients of broadcasts between being taken and the outcome of their message. A sender that stops reporting is
-- replaced, unless its call may have been made.
CREATE TABLE broadcast_recipients (
    broadcast_id bigint NOT NULL,
    account_id   bigint NOT NULL,
    -- whether the call may have been made
    sending      boolean NOT NULL DEFAULT false,
    -- grows each time the recipient is taken: a sender that was replaced must not send
    token        bigint NOT NULL DEFAULT 1,
    -- when the recipient may be taken again, or, while it is being sent to, when the outcome counts as unknown
    due_at       timestamptz NOT NULL,
    PRIMARY KEY (broadcast_id, account_id)
);

CREATE INDEX broadcast_recipients_due ON broadcast_recipients (due_at);

CREATE TABLE audit (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL,
    bot      text NOT NULL DEFAULT '',
    key      text NOT NULL,
    actor    text NOT NULL,
    action   text NOT NULL,
    subject  text NOT NULL,
    detail   text NOT NULL,
    CONSTRAINT audit_once UNIQUE (bot, key)
);

CREATE TABLE bulk_actions (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind           text NOT NULL,
    -- filters or job ids, JSON
    selection      text NOT NULL,
    author         text NOT NULL,
    request_key    text NOT NULL,
    state          text NOT NULL,
    -- the jobs below this id are still to be looked at
    below          bigint NOT NULL,
    -- the jobs of the step that has begun, with their fencing tokens, JSON
    step           text NOT NULL DEFAULT '[]',
    version        bigint NOT NULL DEFAULT 0,
    expected       bigint NOT NULL,
    expected_kind  text NOT NULL,
    done           bigint NOT NULL DEFAULT 0,
    failed         bigint NOT NULL DEFAULT 0,
    created_at     timestamptz NOT NULL,
    -- NULL while a worker must look at it
    ended_at       timestamptz,
    CONSTRAINT bulk_actions_request_once UNIQUE (request_key),
    CONSTRAINT bulk_actions_kind_known CHECK (kind IN ('retry', 'resend', 'cancel', 'refund')),
    CONSTRAINT bulk_actions_state_known CHECK (state IN ('running', 'stopped', 'done')),
    CONSTRAINT bulk_actions_ended_between_steps CHECK (ended_at IS NULL OR step = '[]')
);

CREATE INDEX bulk_actions_open ON bulk_actions (id) WHERE ended_at IS NULL;

-- Jobs that a bulk action left out, and why.
CREATE TABLE bulk_failures (
    bulk_id  bigint NOT NULL,
    job_id   bigint NOT NULL,
    reason   text NOT NULL,
    detail   text NOT NULL,
    PRIMARY KEY (bulk_id, job_id)
);
CREATE INDEX audit_subject ON audit (subject, id);


-- One row for each job and each time an instance writes its events, about once a second.
CREATE TABLE job_events (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    correlation_id  text NOT NULL,
    instance        text NOT NULL,
    -- counts the rows of the instance: a row that was written twice has the same number
    number          bigint NOT NULL,
    -- [[milliseconds before `at`, event, fields], …], JSON
    events          text NOT NULL,
    at              timestamptz NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);

CREATE INDEX job_events_correlation_id ON job_events (correlation_id);

-- What the provider did and should not have done, until an operator has handled it.
CREATE TABLE job_anomalies (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id      bigint NOT NULL,
    kind        text NOT NULL,
    at          timestamptz NOT NULL,
    handled_at  timestamptz,
    CONSTRAINT job_anomalies_once UNIQUE (job_id, kind),
    CONSTRAINT job_anomalies_kind_known CHECK (kind IN ('contradiction', 'wrong_task', 'loss'))
);

CREATE INDEX job_anomalies_open ON job_anomalies (kind, id) WHERE handled_at IS NULL;

-- Roles that were set in the dashboard. The ids in GENLOCK_ADMIN_IDS are owners without a row.
CREATE TABLE operators (
    id        text PRIMARY KEY,
    role      text NOT NULL,
    name      text NOT NULL,
    added_by  text NOT NULL,
    added_at  timestamptz NOT NULL,
    CONSTRAINT operators_role_known CHECK (role IN ('owner', 'support', 'viewer'))
);

CREATE TABLE login_links (
    secret_hash  text PRIMARY KEY,
    operator_id  text NOT NULL,
    method       text NOT NULL,
    expires_at   timestamptz NOT NULL,
    used_at      timestamptz
);

CREATE INDEX login_links_expires_at ON login_links (expires_at);

CREATE TABLE dashboard_sessions (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    secret_hash  text NOT NULL,
    operator_id  text NOT NULL,
    method       text NOT NULL,
    remote       text NOT NULL,
    agent        text NOT NULL,
    created_at   timestamptz NOT NULL,
    seen_at      timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    CONSTRAINT dashboard_sessions_secret_once UNIQUE (secret_hash)
);

CREATE INDEX dashboard_sessions_expires_at ON dashboard_sessions (expires_at);

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
    due_at       timestamptz,
    -- when its figures changed last as the quarters of an hour were counted
    quarters_at  timestamptz
);

CREATE INDEX figure_blocks_due ON figure_blocks (due_at) WHERE due_at IS NOT NULL;
-- Blocks whose quarters of an hour were not counted when their figures changed last.
CREATE INDEX figure_blocks_quarters ON figure_blocks (block) WHERE quarters_at IS DISTINCT FROM changed_at;

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

-- The sums of all blocks: by model for each hour, day and 30 days, and by hour for all models of a provider together
-- (`hour_total`).
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

-- The orders of each block by provider and quarter of an hour (counted from 1970, UTC): days begin at quarters of an hour in
-- some time zones.
CREATE TABLE quarter_figures (
    quarter    bigint NOT NULL,
    bot        text NOT NULL,
    provider   text NOT NULL,
    block      bigint NOT NULL,
    orders     bigint NOT NULL,
    delivered  bigint NOT NULL,
    failed     bigint NOT NULL,
    cancelled  bigint NOT NULL,
    refunded   bigint NOT NULL,
    revenue    bigint NOT NULL,
    cost       bigint NOT NULL,
    loss       bigint NOT NULL,
    PRIMARY KEY (quarter, bot, provider, block)
) WITH (fillfactor = 80);

CREATE INDEX quarter_figures_block ON quarter_figures (block);

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

-- A long period is read from these indexes alone, without the rows: they are wide, or lie between those of the models.
CREATE INDEX job_figures_totals ON job_figures (start, bot, provider)
    INCLUDE (orders, delivered, failed, cancelled, refunded, revenue, cost, loss, last_failed_job) WHERE span = 'hour_total';
CREATE INDEX account_sets_sizes ON account_sets (kind, span, start, bot) INCLUDE (size);

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

CREATE OR REPLACE FUNCTION record_job_refund() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO figure_changes (job_id) VALUES (substr(NEW.key, 8)::bigint); RETURN NULL; END $$;

-- A refund of an order by an operator changes its figures.
CREATE TRIGGER ledger_job_refunded AFTER INSERT ON ledger FOR EACH ROW
WHEN (NEW.kind = 'refund' AND NEW.key ~ '^refund:[0-9]{1,18}$') EXECUTE FUNCTION record_job_refund();

-- What a given-up attempt cost is the operator's loss, and changes the figures of the job.
CREATE OR REPLACE FUNCTION record_attempt_cost() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO figure_changes (job_id) VALUES (NEW.job_id); RETURN NULL; END $$;

CREATE TRIGGER attempts_cost_later AFTER UPDATE OF cost ON attempts FOR EACH ROW
WHEN (NEW.late_report IS NOT NULL AND OLD.cost IS DISTINCT FROM NEW.cost) EXECUTE FUNCTION record_attempt_cost();

-- Edits of models by operators. The newest change of a model decides; the others are its history.
CREATE TABLE catalog_changes (
    id           bigint PRIMARY KEY,
    at           timestamptz NOT NULL,
    model        text NOT NULL,
    -- what is changed in the model, in the form of its table in the overlay file, as JSON
    before       text NOT NULL,
    after        text NOT NULL,
    author       text NOT NULL,
    request_key  text NOT NULL,
    -- the change that this one takes back
    undoes       bigint,
    CONSTRAINT catalog_changes_request_once UNIQUE (request_key)
);

CREATE INDEX catalog_changes_model ON catalog_changes (model, id);

-- Keys of API clients. `spent` is what the orders of `spent_day` (days since 1970, UTC) cost that were not refunded.
CREATE TABLE api_keys (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id    bigint NOT NULL,
    name          text NOT NULL,
    -- separated by spaces
    scopes        text NOT NULL,
    -- the start of the secret
    shown         text NOT NULL,
    secret_hash   text NOT NULL,
    spend_limit   bigint,
    spent         bigint NOT NULL DEFAULT 0,
    spent_day     bigint NOT NULL DEFAULT 0,
    request_key   text NOT NULL,
    author        text NOT NULL,
    created_at    timestamptz NOT NULL,
    last_used_at  timestamptz,
    revoked_at    timestamptz,
    CONSTRAINT api_keys_secret_once UNIQUE (secret_hash),
    CONSTRAINT api_keys_request_once UNIQUE (request_key),
    CONSTRAINT api_keys_spent_not_negative CHECK (spent >= 0)
) WITH (fillfactor = 50);

CREATE INDEX api_keys_account ON api_keys (account_id, id);

CREATE OR REPLACE FUNCTION record_spend_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    UPDATE api_keys
    SET spent = greatest(spent + CASE WHEN NEW.hold_state = 'released' THEN -NEW.price ELSE NEW.price END, 0)
    WHERE id = NEW.api_key_id AND spent_day = floor(date_part('epoch', NEW.created_at) / 86400);
    RETURN NULL;
END $$;

-- What an order cost counts against its key's limit only while it is held or charged.
CREATE TRIGGER jobs_spend_changed AFTER UPDATE OF hold_state ON jobs FOR EACH ROW
WHEN (NEW.api_key_id IS NOT NULL AND (OLD.hold_state = 'released') <> (NEW.hold_state = 'released'))
EXECUTE FUNCTION record_spend_change();

CREATE OR REPLACE FUNCTION count_open_api_job() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    UPDATE accounts SET open_api_jobs = open_api_jobs + CASE WHEN TG_OP = 'INSERT' THEN 1 ELSE -1 END
    WHERE id = NEW.account_id;
    RETURN NULL;
END $$;

-- An order is refused above a number of open jobs: counted here, it is exact and does not read the jobs.
CREATE TRIGGER jobs_api_opened AFTER INSERT ON jobs FOR EACH ROW
WHEN (NEW.api_key_id IS NOT NULL AND NEW.ended_at IS NULL) EXECUTE FUNCTION count_open_api_job();

CREATE TRIGGER jobs_api_ended AFTER UPDATE OF ended_at ON jobs FOR EACH ROW
WHEN (NEW.api_key_id IS NOT NULL AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL)
EXECUTE FUNCTION count_open_api_job();

CREATE TABLE webhooks (
    id                     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id             bigint NOT NULL,
    public_id              text NOT NULL,
    url                    text NOT NULL,
    -- separated by spaces, with a space at both ends; a single space means all
    events                 text NOT NULL,
    description            text NOT NULL,
    enabled                boolean NOT NULL DEFAULT true,
    disabled_reason        text NOT NULL DEFAULT '',
    secret_number          integer NOT NULL DEFAULT 1,
    previous_secret_until  timestamptz,
    -- an instance sends its events until then, or it waits until then after a failure
    held_until             timestamptz NOT NULL,
    created_at             timestamptz NOT NULL,
    -- sealed with a key of the settings; '' in a row of an earlier version: derived from the bot's token
    secret                 text NOT NULL DEFAULT '',
    -- the one before the last rotation
    previous_secret        text NOT NULL DEFAULT '',
    -- the instance that sends its events, until then; empty: none
    held_by                text NOT NULL DEFAULT '',
    -- consecutive times that nothing could be delivered, and since when
    failures               integer NOT NULL DEFAULT 0,
    failing_since          timestamptz,
    -- whether it answered slowly the last time
    slow                   boolean NOT NULL DEFAULT false,
    CONSTRAINT webhooks_public_id_once UNIQUE (public_id)
);
CREATE INDEX webhooks_account ON webhooks (account_id, id);
CREATE INDEX webhooks_held ON webhooks (held_by) WHERE held_by <> '';

CREATE TABLE webhook_deliveries (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id     text NOT NULL,
    webhook_id    bigint NOT NULL,
    job_id        bigint,
    event         text NOT NULL,
    event_at      timestamptz NOT NULL,
    state         text NOT NULL DEFAULT 'pending',
    attempts      integer NOT NULL DEFAULT 0,
    due_at        timestamptz,
    last_status   integer,
    last_error    text NOT NULL DEFAULT '',
    delivered_at  timestamptz,
    -- the start of the last answer's body
    last_answer   text NOT NULL DEFAULT '',
    CONSTRAINT webhook_deliveries_public_id_once UNIQUE (public_id),
    CONSTRAINT webhook_deliveries_state_known CHECK (state IN ('pending', 'delivered', 'failed')),
    CONSTRAINT webhook_deliveries_pending_means_due CHECK ((state = 'pending') = (due_at IS NOT NULL))
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_job ON webhook_deliveries (webhook_id, job_id, id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_job ON webhook_deliveries (job_id, id) WHERE job_id IS NOT NULL;
CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX webhook_deliveries_state ON webhook_deliveries (webhook_id, state, event_at, id);
-- A disabled endpoint gets tests only: they are found without reading the events that wait for it.
CREATE INDEX webhook_deliveries_test ON webhook_deliveries (webhook_id, due_at, id)
    WHERE due_at IS NOT NULL AND event = 'webhook.test';

CREATE OR REPLACE FUNCTION webhook_event(state text, delivery text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE
    WHEN state = 'running' THEN 'job.started'
    WHEN state = 'failed' THEN 'job.failed'
    WHEN state = 'cancelled' THEN 'job.canceled'
    WHEN state = 'expired' THEN 'job.expired'
    WHEN state = 'succeeded' AND delivery = 'delivered' THEN 'job.succeeded'
    WHEN state = 'succeeded' AND delivery IN ('undeliverable', 'unknown') THEN 'job.failed' END $$;

CREATE OR REPLACE FUNCTION record_webhook_event() RETURNS trigger LANGUAGE plpgsql AS
$$ DECLARE
    happened text := webhook_event(NEW.state, NEW.delivery);
    happened_at timestamptz := CASE WHEN happened = 'job.started' THEN NEW.submitted_at
        ELSE coalesce(NEW.delivered_at, NEW.ended_at) END;
BEGIN
    IF happened IS NOT NULL AND happened IS DISTINCT FROM webhook_event(OLD.state, OLD.delivery) THEN
        INSERT INTO webhook_deliveries (public_id, webhook_id, job_id, event, event_at, due_at)
        SELECT 'msg_' || replace(gen_random_uuid()::text, '-', ''), w.id, NEW.id, happened,
            coalesce(happened_at, NEW.created_at),
            -- not before an earlier event of the job that is still to be sent
            greatest(coalesce(happened_at, NEW.created_at), (
                SELECT max(d.due_at) FROM webhook_deliveries d
                WHERE d.webhook_id = w.id AND d.job_id = NEW.id AND d.due_at IS NOT NULL))
        FROM webhooks w
        WHERE w.account_id = NEW.account_id AND w.enabled
            AND (w.events = ' ' OR strpos(w.events, ' ' || happened || ' ') > 0);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER jobs_webhook_event AFTER UPDATE OF state, delivery ON jobs FOR EACH ROW
WHEN (NEW.api_key_id IS NOT NULL)
EXECUTE FUNCTION record_webhook_event();
