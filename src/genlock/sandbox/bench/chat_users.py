"""Users of the simulated Telegram in another process: they order through its control paths and watch their chats."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

import aiohttp

#: how long an order may take on a busy machine
ORDER_SECONDS_MAX = 120.0
MODEL = "z-image"
#: callback data of the button that ends a screen of the order
_CONFIRM, _MENU, _WISH, _REPEAT = ":go", "menu", "wish:", "repeat:"
View = dict[str, Any]


class OrderFailed(AssertionError):
    """The chat does not show what an order leads to."""


class ChatUsers:
    """Reads the simulator's events once for all users, and counts the calls of the bot by method."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self._waiting: dict[int, tuple[Callable[[View], bool], asyncio.Future[View]]] = {}
        self.calls: Counter[str] = Counter()

    async def add(self, number: int) -> "ChatUser":
        made = await self.post("/sim/people", name=f"User {number}")
        return ChatUser(self, int(made["id"]))

    async def post(self, path: str, **body: Any) -> Any:
        async with self._session.post(f"{self._url}{path}", json=body) as answer:
            content = await answer.json()
        if answer.status != 200:
            raise OrderFailed(f"{path} {body}: {content}")
        return content

    async def watch(self) -> None:
        """Read events until cancelled. A failure fails every order that waits."""
        try:
            await self._read_events()
        except Exception as error:
            for _, future in self._waiting.values():
                if not future.done():
                    future.set_exception(error)
            raise

    async def _read_events(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(f"{self._url}/sim/events", timeout=timeout, read_bufsize=2**24) as events:
            async for line in events.content:
                if line.startswith(b"data: "):
                    self._receive(json.loads(line[6:]))

    def _receive(self, event: View) -> None:
        if event.get("kind") == "call":
            self.calls[event["call"]["method"]] += 1
        elif event.get("kind") in ("message", "edit"):
            holds, future = self._waiting.get(event["chat"], (None, None))
            if holds is not None and future is not None and not future.done() and holds(event):
                future.set_result(event)

    def expect(self, chat: int, holds: Callable[[View], bool]) -> asyncio.Future[View]:
        """Return a future of the next message or edit in this chat for which `holds` is true."""
        future: asyncio.Future[View] = asyncio.get_running_loop().create_future()
        self._waiting[chat] = (holds, future)
        return future


class ChatUser:
    def __init__(self, users: ChatUsers, chat: int) -> None:
        self._users = users
        self._chat = chat
        #: the message whose menu button begins the next order
        self._last: View = {}
        #: a user orders one thing after the other
        self.turn = asyncio.Lock()

    async def start(self) -> None:
        self._last = await self._say("/start", lambda view: bool(_button(view, _WISH)))

    async def order_by_command(self, prompt: str) -> float:
        """Order with `/gen`; return the seconds until the final notice."""
        started = perf_counter()
        self._last = await self._say(f"/gen {MODEL} {prompt}", _is_notice)
        return perf_counter() - started

    async def order_by_buttons(self, prompt: str) -> float:
        """Open the menu, write the prompt, confirm; return the seconds from the last press to the final notice."""
        if _button(self._last, _MENU):
            await self._press(self._last, _MENU, lambda view: bool(_button(view, _WISH)))
        confirmation = await self._say(prompt, lambda view: bool(_button(view, _CONFIRM)))
        started = perf_counter()
        self._last = await self._press(confirmation, _CONFIRM, _is_notice)
        return perf_counter() - started

    async def _say(self, text: str, then: Callable[[View], bool]) -> View:
        shown = self._users.expect(self._chat, then)
        await self._users.post(f"/sim/people/{self._chat}/say", text=text)
        return await self._wait(shown, text)

    async def _press(self, view: View, data: str, then: Callable[[View], bool]) -> View:
        shown = self._users.expect(self._chat, then)
        button = _button(view, data)
        message = view["message"]["message_id"]
        await self._users.post(f"/sim/people/{self._chat}/press", message=message, button=button)
        return await self._wait(shown, button)

    async def _wait(self, next_view: asyncio.Future[View], action: str) -> View:
        try:
            async with asyncio.timeout(ORDER_SECONDS_MAX):
                return await next_view
        except TimeoutError:
            raise OrderFailed(f"nothing in chat {self._chat} {ORDER_SECONDS_MAX:g} s after {action!r}") from None


def _buttons(view: View) -> list[str]:
    rows = view.get("message", {}).get("reply_markup", {}).get("inline_keyboard", [])
    return [button.get("callback_data", "") for row in rows for button in row]


def _button(view: View, data: str) -> str:
    """Return the callback data of the first button that begins or ends with `data`; empty if there is none."""
    return next((button for button in _buttons(view) if button.startswith(data) or button.endswith(data)), "")


def _is_notice(view: View) -> bool:
    return view["kind"] == "message" and bool(_button(view, _REPEAT))


@asynccontextmanager
async def watching_users(url: str) -> AsyncIterator[ChatUsers]:
    """Yield the users of the simulator at this address, whose chats are watched until the block ends."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        users = ChatUsers(session, url)
        watch = asyncio.get_running_loop().create_task(users.watch())
        try:
            yield users
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
