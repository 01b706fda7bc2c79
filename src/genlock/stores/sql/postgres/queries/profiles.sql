-- name: ensure_profile
-- Create the profile of a user who has just written, or update it where something has changed. The inviter must be an
-- older account of the same bot. With a chat, the draft there is returned as well.
WITH added AS (
    INSERT INTO profiles AS p (account_id, language, name, username, referred_by, created_at, seen_at)
    SELECT :account_id::bigint, :language::text, :name::text, :username::text,
        (SELECT host.id FROM accounts host JOIN accounts guest ON guest.channel = host.channel AND guest.bot = host.bot
         WHERE host.id = :referred_by::bigint AND host.id < :account_id AND guest.id = :account_id), :now, :now
    ON CONFLICT (account_id) DO UPDATE
    SET name = excluded.name, username = excluded.username, seen_at = excluded.seen_at, blocked_at = NULL
    WHERE p.name <> excluded.name OR p.username <> excluded.username OR p.blocked_at IS NOT NULL
        OR p.seen_at < :now - interval '10 minutes'
    RETURNING p.*
), found AS (
    SELECT * FROM added
    UNION ALL
    SELECT * FROM profiles WHERE account_id = :account_id
    LIMIT 1
)
SELECT f.*, f.created_at = :now AS fresh,
    (SELECT external_id FROM accounts owner WHERE owner.id = f.account_id) AS external_id,
    d.version, d.message, d.body, d.uploads
FROM found f LEFT JOIN drafts d ON d.account_id = f.account_id AND d.chat = :chat::bigint;

-- name: profile
-- Return one profile.
SELECT p.*, (SELECT external_id FROM accounts owner WHERE owner.id = p.account_id) AS external_id
FROM profiles p WHERE p.account_id = :account_id;

-- name: find_profiles
-- Find profiles by account id, external id, username or a part of the name, in any capitalisation.
SELECT p.*, owner.external_id FROM profiles p JOIN accounts owner ON owner.id = p.account_id
WHERE owner.id::text = :text OR owner.external_id = :text OR p.username = lower(:text)
    OR p.name ILIKE '%' || :text || '%' OR p.name LIKE '%' || :titled || '%' OR p.name LIKE '%' || :lowered || '%'
ORDER BY (owner.id::text = :text OR owner.external_id = :text OR p.username = lower(:text)) DESC, p.account_id DESC
LIMIT :limit;

-- name: newest_profiles
-- Return the latest profiles, newest first.
SELECT p.*, owner.external_id FROM profiles p JOIN accounts owner ON owner.id = p.account_id
ORDER BY p.account_id DESC LIMIT :limit;

-- name: account_summaries
-- Return accounts with their balances, newest first: all, or by account id, external id, username or a part of the
-- name.
SELECT owner.id, owner.channel, owner.external_id, owner.available, owner.held, owner.created_at,
    coalesce(p.name, '') AS name, coalesce(p.username, '') AS username
FROM accounts owner LEFT JOIN profiles p ON p.account_id = owner.id
WHERE :text::text IS NULL OR owner.id::text = :text::text OR owner.external_id = :text::text
    OR p.username = lower(:text::text)
    OR p.name ILIKE '%' || :text::text || '%' OR p.name LIKE '%' || :titled::text || '%'
    OR p.name LIKE '%' || :lowered::text || '%'
ORDER BY owner.id DESC LIMIT :limit;

-- name: set_language
-- Set the language that a user has chosen.
UPDATE profiles SET language = :language WHERE account_id = :account_id;

-- name: set_last_model
-- Set the model that a user has ordered last.
UPDATE profiles SET last_model = :model WHERE account_id = :account_id;

-- name: set_ban
-- Ban a user, or lift the ban.
UPDATE profiles SET banned_at = CASE WHEN :banned::boolean THEN :now END, ban_reason = :reason
WHERE account_id = :account_id RETURNING account_id;

-- name: set_blocked
-- Record that a user has blocked the bot, or has unblocked it.
UPDATE profiles SET blocked_at = CASE WHEN :blocked::boolean THEN :now END WHERE account_id = :account_id;
