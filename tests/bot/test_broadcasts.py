"""An operator writes to everybody: a preview first, then each user once, also after a crash."""

import asyncio

import pytest

from genlock.bot.admin.broadcasts import Content
from genlock.channels.telegram.rate_limiter import Priority, TelegramRateLimiter
from genlock.domain.broadcast import BroadcastState, Recipient
from genlock.sandbox.telegram.faults import Fault
from tests.bot.conftest import Office
from tests.bot.pages import EN, label, page
from tests.bot.steps import picture
from tests.bot.world import BotWorld


async def test_a_broadcast_is_looked_at_first_then_reaches_everybody_once(office: Office) -> None:
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
    people = [await world.add_user(f"P{number}") for number in range(5)]
    for person in people:
        await person.write("/start")
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


async def test_a_broadcast_goes_on_after_a_crash_and_stops_when_told(office: Office) -> None:
    world, boss, ann = office
    people = [await world.add_user(f"P{number}") for number in range(5)]
    for person in people:
        await person.write("/start")
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    running = await world.store.running_broadcast()
    assert running is not None
    assert running.total == 7
    world.telegram.faults.once(Fault.DROP_AFTER, method="sendMessage", chat=people[0].client.id)
    for _ in range(4):  # as a process would that dies after each
        found = await world.store.next_recipient(running.id)
        assert found is not None
        await world.bot._broadcasts._send(running, Content.load(running), found)
    await boss.write("/admin stop")
    stopped = await world.store.broadcast(running.id)
    assert stopped is not None
    assert stopped.state is BroadcastState.STOPPED
    assert await world.bot.broadcast() == 0
    reached = [one for one in (boss, ann, *people) if any(message.text == "Hello" for message in one.from_bot)]

    assert len(reached) >= 4
    assert all(len([m for m in one.from_bot if m.text == "Hello"]) == 1 for one in reached if one is not boss)


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
    recipient = Recipient(account_id=ann.number, language="en", address=(await world.store.account(ann.number)).address)
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
        await world.bot.broadcast()
        [broadcast] = [await world.store.broadcast(1)]

    assert broadcast is not None
    assert (broadcast.state, broadcast.sent, broadcast.failed) == (BroadcastState.DONE, 1, 1)


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
    [seen] = [one for one in ann.from_bot if "news" in one.text]

    assert seen.text == "5 < 6 & news 🎉 here"
    assert [(one["type"], one["offset"], one["length"]) for one in seen.content["entities"]] == [
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
    assert len([one for one in ann.from_bot if one.kind == "photo"]) == 1
