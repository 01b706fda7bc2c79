"""`python -m genlock.sandbox.telegram` as a separate program."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

pytestmark = pytest.mark.process


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_the_program_serves_the_bot_api_until_a_signal_and_leaves_nothing(
    tmp_path: Path, name: signal.Signals
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "genlock.sandbox.telegram",
        "--token",
        "77:alone",
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert process.stdout is not None
        addresses = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
        async with aiohttp.ClientSession() as session, session.get(f"{addresses['url']}/bot77:alone/getMe") as response:
            assert (await response.json())["result"]["id"] == 77
        assert len(_names_in(tmp_path)) == 1
        process.send_signal(name)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert _names_in(tmp_path) == []


def _names_in(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]
