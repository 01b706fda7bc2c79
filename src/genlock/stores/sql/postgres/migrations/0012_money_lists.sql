-- concurrently
-- Lists for operators. No order writes to these indexes: holds, captures and releases are left out.

CREATE INDEX CONCURRENTLY IF NOT EXISTS ledger_moves ON ledger (kind, at, key)
    WHERE kind NOT IN ('hold', 'capture', 'release');
CREATE INDEX CONCURRENTLY IF NOT EXISTS payments_refunds ON payments (state, at, charge) WHERE state <> 'paid';
CREATE INDEX CONCURRENTLY IF NOT EXISTS profiles_banned ON profiles (account_id) WHERE banned_at IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS profiles_invited ON profiles (referred_by, account_id)
    WHERE referred_by IS NOT NULL;
