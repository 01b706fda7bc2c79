"""A life as people live it: written in the chat, made at the provider, shown in the chat, told in one chain."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from operator import itemgetter
from pathlib import Path
from signal import SIGKILL, SIGTERM
from time import monotonic

import pytest

from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.processes import find_free_port
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import running_telegram
from tests.journeys.test_serve import TOKEN, WEBHOOK_KEY, Town, until
from tests.packaged import CATALOG

CHAIN = [
    "UPDATE_RECEIVED", "GEN_CREATE", "JOB_CREATED", "SUBMIT_START", "SUBMIT_OK", "JOB_ENDED", "DELIVER_LOCK_WIN",
    "DELIVER_START", "DELIVER_OK", "MARK_DELIVERED", "NOTICE_SENT",
]  # fmt: skip


@asynccontextmanager
async def open_town(url: str, folder: Path, *, public: bool, speed: float = 30.0) -> AsyncIterator[Town]:
    async with (
        running_telegram(token=TOKEN) as telegram,
        running_kie(catalog=CATALOG, speed=speed, webhook_key=WEBHOOK_KEY) as kie,
    ):
        town = Town(folder, url, telegram, kie)
        town.more |= {
            "GENLOCK_WELCOME_CREDITS": "100",
            "GENLOCK_MEDIA_PRIVATE_HOSTS": kie.files_url.removeprefix("http://"),
        }
        if public:
            port = str(find_free_port())
            town.more |= {"GENLOCK_PORT": port, "GENLOCK_PUBLIC_URL": f"http://127.0.0.1:{port}"}
        try:
            yield town
        finally:
            for instance in town.instances:
                instance.kill()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/g.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


async def newcomer(town: Town, language: str = "en") -> SimulatedUser:
    ann = town.telegram.add_user("Ann", language=language, started=False)
    await ann.start()
    await ann.sees(lambda message: bool(message.buttons))
    return ann


def chain(instances: list[Instance]) -> list[str]:
    """The events of the one job there is, over all instances, in the order of their times."""
    lines = sorted((line for instance in instances for line in instance.log_lines), key=itemgetter("at"))
    [correlation_id] = {line["correlation_id"] for line in lines if line["event"] == "GEN_CREATE"}
    return [line["event"] for line in lines if line.get("correlation_id") == correlation_id]


@pytest.mark.parametrize("public", [True, False], ids=["webhook", "polling"])
async def test_an_order_in_one_line_becomes_one_picture(url: str, tmp_path: Path, public: bool) -> None:  # noqa: FBT001
    async with open_town(url, tmp_path, public=public) as town:
        instance = await town.start()
        ann = await newcomer(town)
        await ann.say("/gen z-image cat astronaut")
        await ann.sees("Generation complete", seconds=30)
        pictures = [message for message in ann.messages if message.kind == "photo"]
        assert len(pictures) == 1
        await instance.wait_for_event("NOTICE_SENT")
        told = chain([instance])
        assert [event for event in CHAIN if event in told] == CHAIN
        assert [told.index(event) for event in CHAIN] == sorted(told.index(event) for event in CHAIN)
        assert ("CALLBACK_RECEIVED" in told) is public
        assert ("POLL_TICK" in told) is not public


async def test_a_job_whose_instance_is_killed_is_finished_by_another_in_the_same_chain(
    postgres_url: str, tmp_path: Path
) -> None:
    async with open_town(postgres_url, tmp_path, public=False, speed=3.0) as town:
        first = await town.start()
        ann = await newcomer(town)
        await ann.say("/gen z-image cat astronaut")
        await first.wait_for_event("SUBMIT_OK")
        second = await town.start()
        first.signal(SIGKILL)
        await ann.sees("Generation complete", seconds=40)
        await second.wait_for_event("NOTICE_SENT")
        assert len([message for message in ann.messages if message.kind == "photo"]) == 1
        told = chain([first, second])
        assert [told.count(event) for event in ("SUBMIT_START", "MARK_DELIVERED", "NOTICE_SENT")] == [1, 1, 1]
        assert {event for event in CHAIN if event in told} == set(CHAIN)


async def test_a_stop_in_the_middle_leaves_the_job_to_the_next_start(url: str, tmp_path: Path) -> None:
    async with open_town(url, tmp_path, public=False, speed=10.0) as town:
        first = await town.start()
        ann = await newcomer(town, "ru")
        await ann.say("/gen z-image кот")
        await first.wait_for_event("SUBMIT_OK")
        first.signal(SIGTERM)
        assert await first.wait_until_ended() == 0
        second = await town.start()
        await second.wait_for_event("NOTICE_SENT", seconds=40)
        assert len([message for message in ann.messages if message.kind == "photo"]) == 1


async def test_a_stop_does_not_wait_for_what_hangs(url: str, tmp_path: Path) -> None:
    """Within 20 s it is handed over, whatever the channel does; the next one shows the result, once."""
    async with open_town(url, tmp_path, public=False) as town:
        first = await town.start()
        ann = await newcomer(town)
        town.telegram.faults.switch(Fault.DELAY, method="editMessageMedia", seconds=60.0)
        await ann.say("/gen z-image cat astronaut")
        await first.wait_for_event("DELIVER_START")
        await until(lambda: bool(town.telegram.calls("editMessageMedia")))
        first.signal(SIGTERM)
        started = monotonic()
        assert await first.wait_until_ended() == 0
        assert monotonic() - started < 20
        town.telegram.faults.clear()
        second = await town.start()
        await second.wait_for_event("NOTICE_SENT", seconds=40)
        assert len([message for message in ann.messages if message.kind == "photo"]) == 1


async def test_operators_are_told_of_what_is_wrong_in_their_language(url: str, tmp_path: Path) -> None:
    async with open_town(url, tmp_path, public=False) as town:
        olga = town.telegram.add_user("Olga", language="ru", started=False)
        silent = town.telegram.add_user("Sam", language="ru")
        town.more["GENLOCK_ADMIN_IDS"] = f"{olga.id},{silent.id}"
        async with asyncio.timeout(60):
            instance = await town.start()
            await olga.start()
            await olga.sees(lambda message: bool(message.buttons))
            ann = await newcomer(town)
            town.telegram.state.updates.add("message", {"message_id": "broken", "from": {"id": ann.id}}, "broken")
            await instance.wait_for_event("UPDATE_DEAD")
            await olga.sees("отложены", seconds=30)
            await silent.sees("set aside", seconds=30)  # whose language we have not met
            await until(lambda: len(instance.events("ALARM")) == 1)
