"""Results replace their placeholders, for every number of parts and every answer of Telegram."""

import asyncio

import pytest
from aiohttp import web

from genlock.channels.telegram.content import FETCH_TRIES, FILES_AT_ONCE
from genlock.domain.delivery import Level
from genlock.domain.job import Delivery, State
from genlock.domain.money import HoldState
from genlock.engine import operate
from genlock.ports import Button, OutgoingMessage
from genlock.sandbox.telegram.faults import Fault
from tests.channels.telegram.harness import Harness
from tests.channels.telegram.sample_results import MP4, PNG, text
from tests.engine.world import idle
from tests.media.samples import image, short_video

# several parts, texts


async def test_several_parts_are_shown_in_order_each_on_its_own_message(harness: Harness) -> None:
    urls = [
        harness.files.put(f"{number}.png", image(colour=f"hsl({number * 30}, 50%, 50%)"), PNG) for number in range(10)
    ]
    job = await harness.deliver(*urls)
    messages = harness.shown(job)
    assert [message.text for message in messages] == [f"Part {number + 1}" for number in range(10)]
    assert [message.buttons[0]["url"] for message in messages] == urls
    assert [message.id for message in messages] == sorted({message.id for message in messages})
    assert [message.kind for message in harness.ann.messages] == ["photo"] * 10 + ["text"]


async def test_a_text_result_is_shown_without_markup(harness: Harness) -> None:
    value = "if a < b && c > d: <b>not bold</b> 🦊"
    job = await harness.deliver(text(value))
    [message] = harness.shown(job)
    assert (message.kind, message.text) == ("text", value)
    assert [button["text"] for button in message.buttons] == ["Repeat"]


async def test_a_long_text_is_split_and_nothing_is_lost(harness: Harness) -> None:
    value = "\n\n".join(
        " ".join(f"word{number}🦊" for number in range(start, start + 90)) for start in range(0, 900, 90)
    )
    job = await harness.deliver(text(value))
    messages = harness.shown(job)
    assert len(messages) == 3
    assert all(len(message.text.encode("utf-16-le")) // 2 <= 4096 for message in messages)
    assert " ".join(message.text for message in messages).split() == value.split()
    assert messages[0].id == int(job.placeholder or 0)


async def test_a_text_for_more_than_ten_messages_is_sent_as_a_file(harness: Harness) -> None:
    value = "lines of a long text\n" * 3000
    job = await harness.deliver(text(value))
    [message] = harness.shown(job)
    assert message.kind == "document"
    assert harness.telegram.files.read(message.file_id).decode() == value


# invalid results


@pytest.mark.parametrize(
    ("content", "type_", "why"),
    [
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "text/html", "HTML"),
        (b"\n  <html><head></head></html>", "image/png", "HTML"),
        (b'{"code": 500, "msg": "expired"}', "application/json", "JSON"),
        (b'{"code": 500, "msg": "expired"}', "video/mp4", "JSON"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "image/png", "HTML"),
        (b"", "image/png", "empty"),
    ],
)
async def test_a_page_or_an_empty_file_instead_of_media_fails_the_job_and_releases_the_hold(
    harness: Harness, content: bytes, type_: str, why: str
) -> None:
    job = await harness.deliver(harness.files.put("a.png", content, type_))
    [message] = harness.shown(job)
    assert (job.state, job.delivery, job.hold_state) == (State.FAILED, Delivery.DELIVERED, HoldState.RELEASED)
    assert why in job.error_text
    assert message.text == f"Order {job.id} failed (broken_result), money back"
    assert message.id == int(job.placeholder or 0)
    assert (await harness.store.wallet(harness.account_id)).available == 100_000


async def test_a_missing_result_is_retried_and_then_fails_the_job(harness: Harness) -> None:
    job = await harness.deliver(f"{harness.files.url}/gone.png")
    assert (job.delivery, job.attempts) == (Delivery.PENDING, 1)
    for attempt in range(2, FETCH_TRIES + 1):
        job = await harness.next_try(job)
        assert (job.delivery, job.attempts) == (Delivery.PENDING, attempt)
    job = await harness.next_try(job)
    assert (job.state, job.delivery, job.hold_state) == (State.FAILED, Delivery.DELIVERED, HoldState.RELEASED)
    assert "404" in job.error_text


async def test_a_result_on_a_failing_host_is_shown_as_a_link_after_the_retries(harness: Harness) -> None:
    """The user's own network may reach the host."""

    async def failing(_: web.Request) -> web.Response:
        return web.Response(status=503)

    job = await harness.deliver(harness.files.serve("a.png", failing))
    for _ in range(FETCH_TRIES):
        job = await harness.next_try(job)
    assert (job.state, job.delivery, job.parts[0].level) == (State.SUCCEEDED, Delivery.DELIVERED, Level.TEXT)


# failures, progress, the notice


async def test_a_failure_is_shown_on_the_placeholder(harness: Harness) -> None:
    job = await harness.end(await harness.running(), state=State.FAILED, code="nsfw")
    [message] = harness.shown(job)
    assert (message.text, message.id) == (f"Order {job.id} failed (nsfw), money back", int(job.placeholder or 0))
    assert message.buttons == []


async def test_the_notice_replies_to_the_result_and_is_the_only_notification(harness: Harness) -> None:
    job = await harness.deliver(harness.files.put("a.png", image(), PNG))
    assert [(notification.text, notification.message) for notification in harness.ann.notifications] == [
        ("✅ Generation complete", harness.ann.last.id)
    ]
    assert harness.ann.last.reply_to == int(job.placeholder or 0)
    assert [button["callback_data"] for button in harness.ann.last.buttons] == [f"again:{job.id}"]


async def test_progress_is_shown_on_the_placeholder_and_never_on_a_result(harness: Harness) -> None:
    loop = asyncio.get_running_loop()
    job = await harness.running()
    assert harness.ann.last.text == f"Order {job.id}: accepted"
    await harness.channel.progress(job, 0.5, loop.time() + 5)
    await harness.channel.progress(job, 0.5, loop.time() + 5)
    assert harness.ann.last.text == f"Order {job.id}: 50%"
    done = await harness.end(job, harness.files.put("a.png", image(), PNG))
    await harness.channel.progress(job, 0.6, loop.time() + 5)
    assert [message.text for message in harness.shown(done)] == ["Part 1"]


async def test_an_edit_that_changes_nothing_is_a_success(harness: Harness) -> None:
    url = harness.files.put("a.png", image(), PNG)
    job = await harness.running()
    harness.telegram.faults.once(Fault.DROP_AFTER, method="editMessageMedia")
    job = await harness.end(job, url)
    assert (job.delivery, job.attempts) == (Delivery.PENDING, 1)
    job = await harness.again(job)
    assert job.delivery is Delivery.DELIVERED
    assert harness.telegram.calls("editMessageMedia")[-1].error is not None
    assert len(harness.ann.messages) == 2


async def test_a_caption_that_telegram_refuses_is_sent_as_plain_text(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = OutgoingMessage(text="<b>Part</i> &lt;1&gt;", buttons=((Button(text="x", data="y" * 80),),))
    monkeypatch.setattr(harness.channel._texts, "caption", lambda *_: broken)
    job = await harness.deliver(harness.files.put("a.png", image(), PNG))
    [message] = harness.shown(job)
    assert (message.kind, message.text, message.buttons) == ("photo", "Part <1>", [])


# results shown again


async def test_a_result_is_shown_again_without_an_upload(remote_harness: Harness) -> None:
    harness = remote_harness
    job = await harness.deliver(
        harness.files.put("a.png", image(), PNG), harness.files.put("b.mp4", short_video(), MP4)
    )
    asked, uploads = len(harness.files.requested), harness.uploads()
    await operate.resend(harness.engine.ctx, job.id, "ann")
    job = await harness.again(job)
    assert [message.kind for message in harness.shown(job)] == ["photo", "video"]
    assert [message.kind for message in harness.ann.messages] == ["photo", "video", "text", "photo", "video"]
    assert (len(harness.files.requested), harness.uploads()) == (asked, uploads)


async def test_a_file_id_that_telegram_no_longer_accepts_leads_to_a_new_upload(remote_harness: Harness) -> None:
    harness = remote_harness
    job = await harness.deliver(harness.files.put("a.png", image(), PNG))
    harness.telegram.files.known.clear()
    await operate.resend(harness.engine.ctx, job.id, "ann")
    job = await harness.again(job)
    assert (job.delivery, harness.uploads()) == (Delivery.DELIVERED, 2)
    assert [message.kind for message in harness.shown(job)] == ["photo"]


# the probe before a repeated upload


async def test_an_upload_whose_answer_was_lost_is_not_repeated(remote_harness: Harness) -> None:
    harness = remote_harness
    harness.telegram.faults.once(Fault.DROP_AFTER, method="editMessageMedia")
    job = await harness.deliver(harness.files.put("b.mp4", short_video(), MP4))
    assert job.delivery is Delivery.PENDING
    job = await harness.again(job)
    assert (job.delivery, harness.uploads()) == (Delivery.DELIVERED, 1)
    assert harness.methods()[-3:] == ["editMessageMedia", "editMessageCaption", "sendMessage"]


async def test_an_upload_that_did_not_arrive_is_repeated(remote_harness: Harness) -> None:
    harness = remote_harness
    harness.telegram.faults.once(Fault.DROP_BEFORE, method="editMessageMedia")
    job = await harness.deliver(harness.files.put("b.mp4", short_video(), MP4))
    job = await harness.again(job)
    assert job.delivery is Delivery.DELIVERED
    assert harness.methods()[-4:] == ["editMessageMedia", "editMessageCaption", "editMessageMedia", "sendMessage"]
    assert [message.kind for message in harness.shown(job)] == ["video"]


async def test_a_backlog_of_uploads_is_processed_a_few_at_a_time(remote_harness: Harness) -> None:
    """If all messages were checked first, an instance that crashes often would never reach the first upload."""
    harness = remote_harness
    url = harness.files.put("b.png", image(), PNG)
    lost = harness.telegram.faults.switch(Fault.DROP_BEFORE, method="editMessageMedia")
    jobs = [await harness.deliver(url) for _ in range(3 * FILES_AT_ONCE)]
    harness.telegram.faults.off(lost)
    before = len(harness.methods())
    for job in jobs:
        await harness.store.retry_job(job.id)
    for taken in await harness.store.claim_jobs(len(jobs), harness.engine.ctx.lease):
        harness.engine.worker.start(taken)
    await idle(harness.engine)
    methods = harness.methods()[before:]
    assert (methods.count("editMessageCaption"), methods.count("editMessageMedia")) == (len(jobs), len(jobs))
    assert methods[: methods.index("editMessageMedia")].count("editMessageCaption") <= FILES_AT_ONCE
    assert {(await harness.see(job)).delivery for job in jobs} == {Delivery.DELIVERED}
