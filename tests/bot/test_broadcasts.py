"""An operator writes to all users: a preview first, then each user once, also after a crash."""

import asyncio

import pytest

from genlock.bot.admin.broadcasts import TAKES_MAX, Content
from genlock.channels.telegram.errors import UNREACHABLE_SECONDS
from genlock.channels.telegram.rate_limiter import Priority, TelegramRateLimiter
from genlock.domain.broadcast import BroadcastState, Recipient
from genlock.domain.errors import ChannelBusy
from genlock.sandbox.telegram.faults import Fault
from genlock.stores.sqlite import SqliteStore
from tests.bot.conftest import Office
from tests.bot.pages import EN, label, page
from tests.bot.steps import picture
from tests.bot.world import BotWorld


async def test_a_broadcast_is_looked_at_first_then_reaches_every_user_once(office: Office) -> None:
    world, boss, ann = office
    bob = await world.add_user("Bob")
    await bob.write("/start")
    async with world.done():
        await bob.client.block()
    await boss.write("/admin broadcast <b>News</b>: cats")
    await boss.sees(page("admin.preview"))
    assert not any("News" in message.text for message in ann.from_bot)
    await boss.tap(label("admin.broadcast_go"))
    assert page("admin.broadcast_bar", percent=0)(boss.screen)
    await asyncio.gather(*(world.bot.broadcast() for _ in range(3)))
    await ann.sees("News: cats")
    shown = await boss.sees(page("admin.broadcast", number=1, state=EN.plain("admin.broadcast_done")))

    assert len([message for message in ann.from_bot if message.text == "News: cats"]) == 1
    assert page("admin.broadcast_sent", sent=2, total=2)(shown)
    assert not page("admin.broadcast_bar")(shown)
    assert await world.bot.broadcast() == 0


async def test_a_broadcast_goes_to_several_users_at_the_same_time(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, boss, _ = office
    users = [await world.add_user(f"P{number}") for number in range(5)]
    for user in users:
        await user.write("/start")
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    all_on_their_way = asyncio.Barrier(7)

    async def send(_content: Content, _caller: object, _chat: int, _priority: object) -> None:
        await all_on_their_way.wait()

    monkeypatch.setattr(Content, "send", send)
    async with asyncio.timeout(30):
        assert await world.bot.broadcast() == 7
    sent = await world.store.broadcast(1)
    assert sent is not None
    assert (sent.sent, sent.failed, sent.state) == (7, 0, BroadcastState.DONE)


async def test_a_stop_of_the_service_lets_messages_of_a_broadcast_arrive_that_are_on_their_way(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are recorded and would not be sent again."""
    world, boss, _ = office
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    both_on_their_way, go_on, arrived = asyncio.Barrier(3), asyncio.Event(), []

    async def send(_content: Content, _caller: object, chat: int, _priority: object) -> None:
        await both_on_their_way.wait()
        await go_on.wait()
        arrived.append(chat)

    monkeypatch.setattr(Content, "send", send)
    sending = asyncio.create_task(world.bot.broadcast())
    async with asyncio.timeout(30):
        await both_on_their_way.wait()
        sending.cancel()
        asyncio.get_running_loop().call_soon(go_on.set)
        await asyncio.wait([sending])
    assert sending.cancelled()
    assert len(arrived) == 2
    running = await world.store.running_broadcast(world.bot_id)
    assert running is not None
    assert (running.sent, running.unknown) == (2, 0)


async def test_a_broadcast_goes_on_after_a_crash_and_stops_when_told(office: Office) -> None:
    world, boss, ann = office
    users = [await world.add_user(f"P{number}") for number in range(5)]
    for user in users:
        await user.write("/start")
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    running = await world.store.running_broadcast()
    assert running is not None
    assert running.total == 7
    world.telegram.faults.once(Fault.DROP_AFTER, method="sendMessage", chat=users[0].client.id)
    for _ in range(4):  # as a process would that dies after each
        found = await world.store.next_recipient(running.id)
        assert found is not None
        await world.bot._broadcasts._send(running, Content.load(running), found)
    await boss.write("/admin stop")
    assert page("admin.broadcast", number=running.id, state=EN.plain("admin.broadcast_stopped"))(boss.from_bot[-1])
    stopped = await world.store.broadcast(running.id)
    assert stopped is not None
    assert stopped.state is BroadcastState.STOPPED
    assert await world.bot.broadcast() == 0
    reached = [user for user in (boss, ann, *users) if any(message.text == "Hello" for message in user.from_bot)]

    assert len(reached) >= 4
    assert all(len([m for m in user.from_bot if m.text == "Hello"]) == 1 for user in reached if user is not boss)


async def test_an_old_preview_does_not_send_what_a_newer_one_shows(office: Office) -> None:
    world, boss, _ = office
    await boss.write("/admin broadcast One")
    old = boss.screen
    await boss.write("/admin broadcast Two")
    new = boss.screen
    await boss.tap(label("admin.broadcast_go"), on=old)
    assert page("admin.preview_old")(old)
    assert await world.store.running_broadcast() is None
    await boss.tap(label("admin.broadcast_go"), on=new)

    running = await world.store.running_broadcast()
    assert running is not None
    assert running.text == "Two"


async def closed(world: BotWorld, chat: int) -> TelegramRateLimiter:
    """Telegram wants a chat to be left alone; the limits are real."""
    turns = TelegramRateLimiter(world.store, str(world.caller.bot.id))
    await turns.stop(chat, 600.0)
    world.caller._limiter = turns
    return turns


async def test_a_broadcast_waits_quietly_for_a_closed_chat_and_stops_when_told(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, boss, ann = office
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    running = await world.store.running_broadcast()
    assert running is not None
    turns = await closed(world, ann.client.id)
    take, asked = turns.acquire, asyncio.Event()
    calls = 0

    async def counted(chat: int, priority: Priority) -> None:
        nonlocal calls
        calls += 1
        asked.set()
        await take(chat, priority)

    monkeypatch.setattr(turns, "acquire", counted)
    monkeypatch.setattr("genlock.bot.admin.broadcasts.STOP_CHECK_SECONDS", 0.5)
    address = (await world.store.account(ann.number)).address
    recipient = Recipient(account_id=ann.number, language="en", address=address, token=1)
    sending = asyncio.ensure_future(world.bot._broadcasts._send(running, Content.load(running), recipient))
    async with asyncio.timeout(30):
        await asked.wait()
    await world.store.end_broadcast(running.id, BroadcastState.STOPPED)
    async with asyncio.timeout(30):
        assert not await sending
    assert calls <= 3


async def test_a_broadcast_does_not_wait_forever_for_one_chat(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    world, boss, ann = office
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    await closed(world, ann.client.id)
    monkeypatch.setattr("genlock.bot.admin.broadcasts.PERMIT_WAIT_SECONDS", 0.3)
    monkeypatch.setattr("genlock.bot.admin.broadcasts.STOP_CHECK_SECONDS", 0.1)
    async with asyncio.timeout(30):
        assert await world.bot.broadcast() == 1
    assert await counts(world) == (BroadcastState.RUNNING, 1, 0, 0)
    await give_back(world)
    world.caller._limiter = TelegramRateLimiter(world.store, "another")
    assert await world.bot.broadcast() == 1
    assert await counts(world) == (BroadcastState.DONE, 2, 0, 0)
    assert [message.text for message in ann.from_bot].count("Hello") == 1


async def counts(world: BotWorld) -> tuple[BroadcastState, int, int, int]:
    found = await world.store.broadcast(1)
    assert found is not None
    return found.state, found.sent, found.failed, found.unknown


async def give_back(world: BotWorld) -> None:
    """Let the time pass for which the recipients of a broadcast were taken."""
    assert isinstance(world.store, SqliteStore)
    await world.store.session.call(lambda connection: connection.execute("UPDATE broadcast_recipients SET due_at = 0"))


@pytest.mark.parametrize("crash", ["before the call", "during the call"])
async def test_a_crash_skips_no_user_whose_message_was_not_sent_and_repeats_none_that_may_have_been(
    office: Office, crash: str
) -> None:
    world, boss, ann = office
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    taken = [await world.store.next_recipient(1) for _ in range(2)]
    [lost] = [recipient for recipient in taken if recipient is not None and recipient.account_id == ann.number]
    if crash == "during the call":
        assert await world.store.begin_broadcast_message(1, lost)
    assert await world.bot.broadcast() == 0
    assert await counts(world) == (BroadcastState.RUNNING, 0, 0, 0)
    await give_back(world)
    await world.bot.broadcast()

    unknown = int(crash == "during the call")
    assert await counts(world) == (BroadcastState.DONE, 2 - unknown, 0, unknown)
    assert [message.text for message in ann.from_bot].count("Hello") == 1 - unknown
    assert not await world.store.begin_broadcast_message(1, lost), "the sender that was taken for crashed"


async def test_a_message_whose_answer_was_lost_counts_as_unknown_and_the_operator_sees_it(office: Office) -> None:
    world, boss, ann = office
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    world.telegram.faults.once(Fault.DROP_AFTER, method="sendMessage", chat=ann.client.id)
    await world.bot.broadcast()

    assert await counts(world) == (BroadcastState.DONE, 1, 0, 1)
    assert [message.text for message in ann.from_bot].count("Hello") == 1
    await boss.sees(page("admin.broadcast_unknown", unknown=1))


async def test_a_broadcast_gives_no_user_up_while_telegram_cannot_be_reached_for_half_an_hour(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, boss, ann = office
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    waits = []
    give_back_one = world.store.return_recipient

    async def note(broadcast_id: int, recipient: Recipient, after: float) -> None:
        waits.extend([after] if recipient.account_id == ann.number else [])
        await give_back_one(broadcast_id, recipient, after)

    async def permit(_chat: int, _priority: object) -> None: ...

    async def refuse(_content: Content, _caller: object, _chat: int, _priority: object) -> None:
        raise ChannelBusy(UNREACHABLE_SECONDS)

    monkeypatch.setattr(world.store, "return_recipient", note)
    monkeypatch.setattr(world.caller, "take_permit", permit)
    monkeypatch.setattr(Content, "send", refuse)
    for _ in range(TAKES_MAX + 1):
        await give_back(world)
        await world.bot.broadcast()

    assert await counts(world) == (BroadcastState.DONE, 0, 2, 0)
    assert sum(waits) >= 1800


async def test_a_user_whom_telegram_asks_to_wait_with_is_written_to_later_and_given_up_after_some_times(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, boss, ann = office
    monkeypatch.setattr("genlock.bot.admin.broadcasts.TAKES_MAX", 3)
    for number, refused in ((1, 2), (2, 3)):
        await boss.write(f"/admin broadcast Hello {number}")
        await boss.tap(label("admin.broadcast_go"))
        world.telegram.faults.switch(Fault.TOO_MANY, method="sendMessage", chat=ann.client.id, seconds=1, times=refused)
        for _ in range(refused + 1):
            await give_back(world)
            await world.bot.broadcast()
    first, second = [await world.store.broadcast(number) for number in (1, 2)]

    assert first is not None
    assert (first.state, first.sent, first.failed) == (BroadcastState.DONE, 2, 0)
    assert second is not None
    assert (second.state, second.sent, second.failed) == (BroadcastState.DONE, 1, 1)


async def test_a_broadcast_that_telegram_cannot_read_is_refused_at_once(office: Office) -> None:
    world, boss, _ = office
    await boss.write("/admin broadcast <b>News")
    await boss.sees(page("admin.unread"))

    assert await world.store.running_broadcast() is None


async def test_the_looks_of_a_broadcast_are_the_operators_own(office: Office) -> None:
    world, boss, ann = office
    line = "/admin broadcast\n5 < 6 & news 🎉 here"
    looks = [
        {"type": "bot_command", "offset": 0, "length": 6},
        {"type": "bold", "offset": 0, "length": 22},
        {"type": "text_link", "offset": 25, "length": 7, "url": "https://example.com/"},
    ]
    await boss.write(line, entities=looks)
    await boss.sees(page("admin.preview"))
    await boss.tap(label("admin.broadcast_go"))
    await world.bot.broadcast()
    [seen] = [message for message in ann.from_bot if "news" in message.text]

    assert seen.text == "5 < 6 & news 🎉 here"
    assert [(entity["type"], entity["offset"], entity["length"]) for entity in seen.content["entities"]] == [
        ("bold", 0, 5), ("text_link", 8, 7),
    ]  # fmt: skip


async def test_a_picture_with_its_caption_is_broadcast_after_a_crash(office: Office) -> None:
    world, boss, ann = office
    await boss.send("photo", picture(), caption="/admin broadcast <b>Look</b> at this")
    await boss.tap(label("admin.broadcast_go"))
    async with world.another_bot() as bot:
        await bot.broadcast()
    seen = await ann.sees(lambda message: message.kind == "photo")

    assert seen.text == "Look at this"
    assert len([message for message in ann.from_bot if message.kind == "photo"]) == 1
