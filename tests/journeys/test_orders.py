"""Whole orders with real processes: from the chat to the provider and back, logged under one correlation id."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from operator import itemgetter
from pathlib import Path
from signal import SIGKILL, SIGSTOP, SIGTERM
from time import monotonic

import pytest

from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.processes import find_free_port
from genlock.sandbox.telegram.chats import Message
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import running_telegram
from tests.bot.pages import page
from tests.changes import poll_until
from tests.journeys.serve_setup import TOKEN, WEBHOOK_KEY, ServeSetup
from tests.media.samples import encode_audio
from tests.packaged import CATALOG

CHAIN = [
    "UPDATE_RECEIVED", "GEN_CREATE", "JOB_CREATED", "SUBMIT_START", "SUBMIT_OK", "JOB_ENDED", "DELIVER_LOCK_WIN",
    "DELIVER_START", "DELIVER_OK", "MARK_DELIVERED", "NOTICE_SENT",
]  # fmt: skip


@asynccontextmanager
async def running_setup(url: str, folder: Path, *, public: bool) -> AsyncIterator[ServeSetup]:
    async with (
        running_telegram(token=TOKEN) as telegram,
        running_kie(catalog=CATALOG, speed=30.0, webhook_key=WEBHOOK_KEY) as kie,
    ):
        setup = ServeSetup(folder, url, telegram, kie)
        setup.more |= {
            "GENLOCK_WELCOME_CREDITS": "100",
            "GENLOCK_MEDIA_PRIVATE_HOSTS": kie.files_url.removeprefix("http://"),
        }
        if public:
            port = str(find_free_port())
            setup.more |= {"GENLOCK_PORT": port, "GENLOCK_PUBLIC_URL": f"http://127.0.0.1:{port}"}
        try:
            yield setup
        finally:
            for instance in setup.instances:
                instance.kill()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/g.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


def results(ann: SimulatedUser) -> list[Message]:
    """Return the pictures that were put on a message. The picture that greets a new user was sent as one."""
    return [message for message in ann.messages if message.kind == "photo" and message.edited]


async def started_user(setup: ServeSetup, language: str = "en") -> SimulatedUser:
    ann = setup.telegram.add_user("Ann", language=language, started=False)
    await ann.start()
    await ann.sees(lambda message: bool(message.buttons))
    return ann


def chain(instances: list[Instance]) -> list[str]:
    """Event names of the only job, from all instances, in order of time."""
    lines = sorted((line for instance in instances for line in instance.log_lines), key=itemgetter("at"))
    [correlation_id] = {line["correlation_id"] for line in lines if line["event"] == "GEN_CREATE"}
    return [line["event"] for line in lines if line.get("correlation_id") == correlation_id]


@pytest.mark.parametrize("public", [True, False], ids=["webhook", "polling"])
async def test_a_gen_command_delivers_one_image(url: str, tmp_path: Path, public: bool) -> None:  # noqa: FBT001
    async with running_setup(url, tmp_path, public=public) as setup:
        instance = await setup.start()
        ann = await started_user(setup)
        await ann.say("/gen z-image cat astronaut")
        await ann.sees(page("order.done"), seconds=30)
        pictures = results(ann)
        assert len(pictures) == 1
        await instance.wait_for_event("NOTICE_SENT")
        events = chain([instance])
        assert [event for event in CHAIN if event in events] == CHAIN
        assert [events.index(event) for event in CHAIN] == sorted(events.index(event) for event in CHAIN)
        assert ("CALLBACK_RECEIVED" in events) is public
        assert ("POLL_TICK" in events) is not public


async def test_another_instance_finishes_the_job_of_a_killed_one_under_the_same_correlation_id(
    postgres_url: str, tmp_path: Path
) -> None:
    async with running_setup(postgres_url, tmp_path, public=False) as setup:
        first = await setup.start()
        ann = await started_user(setup)
        setup.kie.service.hold_tasks()
        await ann.say("/gen z-image cat astronaut")
        await first.wait_for_event("SUBMIT_OK")
        second = await setup.start()
        first.signal(SIGKILL)
        setup.kie.service.release_tasks()
        await ann.sees(page("order.done"), seconds=40)
        await second.wait_for_event("NOTICE_SENT")
        assert len(results(ann)) == 1
        events = chain([first, second])
        assert [events.count(event) for event in ("SUBMIT_START", "MARK_DELIVERED", "NOTICE_SENT")] == [1, 1, 1]
        assert {event for event in CHAIN if event in events} == set(CHAIN)


async def test_a_job_interrupted_by_a_stop_is_finished_after_the_next_start(url: str, tmp_path: Path) -> None:
    async with running_setup(url, tmp_path, public=False) as setup:
        first = await setup.start()
        ann = await started_user(setup, "ru")
        setup.kie.service.hold_tasks()
        await ann.say("/gen z-image кот")
        await first.wait_for_event("SUBMIT_OK")
        first.signal(SIGTERM)
        assert await first.wait_until_ended() == 0
        setup.kie.service.release_tasks()
        second = await setup.start()
        await second.wait_for_event("NOTICE_SENT", seconds=40)
        assert len(results(ann)) == 1


async def test_a_stop_does_not_wait_for_a_hanging_delivery(tmp_path: Path) -> None:
    """Within 20 s it is handed over, whatever the channel does; the next one shows the result, once."""
    async with running_setup(f"sqlite:///{tmp_path}/g.db", tmp_path, public=False) as setup:
        first = await setup.start()
        ann = await started_user(setup)
        setup.telegram.faults.switch(Fault.DELAY, method="editMessageMedia", seconds=60.0)
        await ann.say("/gen z-image cat astronaut")
        await first.wait_for_event("DELIVER_START")
        await poll_until(lambda: bool(setup.telegram.calls("editMessageMedia")))
        first.signal(SIGTERM)
        started = monotonic()
        assert await first.wait_until_ended() == 0
        assert monotonic() - started < 20
        setup.telegram.faults.clear()
        second = await setup.start()
        await second.wait_for_event("NOTICE_SENT", seconds=40)
        assert len(results(ann)) == 1


async def test_a_stop_does_not_wait_for_a_file_that_is_read(tmp_path: Path) -> None:
    async with running_setup(f"sqlite:///{tmp_path}/g.db", tmp_path, public=False) as setup:
        instance = await setup.start()
        ann = await started_user(setup)
        voice = encode_audio("ogg", "libopus", "s16")
        await ann.send("audio", voice)
        await poll_until(lambda: bool(children(instance.pid)))
        await ann.sees(page("misc.what_with_file"))
        [reader] = children(instance.pid)
        os.kill(reader, SIGSTOP)
        await ann.send("audio", voice)
        await poll_until(lambda: len(setup.telegram.calls("getFile")) == 2)
        instance.signal(SIGTERM)
        started = monotonic()
        assert await instance.wait_until_ended() == 0
        assert monotonic() - started < 20
        with pytest.raises(ProcessLookupError):
            os.kill(reader, 0)


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in found for child in file.read_text(encoding="ascii").split()]


async def test_operators_receive_alarms_in_their_language(tmp_path: Path) -> None:
    async with running_setup(f"sqlite:///{tmp_path}/g.db", tmp_path, public=False) as setup:
        olga = setup.telegram.add_user("Olga", language="ru", started=False)
        silent = setup.telegram.add_user("Sam", language="ru")
        setup.more["GENLOCK_ADMIN_IDS"] = f"{olga.id},{silent.id}"
        async with asyncio.timeout(60):
            instance = await setup.start()
            await olga.start()
            await olga.sees(lambda message: bool(message.buttons))
            ann = await started_user(setup)
            setup.telegram.state.updates.add("message", {"message_id": "broken", "from": {"id": ann.id}}, "broken")
            await instance.wait_for_event("UPDATE_DEAD")
            await olga.sees(page("alarm.updates_dead.title", language="ru"), seconds=30)
            await silent.sees(page("alarm.updates_dead.title"), seconds=30)  # has not written yet: language unknown
            await poll_until(lambda: len(instance.events("ALARM")) == 1)
