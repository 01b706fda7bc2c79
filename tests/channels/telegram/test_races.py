"""Two at one message: late progress never stays on a result, and two senders show one result."""

import asyncio
from datetime import timedelta

import pytest

from genlock.channels.telegram.channel import MOMENTS
from genlock.domain.delivery import Level
from genlock.domain.job import Delivery, Job
from genlock.domain.result import PartKind, Piece
from genlock.engine.engine import Engine
from genlock.sandbox.telegram.faults import Fault
from tests.channels.telegram.house import EXPECTED_SECONDS, House, film, picture, until
from tests.engine.world import idle


async def poll(house: House, engine: Engine) -> Job:
    """An instance takes the running job at its first moment, asks after it and shows progress."""
    house.clock.ahead += timedelta(seconds=MOMENTS[0] * EXPECTED_SECONDS + 0.1)
    [taken] = await house.store.claim(1, engine.ctx.lease)
    engine.worker.start(taken)
    return taken


async def test_progress_is_shown_by_the_engine_at_its_moment(house: House) -> None:
    await house.running()
    await poll(house, house.engine)
    await idle(house.engine)
    assert house.ann.last.text == "Order 1: 8%"
    assert [str(priority) for _, priority in house.turns.taken] == ["result", "progress"]


@pytest.mark.parametrize("kind", ["a picture", "a text", "words"])
async def test_a_progress_edit_that_lands_after_the_result_does_not_stay(house: House, kind: str) -> None:
    """Telegram had checked it against the text that was there before; then the result came, then it took effect."""
    other = house.another("other")
    job = await house.running(notice=False)
    house.telegram.faults.once(Fault.DELAY_INSIDE, method="editMessageText", seconds=2.7)
    await poll(house, other)
    await until(lambda: len(house.telegram.calls("editMessageText")) == 1)

    if kind == "a picture":
        job = await house.end(job, house.shelf.put("a.png", picture(), "image/png"))
    elif kind == "a text":
        job = await house.end(job, Piece(kind=PartKind.TEXT, value="the words"))
    else:
        job = await house.end(job)
    await idle(other)

    [message] = house.shown(job)
    calls = house.telegram.journal
    progress = house.telegram.calls("editMessageText")[0]
    assert progress.executed, "it did land"
    put = calls[calls.index(progress) + 1]
    assert put.at + put.seconds < progress.at + 2.7, "after the result"
    expected = {"a picture": ("photo", "Part 1"), "a text": ("text", "the words")}
    assert (message.kind, message.text) == expected.get(kind, ("text", f"Order {job.id} failed (), money back"))
    assert job.delivery is Delivery.DELIVERED
    assert house.uploads() == 0


async def test_a_result_that_nobody_was_in_the_way_of_is_put_once(house: House) -> None:
    job = await house.running(notice=False)
    await poll(house, house.engine)
    await idle(house.engine)
    job = await house.end(job, Piece(kind=PartKind.TEXT, value="the words"))
    assert house.methods() == ["sendMessage", "editMessageText", "editMessageText"]


async def test_two_senders_of_one_upload_show_one_result_and_fall_no_level(far_house: House) -> None:
    """The first was thought dead and was only slow: the second's edit cancels its upload."""
    house = far_house
    house.telegram.upload_seconds = 0.4
    job = await house.running()
    url = house.shelf.put("a.mp4", film(), "video/mp4")
    first = asyncio.create_task(house.end(job, url))
    await until(lambda: len(house.telegram.calls("editMessageMedia")) == 1)
    house.clock.ahead += timedelta(seconds=60)
    other = house.another("other")
    [taken] = await house.store.claim(1, other.ctx.lease)
    other.worker.start(taken)
    await idle(other)
    await first

    job = await house.see(job)
    assert (job.delivery, [part.level for part in job.parts]) == (Delivery.DELIVERED, [Level.BYTES])
    assert [message.kind for message in house.ann.messages] == ["video", "text"]
    assert len(house.ann.notifications) == 1
    errors = [call.error for call in house.telegram.calls("editMessageMedia")]
    assert any("canceled by new edit" in (error or "") for error in errors)


async def test_a_message_deleted_during_the_upload_is_replaced_once(far_house: House) -> None:
    house = far_house
    house.telegram.upload_seconds = 0.3
    job = await house.running()
    delivery = asyncio.create_task(house.end(job, house.shelf.put("a.mp4", film(), "video/mp4")))
    await until(lambda: len(house.telegram.calls("editMessageMedia")) == 1)
    await house.ann.delete(int(job.placeholder or 0))
    job = await delivery
    assert job.delivery is Delivery.DELIVERED
    assert [message.kind for message in house.ann.messages] == ["video", "text"]
