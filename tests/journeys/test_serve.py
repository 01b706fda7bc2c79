"""`genlock serve` as real processes: start, work, graceful stop, kill, and start-up errors."""

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from signal import SIGKILL, SIGTERM
from time import monotonic
from typing import Any

import aiohttp
import asyncpg
import pytest

from genlock.app.databases import open_store
from genlock.log import Silent
from genlock.sandbox.instance import Instance
from genlock.sandbox.postgres import PostgresServer
from genlock.sandbox.processes import find_free_port
from genlock.service import STOP_SECONDS_MAX
from tests.changes import poll_until
from tests.databases import new_sqlite
from tests.journeys.serve_setup import TOKEN, WEBHOOK_KEY, ServeSetup, running_setup


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/genlock.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def setup(url: str, tmp_path: Path) -> AsyncIterator[ServeSetup]:
    async for setup in running_setup(url, tmp_path):
        yield setup


@pytest.fixture
async def sqlite_setup(tmp_path: Path) -> AsyncIterator[ServeSetup]:
    """For what does not depend on the database."""
    async for setup in running_setup(f"sqlite:///{new_sqlite(tmp_path)}", tmp_path):
        yield setup


@pytest.fixture
async def postgres_setup(migrated_postgres_url: str, tmp_path: Path) -> AsyncIterator[ServeSetup]:
    async for setup in running_setup(migrated_postgres_url, tmp_path):
        yield setup


async def get(address: str, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(address + path) as response:
        return response.status, await response.text()


async def health(address: str) -> dict[str, Any]:
    output: dict[str, Any] = json.loads((await get(address, "/health"))[1])
    return output


async def test_the_service_starts_logs_its_address_handles_updates_and_stops_gracefully(setup: ServeSetup) -> None:
    began = monotonic()
    instance = await setup.start(GENLOCK_PORT="0")
    line = await instance.wait_for_event("READY")
    address = line["address"]
    assert line["mode"] == "polling"
    assert 0 < line["seconds"] < monotonic() - began + 0.02, "the clock of processes ticks every 0.01 s"
    await instance.wait_for_event("LOCK_ACTIVE")
    assert (await get(address, "/ready")) == (200, '{"ready":true}')
    output = await health(address)
    assert (output["active"], output["queue_depth"]) == (True, 0)
    assert "genlock_active 1.0" in (await get(address, "/metrics"))[1]
    ann = setup.telegram.add_user("Ann")
    for text in ("one", "two"):
        await ann.say(text)
    await poll_until(lambda: len(setup.handled_updates()) == 2)
    instance.signal(SIGTERM)
    started = monotonic()
    assert await instance.wait_until_ended() == 0
    assert monotonic() - started < 20
    assert [line["event"] for line in instance.log_lines[-3:]] == ["STOPPING", "LOCK_PASSIVE", "STOPPED"]
    assert await setup.done_updates() == setup.handled_updates()


async def test_a_second_signal_stops_the_service_at_once(sqlite_setup: ServeSetup) -> None:
    instance = await sqlite_setup.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", instance.port)
    writer.write(b"POST /callbacks/kie HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
    await writer.drain()
    await get(instance.url, "/health")  # by now the server has read the unfinished request
    instance.signal(SIGTERM)
    await instance.wait_for_event("STOPPING")
    instance.signal(SIGTERM)
    assert await instance.wait_until_ended() == 1
    assert not instance.events("STOPPED")
    writer.close()
    await reader.read()


async def test_updates_arrive_by_webhook_if_there_is_a_public_url(sqlite_setup: ServeSetup) -> None:
    port = str(find_free_port())
    public = {"GENLOCK_PORT": port, "GENLOCK_PUBLIC_URL": f"http://127.0.0.1:{port}"}
    first = await sqlite_setup.start(**public)
    await first.wait_for_event("WEBHOOK_SET")
    ann = sqlite_setup.telegram.add_user("Ann")
    await ann.say("one")
    await poll_until(lambda: len(sqlite_setup.handled_updates()) == 1)
    assert sqlite_setup.telegram.calls("getUpdates") == []
    first.signal(SIGTERM)
    assert await first.wait_until_ended() == 0
    await ann.say("two")
    second = await sqlite_setup.start(**public)
    await poll_until(lambda: len(sqlite_setup.handled_updates()) == 2)
    await second.wait_for_event("LOCK_ACTIVE")
    assert len(sqlite_setup.telegram.calls("setWebhook")) == 1, "the webhook is already set"
    third = await second_port(sqlite_setup, second)
    await third.wait_for_event("WEBHOOK_SET")
    assert len(sqlite_setup.telegram.calls("setWebhook")) == 2, "the public URL has changed"


async def test_the_stored_webhook_secret_of_an_earlier_version_is_replaced_and_deleted(
    sqlite_setup: ServeSetup,
) -> None:
    port, key = str(find_free_port()), f"webhook_secret:{TOKEN.partition(':')[0]}"
    public = {"GENLOCK_PORT": port, "GENLOCK_PUBLIC_URL": f"http://127.0.0.1:{port}"}
    store = await open_store(sqlite_setup.url, observer=Silent())
    await store.kv_put(key, "secret-of-an-earlier-version")
    await store.close()
    first = await sqlite_setup.start(**public)
    await first.wait_for_event("WEBHOOK_SET")
    ann = sqlite_setup.telegram.add_user("Ann")
    await ann.say("one")
    await poll_until(lambda: len(sqlite_setup.handled_updates()) == 1)
    first.signal(SIGTERM)
    assert await first.wait_until_ended() == 0
    second = await sqlite_setup.start(**public)
    await second.wait_for_event("LOCK_ACTIVE")
    store = await open_store(sqlite_setup.url, observer=Silent(), in_use_ok=True)

    async def is_deleted() -> bool:
        return await store.kv_get(key) is None

    await poll_until(is_deleted)
    await store.close()
    assert "secret-of-an-earlier-version" not in first.text + second.text


async def second_port(setup: ServeSetup, before: Instance) -> Instance:
    before.signal(SIGTERM)
    assert await before.wait_until_ended() == 0
    port = str(find_free_port())
    return await setup.start(GENLOCK_PORT=port, GENLOCK_PUBLIC_URL=f"http://127.0.0.1:{port}")


async def test_a_forged_update_is_refused(sqlite_setup: ServeSetup) -> None:
    port = str(find_free_port())
    instance = await sqlite_setup.start(GENLOCK_PORT=port, GENLOCK_PUBLIC_URL=f"http://127.0.0.1:{port}")
    async with aiohttp.ClientSession() as session:
        for headers in ({}, {"X-Telegram-Bot-Api-Secret-Token": "guessed"}):
            body = {"update_id": 1, "message": {"from": {"id": 1}}}
            async with session.post(f"{instance.url}/telegram/webhook", json=body, headers=headers) as response:
                assert response.status == 401
    await instance.wait_for_event("UPDATE_REFUSED")
    assert sqlite_setup.handled_updates() == []


# two instances


async def leadership_lasts(url: str) -> float:
    """Return how many seconds the role of the leader is kept from other instances, by the database's clock."""
    connection = await asyncpg.connect(url)
    try:
        return float(await connection.fetchval("SELECT extract(epoch FROM until - clock_timestamp()) FROM roles"))
    finally:
        await connection.close()


async def test_leadership_passes_on_at_once_when_the_leader_stops(postgres_setup: ServeSetup) -> None:
    first = await postgres_setup.start()
    await first.wait_for_event("LOCK_ACTIVE")
    second = await postgres_setup.start()
    assert (await health(second.url))["active"] is False
    second.pause()
    first.signal(SIGTERM)
    await first.wait_for_event("LOCK_PASSIVE")
    assert await leadership_lasts(postgres_setup.url) <= 0.0, "the other one need not wait for the end of its lease"
    second.resume()
    await second.wait_for_event("LOCK_ACTIVE")
    ann = postgres_setup.telegram.add_user("Ann")
    await ann.say("one")
    await poll_until(lambda: len(second.events("UPDATE_DONE")) == 1)
    assert await first.wait_until_ended() == 0


async def test_a_killed_instance_is_replaced_within_seconds_and_no_update_is_lost(postgres_setup: ServeSetup) -> None:
    first = await postgres_setup.start()
    await first.wait_for_event("POLLING")
    second = await postgres_setup.start()
    ann, bob = postgres_setup.telegram.add_user("Ann"), postgres_setup.telegram.add_user("Bob")
    for number in range(10):
        await ann.say(f"a{number}")
        await bob.say(f"b{number}")
    first.signal(SIGKILL)
    assert await leadership_lasts(postgres_setup.url) <= 3.0
    await ann.say("last")
    await second.wait_for_event("POLLING")
    await poll_until(lambda: len(set(postgres_setup.handled_updates())) == 21)
    assert sorted(await postgres_setup.done_updates()) == sorted(set(postgres_setup.handled_updates()))


# start-up errors


async def refused(setup: ServeSetup, **more: str) -> str:
    instance = setup.begin(**more)
    assert await instance.wait_until_ended() == 1
    return instance.text


async def test_all_missing_or_invalid_settings_are_reported_together(sqlite_setup: ServeSetup) -> None:
    output = await refused(
        sqlite_setup, GENLOCK_TELEGRAM_TOKEN="", GENLOCK_KIE_API_KEY="", GENLOCK_LEASE_SECONDS="soon"
    )
    for name in ("GENLOCK_TELEGRAM_TOKEN", "GENLOCK_KIE_API_KEY", "GENLOCK_LEASE_SECONDS"):
        assert name in output
    assert "Traceback" not in output


async def test_an_unknown_setting_is_logged_at_the_start_without_its_value(sqlite_setup: ServeSetup) -> None:
    (sqlite_setup.folder / ".env").write_text(f"GENLOCK_ADMIN_ID={WEBHOOK_KEY}\n")

    instance = await sqlite_setup.start(GENLOCK_KIE_API_KEYS=WEBHOOK_KEY)

    line = {line["name"]: line["nearest"] for line in instance.events("SETTING_UNKNOWN")}
    assert line == {"GENLOCK_ADMIN_ID": "GENLOCK_ADMIN_IDS", "GENLOCK_KIE_API_KEYS": "GENLOCK_KIE_API_KEY"}


async def test_a_token_that_telegram_rejects_stops_the_start(sqlite_setup: ServeSetup) -> None:
    wrong = f"1{TOKEN}"
    output = await refused(sqlite_setup, GENLOCK_TELEGRAM_TOKEN=wrong)
    assert "Telegram does not know the token in GENLOCK_TELEGRAM_TOKEN" in output
    assert wrong not in output


async def test_a_port_in_use_stops_the_start(sqlite_setup: ServeSetup) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        output = await refused(sqlite_setup, GENLOCK_PORT=str(taken.getsockname()[1]))
    assert re.search(r"cannot listen on 127.0.0.1:\d+: another program uses this port; stop it", output)
    assert "GENLOCK_PORT" in output


async def test_a_second_process_on_one_sqlite_file_is_refused(tmp_path: Path) -> None:
    async for setup in running_setup(f"sqlite:///{tmp_path}/genlock.db", tmp_path):
        first = await setup.start()
        output = await refused(setup)
        assert f"in use by another genlock process (pid {first.pid})" in output
        assert "GENLOCK_DATABASE_URL" in output


async def test_an_unreachable_database_stops_the_start(tmp_path: Path) -> None:
    async for setup in running_setup("postgresql://me:hunter2secret@127.0.0.1:1/x", tmp_path):
        output = await refused(setup)
        assert "cannot connect to PostgreSQL at 127.0.0.1:1/x" in output
        assert "hunter2" not in output


async def test_the_service_starts_while_telegram_is_unreachable(tmp_path: Path) -> None:
    async for setup in running_setup(f"sqlite:///{tmp_path}/genlock.db", tmp_path):
        instance = await setup.start(GENLOCK_TELEGRAM_API_URL="http://127.0.0.1:1")
        assert (await get(instance.url, "/ready"))[0] == 200
        for step in ("check the token", "poll updates"):
            await instance.wait_for_event(
                "CHANNEL_UNREACHABLE", step=step, error="ChannelBusy: Telegram cannot be reached"
            )
        instance.signal(SIGTERM)
        assert await instance.wait_until_ended() == 0


async def test_operator_commands_work_while_the_service_runs(setup: ServeSetup) -> None:
    await setup.start()

    async def genlock(*arguments: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "genlock", *arguments),
            env={**os.environ, "GENLOCK_DATABASE_URL": setup.url},
            cwd=setup.folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    ann = setup.telegram.add_user("Ann")
    await ann.say("/start")
    await ann.sees(lambda message: bool(message.buttons))
    assert await genlock("jobs", "attention") == (0, "No job needs attention.\n")
    assert (await genlock("wallet", "credit", "1", "5", "--reason", "hello"))[0] == 0
    assert "available 5, held 0" in (await genlock("wallet", "show", "1"))[1]
    assert await genlock("jobs", "check") == (0, "Every invariant holds.\n")


async def test_a_stop_while_the_database_is_unreachable_does_not_hang(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    """Leases cannot be released then; the next instance takes over as after a crash."""
    async for setup in running_setup(own_postgres.create_database(), tmp_path):
        instance = await setup.start()
        await instance.wait_for_event("LOCK_ACTIVE")
        own_postgres.stop()
        await instance.wait_for_event("STORE_RETRY")
        assert (await get(instance.url, "/health"))[0] == 200
        assert (await get(instance.url, "/ready"))[0] == 503
        instance.signal(SIGTERM)
        assert await instance.wait_until_ended() == 1
        [line] = instance.events("STAGE_ERROR", step="stop")
        assert line["error"] == f"not finished after {STOP_SECONDS_MAX:g} s"
        own_postgres.start()
        again = await setup.start()
        await again.wait_for_event("LOCK_ACTIVE")
