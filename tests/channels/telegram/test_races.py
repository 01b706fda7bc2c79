"""Concurrent edits of one message: late progress never replaces a result, and two instances show one result."""

import asyncio
from datetime import timedelta

import pytest

from genlock.channels.telegram.channel import PROGRESS_POINTS
from genlock.domain.delivery import Level
from genlock.domain.job import Delivery, Job
from genlock.domain.result import PartKind, Piece
from genlock.engine.engine import Engine
from genlock.sandbox.telegram import edits
from genlock.sandbox.telegram.api_call import CallArguments
from genlock.sandbox.telegram.chats import Message
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.state import TelegramState
from tests.channels.telegram.harness import EXPECTED_SECONDS, Harness
from tests.engine.world import idle
from tests.media.samples import image, short_video


async def poll(harness: Harness, engine: Engine) -> Job:
    """Let an instance claim the running job at its first progress point, poll the provider and show progress."""
    [job] = await harness.store.jobs()
    assert job.submitted_at is not None
    point = timedelta(seconds=PROGRESS_POINTS[0] * EXPECTED_SECONDS + 0.1)
    with harness.clock.stopped(job.submitted_at + point):
        [taken] = await harness.store.claim_jobs(1, engine.ctx.lease)
    engine.worker.start(taken)
    return taken


async def test_the_engine_shows_progress_at_the_first_progress_point(harness: Harness) -> None:
    await harness.running()
    await poll(harness, harness.engine)
    await idle(harness.engine)
    assert harness.ann.last.text == "Order 1: 25%"
    assert [str(priority) for _, priority in harness.limiter.acquired] == ["result", "progress"]


@pytest.mark.parametrize("kind", ["an image", "a text", "a failure"])
async def test_a_progress_edit_that_takes_effect_after_the_result_is_overwritten(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Telegram accepts the progress edit before the result, and applies it after the result."""
    applied = asyncio.Event()

    async def hold(_: TelegramState, arguments: CallArguments, __: Message) -> None:
        if arguments.inside_seconds:
            await applied.wait()

    monkeypatch.setattr(edits, "_delay_inside", hold)
    other = harness.another("other")
    job = await harness.running(notice=False)
    harness.telegram.faults.once(Fault.DELAY_INSIDE, method="editMessageText", seconds=1.0)
    await poll(harness, other)
    await harness.telegram.until(lambda: len(harness.telegram.calls("editMessageText")) == 1)

    if kind == "an image":
        job = await harness.end(job, harness.files.put("a.png", image(), "image/png"))
    elif kind == "a text":
        job = await harness.end(job, Piece(kind=PartKind.TEXT, value="the text"))
    else:
        job = await harness.end(job)
    assert job.delivery is Delivery.DELIVERED
    applied.set()
    await idle(other)
    [message] = harness.shown(job)
    await harness.telegram.until(lambda: message.text == "Order 1: 25%")
    job = await harness.next_try(job)

    calls = harness.telegram.journal
    progress = harness.telegram.calls("editMessageText")[0]
    assert progress.executed, "the progress edit took effect"
    put = calls[calls.index(progress) + 1]
    assert put.at + put.seconds < progress.at + progress.seconds, "after the result"
    expected = {"an image": ("photo", "Part 1"), "a text": ("text", "the text")}
    assert (message.kind, message.text) == expected.get(kind, ("text", f"Order {job.id} failed (), money back"))
    assert harness.uploads() == 0


async def test_a_result_without_a_concurrent_progress_edit_is_put_once(harness: Harness) -> None:
    job = await harness.running(notice=False)
    await poll(harness, harness.engine)
    await idle(harness.engine)
    job = await harness.end(job, Piece(kind=PartKind.TEXT, value="the text"))
    assert harness.methods() == ["sendMessage", "editMessageText", "editMessageText"]


async def test_two_instances_that_upload_the_same_result_show_it_once_at_the_same_level(
    remote_harness: Harness,
) -> None:
    """The first instance lost its lease because it was slow: the second one's edit cancels its upload."""
    harness = remote_harness
    harness.telegram.upload_seconds = 60.0  # until another edit cancels it
    job = await harness.running()
    url = harness.files.put("a.mp4", short_video(), "video/mp4")
    first = asyncio.create_task(harness.end(job, url))
    await harness.telegram.until(lambda: harness.telegram.state.uploading)
    harness.telegram.upload_seconds = 0.0
    harness.clock.ahead += timedelta(seconds=60)
    other = harness.another("other")
    [taken] = await harness.store.claim_jobs(1, other.ctx.lease)
    other.worker.start(taken)
    await idle(other)
    await first

    job = await harness.see(job)
    assert (job.delivery, [part.level for part in job.parts]) == (Delivery.DELIVERED, [Level.BYTES])
    assert [message.kind for message in harness.ann.messages] == ["video", "text"]
    assert len(harness.ann.notifications) == 1
    errors = [call.error for call in harness.telegram.calls("editMessageMedia")]
    assert any("canceled by new edit" in (error or "") for error in errors)


async def test_a_message_deleted_during_the_upload_is_replaced_once(remote_harness: Harness) -> None:
    harness = remote_harness
    harness.telegram.upload_seconds = 0.3
    job = await harness.running()
    delivery = asyncio.create_task(harness.end(job, harness.files.put("a.mp4", short_video(), "video/mp4")))
    await harness.telegram.until(lambda: len(harness.telegram.calls("editMessageMedia")) == 1)
    await harness.ann.delete(int(job.placeholder or 0))
    job = await delivery
    assert job.delivery is Delivery.DELIVERED
    assert [message.kind for message in harness.ann.messages] == ["video", "text"]
