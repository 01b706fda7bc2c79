"""`tell` sends a message that belongs to no job, and raises a typed error when the message does not arrive."""

import pytest

from genlock.channels.telegram.caller import Priority
from genlock.domain.errors import (
    AddressChanged,
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    RecipientUnreachable,
)
from genlock.ports import Channel
from genlock.sandbox.telegram.faults import Fault
from tests.channels.telegram.harness import Harness


async def test_tell_sends_one_html_message_that_makes_a_sound(harness: Harness) -> None:
    await harness.channel.tell(f"{harness.ann.id}/en", "You got <b>5</b> credits &amp; a smile")
    [message] = harness.ann.messages
    assert message.text == "You got 5 credits & a smile"
    assert message.content["entities"] == [{"type": "bold", "offset": 8, "length": 1}]
    assert [notification.message for notification in harness.ann.notifications] == [message.id]


async def test_tell_waits_for_a_permit_behind_results(harness: Harness) -> None:
    await harness.channel.tell(f"{harness.ann.id}/en", "hello")
    assert harness.limiter.acquired == [(harness.ann.id, Priority.SCREEN)]


async def test_tell_writes_into_the_topic_of_the_address(harness: Harness) -> None:
    group = harness.telegram.group("Forum", [harness.ann], kind="supergroup")
    thread = await group.topic("News")
    await harness.channel.tell(f"{group.id}.{thread}/en", "hello")
    assert harness.telegram.calls("sendMessage")[-1].arguments["message_thread_id"] == thread


async def test_tell_shortens_a_text_over_the_limit(harness: Harness) -> None:
    await harness.channel.tell(f"{harness.ann.id}/en", f"<b>{'word ' * 2000}</b>")
    [message] = harness.ann.messages
    assert len(message.text) == 4096
    assert message.text.endswith("…")


async def test_tell_sends_html_that_telegram_refuses_as_plain_text(harness: Harness) -> None:
    await harness.channel.tell(f"{harness.ann.id}/en", "<b>5</i> credits")
    assert [message.text for message in harness.ann.messages] == ["5 credits"]


async def test_tell_raises_when_the_user_blocked_the_bot(harness: Harness) -> None:
    await harness.ann.block()
    with pytest.raises(RecipientUnreachable, match="blocked"):
        await harness.channel.tell(f"{harness.ann.id}/en", "hello")


@pytest.mark.parametrize("address", ["", "Ann", "12"])
async def test_tell_raises_when_the_address_is_not_a_telegram_address(harness: Harness, address: str) -> None:
    with pytest.raises(RecipientUnreachable, match="address"):
        await harness.channel.tell(address, "hello")
    assert harness.methods() == []


async def test_tell_names_the_new_address_of_a_group_that_became_a_supergroup(harness: Harness) -> None:
    group = harness.telegram.group("Friends", [harness.ann])
    old = group.id
    new = (await group.migrate()).id
    with pytest.raises(AddressChanged) as changed:
        await harness.channel.tell(f"{old}/en", "hello")
    assert changed.value.address == f"{new}/en"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.TOO_MANY, ChannelBusy),
        (Fault.DROP_AFTER, ChannelOutcomeUnknown),
        (Fault.SERVER_ERROR, ChannelOutcomeUnknown),
    ],
)
async def test_tell_raises_when_the_message_may_not_have_arrived(
    harness: Harness, fault: Fault, error: type[ChannelError]
) -> None:
    harness.telegram.faults.once(fault, method="sendMessage")
    with pytest.raises(error):
        await harness.channel.tell(f"{harness.ann.id}/en", "hello")
    assert len(harness.telegram.calls("sendMessage")) == 1, "a message that may have arrived is not sent again"


async def test_a_channel_without_tell_reaches_no_user() -> None:
    class Silent(Channel):
        name = "silent"

    with pytest.raises(RecipientUnreachable, match="silent"):
        await Silent().tell("1", "hello")  # type: ignore[abstract]
