import asyncio
import json
import sys

import aiohttp
import pytest

pytestmark = pytest.mark.process


async def test_it_runs_by_itself_and_tells_where() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "genlock.sandbox.telegram",
        "--token",
        "77:alone",
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        said = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
        async with aiohttp.ClientSession() as session, session.get(f"{said['url']}/bot77:alone/getMe") as response:
            assert (await response.json())["result"]["id"] == 77
    finally:
        process.kill()
        await process.wait()
