-- Lists of users for operators. A list returns account ids, newest first; `users_by_id` returns what a list shows.

-- name: users_by_id
-- use: operator
-- Return accounts with their balances and what the bot knows of their users.
SELECT a.id, a.channel, a.bot, a.external_id, a.address, a.available, a.held, a.debt, a.created_at, p.language, p.name,
    p.username, p.referred_by, p.last_model, p.banned_at, p.ban_reason, p.blocked_at, p.seen_at
FROM accounts a LEFT JOIN profiles p ON p.account_id = a.id
WHERE a.id = ANY(:ids::bigint[]);

-- name: newest_user_ids
-- use: operator
-- Return the accounts before an id, newest first.
SELECT id FROM accounts WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- name: banned_user_ids
-- use: operator
-- Return the accounts of banned users before an id, newest first.
SELECT account_id AS id FROM profiles WHERE banned_at IS NOT NULL AND account_id < :before
ORDER BY account_id DESC LIMIT :limit;

-- name: owing_user_ids
-- use: operator
-- Return the accounts with a debt before an id, newest first.
SELECT id FROM accounts WHERE debt > 0 AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: paying_user_ids
-- use: operator
-- Return the accounts with a payment before an id, newest first. Each step is one look into the index of payments, so
-- that an account with many payments takes as long as one with a single payment.
WITH RECURSIVE payer (id, number) AS (
    SELECT max(account_id), 1 FROM payments WHERE account_id < :before
    UNION ALL
    SELECT (SELECT max(account_id) FROM payments WHERE account_id < payer.id), number + 1 FROM payer
    WHERE payer.id IS NOT NULL AND number < :limit
)
SELECT id FROM payer WHERE id IS NOT NULL ORDER BY id DESC;

-- name: invited_user_ids
-- use: operator
-- Return the accounts that a user has invited before an id, newest first. A range instead of =, so that only the
-- index of invitations has the order: the planner would read all profiles backwards for a user who invited none.
SELECT account_id AS id FROM profiles WHERE referred_by BETWEEN :account_id AND :account_id AND account_id < :before
ORDER BY referred_by DESC, account_id DESC LIMIT :limit;

-- name: account_promo_uses
-- use: operator
-- Return the promo codes that an account has used, the latest first.
SELECT u.code, u.at, p.amount, p.runs, p.author FROM promo_uses u LEFT JOIN promos p ON p.code = u.code
WHERE u.account_id = :account_id ORDER BY u.at DESC, u.code LIMIT :limit;
