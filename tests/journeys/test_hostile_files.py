"""Files that are made to take long, and downloads that hang, against a real `genlock serve` process."""

from collections.abc import AsyncIterator
from pathlib import Path
from signal import SIGTERM

import pytest

from genlock.sandbox.instance import Instance
from genlock.sandbox.processes import find_free_port
from genlock.sandbox.telegram.chats import Message
from genlock.sandbox.telegram.faults import DOWNLOAD, Fault
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from tests.bot.pages import page
from tests.databases import new_sqlite
from tests.journeys.serve_setup import ServeSetup, running_setup

ATTACKERS = 3
#: longer than a stop may take
HANGING_SECONDS = 600.0
UNREADABLE, TOO_MANY = page("refused.upload_unreadable"), page("limit.uploads")


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[ServeSetup]:
    async for setup in running_setup(f"sqlite:///{new_sqlite(tmp_path)}", tmp_path):
        yield setup


async def start(setup: ServeSetup, **settings: str) -> Instance:
    """Start an instance that gets its updates by webhook."""
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    instance = await setup.start(GENLOCK_PORT=str(port), GENLOCK_PUBLIC_URL=url, **settings)
    await instance.wait_for_event("WEBHOOK_SET")
    return instance


def bomb() -> bytes:
    """An Ogg file of half a million packets without content, more than any parser reads of one file."""
    return b"OggS\0\2" + bytes(20) + b"\2\x08\x08OpusHeadOpusTags" + (b"OggS" + bytes(22) + b"\xff" + bytes(255)) * 2000


def answers(user: SimulatedUser) -> list[Message]:
    return [message for message in user.messages if message.sender != user.id]


async def test_a_user_is_answered_while_files_are_read_that_take_long_and_each_is_answered_once(
    setup: ServeSetup,
) -> None:
    instance = await start(setup, GENLOCK_UPLOADS_PER_HOUR="1")
    attackers = [setup.telegram.add_user(f"Mallory {number}") for number in range(ATTACKERS)]
    for attacker in attackers:
        await attacker.send("document", bomb(), name="song.ogg")
        await attacker.send("document", bomb(), name="again.ogg")
    ann = setup.telegram.add_user("Ann")
    await ann.start()
    await ann.sees(lambda message: message.sender != ann.id)
    for attacker in attackers:
        await attacker.sees(UNREADABLE, seconds=60)
        await attacker.sees(TOO_MANY, seconds=60)

    assert {len([answer for answer in answers(each) if UNREADABLE(answer)]) for each in attackers} == {1}
    assert len(setup.telegram.calls("getFile")) == ATTACKERS, "a file over the hourly limit is not even asked for"
    assert instance.events("UPDATE_FAIL") == []
    assert await instance.stop() == 0


async def test_a_stop_interrupts_a_hanging_download_and_the_file_is_handled_by_the_next_instance(
    setup: ServeSetup,
) -> None:
    hanging = setup.telegram.faults.switch(Fault.DELAY, method=DOWNLOAD, seconds=HANGING_SECONDS, times=1)
    instance = await start(setup, GENLOCK_UPLOADS_PER_HOUR="1")
    ann = setup.telegram.add_user("Ann")
    await ann.send("document", bomb(), name="song.ogg")
    assert await setup.telegram.state.events.wait_until(lambda: hanging.times == 0, 30)

    instance.signal(SIGTERM)
    assert await instance.wait_until_ended() == 0
    [interrupted] = instance.events("UPDATE_FAIL")
    assert "the instance stops" in interrupted["error"]
    assert answers(ann) == []

    await start(setup, GENLOCK_UPLOADS_PER_HOUR="1")
    await ann.sees(UNREADABLE, seconds=30)
    assert len(answers(ann)) == 1, "it was counted once, so the hourly limit does not refuse it"
