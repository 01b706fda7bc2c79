"""`genlock serve` as it really runs: processes that start, work, are asked to end, and are killed."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL, SIGTERM
from time import monotonic
from typing import Any

import aiohttp
import pytest

from genlock.app import open_store
from genlock.domain.update import UpdateState
from genlock.log import Silent
from genlock.sandbox.fleet import simulator_settings
from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from genlock.sandbox.postgres import PostgresServer
from genlock.sandbox.processes import find_free_port
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.packaged import CATALOG

TOKEN = "7123456789:AAF0dQ-x5R9fJ3k1Lm_pQ7rS2tU4vW6xY8z"
WEBHOOK_KEY = "whsec-5f2b8c1d9e3a4706"


@dataclass
class Town:
    """Both simulators, a database, and the instances that run on them."""

    folder: Path
    url: str
    telegram: TelegramSimulator
    kie: KieSimulator
    instances: list[Instance] = field(default_factory=list)
    #: settings that all of them get
    more: dict[str, str] = field(default_factory=dict)

    def settings(self, **more: str) -> dict[str, str]:
        return {
            **simulator_settings(self.telegram.url, self.telegram.token, self.kie, self.url),
            "GENLOCK_KIE_WEBHOOK_KEY": WEBHOOK_KEY,
            **self.more,
            **more,
        }

    async def start(self, **more: str) -> Instance:
        instance = self.begin(**more)
        await instance.wait_for_event("READY")
        return instance

    def begin(self, **more: str) -> Instance:
        """One that may not come so far."""
        instance = Instance(f"instance-{len(self.instances) + 1}", self.folder, self.settings(**more))
        self.instances.append(instance)
        instance.start()
        return instance

    async def done(self) -> list[int]:
        """The updates that were handled, as the store has them, oldest first."""
        store = await open_store(self.url, observer=Silent())
        try:
            return [update.update_id for update in reversed(await store.updates(UpdateState.DONE, 1000))]
        finally:
            await store.close()

    def handled(self) -> list[int]:
        """The updates that instances said they had handled."""
        return [line["update"] for instance in self.instances for line in instance.events("UPDATE_DONE")]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/genlock.db"
    return str(request.getfixturevalue("postgres_url"))


async def open_town(url: str, folder: Path) -> AsyncIterator[Town]:
    async with running_telegram(token=TOKEN) as telegram, running_kie(catalog=CATALOG) as kie:
        town = Town(folder, url, telegram, kie)
        try:
            yield town
        finally:
            for instance in town.instances:
                instance.kill()
            for instance in town.instances:
                for secret in (TOKEN, TOKEN.partition(":")[2], kie.key, WEBHOOK_KEY):
                    assert secret not in instance.text
                assert "Traceback" not in instance.text


@pytest.fixture
async def town(url: str, tmp_path: Path) -> AsyncIterator[Town]:
    async for town in open_town(url, tmp_path):
        yield town


@pytest.fixture
async def postgres_town(postgres_url: str, tmp_path: Path) -> AsyncIterator[Town]:
    async for town in open_town(postgres_url, tmp_path):
        yield town


async def get(address: str, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(address + path) as response:
        return response.status, await response.text()


async def health(address: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((await get(address, "/health"))[1])
    return said


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> float:
    started = monotonic()
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.01)
    return monotonic() - started


async def test_it_starts_says_so_works_and_ends_in_order(town: Town) -> None:
    instance = await town.start(GENLOCK_PORT="0")
    told = await instance.wait_for_event("READY")
    address = told["address"]
    assert told["mode"] == "polling"
    assert 0 < told["seconds"] < 10
    await instance.wait_for_event("LOCK_ACTIVE")
    assert (await get(address, "/ready")) == (200, '{"ready":true}')
    said = await health(address)
    assert (said["active"], said["queue_depth"]) == (True, 0)
    assert "genlock_active 1.0" in (await get(address, "/metrics"))[1]
    ann = town.telegram.add_user("Ann")
    for text in ("one", "two"):
        await ann.say(text)
    await until(lambda: len(town.handled()) == 2)
    instance.signal(SIGTERM)
    started = monotonic()
    assert await instance.wait_until_ended() == 0
    assert monotonic() - started < 20
    assert [line["event"] for line in instance.log_lines[-3:]] == ["STOPPING", "LOCK_PASSIVE", "STOPPED"]
    assert await town.done() == town.handled()


async def test_a_second_signal_ends_it_at_once(town: Town) -> None:
    instance = await town.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", instance.port)
    writer.write(b"POST /callbacks/kie HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
    await writer.drain()
    await get(instance.url, "/health")  # whoever never finishes a sentence has been heard by now
    instance.signal(SIGTERM)
    await instance.wait_for_event("STOPPING")
    instance.signal(SIGTERM)
    started = monotonic()
    assert await instance.wait_until_ended() == 1
    assert monotonic() - started < 2
    assert not instance.events("STOPPED")
    writer.close()
    await reader.read()


async def test_updates_come_by_webhook_where_there_is_a_public_address(town: Town) -> None:
    port = str(find_free_port())
    public = {"GENLOCK_PORT": port, "GENLOCK_PUBLIC_URL": f"http://127.0.0.1:{port}"}
    first = await town.start(**public)
    await first.wait_for_event("WEBHOOK_SET")
    ann = town.telegram.add_user("Ann")
    await ann.say("one")
    await until(lambda: len(town.handled()) == 1)
    assert town.telegram.calls("getUpdates") == []
    first.signal(SIGTERM)
    assert await first.wait_until_ended() == 0
    await ann.say("two")
    second = await town.start(**public)
    await until(lambda: len(town.handled()) == 2)
    await second.wait_for_event("LOCK_ACTIVE")
    assert len(town.telegram.calls("setWebhook")) == 1, "it knows already"
    third = await second_port(town, second)
    await third.wait_for_event("WEBHOOK_SET")
    assert len(town.telegram.calls("setWebhook")) == 2, "the address has changed"


async def second_port(town: Town, before: Instance) -> Instance:
    before.signal(SIGTERM)
    assert await before.wait_until_ended() == 0
    port = str(find_free_port())
    return await town.start(GENLOCK_PORT=port, GENLOCK_PUBLIC_URL=f"http://127.0.0.1:{port}")


async def test_a_forged_update_is_refused(town: Town) -> None:
    port = str(find_free_port())
    instance = await town.start(GENLOCK_PORT=port, GENLOCK_PUBLIC_URL=f"http://127.0.0.1:{port}")
    async with aiohttp.ClientSession() as session:
        for headers in ({}, {"X-Telegram-Bot-Api-Secret-Token": "guessed"}):
            body = {"update_id": 1, "message": {"from": {"id": 1}}}
            async with session.post(f"{instance.url}/telegram/webhook", json=body, headers=headers) as response:
                assert response.status == 401
    await instance.wait_for_event("UPDATE_REFUSED")
    assert town.handled() == []


# two instances


async def test_the_role_passes_on_at_once_when_its_holder_stops(postgres_town: Town) -> None:
    first = await postgres_town.start()
    await first.wait_for_event("LOCK_ACTIVE")
    second = await postgres_town.start()
    assert (await health(second.url))["active"] is False
    first.signal(SIGTERM)
    await first.wait_for_event("LOCK_PASSIVE")
    started = monotonic()
    await second.wait_for_event("LOCK_ACTIVE")
    assert monotonic() - started < 2
    ann = postgres_town.telegram.add_user("Ann")
    await ann.say("one")
    await until(lambda: len(second.events("UPDATE_DONE")) == 1)
    assert await first.wait_until_ended() == 0


async def test_a_killed_instance_is_replaced_within_seconds_and_no_update_is_lost(postgres_town: Town) -> None:
    first = await postgres_town.start()
    await first.wait_for_event("POLLING")
    second = await postgres_town.start()
    ann, bob = postgres_town.telegram.add_user("Ann"), postgres_town.telegram.add_user("Bob")
    for number in range(10):
        await ann.say(f"a{number}")
        await bob.say(f"b{number}")
    first.signal(SIGKILL)
    killed = monotonic()
    await ann.say("last")
    await second.wait_for_event("POLLING")
    assert monotonic() - killed < 6
    await until(lambda: len(set(postgres_town.handled())) == 21)
    assert sorted(await postgres_town.done()) == sorted(set(postgres_town.handled()))


# what is wrong is said in sentences


async def refused(town: Town, **more: str) -> str:
    instance = town.begin(**more)
    assert await instance.wait_until_ended() == 1
    return instance.text


async def test_all_settings_that_are_missing_or_wrong_are_named_at_once(town: Town) -> None:
    said = await refused(town, GENLOCK_TELEGRAM_TOKEN="", GENLOCK_KIE_API_KEY="", GENLOCK_LEASE_SECONDS="soon")
    for name in ("GENLOCK_TELEGRAM_TOKEN", "GENLOCK_KIE_API_KEY", "GENLOCK_LEASE_SECONDS"):
        assert name in said
    assert "Traceback" not in said


async def test_a_variable_that_is_no_setting_is_told_at_the_start_without_its_value(town: Town) -> None:
    (town.folder / ".env").write_text(f"GENLOCK_ADMIN_ID={WEBHOOK_KEY}\n")

    instance = await town.start(GENLOCK_KIE_API_KEYS=WEBHOOK_KEY)

    told = {line["name"]: line["nearest"] for line in instance.events("SETTING_UNKNOWN")}
    assert told == {"GENLOCK_ADMIN_ID": "GENLOCK_ADMIN_IDS", "GENLOCK_KIE_API_KEYS": "GENLOCK_KIE_API_KEY"}


async def test_a_token_that_telegram_does_not_know_ends_the_start(town: Town) -> None:
    wrong = f"1{TOKEN}"
    said = await refused(town, GENLOCK_TELEGRAM_TOKEN=wrong)
    assert "Telegram does not know the token in GENLOCK_TELEGRAM_TOKEN" in said
    assert wrong not in said


async def test_a_port_that_is_taken_ends_the_start(town: Town) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = await refused(town, GENLOCK_PORT=str(taken.getsockname()[1]))
    assert "cannot listen on 127.0.0.1:" in said
    assert "GENLOCK_PORT" in said


async def test_a_second_process_on_one_sqlite_file_is_refused(tmp_path: Path) -> None:
    async for town in open_town(f"sqlite:///{tmp_path}/genlock.db", tmp_path):
        first = await town.start()
        said = await refused(town)
        assert f"in use by another genlock process (pid {first.pid})" in said
        assert "GENLOCK_DATABASE_URL" in said


async def test_a_database_that_is_away_ends_the_start(tmp_path: Path) -> None:
    async for town in open_town("postgresql://me:hunter2secret@127.0.0.1:1/x", tmp_path):
        said = await refused(town)
        assert "cannot connect to PostgreSQL at 127.0.0.1:1/x" in said
        assert "hunter2" not in said


async def test_a_telegram_that_is_away_does_not_keep_it_from_starting(tmp_path: Path) -> None:
    async for town in open_town(f"sqlite:///{tmp_path}/genlock.db", tmp_path):
        instance = await town.start(GENLOCK_TELEGRAM_API_URL="http://127.0.0.1:1")
        assert (await get(instance.url, "/ready"))[0] == 200
        await instance.wait_for_event("CHANNEL_UNREACHABLE", step="poll updates")
        instance.signal(SIGTERM)
        assert await instance.wait_until_ended() == 0


async def test_an_operator_may_look_and_act_while_the_service_runs(town: Town) -> None:
    await town.start()

    async def genlock(*arguments: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "genlock", *arguments),
            env={**os.environ, "GENLOCK_DATABASE_URL": town.url},
            cwd=town.folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    ann = town.telegram.add_user("Ann")
    await ann.say("/start")
    await ann.sees(lambda message: bool(message.buttons))
    assert await genlock("jobs", "attention") == (0, "Nothing needs attention.\n")
    assert (await genlock("wallet", "credit", "1", "5", "--reason", "hello"))[0] == 0
    assert "available 5, held 0" in (await genlock("wallet", "show", "1"))[1]
    assert await genlock("jobs", "check") == (0, "Every invariant holds.\n")


async def test_a_stop_while_the_database_is_away_does_not_hang(own_postgres: PostgresServer, tmp_path: Path) -> None:
    """Nothing can be handed over then; whoever comes next takes over as after a crash."""
    async for town in open_town(own_postgres.create_database(), tmp_path):
        instance = await town.start()
        await instance.wait_for_event("LOCK_ACTIVE")
        own_postgres.stop()
        await instance.wait_for_event("STORE_RETRY")
        assert (await get(instance.url, "/health"))[0] == 200
        assert (await get(instance.url, "/ready"))[0] == 503
        instance.signal(SIGTERM)
        started = monotonic()
        assert await instance.wait_until_ended() == 1
        assert monotonic() - started < 22
        own_postgres.start()
        again = await town.start()
        await again.wait_for_event("LOCK_ACTIVE")
