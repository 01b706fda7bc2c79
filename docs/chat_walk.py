"""One user's way through the bot on the sandbox's chat page, with pictures: phone and desktop, light and dark."""

import asyncio
import io
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.async_api import Browser, FilePayload, Page, ViewportSize

from docs.screenshots import put_on_sheet
from genlock.sandbox.run import OPERATOR
from tests.journeys.sandbox_process import Sandbox
from tests.sandbox.page.browser_tabs import new_profile

PATIENCE_SECONDS = 120
#: as wide as a phone and a desktop, and high enough for whole screens
PHONE, DESKTOP = ViewportSize(width=390, height=1150), ViewportSize(width=1280, height=1150)
#: pictures on one sheet
SHEETS = {"phone": 5, "desktop": 2}
Messages = list[dict[str, Any]]


class Walk:
    """One user's way through the bot, seen on four pages at once. `shot` names the picture of a step's screen."""

    def __init__(self, sandbox: Sandbox, user: int, chat: int, pages: Mapping[str, Page], folder: Path) -> None:
        self.sandbox, self.user, self.chat, self.pages, self.folder = sandbox, user, chat, pages, folder
        self.database = Path()
        self.taken: dict[str, list[Path]] = {look: [] for look in pages}

    async def messages(self) -> Messages:
        found = await asyncio.to_thread(self.sandbox.get, f"/sim/chats/{self.chat}?person={self.user}")
        return [entry["message"] for entry in found["messages"]]

    async def do(self, action: str, **body: Any) -> None:
        await asyncio.to_thread(self.sandbox.post, f"/sim/people/{self.user}/{action}", {**body, "chat": self.chat})

    async def _after(self, shot: str) -> None:
        await self.settle()
        if shot:
            await self.shot(shot)

    async def say(self, text: str, shot: str = "", *, reply_to: int | None = None) -> None:
        await self.do("say", text=text, reply_to=reply_to)
        await self._after(shot)

    async def act(self, action: str, shot: str = "", **body: Any) -> None:
        """Send a sticker, pay, edit: any other action of the page."""
        await self.do(action, **body)
        await self._after(shot)

    async def press(self, part: str, shot: str = "") -> None:
        """Press the newest button whose label or data has this in it."""
        message, button = await self.wait(lambda messages: find_button(messages, part), f"a button {part!r}")
        await self.do("press", message=message, button=button)
        await self._after(shot)

    async def order(self, shot: str, part: str = "✅") -> None:
        """Press the button that orders, and wait for the end of the order."""
        await self.press(part)
        await self.ended(shot)

    async def upload(self, action: str, files: Sequence[FilePayload], shot: str = "", **form: str) -> None:
        """Send pictures, or a sample recording."""
        page = next(iter(self.pages.values()))
        fields = {"chat": str(self.chat), **form}
        script = """async ([action, fields, pictures]) => {
          const form = new FormData();
          for (const [name, value] of Object.entries(fields)) form.append(name, value);
          for (const bytes of pictures) {
            form.append("file", new Blob([Uint8Array.from(bytes)], { type: "image/png" }), "picture.png");
            form.append("kind", "photo");
          }
          await fetch(action, { method: "POST", body: form });
        }"""
        pictures = [list(file["buffer"]) for file in files]
        await page.evaluate(script, [f"/sim/people/{self.user}/{action}", fields, pictures])
        await self._after(shot)

    async def wait(self, holds: Callable[[Messages], Any], what: str) -> Any:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            messages = await self.messages()
            if found := holds(messages):
                return found
            assert time.monotonic() < deadline, f"no {what}: {messages[-2:]}"
            await asyncio.sleep(0.2)

    async def settle(self) -> None:
        """Wait until the chat has not changed for a moment."""
        before, quiet = "", 0
        for _ in range(100):
            now = repr(await self.messages())
            quiet = quiet + 1 if now == before else 0
            if quiet >= 4:  # noqa: PLR2004 - a second
                return
            before = now
            await asyncio.sleep(0.25)

    async def ended(self, shot: str = "") -> None:
        """Wait until no order of the chat is in progress."""
        for _ in range(2):  # further parts get messages of their own
            await self.wait(lambda messages: "⏳ <b>" not in str(messages[-4:]) and not _waiting(messages), "end")
            await asyncio.sleep(1)
        await self._after(shot)

    async def _wait_until_shown(self, page: Page) -> None:
        """Wait until a page shows the newest message, or the album with it: a busy machine loads its chat late."""
        if messages := await self.messages():
            album = messages[-1].get("media_group_id")
            newest = [each for each in messages if album and each.get("media_group_id") == album] or messages[-1:]
            shown = ", ".join(f'#chat [data-message="{message["message_id"]}"]' for message in newest)
            await page.locator(shown).first.wait_for()

    async def shot(self, name: str) -> None:
        for look, page in self.pages.items():
            await self._wait_until_shown(page)
            self.taken[look].append(self.folder / f"{look}-{len(self.taken[look]):02d}-{name}.png")
            await page.locator("#chat").screenshot(path=self.taken[look][-1])

    def put_on_sheets(self, name: str) -> None:
        for look, taken in self.taken.items():
            size = SHEETS[look.partition("-")[0]]
            for number in range(0, len(taken), size):
                put_on_sheet(
                    taken[number : number + size], self.folder / f"sheet-{name}-{look}-{number // size:02d}.png"
                )


def _waiting(messages: Messages) -> bool:
    return any(str(message.get("text") or message.get("caption") or "").startswith("⏳") for message in messages[-4:])


def find_button(messages: Messages, part: str) -> tuple[int, str] | None:
    for message in reversed(messages):
        for row in message.get("reply_markup", {}).get("inline_keyboard", []):
            for button in row:
                data = button.get("callback_data", "")
                if part in button["text"] or part in data:
                    return message["message_id"], data
    return None


def picture_file(colour: str) -> FilePayload:
    file = io.BytesIO()
    Image.new("RGB", (480, 640), colour).save(file, "PNG")
    return FilePayload(name="picture.png", mimeType="image/png", buffer=file.getvalue())


def walkers(sandbox: Sandbox, part: str, language: str) -> tuple[int, int]:
    """Return who goes a way, and in which chat."""
    if part == "operator":
        operator = next(
            int(known_user["id"])
            for known_user in sandbox.get("/sim/state")["people"]
            if OPERATOR in known_user.values()
        )
        sandbox.post(f"/sim/people/{operator}", {"language": language})
        return operator, operator
    name = {"en": "Ann", "ru": "Аня"}[language]
    user = int(sandbox.post("/sim/people", {"name": name, "language": language, "started": False})["id"])
    if part != "group":
        return user, user
    return user, int(sandbox.post("/sim/groups", {"title": "Friends", "members": [user]})["id"])


@asynccontextmanager
async def walking(browser: Browser, sandbox: Sandbox, folder: Path, name: str, language: str) -> AsyncIterator[Walk]:
    """Open a chat in four looks; at the end, put the pictures on sheets."""
    user, chat = walkers(sandbox, name, language)
    pages = {}
    for (size, device), colours in product(((PHONE, "phone"), (DESKTOP, "desktop")), ("light", "dark")):
        locale = "ru-RU" if language == "ru" else "en-GB"
        profile = await new_profile(browser, viewport=size, color_scheme=colours, locale=locale)
        page = pages[f"{device}-{colours}-{language}"] = await profile.new_page()
        await page.goto(f"{sandbox.url}#{user}/{chat}")
    walk = Walk(sandbox, user, chat, pages, folder / name)
    walk.folder.mkdir(parents=True, exist_ok=True)
    try:
        yield walk
    finally:
        walk.put_on_sheets(name)
        for page in pages.values():
            await page.context.close()
