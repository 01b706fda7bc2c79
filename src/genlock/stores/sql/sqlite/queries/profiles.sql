-- name: ensure_profile
-- Create the profile of a user who has just written, or update it where something has changed. The inviter must be an
-- older account of the same bot. With a chat, the draft there is returned as well.
INSERT INTO profiles (account_id, language, name, username, referred_by, created_at, seen_at)
SELECT :account_id, :language, :name, :username,
    (SELECT host.id FROM accounts host JOIN accounts guest ON guest.channel = host.channel AND guest.bot = host.bot
     WHERE host.id = :referred_by AND host.id < :account_id AND guest.id = :account_id), :now, :now
WHERE true
ON CONFLICT (account_id) DO UPDATE
SET name = excluded.name, username = excluded.username, seen_at = excluded.seen_at, blocked_at = NULL
WHERE name <> excluded.name OR username <> excluded.username OR blocked_at IS NOT NULL
    OR seen_at < :now - 600000000;
SELECT p.*, p.created_at = :now AS fresh,
    (SELECT external_id FROM accounts owner WHERE owner.id = p.account_id) AS external_id,
    d.version, d.message, d.body, d.uploads
FROM profiles p LEFT JOIN drafts d ON d.account_id = p.account_id AND d.chat = :chat
WHERE p.account_id = :account_id;

-- name: profile
-- Return one profile.
SELECT p.*, (SELECT external_id FROM accounts owner WHERE owner.id = p.account_id) AS external_id
FROM profiles p WHERE p.account_id = :account_id;

-- name: known_profile
-- use: screen
-- Return the profile of the account that a bot knows by an external id.
SELECT p.*, owner.external_id FROM accounts owner JOIN profiles p ON p.account_id = owner.id
WHERE owner.channel = :channel AND owner.bot = :bot AND owner.external_id = :external_id;

-- name: find_profiles
-- use: operator
-- Find profiles by account id, external id or username, and among the newest ones by a part of the name, in any
-- capitalisation.
WITH exact AS MATERIALIZED (
    SELECT id FROM accounts WHERE id = :id
    UNION SELECT id FROM accounts WHERE external_id = :text
    UNION SELECT account_id FROM profiles WHERE username = lower(:text)
), named AS MATERIALIZED (
    SELECT account_id AS id FROM (SELECT account_id, name FROM profiles ORDER BY account_id DESC LIMIT :window) newest
    WHERE name LIKE '%' || :text || '%' OR name LIKE '%' || :titled || '%'
        OR name LIKE '%' || :lowered || '%'
    ORDER BY account_id DESC LIMIT :limit
), found AS MATERIALIZED (
    SELECT id, 1 AS exact FROM exact UNION ALL SELECT id, 0 FROM named WHERE id NOT IN (SELECT id FROM exact)
)
SELECT p.*, owner.external_id
FROM found f JOIN profiles p ON p.account_id = f.id JOIN accounts owner ON owner.id = f.id
ORDER BY f.exact DESC, p.account_id DESC LIMIT :limit;

-- name: newest_profiles
-- use: operator
-- Return the latest profiles, newest first.
SELECT p.*, owner.external_id FROM profiles p JOIN accounts owner ON owner.id = p.account_id
ORDER BY p.account_id DESC LIMIT :limit;

-- name: newest_accounts
-- use: operator
-- Return accounts with their balances, newest first.
SELECT owner.id, owner.channel, owner.external_id, owner.available, owner.held, owner.debt, owner.created_at,
    coalesce(p.name, '') AS name, coalesce(p.username, '') AS username
FROM accounts owner LEFT JOIN profiles p ON p.account_id = owner.id
ORDER BY owner.id DESC LIMIT :limit;

-- name: find_accounts
-- use: operator
-- Return accounts with their balances, newest first, found as profiles are.
WITH exact AS MATERIALIZED (
    SELECT id FROM accounts WHERE id = :id
    UNION SELECT id FROM accounts WHERE external_id = :text
    UNION SELECT account_id FROM profiles WHERE username = lower(:text)
), named AS MATERIALIZED (
    SELECT account_id AS id FROM (SELECT account_id, name FROM profiles ORDER BY account_id DESC LIMIT :window) newest
    WHERE name LIKE '%' || :text || '%' OR name LIKE '%' || :titled || '%'
        OR name LIKE '%' || :lowered || '%'
    ORDER BY account_id DESC LIMIT :limit
), found AS MATERIALIZED (
    SELECT id, 1 AS exact FROM exact UNION ALL SELECT id, 0 FROM named WHERE id NOT IN (SELECT id FROM exact)
)
SELECT owner.id, owner.channel, owner.external_id, owner.available, owner.held, owner.debt, owner.created_at,
    coalesce(p.name, '') AS name, coalesce(p.username, '') AS username
FROM found f JOIN accounts owner ON owner.id = f.id LEFT JOIN profiles p ON p.account_id = f.id
ORDER BY owner.id DESC LIMIT :limit;

-- name: debtors
-- use: operator
-- Return accounts that owe credits, the largest debt first.
SELECT owner.id, owner.channel, owner.external_id, owner.available, owner.held, owner.debt, owner.created_at,
    coalesce(p.name, '') AS name, coalesce(p.username, '') AS username
FROM accounts owner LEFT JOIN profiles p ON p.account_id = owner.id
WHERE owner.debt > 0 ORDER BY owner.debt DESC, owner.id LIMIT :limit;

-- name: set_language
-- Set the language that a user has chosen.
UPDATE profiles SET language = :language WHERE account_id = :account_id;

-- name: set_last_model
-- Set the model that a user has ordered last.
UPDATE profiles SET last_model = :model WHERE account_id = :account_id;

-- name: set_ban
-- Ban a user, or lift the ban.
UPDATE profiles SET banned_at = CASE WHEN :banned THEN :now END, ban_reason = :reason
WHERE account_id = :account_id RETURNING account_id;

-- name: set_blocked
-- Record that a user has blocked the bot, or has unblocked it.
UPDATE profiles SET blocked_at = CASE WHEN :blocked THEN :now END WHERE account_id = :account_id;
