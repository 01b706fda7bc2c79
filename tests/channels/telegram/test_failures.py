"""What becomes of a job after each of Telegram's errors: the result stays stored, the operator sees the reason."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from telegram import Bot
from telegram.error import BadRequest

from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.direct_calls import DirectCalls
from genlock.channels.telegram.errors import RateLimited
from genlock.domain.delivery import Level
from genlock.domain.errors import ChannelBusy, RecipientUnreachable
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.groups import Group
from tests.channels.telegram.harness import Harness
from tests.media.samples import image

PNG = "image/png"


@pytest.fixture
def url(harness: Harness) -> str:
    return harness.files.put("a.png", image(), PNG)


def is_undeliverable(job: Job) -> bool:
    return (job.state, job.delivery, job.hold_state) == (State.SUCCEEDED, Delivery.UNDELIVERABLE, HoldState.RELEASED)


# unreachable chats


async def kicked(harness: Harness, group: Group) -> None:
    await group.set_bot("kicked", by=harness.ann)


async def left(harness: Harness, group: Group) -> None:
    await group.set_bot("left", by=harness.ann)


@pytest.mark.parametrize(("close", "why"), [(kicked, "kicked"), (left, "not a member")])
async def test_a_result_for_a_group_that_removed_the_bot_is_undeliverable_and_the_hold_is_released(
    harness: Harness, url: str, close: Callable[[Harness, Group], Awaitable[None]], why: str
) -> None:
    group = harness.telegram.group("Friends", [harness.ann])
    job = await harness.running(chat=group.id)
    await close(harness, group)
    job = await harness.end(job, url)
    assert is_undeliverable(job)
    assert why in (job.attention_reason or "")
    assert [row.id for row in await harness.store.jobs_needing_attention(10)] == [job.id]
    assert [part.value for part in job.parts] == [url], "the result stays stored"


async def test_a_result_for_a_deleted_user_is_undeliverable_and_the_hold_is_released(
    harness: Harness, url: str
) -> None:
    job = await harness.running()
    await harness.ann.deactivate()
    job = await harness.end(job, url)
    assert is_undeliverable(job)
    assert "deactivated" in (job.attention_reason or "")


async def test_a_user_who_blocked_the_bot_gets_the_result_on_the_placeholder_and_no_notice(
    harness: Harness, url: str
) -> None:
    """Telegram accepts edits in a blocked chat; the notice is refused and not retried."""
    job = await harness.running()
    await harness.ann.block()
    job = await harness.end(job, url)
    assert (job.delivery, job.due_at) == (Delivery.DELIVERED, None)
    assert [seen.facts["reason"] for seen in harness.recorder.of(Event.NOTICE_FAIL)] == ["RecipientUnreachable"]
    assert harness.ann.notifications == []


async def test_a_result_is_undeliverable_if_a_block_also_refuses_edits(harness: Harness, url: str) -> None:
    harness.telegram.state.edits_pass_block = False
    job = await harness.running()
    await harness.ann.block()
    job = await harness.end(job, url)
    assert is_undeliverable(job)


@pytest.mark.parametrize("edits_pass", [True, False], ids=["edits pass", "edits do not"])
async def test_a_user_who_blocks_the_bot_between_two_pictures_pays_for_what_was_shown(
    harness: Harness, *, edits_pass: bool
) -> None:
    urls = [harness.files.put(f"{number}.png", image(), PNG) for number in range(6)]
    harness.telegram.state.edits_pass_block = edits_pass
    job = await harness.running()
    harness.telegram.faults.switch(Fault.DELAY, method="editMessageMedia", seconds=0.2)
    delivery = asyncio.create_task(harness.end(job, *urls))
    await harness.telegram.until(lambda: harness.methods().count("editMessageMedia") >= 3)
    await harness.ann.block()
    job = await delivery

    shown = [message for message in harness.ann.messages if message.kind == "photo"]
    assert 2 <= len(shown) < len(urls)
    assert (job.delivery, job.hold_state) == (Delivery.DELIVERED, HoldState.CAPTURED)
    assert job.attention_reason is not None
    assert job.attention_reason.startswith(f"{len(shown)} of 6 parts shown: ")
    assert [row.id for row in await harness.store.jobs_needing_attention(10)] == [job.id]


async def test_a_result_is_undeliverable_if_the_user_blocked_the_bot_and_deleted_the_placeholder(
    harness: Harness, url: str
) -> None:
    job = await harness.running()
    await harness.ann.delete(int(job.placeholder or 0))
    await harness.ann.block()
    job = await harness.end(job, url)
    assert is_undeliverable(job)
    assert "blocked" in (job.attention_reason or "")


async def test_a_user_who_never_opened_the_chat_is_unreachable(harness: Harness) -> None:
    bob = harness.telegram.add_user("Bob", started=False)
    job = replace(await harness.running(), address=f"{bob.id}/en")
    with pytest.raises(RecipientUnreachable, match="initiate"):
        await harness.channel.create_placeholder(job, 0)


# groups that change


async def test_remaining_messages_go_to_the_supergroup_that_a_group_became(harness: Harness, url: str) -> None:
    group = harness.telegram.group("Friends", [harness.ann])
    job = await harness.running(chat=group.id)
    old = group.id
    new = (await group.migrate()).id
    job = await harness.end(job, url, harness.files.put("b.png", image(colour="red"), PNG))
    assert job.delivery is Delivery.DELIVERED
    assert job.address == f"{new}/en"
    assert len(harness.recorder.of(Event.ADDRESS_CHANGED, job=job.id)) == 1
    there = [message.kind for message in harness.ann.messages_in(new) if message.kind != "service"]
    before = [message.kind for message in harness.ann.messages_in(old) if message.kind != "service"]
    assert sorted([*there, *before]) == ["photo", "photo", "text"]
    assert "text" in there


async def test_a_result_for_a_closed_topic_is_undeliverable(harness: Harness, url: str) -> None:
    group = harness.telegram.group("Forum", [harness.ann], kind="supergroup")
    thread = await group.topic("Pictures")
    job = await harness.running(chat=group.id, thread=thread)
    assert job.placeholder is not None
    await harness.ann.delete(int(job.placeholder), chat=group.id)
    await group.close_topic(thread)
    job = await harness.end(job, url)
    assert is_undeliverable(job)
    assert "TOPIC_CLOSED" in (job.attention_reason or "").upper()


@pytest.mark.parametrize("deleted_by", ["before the submit", "after it"])
async def test_the_result_of_an_order_in_a_topic_that_was_deleted_is_shown_in_the_same_chat(
    harness: Harness, url: str, deleted_by: str
) -> None:
    group = harness.telegram.group("Forum", [harness.ann], kind="supergroup")
    await group.set_bot("administrator")
    thread = await group.topic("Pictures")
    if deleted_by == "before the submit":
        await delete_topic(harness, group.id, thread)
        job = await harness.running(chat=group.id, thread=thread)
    else:
        job = await harness.running(chat=group.id, thread=thread)
        await delete_topic(harness, group.id, thread)
    job = await harness.end(job, url)
    assert (job.delivery, job.hold_state, job.address) == (Delivery.DELIVERED, HoldState.CAPTURED, f"{group.id}/en")
    there = [message.kind for message in harness.ann.messages_in(group.id) if message.kind != "service"]
    assert there == ["photo", "text"], "the result and its notice, once each"


async def delete_topic(harness: Harness, chat: int, thread: int) -> None:
    await harness.channel._bot.delete_forum_topic(chat, thread)


@pytest.mark.parametrize(
    ("forbidden", "level"),
    [(("photo",), Level.DOCUMENT), (("photo", "document"), Level.TEXT)],
)
async def test_a_missing_right_lowers_the_level_but_the_result_is_delivered(
    harness: Harness, url: str, forbidden: tuple[str, ...], level: Level
) -> None:
    group = harness.telegram.group("Friends", [harness.ann])
    job = await harness.running(chat=group.id)
    await harness.ann.delete(int(job.placeholder or 0), chat=group.id)
    await group.forbid(*forbidden)
    job = await harness.end(job, url)
    assert (job.delivery, job.parts[0].level) == (Delivery.DELIVERED, level)


async def test_a_result_for_a_group_without_any_right_to_send_is_undeliverable(harness: Harness, url: str) -> None:
    group = harness.telegram.group("Friends", [harness.ann])
    job = await harness.running(chat=group.id)
    await harness.ann.delete(int(job.placeholder or 0), chat=group.id)
    await group.forbid("photo", "document", "text")
    job = await harness.end(job, url)
    assert is_undeliverable(job)
    assert "not enough rights" in (job.attention_reason or "").lower()


# deleted messages


async def test_a_deleted_placeholder_is_replaced_by_one_message(harness: Harness, url: str) -> None:
    job = await harness.running()
    await harness.ann.delete(int(job.placeholder or 0))
    job = await harness.end(job, url)
    assert [message.kind for message in harness.ann.messages] == ["photo", "text"]
    assert (job.delivery, job.parts[0].message) == (Delivery.DELIVERED, str(harness.ann.messages[0].id))
    assert job.parts[0].file == f"photo:{harness.ann.messages[0].file_id}"


async def test_a_failure_is_sent_as_a_new_message_if_the_placeholder_was_deleted(harness: Harness) -> None:
    job = await harness.running()
    await harness.ann.delete(int(job.placeholder or 0))
    job = await harness.end(job, state=State.FAILED, code="nsfw")
    assert harness.ann.messages[0].text == f"Order {job.id} failed (nsfw), money back"


async def test_a_placeholder_with_a_reply_keyboard_is_replaced_by_a_new_message(harness: Harness, url: str) -> None:
    job = await harness.running()
    message = harness.telegram.state.chats[harness.ann.id].messages[int(job.placeholder or 0)]
    message.markup = {"keyboard": [[{"text": "menu"}]]}
    job = await harness.end(job, url)
    assert job.delivery is Delivery.DELIVERED
    assert job.parts[0].message != str(message.id)
    assert [shown.kind for shown in harness.ann.messages] == ["text", "photo", "text"]


async def test_a_cleared_history_does_not_stop_the_notice(harness: Harness, url: str) -> None:
    job = await harness.running()
    await harness.ann.clear()
    job = await harness.end(job, url)
    assert job.delivery is Delivery.DELIVERED
    assert [message.text for message in harness.ann.messages] == ["✅ Generation complete"]


@pytest.mark.parametrize("fault", [Fault.DROP_AFTER, Fault.UNDECODABLE, Fault.WRONG_SHAPE, Fault.BAD_GATEWAY_AFTER])
async def test_a_send_whose_answer_was_lost_is_never_repeated(harness: Harness, url: str, fault: Fault) -> None:
    job = await harness.running()
    await harness.ann.delete(int(job.placeholder or 0))
    harness.telegram.faults.once(fault, method="sendPhoto")
    job = await harness.end(job, url)
    assert (job.delivery, job.hold_state, job.due_at) == (Delivery.UNKNOWN, HoldState.RELEASED, None)
    assert job.attention_reason
    assert len(harness.telegram.calls("sendPhoto")) == 1


# temporary failures


@pytest.mark.parametrize(
    "fault",
    [
        Fault.DROP_BEFORE,
        Fault.DROP_AFTER,
        Fault.SERVER_ERROR,
        Fault.SERVER_ERROR_AFTER,
        Fault.BAD_GATEWAY,
        Fault.BAD_GATEWAY_AFTER,
        Fault.UNDECODABLE,
        Fault.WRONG_SHAPE,
    ],
)
async def test_an_edit_with_an_unknown_outcome_is_repeated_on_the_same_message(
    harness: Harness, url: str, fault: Fault
) -> None:
    harness.telegram.faults.once(fault, method="editMessageMedia")
    job = await harness.deliver(url)
    assert (job.delivery, job.attempts) == (Delivery.PENDING, 1)
    job = await harness.next_try(job)
    assert job.delivery is Delivery.DELIVERED
    assert [message.kind for message in harness.ann.messages] == ["photo", "text"]
    assert len(harness.ann.notifications) == 1


async def test_a_429_stops_the_chat_for_its_whole_time_and_does_not_count_as_an_attempt(
    harness: Harness, url: str
) -> None:
    harness.telegram.faults.once(Fault.TOO_MANY, method="editMessageMedia", seconds=37)
    job = await harness.deliver(url)
    assert (job.delivery, job.attempts) == (Delivery.PENDING, 0)
    assert harness.limiter.stopped == [(harness.ann.id, 37)]
    assert job.due_at is not None
    assert 36 <= (job.due_at - harness.clock.now()).total_seconds() <= 37
    harness.telegram.limiter.unblock()
    job = await harness.next_try(job)
    assert job.delivery is Delivery.DELIVERED


async def test_a_429_for_a_deletion_stops_only_its_chat(harness: Harness) -> None:
    """A deletion takes no permit, so the caller names its chat as an argument only."""
    caller = harness.channel._caller
    harness.telegram.faults.once(Fault.TOO_MANY, method="deleteMessage", seconds=37)
    with pytest.raises(RateLimited):
        await caller.call(
            caller.direct.delete_message, chat=None, priority=Priority.SCREEN, chat_id=harness.ann.id, message_id=1
        )
    assert harness.limiter.stopped == [(harness.ann.id, 37)]


@pytest.mark.parametrize("method", ["getFile", "answerCallbackQuery", "getStarTransactions", "setWebhook"])
async def test_a_429_for_a_call_without_a_chat_stops_no_chat(harness: Harness, method: str) -> None:
    """Telegram counts such calls apart: results to all users would wait for one user's file."""
    caller = harness.channel._caller
    harness.telegram.faults.once(Fault.TOO_MANY, method=method, seconds=37)
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "getFile": lambda: bot_call(caller, caller.bot.get_file, file_id="x"),
        "answerCallbackQuery": lambda: bot_call(caller, caller.direct.answer_callback_query, callback_query_id="1"),
        "getStarTransactions": lambda: bot_call(caller, caller.bot.get_star_transactions),
        "setWebhook": lambda: bot_call(caller, caller.bot.set_webhook, url="https://bot.example"),
    }
    with pytest.raises(RateLimited):
        await calls[method]()
    assert harness.limiter.stopped == []


async def bot_call(caller: Caller, method: Callable[..., Awaitable[object]], **arguments: object) -> object:
    return await caller.call(method, chat=None, priority=Priority.RESULT, **arguments)


async def test_a_notice_refused_by_a_429_is_sent_once_later(harness: Harness, url: str) -> None:
    job = await harness.running()
    harness.telegram.faults.once(Fault.TOO_MANY, method="sendMessage", seconds=2)
    job = await harness.end(job, url)
    assert harness.ann.notifications == []
    harness.telegram.limiter.unblock()
    await harness.next_try(job)
    assert len(harness.ann.notifications) == 1


async def test_a_refused_token_keeps_the_job_pending_and_is_reported(harness: Harness, url: str) -> None:
    job = await harness.running()
    harness.telegram.state.token = "42:another"
    job = await harness.end(job, url)
    assert (job.delivery, job.attempts) == (Delivery.PENDING, 0)
    assert harness.recorder.of(Event.CHANNEL_REFUSAL_UNKNOWN, error="TokenRefused")
    harness.telegram.state.token = "42:sandbox"
    assert (await harness.next_try(job)).delivery is Delivery.DELIVERED


async def test_without_a_connection_nothing_was_sent(harness: Harness) -> None:
    job = await harness.running()
    before = harness.channel._bot._base_url
    harness.channel._bot._base_url = "http://127.0.0.1:1/bot42:sandbox"
    with pytest.raises(ChannelBusy):
        await harness.channel.create_placeholder(job, 0)
    harness.channel._bot._base_url = before


async def test_a_placeholder_whose_answer_was_lost_does_not_stop_the_job(harness: Harness, url: str) -> None:
    harness.telegram.faults.once(Fault.DROP_AFTER, method="sendMessage")
    job = await harness.running()
    assert (job.state, job.placeholder) == (State.RUNNING, None)
    job = await harness.end(job, url)
    assert job.delivery is Delivery.DELIVERED
    assert [message.text for message in harness.ann.messages] == [
        f"Order {job.id}: accepted",
        "Part 1",
        "✅ Generation complete",
    ]


async def test_an_unknown_refusal_lowers_the_level_and_is_reported(
    harness: Harness, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: Bot | DirectCalls, **__: object) -> None:
        raise BadRequest("SOME_UNKNOWN_ERROR")

    for calls in (Bot, DirectCalls):
        monkeypatch.setattr(calls, "edit_message_media", refuse)
    job = await harness.deliver(url)
    assert (job.delivery, job.parts[0].level) == (Delivery.DELIVERED, Level.TEXT)
    assert harness.recorder.of(Event.CHANNEL_REFUSAL_UNKNOWN, text="SOME_UNKNOWN_ERROR")
