"""Take every screen of the chat in all eight looks: `python -m docs.chat_looks FOLDER` writes pictures and sheets.

A user and an operator of each language go through the bot on the sandbox's chat page: phone and desktop, light
and dark.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.async_api import Browser, Page

from docs.screenshots import PHONE, SIZE
from tests.browser import chromium
from tests.journeys.sandbox_process import Sandbox
from tests.sandbox.page.browser_tabs import new_profile

PATIENCE_SECONDS = 60
LONG = "a red fox in the snow, " * 120
SHEET = 5
#: by language: the prompt of a picture, of a song and of a video
PROMPTS = {
    "en": (
        "A fox in a scarf reads a map in an autumn forest",
        "A song about summer by the sea",
        "Paper boat in the rain",
    ),
    "ru": ("Лиса в шарфе изучает карту в осеннем лесу", "Песня про лето на море", "Бумажный кораблик под дождём"),
}


class Walk:
    """One user's way through the bot, seen on four pages at once."""

    def __init__(self, sandbox: Sandbox, user: int, pages: dict[str, Page], folder: Path, language: str) -> None:
        self.sandbox, self.user, self.pages, self.folder, self.language = sandbox, user, pages, folder, language
        self.chat = user
        self.taken: dict[str, list[Path]] = {look: [] for look in pages}

    async def messages(self) -> list[dict[str, Any]]:
        found = await asyncio.to_thread(self.sandbox.get, f"/sim/chats/{self.chat}?person={self.user}")
        return [one["message"] for one in found["messages"]]

    async def say(self, text: str) -> None:
        body = {"text": text, "chat": self.chat}
        await asyncio.to_thread(self.sandbox.post, f"/sim/people/{self.user}/say", body)
        await self.settle()

    async def press(self, part: str, *, settle: bool = True) -> None:
        """Press the newest button whose label or data has this in it."""
        message, button = await self.wait(lambda messages: _find(messages, part), f"a button {part!r}")
        body = {"message": message, "button": button, "chat": self.chat}
        await asyncio.to_thread(self.sandbox.post, f"/sim/people/{self.user}/press", body)
        if settle:
            await self.settle()

    async def wait(self, holds: Callable[[list[dict[str, Any]]], Any], what: str) -> Any:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            messages = await self.messages()
            if found := holds(messages):
                return found
            assert time.monotonic() < deadline, f"{self.language}: no {what}: {messages[-2:]}"
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

    async def ended(self) -> None:
        """Wait until no order of the chat is in progress."""
        for _ in range(2):  # further parts get messages of their own
            await self.wait(lambda messages: "⏳" not in str(messages[-4:]), "end of the order")
            await asyncio.sleep(1)
        await self.settle()

    async def shot(self, name: str) -> None:
        for look, page in self.pages.items():
            self.taken[look].append(self.folder / f"{look}-{len(self.taken[look]):02d}-{name}.png")
            await page.locator("#chat").screenshot(path=self.taken[look][-1])

    def put_on_sheets(self, name: str) -> None:
        for look, taken in self.taken.items():
            for number in range(0, len(taken), SHEET):
                pictures = [Image.open(one) for one in taken[number : number + SHEET]]
                width, height = max(one.width for one in pictures), max(one.height for one in pictures)
                sheet = Image.new("RGB", ((width + 8) * len(pictures), height), "magenta")
                for index, one in enumerate(pictures):
                    sheet.paste(one, (index * (width + 8), 0))
                sheet.save(self.folder / f"sheet-{name}-{look}-{number // SHEET}.png")


def _find(messages: list[dict[str, Any]], part: str) -> tuple[int, str] | None:
    for message in reversed(messages):
        for row in message.get("reply_markup", {}).get("inline_keyboard", []):
            for button in row:
                data = button.get("callback_data", "")
                if part in button["text"] or part in data:
                    return message["message_id"], data
    return None


async def open_looks(browser: Browser, sandbox: Sandbox, user: int, chat: int, language: str) -> dict[str, Page]:
    pages = {}
    for (size, name), colours in product(((PHONE, "phone"), (SIZE, "desktop")), ("light", "dark")):
        locale = "ru-RU" if language == "ru" else "en-GB"
        profile = await new_profile(browser, viewport=size, color_scheme=colours, locale=locale)
        page = pages[f"{name}-{colours}-{language}"] = await profile.new_page()
        await page.goto(f"{sandbox.url}#{user}/{chat}")
    return pages


async def close(pages: dict[str, Page]) -> None:
    for page in pages.values():
        await page.context.close()


async def walk_as_user(walk: Walk) -> None:
    await order_picture(walk)
    await animate_picture(walk)
    await order_song(walk)
    for name in ("results", "balance", "topup", "invite", "language", "help", "history", "models"):
        await walk.say(f"/{name}")
        await walk.shot(name)
    await choose_voice(walk)
    await be_refused(walk)
    for page in walk.pages.values():
        await page.locator(".write textarea").press_sequentially("@sandbox_bot fox")
        await page.wait_for_timeout(1500)
    await walk.shot("inline")


async def order_picture(walk: Walk) -> None:
    await walk.say("/start")
    await walk.shot("start")
    await walk.press("wish:draw")
    await walk.shot("popular")
    await walk.press("Z-Image")
    await walk.shot("card")
    await walk.say(PROMPTS[walk.language][0])
    await walk.shot("confirmation")
    await walk.press("🎨")
    await walk.shot("styles")
    await walk.press("◀️")
    await walk.press("⚙️")
    await walk.shot("options")
    await walk.press("✅")
    await walk.press("✅", settle=False)
    await walk.ended()
    await walk.shot("result")


async def animate_picture(walk: Walk) -> None:
    await walk.press("image_animate")
    await walk.shot("next-step")
    await walk.press("✅", settle=False)
    await asyncio.sleep(9)
    await walk.shot("progress")
    await walk.ended()
    await walk.shot("animated")


async def order_song(walk: Walk) -> None:
    await walk.say(PROMPTS[walk.language][1])
    await walk.shot("song-suggested")
    await walk.press("✅", settle=False)
    await walk.ended()
    await walk.shot("song")
    await walk.press("audio_extend")
    await walk.shot("extend")


async def choose_voice(walk: Walk) -> None:
    await walk.say("/start")
    await walk.press("wish:voice")
    await walk.press("ElevenLabs")
    await walk.say(PROMPTS[walk.language][2])
    await walk.shot("voices")


async def be_refused(walk: Walk) -> None:
    """Take the refusals: of a text that is too long, by moderation, and for want of credits."""
    picture, _, video = PROMPTS[walk.language]
    await walk.say("/start")
    await walk.press("wish:draw")
    await walk.say(LONG)
    await walk.shot("too-long")
    await asyncio.to_thread(walk.sandbox.post, "/sim/kie", {"order": ["task_moderated"]})
    await walk.say(f"/gen z-image {picture}")
    await walk.ended()
    await walk.shot("moderation")
    for _ in range(2):  # the first one takes most of the balance
        await walk.say(f"/gen veo3 {video}")
        await walk.ended()
    await walk.shot("no-credit")


async def walk_as_operator(walk: Walk) -> None:
    await walk.say("/start")
    for name, said in (
        ("admin", "/admin"), ("promo-made", "/admin promo WELCOME10 10 uses=100 days=30"), ("promos", "/admin promo"),
        ("report", "/admin report"), ("attention", "/admin attention"), ("commands", "/admin commands"),
        ("broadcast-how", "/admin broadcast"),
    ):  # fmt: skip
        await walk.say(said)
        await walk.shot(name)
    await walk.say("/admin broadcast <b>News</b>: winter styles\nOpen | https://example.com")
    await walk.shot("broadcast-preview")
    await walk.press("📣", settle=False)
    await asyncio.sleep(1)
    await walk.shot("broadcast-begun")
    await walk.settle()
    await walk.shot("broadcast")
    await walk.say("/admin find a")
    await walk.shot("found")
    await walk.say("/admin log")
    await walk.shot("log")


async def take(sandbox: Sandbox, browser: Browser, folder: Path, language: str) -> None:
    post, name = sandbox.post, {"en": "Ann", "ru": "Аня"}[language]
    await take_operator(sandbox, browser, folder, language)
    user = post("/sim/people", {"name": name, "language": language, "started": False})["id"]
    pages = await open_looks(browser, sandbox, user, user, language)
    walk = Walk(sandbox, user, pages, folder, language)
    try:
        await walk_as_user(walk)
    finally:
        walk.put_on_sheets("user")
        await close(pages)


async def take_operator(sandbox: Sandbox, browser: Browser, folder: Path, language: str) -> None:
    """Take the screens of a group, and those of the operator."""
    post = sandbox.post
    user = post("/sim/people", {"name": "Bob", "language": language})["id"]
    group = post("/sim/groups", {"title": "Friends", "members": [user]})["id"]
    pages = await open_looks(browser, sandbox, user, group, language)
    walk = Walk(sandbox, user, pages, folder, language)
    walk.chat = group
    try:
        await walk.say(f"@sandbox_bot {PROMPTS[language][0]}")
        await walk.shot("group")
        await walk.press("✅", settle=False)
        await walk.ended()
        await walk.shot("group-result")
    finally:
        walk.put_on_sheets("group")
        await close(pages)
    people = sandbox.get("/sim/state")["people"]
    operator = next(one["id"] for one in people if "Olga" in one.values())
    post(f"/sim/people/{operator}", {"language": language})
    pages = await open_looks(browser, sandbox, operator, operator, language)
    walk = Walk(sandbox, operator, pages, folder, language)
    try:
        await walk_as_operator(walk)
    finally:
        walk.put_on_sheets("operator")
        await close(pages)


async def main(folder: Path, languages: list[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        sandbox = Sandbox(Path(scratch), "--state", str(Path(scratch) / "state"), "--speed", "6")
        try:
            await asyncio.to_thread(sandbox.ready)
            async with chromium() as browser:
                for language in languages:
                    await take(sandbox, browser, folder, language)
        finally:
            sandbox.process.terminate()
            sandbox.process.wait()


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:] or ["en", "ru"]))
