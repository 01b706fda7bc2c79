"""The HTTP control API of the simulator, which the chat page uses, and persistence."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.sandbox.client_libraries import Bytes, Client, connect
from tests.sandbox.sample_media import picture, video

KEYBOARD = {"inline_keyboard": [[{"text": "Menu", "callback_data": "menu"}]]}


class Page:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def get(self, path: str, **more: Any) -> Any:
        async with self.session.get(f"{self.url}/sim{path}", **more) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def post(self, path: str, body: Any = None, **more: Any) -> Any:
        if body is not None:
            more["json"] = body
        async with self.session.post(f"{self.url}/sim{path}", **more) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def follow(self, count: int, **more: Any) -> list[dict[str, Any]]:
        """Read `count` events from the stream, each with its kind and number."""
        events: list[dict[str, Any]] = []
        async with asyncio.timeout(30), self.session.get(f"{self.url}/sim/events", **more) as response:
            assert response.content_type == "text/event-stream"
            while len(events) < count:
                block = (await response.content.readuntil(b"\n\n")).decode()
                fields = dict(line.split(": ", 1) for line in block.strip().splitlines())
                if "event" in fields:
                    data = json.loads(fields["data"])
                    events.append({"event": fields["event"], "id": int(fields["id"]), **data})
        return events


@pytest.fixture
async def page(telegram: TelegramSimulator) -> AsyncIterator[Page]:
    async with aiohttp.ClientSession() as session:
        yield Page(session, telegram.url)


@pytest.fixture
async def bot(telegram: TelegramSimulator) -> AsyncIterator[Client]:
    client = connect("python-telegram-bot", telegram)
    yield client
    await client.close()


async def test_a_user_is_added_writes_and_sees_the_answer(page: Page, bot: Client) -> None:
    ann = await page.post("/people", {"name": "Ann", "language": "ru", "stars": 70})
    body = await page.post(f"/people/{ann['id']}/say", {"text": "/start"})
    await bot.call("sendMessage", chat_id=ann["id"], text="hi", reply_markup={"keyboard": [[{"text": "Yes"}]]})
    state = await page.get("/state")
    chat = await page.get(f"/chats/{ann['id']}?person={ann['id']}")

    assert body["message"]["text"] == "/start"
    assert state["people"][0]["stars"] == 70
    assert state["chats"][0]["members"] == [ann["id"]]
    assert [view["message"]["text"] for view in chat["messages"]] == ["/start", "hi"]
    assert chat["messages"][1]["keyboard"] == {"keyboard": [[{"text": "Yes"}]]}
    assert (await bot.call("getUpdates"))[0]["message"]["from"]["language_code"] == "ru"


async def test_files_are_sent_as_an_album_and_shown_again(page: Page, ann: SimulatedUser) -> None:
    form = aiohttp.FormData({"kind": "photo", "caption": "both"})
    form.add_field("file", picture(), filename="a.png")
    form.add_field("file", picture(100, 100), filename="b.png")
    views = await page.post(f"/people/{ann.id}/send", data=form)
    file_id = views[1]["message"]["photo"][-1]["file_id"]
    async with page.session.get(f"{page.url}/sim/files/{file_id}") as response:
        assert response.content_type == "image/jpeg"
        assert (await response.read())[:2] == b"\xff\xd8"

    assert len({view["message"]["media_group_id"] for view in views}) == 1
    assert [message.text for message in ann.messages] == ["both", ""]


async def test_a_file_supports_range_requests(page: Page, bot: Client, ann: SimulatedUser) -> None:
    sent = await bot.call("sendVideo", chat_id=ann.id, video=Bytes(video(), "x.mp4"))
    url = f"{page.url}/sim/files/{sent['video']['file_id']}"
    async with page.session.get(url, headers={"Range": "bytes=10-19"}) as response:
        assert response.status == 206
        assert response.content_type == "video/mp4"
        assert await response.read() == video()[10:20]


async def test_buttons_payments_deletion_and_blocking_work_over_http(
    page: Page, bot: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    person = f"/people/{ann.id}"
    sent = await bot.call("sendMessage", chat_id=ann.id, text="x", reply_markup=KEYBOARD)
    pressed = await page.post(f"{person}/press", {"message": sent["message_id"], "button": "menu"})
    assert telegram.state.callback_queries[pressed["press"]].user_id == ann.id
    prices = [{"label": "x", "amount": 5}]
    texts = {"title": "x", "description": "x", "payload": "p", "currency": "XTR"}
    invoice = await bot.call("sendInvoice", chat_id=ann.id, prices=prices, **texts)
    paid = await page.post(f"{person}/pay", {"message": invoice["message_id"]})
    assert paid == {"ok": False, "reason": "the bot did not answer in time", "charge_id": None}
    await page.post(f"{person}/delete", {"message": sent["message_id"], "for_both": True})
    await page.post(f"{person}/clear", {})
    assert ann.messages == []
    assert len(telegram.state.chats[ann.id].messages) == 1
    assert (await page.post(person, {"blocked": True, "language": "en", "stars": 3}))["blocked"] is True
    assert (ann.user.blocked, ann.user.language, ann.user.stars) == (True, "en", 3)


async def test_groups_are_created_and_changed(page: Page, telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    bob = telegram.add_user("Bob")
    group = await page.post("/groups", {"title": "Friends", "members": [ann.id]})
    await page.post(f"/groups/{group['id']}", {"add": [bob.id], "bot": "administrator"})
    moved = await page.post(f"/groups/{group['id']}", {"remove": [ann.id], "migrate": True})

    assert (moved["type"], moved["members"], moved["bot_status"]) == ("supergroup", [bob.id], "administrator")
    kinds = [update.kind for update in telegram.state.updates.pending.values()]
    assert kinds == ["my_chat_member", "message", "my_chat_member", "message", "message", "message"]
    new = next(iter(telegram.state.updates.pending.values())).payload
    assert [new[name]["status"] for name in ("old_chat_member", "new_chat_member")] == ["left", "member"]
    assert new["from"]["id"] == ann.id


async def test_faults_are_switched_and_calls_are_listed(page: Page, bot: Client, ann: SimulatedUser) -> None:
    switch = await page.post("/faults", {"fault": "server_error", "method": "sendMessage", "seconds": 1})
    with pytest.raises(Exception, match="restart"):
        await bot.call("sendMessage", chat_id=ann.id, text="x")
    async with page.session.delete(f"{page.url}/sim/faults/{switch['id']}") as response:
        assert await response.json() == []
    await bot.call("sendMessage", chat_id=ann.id, text="x")
    first, second = await page.get("/calls")

    assert (first["executed"], second["executed"]) == (False, True)
    assert await page.get(f"/calls?after={second['number']}") == []
    assert (await page.post("/settings", {"limiter": True}))["limiter"]["on"] is True


async def test_events_are_streamed_and_resumed_after_a_break(page: Page, bot: Client, ann: SimulatedUser) -> None:
    last = (await page.get("/state"))["last"]
    following = asyncio.create_task(page.follow(5, params={"after": str(last)}))
    sent = await bot.call("sendMessage", chat_id=ann.id, text="one")
    await bot.call("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="two")
    events = await following

    assert [event["event"] for event in events] == ["message", "notification", "call", "edit", "call"]
    assert [event["id"] for event in events] == list(range(last + 1, last + 6))
    assert events[3]["message"]["text"] == "two"
    again = await page.follow(2, headers={"Last-Event-ID": str(events[2]["id"])})
    assert again == events[3:]


async def test_a_client_that_missed_too_many_events_gets_a_reset(page: Page, telegram: TelegramSimulator) -> None:
    for number in range(5002):
        telegram.state.events.add("log", line={"number": number})
    for asked in ("1", "999999"):
        (event,) = await page.follow(1, params={"after": asked})
        assert (event["event"], event["id"]) == ("reset", telegram.state.events.last)


async def test_posted_log_lines_become_events(page: Page) -> None:
    following = asyncio.create_task(page.follow(2, params={"after": "0"}))
    await page.post("/log", [{"event": "JOB_CREATED"}, {"event": "DELIVER_OK"}])
    assert [event["line"]["event"] for event in await following] == ["JOB_CREATED", "DELIVER_OK"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example"},
    ],
)
async def test_requests_from_other_origins_are_refused(
    page: Page, telegram: TelegramSimulator, headers: dict[str, str]
) -> None:
    async with page.session.post(f"{page.url}/sim/people", json={"name": "Eve"}, headers=headers) as response:
        assert response.status == 403
    for path in ("sim/state", f"bot{telegram.token}/getMe", f"file/bot{telegram.token}/photos/a.jpg"):
        async with page.session.get(f"{page.url}/{path}", headers=headers) as response:
            assert response.status == 403
    assert telegram.state.users == {}


async def test_a_form_post_is_refused(page: Page, telegram: TelegramSimulator) -> None:
    async with page.session.post(f"{page.url}/sim/people", data='{"name": "Eve"}') as response:
        assert response.status == 400
    assert telegram.state.users == {}


async def test_invalid_requests_are_refused_and_change_nothing(page: Page, ann: SimulatedUser) -> None:
    for path, body, status in (
        ("/people", {}, 404),
        ("/people/99/say", {"text": "x"}, 404),
        (f"/people/{ann.id}/press", {"message": 99, "button": "x"}, 404),
        ("/faults", {"fault": "rain"}, 400),
        ("/faults", {"fault": "delay", "colour": "red"}, 400),
        ("/people", [], 400),
    ):
        async with page.session.post(f"{page.url}/sim{path}", json=body) as response:
            assert response.status == status, path
            assert "error" in await response.json()


async def test_the_state_survives_a_restart(tmp_path: Path) -> None:
    async with running_telegram(folder=tmp_path) as telegram:
        ann = telegram.add_user("Ann", language="ru")
        friends = telegram.group("Friends", [ann], kind="supergroup")
        await friends.topic("Art")
        bot = connect("python-telegram-bot", telegram)
        sent = await bot.call("sendPhoto", chat_id=ann.id, photo=Bytes(picture(), "a.png"), reply_markup=KEYBOARD)
        hidden = await bot.call("sendMessage", chat_id=ann.id, text="hidden")
        await ann.delete(hidden["message_id"], for_both=False)
        await ann.say("unread")
        await bot.close()
        before = [telegram.state.show(message) for message in ann.messages]
        pending = list(telegram.state.updates.pending.values())

    async with running_telegram(folder=tmp_path) as telegram:
        again = SimulatedUser(telegram.state, telegram.state.users[ann.id])
        bot = connect("python-telegram-bot", telegram)
        assert [telegram.state.show(message) for message in again.messages] == before
        assert list(telegram.state.updates.pending.values()) == pending
        assert telegram.state.chats[friends.id] == friends.chat
        assert (await bot.download(sent["photo"][-1]["file_id"]))[:2] == b"\xff\xd8"
        edited = await bot.call(
            "editMessageCaption", chat_id=ann.id, message_id=sent["message_id"], caption="still editable"
        )
        assert edited["caption"] == "still editable"
        assert (await bot.call("sendMessage", chat_id=ann.id, text="x"))["message_id"] == again.messages[1].id + 1
        await bot.close()
