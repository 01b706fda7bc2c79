"""A skewed history: everything has ended, and half of it belongs to one account."""

import sqlite3

from genlock.stores.database import SqlDatabase
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore

#: the account that half of the history belongs to
HEAVY = 1
#: the endpoint for which a quarter of the events waits and is due
BACKLOG = 3
#: `n` counts the rows; {ago} is the time n minutes before the clock of the tests, {account} is an account
_ROWS = {
    "accounts": (
        1, "(channel, bot, external_id, created_at) SELECT 'chat', 'other', 'old-' || n, {ago}",
    ),
    "profiles": (
        1, ("(account_id, language, name, username, referred_by, created_at, seen_at, blocked_at)"
        " SELECT n, 'en', 'Name ' || n, 'user' || n, CASE WHEN n > 1 THEN 1 END, {ago}, {ago}, {ago}"),
    ),
    "jobs": (
        4, ("(account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, model, input,"
        " price, hold_state, state, task_id, parts, delivery, notice, deadline_at, lease_token, created_at,"
        " submitted_at, ended_at, delivered_at, cancelled_by, placeholder, api_key_id)"
        " SELECT {account}, 'old-' || n, 'x', 'old', 'kie', 'chat', 'bot', '{{}}', 'model', '{{}}', 0, 'free',"
        " CASE WHEN n % 3 = 0 THEN 'cancelled' ELSE 'succeeded' END, 'old-' || n, '[]', 'delivered',"
        " 'none', {ago}, 2, {ago}, {ago}, {ago}, {ago}, CASE WHEN n % 3 = 0 THEN 'user' ELSE '' END, 'old-' || n,"
        " CASE WHEN n % 4 < 2 THEN 1 END"),
    ),
    "attempts": (
        4, ("(job_id, number, provider, offer, secret_hash, task_id, handle, outcome, started_at, ended_at)"
        " SELECT n, 1, 'kie', 'model', 'old-' || n, 'old-' || n, '', 'succeeded', {ago}, {ago}"),
    ),
    "api_keys": (
        1, ("(account_id, name, scopes, shown, secret_hash, request_key, author, created_at, revoked_at)"
        " SELECT {account}, 'old', 'order read', 'glk_', 'old-' || n, 'old-' || n, '', {ago}, {ago}"),
    ),
    "webhooks": (
        1, ("(account_id, public_id, url, events, description, enabled, held_until, created_at)"
        " SELECT {account}, 'we_old' || n, 'https://example.org', ' ', '', n % 2 = 0, {ago}, {ago}"),
    ),
    # half of what was sent is of one endpoint
    "webhook_deliveries": (
        4, ("(public_id, webhook_id, job_id, event, event_at, state, attempts)"
        " SELECT 'msg_old' || n, {account}, n, 'job.succeeded', {ago},"
        " CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'delivered' END, 1"),
    ),
    "webhook_deliveries ": (  # what waits for an endpoint that is disabled, and for one that fails
        4, ("(public_id, webhook_id, job_id, event, event_at, due_at)"
        " SELECT 'msg_waiting' || n, 3 + n % 2, n / 2, 'job.succeeded', {ago},"
        " CASE WHEN n % 2 = 0 THEN {ago} ELSE {later} END"),
    ),
    "ledger": (
        4, ("(key, account_id, job_id, kind, debit, credit, amount, at)"
        " SELECT 'old:' || n, {account}, n, CASE WHEN n % 4 = 0 THEN 'grant' ELSE 'hold' END, 'available', 'held', 1,"
        " {ago}"),
    ),
    "ledger ": (  # refunds of orders that are not here: each leaves a mark that its figures changed
        1, ("(key, account_id, job_id, kind, debit, credit, amount, at)"
        " SELECT 'refund:' || (1000000000 + n), {account}, n, 'refund', 'house', 'available', 1, {ago}"),
    ),
    "inbox": (
        2, ("(provider, job_id, task_id, body, state, received_at) SELECT 'kie', CASE WHEN n % 2 = 0 THEN n END,"
        " 'old-' || n, {bytes}, 'done', {ago}"),
    ),
    "updates": (
        2, ("(bot, update_id, ordering_key, kind, urgent, dedup_key, body, state, received_at)"
        " SELECT 'bot', -n, 'user-' || (n % 2 * n), 'message', false, 'old', '{{}}', 'done', {ago}"),
    ),
    "update_queues": (1, "(bot, name, urgent, waiting) SELECT 'bot', 'old-' || n, false, 0"),
    "drafts": (
        1, ("(account_id, chat, version, message, body, updated_at, uploads)"
        " SELECT n, n, 1, n, '{{}}', {ago}, {uploads}"),
    ),
    "uploads": (
        1, "(address, account_id, file, kind, at, ordered) SELECT 'old-' || n, {account}, 'f', 'image', {ago}, true",
    ),
    "uploads ": (  # those that drafts use
        1, "(address, account_id, file, kind, at, ordered) SELECT 'draft-' || n, n, 'f', 'image', {ago}, false",
    ),
    "upload_copies": (
        1, "(address, provider, url, expires_at) SELECT 'old-' || n, 'kie', 'https://old/' || n, {ago}",
    ),
    "payments": (
        1, "(charge, account_id, stars, amount, state, at) SELECT 'old-' || n, {account}, 1, 1, 'refunded', {ago}",
    ),
    "free_runs": (
        2, ("(account_id, request_key, source, at)"
        " SELECT {account}, 'old-' || n, CASE WHEN n % 4 < 2 THEN 'gift' ELSE 'day' END, {ago}"),
    ),
    "promo_uses": (
        1, "(code, account_id, number, request_key, at) SELECT 'OLD', n, 1, 'old-' || n, {ago}",
    ),
    "audit": (
        1, "(at, bot, key, actor, action, subject, detail) SELECT {ago}, 'other', 'old-' || n, '', '', '', ''",
    ),
    "job_events": (
        4, ("(correlation_id, instance, number, events, at)"
        " SELECT 'old-' || n, 'old', n, '[]', {ago}"),
    ),
    "job_anomalies": (1, "(job_id, kind, at, handled_at) SELECT n, 'loss', {ago}, {ago}"),
    "broadcasts": (
        0.1, ("(bot, text, author, request_key, state, total, created_at)"
        " SELECT 'bot', '', '', 'old-' || n, 'done', 0, {ago}"),
    ),
    "figure_blocks": (
        1, "(block, last_job_id, changed_at, due_at, quarters_at) SELECT -n, 0, {ago}, NULL, {ago}",
    ),
    "quarter_figures": (4, "SELECT n, 'bot', 'kie', -n / 9, 1, 1, 0, 0, 0, 0, 0, 0"),
    "block_figures": (4, "(block, hour, bot, provider, model, orders) SELECT -n / 9, n, 'bot', 'kie', 'model', 1"),
    "job_figures": (
        4, "(span, start, bot, provider, model, orders) SELECT 'hour', n, 'bot', 'kie', 'model', 1",
    ),
    "block_durations": (
        4, ("(block, kind, start, bot, provider, model, bucket, jobs)"
        " SELECT -n / 9, 'result', n, 'bot', 'kie', 'model', 1, 1"),
    ),
    "job_durations": (
        4, "(kind, start, bot, provider, model, bucket, jobs) SELECT 'result', n, 'bot', 'kie', 'model', 1, 1",
    ),
    "topup_figures": (
        1, ("(hour, bot, topups, stars, credits, repeated, refunds, refunded_stars)"
        " SELECT n, 'bot', 1, 1, 1, 0, 0, 0"),
    ),
    "account_sets": (
        2, "(kind, span, start, bot, piece, size, members) SELECT 'active', 'hour', n, 'bot', 0, 1, ''",
    ),
    "bulk_actions": (
        1, ("(kind, selection, author, request_key, state, below, expected, expected_kind, created_at, ended_at)"
        " SELECT 'retry', '{{\"jobs\":[]}}', '', 'old-' || n, 'done', 1, 0, 'exact', {ago}, {ago}"),
    ),
    "bulk_failures": (1, "(bulk_id, job_id, reason, detail) SELECT 1 + n % 2, n, 'ended', ''"),
    "catalog_changes": (
        1, ("(id, at, model, before, after, author, request_key)"
        " SELECT n, {ago}, 'model', '{{}}', '{{}}', '', 'old-' || n"),
    ),
    "promos": (
        1, ("(code, bot, amount, runs, per_account, author, created_at)"
        " SELECT 'OLD-' || n, 'bot', 1, 0, 1, '', {ago}"),
    ),
    "limits": (1, "(key, next_at) SELECT 'old-' || n, {ago}"),
}  # fmt: skip
#: older than every window that a statement counts in
_OLD_MINUTES = 50_000
#: what users do: in a busy history, all of it happened within the last minute
_BUSY = {"accounts", "profiles", "jobs", "attempts", "ledger", "payments", "free_runs", "job_events"}
_DIALECT = {
    "postgres": {
        "ago": f"timestamptz '2030-01-01 00:00Z' - ({_OLD_MINUTES} + 100000 - n) * interval '1 minute'",
        "just now": "timestamptz '2030-01-01 00:00Z' - (100000 - n) * interval '0.5 milliseconds'",
        "later": "timestamptz '2031-01-01 00:00Z'",
        "bytes": "'{}'::bytea",
        "uploads": "ARRAY['draft-' || n]",
        "series": "generate_series(1, {rows}) AS series (n)",
    },
    "sqlite": {
        "ago": f"1893456000000000 - ({_OLD_MINUTES} + 100000 - n) * 60000000",
        "just now": "1893456000000000 - (100000 - n) * 500",
        "later": "1924992000000000",
        "bytes": "CAST('{}' AS BLOB)",
        "uploads": "json_array('draft-' || n)",
        "series": "(WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < {rows})"
        " SELECT n FROM series)",
    },
}
_ACCOUNT = f"CASE WHEN n % 2 = 0 THEN {HEAVY} ELSE n END"
#: as with two clients of the API and hardly any users
_FEW_ACCOUNTS = f"CASE WHEN n % 2 = 0 THEN {HEAVY} ELSE {HEAVY} + 1 END"


def script(dialect: str, size: int, *, busy: bool = False, few_accounts: bool = False) -> list[str]:
    words = {**_DIALECT[dialect], "account": _FEW_ACCOUNTS if few_accounts else _ACCOUNT}
    found = []
    for table, (factor, row) in _ROWS.items():
        series = words["series"].format(rows=max(1, int(size * factor)))
        ago = words["just now"] if busy and table in _BUSY else words["ago"]
        found.append(f"INSERT INTO {table} {row.format(**words | {'ago': ago})} FROM {series}")
    return found


async def fill(store: SqlDatabase, size: int, *, busy: bool = False, few_accounts: bool = False) -> None:
    """Fill every table that grows with a multiple of `size` rows; what users did is new if the history is `busy`."""
    if isinstance(store, SqliteStore):

        def insert(connection: sqlite3.Connection) -> None:
            for statement in script("sqlite", size, busy=busy, few_accounts=few_accounts):
                connection.execute(statement)

        await store.session.call(insert)
        return
    assert isinstance(store, PostgresStore)
    for statement in script("postgres", size, busy=busy, few_accounts=few_accounts):
        await store.session.pool.execute(statement)
    await store.session.pool.execute("ANALYZE")
