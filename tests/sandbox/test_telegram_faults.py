import asyncio
import time

import httpx
import pytest
import telegram as library

from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.limiter import Limits
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.loop_clock import LoopClock
from tests.sandbox.client_libraries import LIBRARIES, ApiFailure, Bytes, Client, connect
from tests.sandbox.sample_media import picture

#: shorter than any client library waits for an answer
DELAY_SECONDS = 4.0
#: whether the call was executed
EFFECTS = {
    Fault.DROP_BEFORE: False,
    Fault.SERVER_ERROR: False,
    Fault.BAD_GATEWAY: False,
    Fault.DROP_AFTER: True,
    Fault.SERVER_ERROR_AFTER: True,
    Fault.BAD_GATEWAY_AFTER: True,
    Fault.UNDECODABLE: True,
}


@pytest.mark.parametrize(("fault", "done"), EFFECTS.items())
async def test_a_fault_hides_whether_the_call_was_executed(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser, *, fault: Fault, done: bool
) -> None:
    telegram.faults.once(fault, method="sendMessage", chat=ann.id)
    with pytest.raises(ApiFailure) as told:
        await client.call("sendMessage", chat_id=ann.id, text="one")
    await client.call("sendMessage", chat_id=ann.id, text="two")

    assert told.value.kind == "network"
    assert [message.text for message in ann.messages] == (["one", "two"] if done else ["two"])
    first, second = telegram.calls("sendMessage")
    assert (first.executed, first.faults) == (done, [fault])
    assert first.answered == (fault not in {Fault.DROP_BEFORE, Fault.DROP_AFTER})
    assert (second.executed, second.answered, second.faults) == (True, True, [])


@pytest.mark.parametrize("fault", [fault for fault, done in EFFECTS.items() if done])
async def test_a_fault_after_execution_waits_for_a_call_that_is_executed(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser, fault: Fault
) -> None:
    telegram.faults.once(fault, method="sendMessage")
    with pytest.raises(ApiFailure) as refused:
        await client.call("sendMessage", chat_id=ann.id, text="")
    with pytest.raises(ApiFailure) as lost:
        await client.call("sendMessage", chat_id=ann.id, text="one")

    assert (refused.value.kind, lost.value.kind) == ("bad request", "network")
    assert [call.faults for call in telegram.calls("sendMessage")] == [[], [fault]]
    assert telegram.faults.as_json() == []


async def test_drops_before_and_after_execution_look_the_same_to_the_client(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    """A client cannot know whether a dropped call was executed."""
    bot = library.Bot(telegram.token, base_url=f"{telegram.url}/bot")
    causes = []
    for fault in (Fault.DROP_BEFORE, Fault.DROP_AFTER):
        telegram.faults.once(fault)
        with pytest.raises(library.error.NetworkError) as error:
            await bot.send_message(ann.id, "x")
        causes.append(type(error.value.__cause__))
    for request in bot._request:
        await request.shutdown()

    assert causes in ([httpx.RemoteProtocolError] * 2, [httpx.ReadError] * 2)


async def test_a_switch_applies_to_its_method_chat_and_number_of_times(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    bob = telegram.add_user("Bob")
    telegram.faults.switch(Fault.SERVER_ERROR, method="sendmessage", chat=ann.id, times=2)
    await client.call("sendMessage", chat_id=bob.id, text="x")
    await client.call("sendChatAction", chat_id=ann.id, action="typing")
    for _ in range(2):
        with pytest.raises(ApiFailure):
            await client.call("sendMessage", chat_id=ann.id, text="x")
    await client.call("sendMessage", chat_id=ann.id, text="x")
    assert telegram.faults.as_json() == []


@pytest.mark.slow
async def test_probabilities_depend_on_the_seed() -> None:
    patterns = []
    for _ in range(2):
        async with running_telegram(seed=7) as telegram:
            ann = telegram.add_user("Ann")
            telegram.faults.switch(Fault.SERVER_ERROR, probability=0.5)
            client = connect("aiogram", telegram)
            for _ in range(20):
                try:
                    await client.call("sendMessage", chat_id=ann.id, text="x")
                except ApiFailure:
                    continue
            await client.close()
            patterns.append([call.executed for call in telegram.journal])

    assert patterns[0] == patterns[1]
    assert 3 < sum(patterns[0]) < 17


async def test_a_429_fault_blocks_for_its_whole_time(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    telegram.limiter.on = True
    telegram.faults.once(Fault.TOO_MANY, seconds=7)
    for expected in (7, 14):
        with pytest.raises(ApiFailure) as told:
            await client.call("sendMessage", chat_id=ann.id, text="x")
        assert (told.value.kind, told.value.number) == ("retry", expected)
    assert ann.messages == []


@pytest.mark.slow
async def test_a_result_of_unknown_shape_is_an_error_for_the_client(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    client = connect("aiogram", telegram)
    telegram.faults.once(Fault.WRONG_SHAPE)
    with pytest.raises(ApiFailure):
        await client.call("sendMessage", chat_id=ann.id, text="x")
    await client.close()
    assert len(ann.messages) == 1


@pytest.mark.slow
async def test_a_delay_happens_before_inside_or_after_execution(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    loop_clock = LoopClock()
    telegram.faults.once(Fault.DELAY_AFTER, seconds=DELAY_SECONDS)
    sending = asyncio.create_task(client.call("sendMessage", chat_id=ann.id, text="quick"))
    await ann.sees("quick")
    assert not sending.done()
    loop_clock.advance(DELAY_SECONDS)
    await sending
    telegram.faults.once(Fault.DELAY, seconds=0.3)
    begun = time.monotonic()
    await client.call("sendMessage", chat_id=ann.id, text="slow")
    assert time.monotonic() - begun >= 0.3


@pytest.mark.slow
async def test_a_late_progress_edit_becomes_the_caption(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    """The edit is validated while the message is text and takes effect when it is a photo."""
    sent = await client.call("sendMessage", chat_id=ann.id, text="10 %")
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    loop_clock = LoopClock()
    telegram.faults.once(Fault.DELAY_INSIDE, method="editMessageText", seconds=DELAY_SECONDS)
    late = asyncio.create_task(client.call("editMessageText", **where, text="20 %"))
    await telegram.until(lambda: telegram.calls("editMessageText"))
    result = {"type": "photo", "media": Bytes(picture(), "x.png"), "caption": "done"}
    await client.call("editMessageMedia", **where, media=result)
    assert ann.last.text == "done"
    loop_clock.advance(DELAY_SECONDS)
    await late

    assert (ann.last.kind, ann.last.text) == ("photo", "20 %")


# limits


@pytest.mark.parametrize("library_name", LIBRARIES)
async def test_too_many_messages_to_a_chat_get_429_and_early_retries_wait_longer(library_name: str) -> None:
    now = [1000.0]
    async with running_telegram(limiter=True, clock=lambda: now[0]) as telegram:
        ann, client = telegram.add_user("Ann"), connect(library_name, telegram)

        async def send() -> int:
            try:
                await client.call("sendMessage", chat_id=ann.id, text="x")
            except ApiFailure as told:
                return told.number if told.kind == "retry" else -1
            return 0

        assert [await send() for _ in range(5)] == [0, 0, 0, 3, 6]
        now[0] += 5.9
        assert await send() == 12
        now[0] += 12.1
        assert [await send() for _ in range(4)] == [0, 0, 0, 3]
        assert (await client.call("sendChatAction", chat_id=ann.id, action="typing")) is True
        assert telegram.limiter.refused == 4
        await client.close()


@pytest.mark.slow
async def test_each_action_of_a_user_allows_one_more_call_to_the_private_chat() -> None:
    now = [1000.0]
    async with running_telegram(limiter=True, clock=lambda: now[0]) as telegram:
        ann, client = telegram.add_user("Ann"), connect("aiogram", telegram)
        for _ in range(12):
            await ann.say("hello")
            await client.call("sendMessage", chat_id=ann.id, text="x")
        for _ in range(3):
            await client.call("sendMessage", chat_id=ann.id, text="unasked")
        with pytest.raises(ApiFailure, match="retry"):
            await client.call("sendMessage", chat_id=ann.id, text="unasked")
        await ann.say("hello")
        now[0] += 600.0
        for _ in range(3):
            await client.call("sendMessage", chat_id=ann.id, text="x")
        with pytest.raises(ApiFailure, match="retry"):
            await client.call("sendMessage", chat_id=ann.id, text="too late for an answer")
        await client.close()


@pytest.mark.slow
async def test_a_group_has_a_limit_of_twenty_sends_and_edits_per_minute() -> None:
    now = [1000.0]
    async with running_telegram(limiter=True, clock=lambda: now[0]) as telegram:
        friends = telegram.group("Friends", [telegram.add_user("Ann")])
        client = connect("aiogram", telegram)
        sent = await client.call("sendMessage", chat_id=friends.id, text="0")
        refused = ""
        for number in range(1, 100):
            now[0] += 1.0
            try:
                await client.call(
                    "editMessageText", chat_id=friends.id, message_id=sent["message_id"], text=str(number)
                )
            except ApiFailure as told:
                refused = told.kind
                break
        await client.close()

    assert refused == "retry"
    assert 20 <= number <= 32


@pytest.mark.slow
async def test_all_chats_together_have_a_limit() -> None:
    async with running_telegram(limiter=True, limits=Limits(bot_per_second=5), clock=lambda: 1000.0) as telegram:
        client = connect("aiogram", telegram)
        users = [telegram.add_user(str(number)) for number in range(6)]
        for user in users[:5]:
            await client.call("sendMessage", chat_id=user.id, text="x")
        with pytest.raises(ApiFailure, match="retry"):
            await client.call("sendMessage", chat_id=users[5].id, text="x")
        await client.close()
