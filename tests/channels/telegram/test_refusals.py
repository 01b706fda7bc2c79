"""A refusal of the text, a button or the whole bot does not cost the user the result, nor us the money."""

import asyncio
from typing import Any

import pytest

from genlock.channels.telegram.bot_refusals import BotRefusals
from genlock.channels.telegram.caller import Caller, Priority, make_bot
from genlock.channels.telegram.errors import TokenRefused
from genlock.domain.delivery import Level, Step
from genlock.domain.events import Event
from genlock.domain.job import Delivery
from genlock.domain.money import HoldState
from genlock.engine import operate
from genlock.sandbox.telegram.faults import Fault
from tests.changes import PATIENCE_SECONDS
from tests.channels.telegram.harness import Harness
from tests.channels.telegram.telegram_answers import ANSWERS
from tests.media.samples import image

#: refusals that are not about the user or the result, so that they may not cost either
PASSING = ("BotFrozen", "TokenRefused", "RateLimited", "ChannelBusy", "CallInvalid")
LASTING = ("FileRefused", "LevelRefused", "TextRefused", "ButtonsRefused", "RecipientUnreachable", "PlaceholderGone")
SENDS = ("sendPhoto", "sendDocument", "sendMessage")
LINK_REFUSED = "Bad Request: inline keyboard button URL 'https://x' is invalid: Wrong HTTP URL"


@pytest.fixture
def url(harness: Harness) -> str:
    return harness.files.put("a.png", image(), "image/png")


async def test_a_refusal_of_the_whole_bot_is_recorded_for_the_alarm(harness: Harness) -> None:
    refusals = BotRefusals(harness.store, harness.recorder)
    caller = Caller(make_bot("42:revoked", harness.telegram.url), harness.limiter, harness.recorder, refusals.record)
    for _ in range(2):
        with pytest.raises(TokenRefused):
            await caller.call(caller.bot.send_message, chat=harness.ann.id, priority=Priority.RESULT, text="x")
    await caller.close()
    assert (await harness.store.stats())["bot_refused"] == 1
    entry = await harness.store.kv_get("bot_refused")
    assert entry is not None
    assert entry.value == "TokenRefused"


def refuse(harness: Harness, text: str, **options: Any) -> None:
    harness.telegram.faults.switch(Fault.REFUSED, text=text, **options)


async def test_a_refused_link_button_is_dropped_and_the_other_buttons_stay(harness: Harness, url: str) -> None:
    job = await harness.running()
    refuse(harness, LINK_REFUSED, method="editMessageMedia", times=1)
    job = await harness.end(job, url)
    assert (job.delivery, job.parts[0].level) == (Delivery.DELIVERED, Level.ADDRESS)
    [shown] = harness.shown(job)
    assert [button["text"] for button in shown.buttons] == ["Repeat"]
    assert shown.content["caption_entities"], "the markup stays"


async def test_a_message_whose_buttons_are_all_refused_is_shown_without_buttons(harness: Harness, url: str) -> None:
    job = await harness.running()
    refuse(harness, "Bad Request: REPLY_MARKUP_INVALID", method="editMessageMedia", times=2)
    job = await harness.end(job, url)
    assert (job.delivery, job.parts[0].level) == (Delivery.DELIVERED, Level.ADDRESS)
    assert harness.shown(job)[0].buttons == []


async def test_a_refused_caption_is_shown_as_plain_text_with_its_buttons(harness: Harness, url: str) -> None:
    job = await harness.running()
    refuse(harness, "Bad Request: MEDIA_CAPTION_TOO_LONG", method="editMessageMedia", times=1)
    job = await harness.end(job, url)
    [shown] = harness.shown(job)
    assert (job.parts[0].level, shown.text, len(shown.buttons)) == (Level.ADDRESS, "Part 1", 2)
    assert "caption_entities" not in shown.content


async def test_an_upload_with_a_refused_caption_is_uploaded_again_whole(harness: Harness, url: str) -> None:
    job = await harness.running()
    refuse(harness, "Bad Request: failed to get HTTP URL content", method="editMessageMedia", times=1)
    refuse(harness, "Bad Request: MEDIA_CAPTION_TOO_LONG", method="editMessageMedia", times=1)
    job = await harness.end(job, url)
    assert (job.delivery, job.parts[0].level, harness.uploads()) == (Delivery.DELIVERED, Level.BYTES, 2)
    sizes = {call.uploaded for call in harness.telegram.calls("editMessageMedia")} - {0}
    assert len(sizes) == 1, "both uploads have the whole file"


async def test_an_unknown_refusal_of_every_level_is_retried_later_and_not_refunded(harness: Harness, url: str) -> None:
    job = await harness.running()
    refuse(harness, "Bad Request: SOMETHING_NEW_INVALID")
    job = await harness.end(job, url)
    assert (job.delivery, job.attempts, job.hold_state) == (Delivery.PENDING, 1, HoldState.HELD)
    assert harness.recorder.of(Event.CHANNEL_REFUSAL_UNKNOWN, text="SOMETHING_NEW_INVALID")
    harness.telegram.faults.clear()
    job = await harness.next_try(job)
    assert (job.delivery, job.hold_state) == (Delivery.DELIVERED, HoldState.CAPTURED)


async def test_an_unknown_refusal_that_the_buttons_cause_costs_only_the_buttons(harness: Harness, url: str) -> None:
    job = await harness.running()
    refuse(harness, "Bad Request: SOMETHING_NEW_INVALID", method="editMessageMedia", times=1)
    job = await harness.end(job, url)
    assert (job.delivery, job.parts[0].level) == (Delivery.DELIVERED, Level.ADDRESS)


async def test_a_part_lost_during_the_upload_is_uploaded_again_at_the_same_level(harness: Harness, url: str) -> None:
    job = await harness.running()
    refuse(harness, "Bad Request: FILE_PART_3_MISSING", method="editMessageMedia", times=1)
    job = await harness.end(job, url)
    assert (job.delivery, job.attempts, job.parts[0].level) == (Delivery.PENDING, 1, Level.ADDRESS)
    assert (await harness.next_try(job)).delivery is Delivery.DELIVERED


async def test_while_telegram_has_frozen_the_bot_jobs_wait_and_nothing_is_refunded(harness: Harness, url: str) -> None:
    job = await harness.running()
    refuse(harness, "Bad Request: FROZEN_METHOD_INVALID")
    job = await harness.end(job, url)
    assert (job.delivery, job.attempts, job.hold_state) == (Delivery.PENDING, 0, HoldState.HELD)
    assert harness.limiter.stopped == [(None, 60.0)], "all calls stop, not only those to this chat"
    assert harness.recorder.of(Event.CHANNEL_REFUSAL_UNKNOWN, error="BotFrozen")
    harness.telegram.faults.clear()
    assert (await harness.next_try(job)).delivery is Delivery.DELIVERED


async def test_where_texts_are_forbidden_a_photo_is_sent_without_a_placeholder(harness: Harness, url: str) -> None:
    group = harness.telegram.group("Friends", [harness.ann])
    await group.forbid("text")
    job = await harness.running(chat=group.id)
    assert job.placeholder is None
    job = await harness.end(job, url)
    assert (job.delivery, [message.kind for message in group.messages]) == (Delivery.DELIVERED, ["photo"])


async def test_a_video_that_telegram_has_not_numbered_yet_counts_as_shown(harness: Harness, url: str) -> None:
    job = await harness.running()
    await harness.ann.delete(int(job.placeholder or 0))
    harness.telegram.faults.once(Fault.UNNUMBERED, method="sendPhoto")
    job = await harness.end(job, url)
    assert (job.delivery, job.parts[0].step, job.parts[0].message) == (Delivery.DELIVERED, Step.DONE, None)
    assert job.parts[0].file, "it can be shown again"
    assert [message.kind for message in harness.ann.messages] == ["photo", "text"]


async def test_where_the_old_file_cannot_be_replaced_a_new_message_has_the_same_level(
    harness: Harness, url: str
) -> None:
    job = await harness.running()
    refuse(harness, "Bad Request: MEDIA_PREV_INVALID", method="editMessageMedia")
    job = await harness.end(job, url)
    assert (job.delivery, job.parts[0].level, harness.shown(job)[0].kind) == (
        Delivery.DELIVERED,
        Level.ADDRESS,
        "photo",
    )


@pytest.mark.parametrize("text", ["MSG_ID_INVALID", "MESSAGE_ID_INVALID", "message not found"])
async def test_a_send_that_is_answered_like_an_edit_is_retried_later_and_not_at_once(
    harness: Harness, url: str, text: str
) -> None:
    """Telegram may say so of the topic, which it identifies by its first message."""
    job = await harness.running()
    await harness.ann.delete(int(job.placeholder or 0))
    refuse(harness, f"Bad Request: {text}", method="sendPhoto", times=5)
    job = await harness.end(job, url)
    assert len(harness.telegram.calls("sendPhoto")) == 1
    assert (job.delivery, job.attempts, job.hold_state) == (Delivery.PENDING, 1, HoldState.HELD)
    harness.telegram.faults.clear()
    assert (await harness.next_try(job)).delivery is Delivery.DELIVERED


@pytest.mark.parametrize("is_send", [False, True], ids=["edits", "sends"])
@pytest.mark.parametrize("meaning", [*PASSING, *LASTING])
async def test_whatever_telegram_answers_the_calls_end_and_only_what_says_so_costs_the_result(
    harness: Harness, url: str, meaning: str, *, is_send: bool
) -> None:
    job = await harness.running()
    if is_send:
        await harness.ann.delete(int(job.placeholder or 0))
    for method in SENDS if is_send else (None,):
        refuse(harness, ANSWERS[meaning][0].replace("{quoted}", "x"), method=method)
    async with asyncio.timeout(PATIENCE_SECONDS):
        job = await harness.end(job, url)
    assert len(harness.telegram.journal) < 20
    if meaning in PASSING or job.delivery is Delivery.PENDING:
        assert (job.delivery, job.hold_state) == (Delivery.PENDING, HoldState.HELD)
        harness.telegram.faults.clear()
        job = await harness.next_try(job)
        assert (job.delivery, job.hold_state) == (Delivery.DELIVERED, HoldState.CAPTURED)
    else:
        assert (job.delivery, job.hold_state) == (Delivery.UNDELIVERABLE, HoldState.RELEASED)


async def test_where_the_bot_needs_premium_for_the_content_a_lower_level_is_shown(harness: Harness, url: str) -> None:
    job = await harness.running()
    refuse(harness, "Bad Request: PREMIUM_ACCOUNT_REQUIRED", method="editMessageMedia", times=1)
    job = await harness.end(job, url)
    assert (job.delivery, job.parts[0].level) == (Delivery.DELIVERED, Level.BYTES)


@pytest.mark.parametrize("text", ["can't access the chat", "CHAT_FORBIDDEN", "PEER_ID_INVALID"])
async def test_an_edit_refused_in_a_group_that_became_a_supergroup_does_not_cost_the_result(
    harness: Harness, url: str, text: str
) -> None:
    group = harness.telegram.group("Friends", [harness.ann])
    job = await harness.running(chat=group.id)
    old, new = group.id, (await group.migrate()).id
    refuse(harness, f"Bad Request: {text}", method="editMessageMedia", chat=old)
    job = await harness.end(job, url)
    assert (job.delivery, job.hold_state, job.address) == (Delivery.DELIVERED, HoldState.CAPTURED, f"{new}/en")


async def test_a_caption_that_telegram_cannot_read_costs_its_tags_and_not_the_level(harness: Harness, url: str) -> None:
    job = await harness.running()
    text = "Bad Request: can't parse InputMedia: Can't parse entities: Unsupported start tag \"x\" at byte offset 4"
    refuse(harness, text, method="editMessageMedia", times=1)
    job = await harness.end(job, url)
    first, second = harness.telegram.calls("editMessageMedia")
    assert (job.delivery, job.parts[0].level) == (Delivery.DELIVERED, Level.ADDRESS)
    assert first.arguments["media"]["media"] == second.arguments["media"]["media"]
    assert harness.recorder.of(Event.CHANNEL_REFUSAL_UNKNOWN) == []


async def test_an_unknown_403_ends_the_delivery_and_is_reported(harness: Harness, url: str) -> None:
    job = await harness.running()
    refuse(harness, "Forbidden: something new")
    job = await harness.end(job, url)
    assert (job.delivery, job.hold_state) == (Delivery.UNDELIVERABLE, HoldState.RELEASED)
    assert harness.recorder.of(Event.CHANNEL_REFUSAL_UNKNOWN, error="RecipientUnreachable")


@pytest.mark.parametrize(
    ("fault", "options"),
    [(Fault.REFUSED, {"text": "Bad Request: failed to upload file"}), (Fault.BAD_GATEWAY, {})],
    ids=["refused", "no answer"],
)
async def test_a_file_that_fails_at_every_try_is_shown_as_a_link_before_the_delivery_is_given_up(
    harness: Harness, url: str, fault: Fault, options: dict[str, Any]
) -> None:
    job = await harness.running()
    harness.telegram.faults.switch(fault, method="editMessageMedia", **options)
    job = await harness.end(job, url)
    while job.delivery is Delivery.PENDING:
        assert job.attempts < 35 or job.parts[0].level is not Level.ADDRESS, "the last tries go down"
        job = await harness.next_try(job)
    assert (job.delivery, job.hold_state, job.parts[0].level) == (Delivery.DELIVERED, HoldState.CAPTURED, Level.TEXT)


async def test_a_result_that_was_shown_as_a_link_is_sent_again_as_a_file(harness: Harness, url: str) -> None:
    """Its upload failed at every try, which may be over by now: the provider's link will be."""
    job = await harness.running()
    harness.telegram.faults.switch(Fault.BAD_GATEWAY, method="editMessageMedia")
    job = await harness.end(job, url)
    while job.delivery is Delivery.PENDING:
        job = await harness.next_try(job)
    assert job.parts[0].level is Level.TEXT
    harness.telegram.faults.clear()

    await operate.resend(harness.engine.ctx, job.id, "ann")
    job = await harness.again(job)

    assert (job.delivery, job.parts[0].level) == (Delivery.DELIVERED, Level.ADDRESS)
    assert harness.ann.messages[-1].kind == "photo"


async def test_a_file_that_has_arrived_unnoticed_is_not_shown_a_second_time_as_a_link(
    harness: Harness, url: str
) -> None:
    job = await harness.running()
    harness.telegram.faults.once(Fault.SERVER_ERROR_AFTER, method="editMessageMedia")
    job = await harness.end(job, url)
    harness.telegram.faults.switch(Fault.SERVER_ERROR, method="editMessageMedia")
    harness.telegram.faults.switch(Fault.SERVER_ERROR, method="editMessageCaption", times=2)
    while job.delivery is Delivery.PENDING:
        job = await harness.next_try(job)
    assert (job.delivery, job.hold_state, job.parts[0].level) == (Delivery.DELIVERED, HoldState.CAPTURED, Level.TEXT)
    assert [message.kind for message in harness.ann.messages] == ["photo", "text"], "the result and its notice"
