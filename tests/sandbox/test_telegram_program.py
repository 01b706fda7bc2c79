"""`python -m genlock.sandbox.telegram` as a separate program."""

import asyncio
import json
import sys

import aiohttp
import pytest

pytestmark = pytest.mark.process


async def test_the_program_prints_its_address_and_serves_the_bot_api() -> None:
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
        addresses = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
        async with aiohttp.ClientSession() as session, session.get(f"{addresses['url']}/bot77:alone/getMe") as response:
            assert (await response.json())["result"]["id"] == 77
    finally:
        process.kill()
        await process.wait()
