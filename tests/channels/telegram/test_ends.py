"""Every row of the error table has its end: the result stays in the history, the operator sees why."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from telegram import Bot
from telegram.error import BadRequest

from genlock.domain.delivery import Level
from genlock.domain.errors import ChannelBusy, RecipientUnreachable
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.groups import Group
from tests.channels.telegram.house import House, picture

PNG = "image/png"


@pytest.fixture
def url(house: House) -> str:
    return house.shelf.put("a.png", picture(), PNG)


def given_back(job: Job) -> bool:
    return (job.state, job.delivery, job.hold_state) == (State.SUCCEEDED, Delivery.UNDELIVERABLE, HoldState.RELEASED)


# chats that are closed


async def kicked(house: House, group: Group) -> None:
    await group.set_bot("kicked", by=house.ann)


async def left(house: House, group: Group) -> None:
    await group.set_bot("left", by=house.ann)


@pytest.mark.parametrize(("close", "why"), [(kicked, "kicked"), (left, "not a member")])
async def test_a_group_that_threw_us_out_is_the_end_with_the_money_back(
    house: House, url: str, close: Callable[[House, Group], Awaitable[None]], why: str
) -> None:
    group = house.telegram.group("Friends", [house.ann])
    job = await house.running(chat=group.id)
    await close(house, group)
    job = await house.end(job, url)
    assert given_back(job)
    assert why in (job.attention_reason or "")
    assert [row.id for row in await house.store.jobs_needing_attention(10)] == [job.id]
    assert [part.value for part in job.parts] == [url], "the result stays in the history"


async def test_a_deleted_account_is_the_end_with_the_money_back(house: House, url: str) -> None:
    job = await house.running()
    await house.ann.deactivate()
    job = await house.end(job, url)
    assert given_back(job)
    assert "deactivated" in (job.attention_reason or "")


async def test_who_blocked_the_bot_gets_the_result_on_the_message_and_no_notice(house: House, url: str) -> None:
    """Edits pass a block; the notice does not, and is not tried again."""
    job = await house.running()
    await house.ann.block()
    job = await house.end(job, url)
    assert (job.delivery, job.due_at) == (Delivery.DELIVERED, None)
    assert [seen.facts["reason"] for seen in house.recorder.of(Event.NOTICE_FAIL)] == ["RecipientUnreachable"]
    assert house.ann.notifications == []


async def test_who_blocked_the_bot_and_deleted_the_message_is_the_end(house: House, url: str) -> None:
    job = await house.running()
    await house.ann.delete(int(job.placeholder or 0))
    await house.ann.block()
    job = await house.end(job, url)
    assert given_back(job)
    assert "blocked" in (job.attention_reason or "")


async def test_a_person_who_never_opened_the_chat_cannot_be_written_to(house: House) -> None:
    stranger = house.telegram.add_user("Bob", started=False)
    job = replace(await house.running(), address=f"{stranger.id}/en")
    with pytest.raises(RecipientUnreachable, match="initiate"):
        await house.channel.create_placeholder(job, 0)


# groups that change


async def test_a_group_that_became_a_supergroup_gets_what_is_still_to_send_there(house: House, url: str) -> None:
    group = house.telegram.group("Friends", [house.ann])
    job = await house.running(chat=group.id)
    old = group.id
    new = (await group.migrate()).id
    job = await house.end(job, url, house.shelf.put("b.png", picture(colour="red"), PNG))
    assert job.delivery is Delivery.DELIVERED
    assert job.address == f"{new}/en"
    assert len(house.recorder.of(Event.ADDRESS_CHANGED, job=job.id)) == 1
    there = [message.kind for message in house.ann.messages_in(new) if message.kind != "service"]
    before = [message.kind for message in house.ann.messages_in(old) if message.kind != "service"]
    assert sorted([*there, *before]) == ["photo", "photo", "text"]
    assert "text" in there


async def test_a_closed_topic_is_the_end(house: House, url: str) -> None:
    group = house.telegram.group("Forum", [house.ann], kind="supergroup")
    thread = await group.topic("Pictures")
    job = await house.running(chat=group.id, thread=thread)
    assert job.placeholder is not None
    await house.ann.delete(int(job.placeholder), chat=group.id)
    await group.close_topic(thread)
    job = await house.end(job, url)
    assert given_back(job)
    assert "TOPIC_CLOSED" in (job.attention_reason or "").upper()


@pytest.mark.parametrize(
    ("forbidden", "level"),
    [(("photo",), Level.DOCUMENT), (("photo", "document"), Level.TEXT)],
)
async def test_a_right_that_is_missing_costs_levels_not_the_result(
    house: House, url: str, forbidden: tuple[str, ...], level: Level
) -> None:
    group = house.telegram.group("Friends", [house.ann])
    job = await house.running(chat=group.id)
    await house.ann.delete(int(job.placeholder or 0), chat=group.id)
    await group.forbid(*forbidden)
    job = await house.end(job, url)
    assert (job.delivery, job.parts[0].level) == (Delivery.DELIVERED, level)


async def test_a_group_where_nothing_may_be_sent_is_the_end(house: House, url: str) -> None:
    group = house.telegram.group("Friends", [house.ann])
    job = await house.running(chat=group.id)
    await house.ann.delete(int(job.placeholder or 0), chat=group.id)
    await group.forbid("photo", "document", "text")
    job = await house.end(job, url)
    assert given_back(job)
    assert "not enough rights" in (job.attention_reason or "").lower()


# messages that are gone


async def test_a_deleted_placeholder_is_replaced_by_one_message(house: House, url: str) -> None:
    job = await house.running()
    await house.ann.delete(int(job.placeholder or 0))
    job = await house.end(job, url)
    assert [message.kind for message in house.ann.messages] == ["photo", "text"]
    assert (job.delivery, job.parts[0].message) == (Delivery.DELIVERED, str(house.ann.messages[0].id))
    assert job.parts[0].file == f"photo:{house.ann.messages[0].file_id}"


async def test_a_deleted_placeholder_of_a_failure_is_replaced_by_words(house: House) -> None:
    job = await house.running()
    await house.ann.delete(int(job.placeholder or 0))
    job = await house.end(job, state=State.FAILED, code="nsfw")
    assert house.ann.messages[0].text == f"Order {job.id} failed (nsfw), money back"


async def test_a_message_with_a_reply_keyboard_cannot_become_the_result(house: House, url: str) -> None:
    job = await house.running()
    message = house.telegram.state.chats[house.ann.id].messages[int(job.placeholder or 0)]
    message.markup = {"keyboard": [[{"text": "menu"}]]}
    job = await house.end(job, url)
    assert job.delivery is Delivery.DELIVERED
    assert job.parts[0].message != str(message.id)
    assert [one.kind for one in house.ann.messages] == ["text", "photo", "text"]


async def test_a_history_cleared_by_the_person_is_not_noticed_and_the_notice_comes(house: House, url: str) -> None:
    job = await house.running()
    await house.ann.clear()
    job = await house.end(job, url)
    assert job.delivery is Delivery.DELIVERED
    assert [message.text for message in house.ann.messages] == ["✅ Generation complete"]


@pytest.mark.parametrize("fault", [Fault.DROP_AFTER, Fault.UNDECODABLE, Fault.WRONG_SHAPE, Fault.BAD_GATEWAY_AFTER])
async def test_a_send_whose_answer_was_lost_is_never_repeated(house: House, url: str, fault: Fault) -> None:
    job = await house.running()
    await house.ann.delete(int(job.placeholder or 0))
    house.telegram.faults.once(fault, method="sendPhoto")
    job = await house.end(job, url)
    assert (job.delivery, job.hold_state, job.due_at) == (Delivery.UNKNOWN, HoldState.RELEASED, None)
    assert job.attention_reason
    assert len(house.telegram.calls("sendPhoto")) == 1


# failures in passing


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
async def test_an_edit_whose_fate_is_unknown_is_repeated_on_the_same_message(
    house: House, url: str, fault: Fault
) -> None:
    house.telegram.faults.once(fault, method="editMessageMedia")
    job = await house.deliver(url)
    assert (job.delivery, job.attempts) == (Delivery.PENDING, 1)
    job = await house.next_try(job)
    assert job.delivery is Delivery.DELIVERED
    assert [message.kind for message in house.ann.messages] == ["photo", "text"]
    assert len(house.ann.notifications) == 1


async def test_a_flood_stops_the_chat_for_the_whole_time_and_costs_no_try(house: House, url: str) -> None:
    house.telegram.faults.once(Fault.TOO_MANY, method="editMessageMedia", seconds=37)
    job = await house.deliver(url)
    assert (job.delivery, job.attempts) == (Delivery.PENDING, 0)
    assert house.turns.stopped == [(house.ann.id, 37)]
    assert job.due_at is not None
    assert 36 <= (job.due_at - house.clock.now()).total_seconds() <= 37
    house.telegram.limiter._blocked.clear()
    job = await house.next_try(job)
    assert job.delivery is Delivery.DELIVERED


async def test_a_flooded_notice_is_sent_later_once(house: House, url: str) -> None:
    job = await house.running()
    house.telegram.faults.once(Fault.TOO_MANY, method="sendMessage", seconds=2)
    job = await house.end(job, url)
    assert house.ann.notifications == []
    house.telegram.limiter._blocked.clear()
    await house.next_try(job)
    assert len(house.ann.notifications) == 1


async def test_a_refused_token_keeps_the_job_and_tells_the_operator(house: House, url: str) -> None:
    job = await house.running()
    house.telegram.state.token = "42:another"
    job = await house.end(job, url)
    assert (job.delivery, job.attempts) == (Delivery.PENDING, 0)
    assert house.recorder.of(Event.CHANNEL_REFUSAL_UNKNOWN, error="TokenRefused")
    house.telegram.state.token = "42:sandbox"
    assert (await house.next_try(job)).delivery is Delivery.DELIVERED


async def test_without_a_connection_nothing_was_sent(house: House) -> None:
    job = await house.running()
    before = house.channel._bot._base_url
    house.channel._bot._base_url = "http://127.0.0.1:1/bot42:sandbox"
    with pytest.raises(ChannelBusy):
        await house.channel.create_placeholder(job, 0)
    house.channel._bot._base_url = before


async def test_a_placeholder_whose_answer_was_lost_does_not_hold_up_the_order(house: House, url: str) -> None:
    house.telegram.faults.once(Fault.DROP_AFTER, method="sendMessage")
    job = await house.running()
    assert (job.state, job.placeholder) == (State.RUNNING, None)
    job = await house.end(job, url)
    assert job.delivery is Delivery.DELIVERED
    assert [message.text for message in house.ann.messages] == [
        f"Order {job.id}: accepted",
        "Part 1",
        "✅ Generation complete",
    ]


async def test_an_unknown_refusal_goes_down_the_levels_and_is_told(
    house: House, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: Bot, **__: object) -> None:
        raise BadRequest("SOMETHING_NOBODY_KNOWS")

    monkeypatch.setattr(Bot, "edit_message_media", refuse)
    job = await house.deliver(url)
    assert (job.delivery, job.parts[0].level) == (Delivery.DELIVERED, Level.TEXT)
    assert house.recorder.of(Event.CHANNEL_REFUSAL_UNKNOWN, text="SOMETHING_NOBODY_KNOWS")
