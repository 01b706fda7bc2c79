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
from tests.channels.telegram.house import House


async def test_tell_sends_one_html_message_that_makes_a_sound(house: House) -> None:
    await house.channel.tell(f"{house.ann.id}/en", "You got <b>5</b> credits &amp; a smile")
    [message] = house.ann.messages
    assert message.text == "You got 5 credits & a smile"
    assert message.content["entities"] == [{"type": "bold", "offset": 8, "length": 1}]
    assert [one.message for one in house.ann.notifications] == [message.id]


async def test_tell_waits_for_a_permit_behind_results(house: House) -> None:
    await house.channel.tell(f"{house.ann.id}/en", "hello")
    assert house.turns.taken == [(house.ann.id, Priority.SCREEN)]


async def test_tell_writes_into_the_topic_of_the_address(house: House) -> None:
    group = house.telegram.group("Forum", [house.ann], kind="supergroup")
    thread = await group.topic("News")
    await house.channel.tell(f"{group.id}.{thread}/en", "hello")
    assert house.telegram.calls("sendMessage")[-1].arguments["message_thread_id"] == str(thread)


async def test_tell_shortens_a_text_over_the_limit(house: House) -> None:
    await house.channel.tell(f"{house.ann.id}/en", f"<b>{'word ' * 2000}</b>")
    [message] = house.ann.messages
    assert len(message.text) == 4096
    assert message.text.endswith("…")


async def test_tell_sends_html_that_telegram_refuses_as_plain_text(house: House) -> None:
    await house.channel.tell(f"{house.ann.id}/en", "<b>5</i> credits")
    assert [message.text for message in house.ann.messages] == ["5 credits"]


async def test_tell_raises_when_the_user_blocked_the_bot(house: House) -> None:
    await house.ann.block()
    with pytest.raises(RecipientUnreachable, match="blocked"):
        await house.channel.tell(f"{house.ann.id}/en", "hello")


@pytest.mark.parametrize("address", ["", "nobody", "12"])
async def test_tell_raises_when_the_address_is_not_a_telegram_address(house: House, address: str) -> None:
    with pytest.raises(RecipientUnreachable, match="address"):
        await house.channel.tell(address, "hello")
    assert house.methods() == []


async def test_tell_names_the_new_address_of_a_group_that_became_a_supergroup(house: House) -> None:
    group = house.telegram.group("Friends", [house.ann])
    old = group.id
    new = (await group.migrate()).id
    with pytest.raises(AddressChanged) as changed:
        await house.channel.tell(f"{old}/en", "hello")
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
    house: House, fault: Fault, error: type[ChannelError]
) -> None:
    house.telegram.faults.once(fault, method="sendMessage")
    with pytest.raises(error):
        await house.channel.tell(f"{house.ann.id}/en", "hello")
    assert len(house.telegram.calls("sendMessage")) == 1, "a message that may have arrived is not sent again"


async def test_a_channel_without_tell_reaches_no_user() -> None:
    class Silent(Channel):
        name = "silent"

    with pytest.raises(RecipientUnreachable, match="silent"):
        await Silent().tell("1", "hello")  # type: ignore[abstract]
