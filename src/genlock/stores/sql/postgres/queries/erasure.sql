-- name: open_jobs_until
-- Count the jobs of an account, up to a job id, that have not ended or still need work, also by an operator: without
-- reading the finished ones. coalesce keeps the planner from using the index of all jobs of the account.
WITH unfinished AS MATERIALIZED (
    SELECT id FROM jobs WHERE account_id = :account_id AND ended_at IS NULL
    UNION SELECT id FROM jobs WHERE coalesce(account_id, 0) = :account_id AND due_at IS NOT NULL
    UNION SELECT id FROM jobs
    WHERE coalesce(account_id, 0) = :account_id AND attention_reason IS NOT NULL AND delivery IN ('pending', 'sending')
)
SELECT count(*) AS count FROM unfinished WHERE id <= :until;

-- name: erase_jobs
-- Erase the inputs, results and error texts of an account's ended jobs, a few at a time. Without its secret, a callback
-- cannot bring another result; with another token, a resend that has read the result cannot write it back, and a notice
-- does not become due again. A result whose delivery waits for an operator stays: its price is held. The address of an API
-- order loses the client's own notes, and keeps what its idempotency key needs. The jobs are read as in `order_lookup`.
UPDATE jobs
SET input = 'null', parts = '[]', error_text = '', secret_hash = NULL, handle = '', lease_token = lease_token + 1,
    notice_token = NULL, hidden_at = coalesce(hidden_at, :now),
    address = CASE WHEN api_key_id IS NULL THEN address ELSE (address::jsonb - 'metadata')::text END,
    attention_reason = CASE WHEN attention_reason IS NOT NULL THEN 'erased' END
WHERE id IN (
        SELECT id FROM (
            SELECT * FROM jobs WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND id > :after AND id <= :until
            ORDER BY account_id, id LIMIT (SELECT 9000000000000000000)) own
        WHERE due_at IS NULL AND ended_at IS NOT NULL
            AND (input <> 'null' OR parts <> '[]' OR error_text <> '' OR secret_hash IS NOT NULL OR handle <> ''
                OR hidden_at IS NULL)
            AND delivery NOT IN ('pending', 'sending')
        ORDER BY id LIMIT :limit)
    AND due_at IS NULL AND delivery NOT IN ('pending', 'sending')
RETURNING id;

-- name: callback_window
-- Return the last of the next callbacks after an id.
SELECT max(id) AS id FROM (SELECT id FROM inbox WHERE id > :after ORDER BY id LIMIT :limit) w;

-- name: erase_callbacks
-- Erase the bodies of callbacks for jobs of an account, in a range of ids. One that came without a job's secret belongs to
-- the job, or to the attempt, whose task it names. One that is not processed yet cannot change a job that is erased.
UPDATE inbox SET body = ''::bytea, note = '', state = CASE WHEN state = 'new' THEN 'done' ELSE state END, due_at = NULL
WHERE id > :after AND id <= :until AND EXISTS (
    SELECT 1 FROM jobs j
    WHERE j.account_id = :account_id AND j.id = coalesce(
        inbox.job_id,
        (SELECT t.id FROM jobs t WHERE t.provider = inbox.provider AND t.task_id = inbox.task_id),
        (SELECT a.job_id FROM attempts a WHERE a.provider = inbox.provider AND a.task_id = inbox.task_id LIMIT 1))
        AND (inbox.state <> 'new' OR j.ended_at IS NOT NULL AND j.secret_hash IS NULL AND j.input = 'null'))
RETURNING id;

-- name: erase_attempts
-- Erase the inputs, the secrets of the callback URLs and the handles of an account's ended jobs, in a range of ids. They are
-- read as in `order_lookup`.
UPDATE attempts SET sent_input = NULL, secret_hash = NULL, handle = ''
WHERE job_id IN (
        SELECT id FROM (
            SELECT id, ended_at, due_at FROM jobs WHERE account_id = ANY (ARRAY[:account_id::bigint]) AND id > :after AND id <= :until
            ORDER BY account_id, id LIMIT (SELECT 9000000000000000000)) own
        WHERE ended_at IS NOT NULL AND due_at IS NULL)
    AND (sent_input IS NOT NULL OR secret_hash IS NOT NULL OR handle <> '')
RETURNING job_id;

-- name: waits_for_handling
-- Whether an update of a user that is older than an age is not handled yet.
SELECT id FROM updates
WHERE bot = :bot AND ordering_key IN (:user::text, :user::text || '/pre_checkout_query') AND state = 'new'
    AND received_at < :now - make_interval(secs => :older_than::float8)
LIMIT 1;

-- name: update_window
-- Return the last of the next updates after an id.
SELECT max(id) AS id FROM (SELECT id FROM updates WHERE id > :after ORDER BY id LIMIT :limit) w;

-- name: erase_updates
-- Erase the bodies of a user's handled updates, in a range of ids. A dead one cannot be handled again without its body. So do
-- those of other users that name the user by id, such as replies to the user in a group, and what operators sent and
-- pressed: it names users and says why they were banned.
UPDATE updates SET body = '{}', note = '', state = CASE WHEN state = 'dead' THEN 'done' ELSE state END
WHERE id > :after AND id <= :until AND bot = :bot AND state <> 'new' AND (
    ordering_key IN (:user::text, :user::text || '/pre_checkout_query')
    OR state <> 'dead' AND (
        position('/admin' IN lower(body)) > 0 OR position('"adm:' IN body) > 0
        OR position('id":' || :user::text || ',' IN replace(replace(body, ': ', ':'), '}', ',')) > 0))
RETURNING id;

-- name: erase_upload_copies
-- Delete what is known of the providers' copies of the files that `erase_uploads` deletes next.
DELETE FROM upload_copies
WHERE address IN (SELECT address FROM uploads WHERE account_id = :account_id ORDER BY at, address LIMIT :limit);

-- name: erase_uploads
-- Delete what is known of the files of an account, a few at a time.
DELETE FROM uploads
WHERE address IN (SELECT address FROM uploads WHERE account_id = :account_id ORDER BY at, address LIMIT :limit)
RETURNING address;

-- name: erase_account
-- Erase the user's name, the contents of drafts, favourites and settings, and what operators wrote about the user, also in
-- commands that wait to be confirmed: those of other users are typed again. What operators looked for in the inputs of
-- orders goes, too, for all users: it may be a prompt of this one. The erasure waits for a bulk action that still needs it.
-- Messages to the user leave the queue, except one about an erasure: another instance may have erased the account just
-- now. API keys end, and webhooks are deleted: their deliveries go with the other old rows. Drafts keep their versions,
-- which are part of idempotency keys of orders.
WITH named AS (
    UPDATE profiles SET name = '', username = '', last_model = '', ban_reason = '', referred_by = NULL
    WHERE account_id = :account_id
), drafted AS (
    UPDATE drafts SET body = '{}', uploads = '{}', version = version + 1 WHERE account_id = :account_id
), starred AS (
    DELETE FROM favourites WHERE account_id = :account_id
), remembered AS (
    DELETE FROM model_settings WHERE account_id = :account_id
), revoked AS (
    UPDATE api_keys SET name = '', revoked_at = coalesce(revoked_at, :now) WHERE account_id = :account_id
), unanswered AS (
    UPDATE webhook_deliveries SET last_error = '', last_answer = ''
    WHERE webhook_id IN (SELECT id FROM webhooks WHERE account_id = :account_id)
        AND (last_error <> '' OR last_answer <> '')
), unhooked AS (
    DELETE FROM webhooks WHERE account_id = :account_id
), untold AS (
    DELETE FROM kv
    WHERE starts_with(key, 'tell:' || :account_id || ':') AND NOT starts_with(key, 'tell:' || :account_id || ':' || 'erased:')
), unasked AS (
    DELETE FROM kv
    WHERE starts_with(key, 'chat:asked:') AND bot = (SELECT bot FROM accounts WHERE id = :account_id)
), explained AS (
    UPDATE ledger SET reason = ''
    WHERE account_id = :account_id AND reason <> '' AND (
        starts_with(key, 'admin:') OR starts_with(key, 'operator:') OR starts_with(key, 'dashboard:'))
), searched AS (
    UPDATE bulk_actions SET selection = jsonb_set(selection::jsonb, '{filters,text}', '"…"')::text
    WHERE ended_at IS NOT NULL AND selection::jsonb #>> '{filters,text}' <> '…'
), looked_for AS (
    UPDATE audit SET detail = ''
    WHERE subject = ANY (ARRAY(SELECT 'jobs' UNION ALL SELECT 'bulk ' || id FROM bulk_actions))
        AND detail LIKE '%"text":%'
)
UPDATE audit SET detail = '' WHERE subject = :account_id::text AND action IN (
        'credit', 'debit', 'ban', 'unban', 'message', 'create_api_key', 'revoke_api_key', 'test_webhook', 'enable_webhook',
        'disable_webhook', 'redeliver_webhook', 'redeliver_webhooks')
    AND detail <> ''
RETURNING id;

-- name: old_jobs
-- Return those of the next jobs after an id that were created before an age.
SELECT id FROM (SELECT id, created_at FROM jobs WHERE id > :after ORDER BY id LIMIT :limit) w
WHERE created_at < :now - make_interval(secs => :older_than::float8)
ORDER BY id;

-- name: erase_inputs
-- Erase the inputs of those of the jobs that have ended; their results stay. Returns the jobs that have not ended.
WITH attempt AS (
    UPDATE attempts a SET sent_input = NULL
    FROM jobs j
    WHERE a.job_id = ANY (:job_ids::bigint[]) AND a.sent_input IS NOT NULL AND j.id = a.job_id
        AND j.ended_at IS NOT NULL AND j.due_at IS NULL
), erased AS (
    UPDATE jobs SET input = 'null', error_text = ''
    WHERE id = ANY (:job_ids::bigint[]) AND ended_at IS NOT NULL AND due_at IS NULL AND input <> 'null'
)
SELECT id FROM jobs
WHERE id = ANY (:job_ids::bigint[]) AND (ended_at IS NULL OR due_at IS NOT NULL) AND input <> 'null'
ORDER BY id;
