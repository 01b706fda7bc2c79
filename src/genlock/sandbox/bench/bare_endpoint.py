"""An endpoint that does nothing but one INSERT per request: what the API is compared with.

It uses the same server, framework and driver. `python -m genlock.sandbox.bench.bare_endpoint DATABASE_URL` prints its
address as JSON and serves until it is killed.
"""

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from genlock.sandbox.processes import find_free_port

CONNECTIONS = 10
Insert = Callable[[bytes], Awaitable[int]]


async def _postgres(url: str) -> Insert:
    pool = await asyncpg.create_pool(url, min_size=CONNECTIONS, max_size=CONNECTIONS)
    await pool.execute("CREATE TABLE IF NOT EXISTS bare (id bigserial PRIMARY KEY, body text NOT NULL)")

    async def insert(body: bytes) -> int:
        found: int = await pool.fetchval("INSERT INTO bare (body) VALUES ($1) RETURNING id", body.decode())
        return found

    return insert


async def _sqlite(path: str) -> Insert:
    thread = ThreadPoolExecutor(1)
    loop = asyncio.get_running_loop()

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(f"{path}.bare", isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TABLE IF NOT EXISTS bare (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        return connection

    connection = await loop.run_in_executor(thread, connect)

    def insert_now(body: bytes) -> int:
        row = connection.execute("INSERT INTO bare (body) VALUES (?) RETURNING id", (body.decode(),)).fetchall()
        return int(row[0][0])

    async def insert(body: bytes) -> int:
        return await loop.run_in_executor(thread, insert_now, body)

    return insert


async def serve(database_url: str) -> None:
    is_sqlite = database_url.startswith("sqlite:///")
    insert = await (_sqlite(database_url.removeprefix("sqlite:///")) if is_sqlite else _postgres(database_url))

    async def post(request: Request) -> Response:
        return JSONResponse({"id": await insert(await request.body())}, 202)

    async def get(_: Request) -> Response:
        return JSONResponse({"id": 0})

    port = find_free_port()
    web = Starlette(routes=[Route("/bare", post, methods=["POST"]), Route("/bare", get, methods=["GET"])])
    config: Any = uvicorn.Config(web, host="127.0.0.1", port=port, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    task = asyncio.get_running_loop().create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    sys.stdout.write(json.dumps({"url": f"http://127.0.0.1:{port}", "pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    await task


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
