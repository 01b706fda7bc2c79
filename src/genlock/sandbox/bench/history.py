"""Finished jobs by the million, written by the database itself."""

import sqlite3
from contextlib import closing

import asyncpg

from genlock.app import open_store
from genlock.log import Silent

HISTORY = {
    "postgres": """
        INSERT INTO jobs (account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, model,
            input, price, hold_state, state, task_id, parts, delivery, notice, deadline_at, lease_token, created_at,
            submitted_at, ended_at, delivered_at)
        SELECT 1 + n % 1000, 'old-' || n, repeat('0', 64), 'old-' || n, 'instant', 'instant', 'bench', '{"chat":1}', 'z-image',
            '{"prompt":"cat astronaut"}', 0, 'free', 'succeeded', 'old-' || n,
            '[{"kind":"file","value":"http://127.0.0.1/old.png","level":"address","step":"done","message":"1"}]',
            'delivered', 'none', now(), 2, now(), now(), now(), now()
        FROM generate_series(1, $1::int) AS n""",
    "sqlite": """
        INSERT INTO jobs (account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, model,
            input, price, hold_state, state, task_id, parts, delivery, notice, deadline_at, lease_token, created_at,
            submitted_at, ended_at, delivered_at)
        WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < :count)
        SELECT 1 + n % 1000, 'old-' || n, 'x', 'old-' || n, 'instant', 'instant', 'bench', '{"chat":1}', 'z-image',
            '{"prompt":"cat astronaut"}', 0, 'free', 'succeeded', 'old-' || n,
            '[{"kind":"file","value":"http://127.0.0.1/old.png","level":"address","step":"done","message":"1"}]',
            'delivered', 'none', 1, 2, 1, 1, 1, 1
        FROM series""",
}


async def make_history(store: str, url: str, count: int) -> None:
    """Fill the table with finished jobs."""
    await (await open_store(url, observer=Silent())).close()  # creates the schema
    if store == "postgres":
        connection = await asyncpg.connect(url)
        await connection.execute(HISTORY[store], count)
        await connection.execute("VACUUM ANALYZE jobs")
        await connection.close()
    else:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
            file.execute(HISTORY[store], {"count": count})
