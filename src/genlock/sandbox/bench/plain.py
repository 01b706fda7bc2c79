"""The plain protocol of most bots: five single-row autocommit statements per job."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    Database = asyncpg.Pool[Any] | asyncpg.Connection[Any]

PLAIN_CONNECTIONS = 16
PLAIN_TABLE = """
CREATE TABLE IF NOT EXISTS plain (
    id bigserial PRIMARY KEY, account bigint NOT NULL, model text NOT NULL, input text NOT NULL, price bigint NOT NULL,
    status text NOT NULL, task text UNIQUE, result text, delivering_at timestamptz, delivered_at timestamptz
)
"""
PLAIN_LOCK = """
UPDATE plain SET delivering_at = now() WHERE task = $1 AND delivered_at IS NULL
AND (delivering_at IS NULL OR delivering_at < now() - interval '5 minutes') RETURNING id
"""


async def run_plain_jobs(databases: "Sequence[Database]", tag: str, count: int) -> float:
    """Process jobs by the plain protocol, one at a time per database. Returns jobs per second."""
    numbers = iter(range(count))

    async def one_after_another(database: "Database") -> None:
        for number in numbers:
            task = f"{tag}-{number}"
            job = await database.fetchval(
                "INSERT INTO plain (account, model, input, price, status) VALUES ($1, $2, $3, $4, 'queued') "
                "RETURNING id",
                *(number, "z-image", '{"prompt":"cat astronaut","aspect_ratio":"1:1"}', 800),
            )
            await database.execute("UPDATE plain SET task = $2, status = 'running' WHERE id = $1", job, task)
            await database.execute(
                "UPDATE plain SET status = 'done', result = $2 WHERE task = $1", task, f"http://127.0.0.1/{task}"
            )
            won = await database.fetchval(PLAIN_LOCK, task)
            await database.execute("UPDATE plain SET delivered_at = now() WHERE id = $1", won)

    started = time.perf_counter()
    await asyncio.gather(*(one_after_another(database) for database in databases))
    return count / (time.perf_counter() - started)


@asynccontextmanager
async def plain_databases(url: str) -> "AsyncIterator[tuple[Sequence[Database], Sequence[Database]]]":
    """Yield the connections of the plain protocol: one pool for all, or a dedicated one for each."""
    async with asyncpg.create_pool(url, min_size=PLAIN_CONNECTIONS, max_size=PLAIN_CONNECTIONS) as pool:
        await pool.execute(PLAIN_TABLE)
        dedicated = [await asyncpg.connect(url) for _ in range(PLAIN_CONNECTIONS)]
        yield [pool] * PLAIN_CONNECTIONS, dedicated
        for connection in dedicated:
            await connection.close()
