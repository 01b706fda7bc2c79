"""Take every screen of the chat in all eight looks: `python -m docs.chat_looks FOLDER` writes pictures and sheets.

A user and an operator of each language go through the bot on the sandbox's chat page: phone and desktop, light
and dark. `python -m docs.chat_looks FOLDER en group operator` takes some of it.
"""

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from docs.chat_walk import Walk, find_button, picture_file, walking
from docs.sandbox_history import write_history
from docs.screenshots import USER
from genlock.bot.admin import daily_report
from tests.browser import chromium
from tests.journeys.sandbox_process import Sandbox

#: a model of one provider: no other one makes the order after a fault
ONE_PROVIDER = "qwen/text-to-image"
LONG = "a red fox in the snow, " * 120
#: the longest caption of a user without a subscription to Telegram
CAPTION = LONG[:1024]
#: by language: the prompt of a picture, of a song and of a video, and a change of a picture
PROMPTS = {
    "en": (
        "A fox in a scarf reads a map in an autumn forest",
        "A song about summer by the sea",
        "Paper boat in the rain",
        "make it winter",
    ),
    "ru": (
        "Лиса в шарфе изучает карту в осеннем лесу",
        "Песня про лето на море",
        "Бумажный кораблик под дождём",
        "сделай зиму",
    ),
}
# a user


async def walk_as_user(walk: Walk, language: str) -> None:
    picture, song, video, _ = PROMPTS[language]
    await order_picture(walk, picture)
    await walk.press("image_animate", "next-step")
    await walk.press("✅")
    await asyncio.sleep(6)
    await walk.shot("progress")
    await walk.ended("animated")
    await walk.say(song, "song-suggested")
    await walk.order("song")
    await walk.press("audio_extend", "extend")
    await choose_voice(walk, video)
    await be_refused(walk, picture, video)


async def order_picture(walk: Walk, prompt: str) -> None:
    await walk.say("/start", "start")
    await walk.press("wish:draw", "popular")
    await walk.press("Z-Image", "card")
    await walk.say(prompt, "confirmation")
    await walk.press("🎨", "styles")
    await walk.press("◀️")
    await walk.press("⚙️", "options")
    await walk.press("✅")
    await walk.order("result")
    await walk.press("nexts:", "all-steps")


async def choose_voice(walk: Walk, text: str) -> None:
    await walk.say("/start")
    await walk.press("wish:voice", "voice-models")
    await walk.press("ElevenLabs")
    await walk.say(text, "voices")
    if not find_button(await walk.messages(), ":filter:"):  # the model has a voice of its own
        await walk.press("🎙", "voices-opened")
    await walk.press(":filter:sex:female", "voices-female")
    await walk.press("▶️", "voice-played")


async def be_refused(walk: Walk, picture: str, video: str) -> None:
    """Take the refusals: by moderation, and for want of credits."""
    await asyncio.to_thread(walk.sandbox.post, "/sim/kie", {"order": ["task_moderated"]})
    await walk.say(f"/gen z-image {picture}")
    await walk.ended("moderation")
    for _ in range(2):  # the first one takes most of the balance
        await walk.say(f"/gen veo3 {video}")
        await walk.ended()
    await walk.shot("no-credit")


async def walk_through_files(walk: Walk, language: str) -> None:
    """Take what begins with a file, a reply or a recording."""
    prompt, *_, change = PROMPTS[language]
    await walk.say("/start")
    await walk.upload("send", [picture_file("teal")], "file-menu")
    await walk.say("/start")
    await walk.upload("send", [picture_file("navy")], "caption", caption=change)
    await walk.order("edited")
    shown = await walk.wait(
        lambda messages: [message["message_id"] for message in messages if "photo" in message], "a picture"
    )
    await walk.say(change, "reply", reply_to=shown[-1])
    await walk.say("/start")
    await walk.press("wish:improve", "improve")
    await walk.upload("send", [picture_file(colour) for colour in ("teal", "navy", "olive")], "three-pictures")
    await walk.say("/start")
    await walk.press("wish:avatar", "avatar-models")
    await walk.press("Kling", "avatar")
    await walk.say("/start")
    await walk.upload("voice", [], "voice-offered")
    await walk.press("📝")
    await walk.wait(lambda messages: "🧾" in str(messages[-1]), "order of a voice message")
    await walk.shot("voice-prompt")
    await walk.say(f"/gen z-image {prompt}")
    await walk.ended()
    await walk.press("vary:", "variations")
    await walk.order("varied")
    await walk.press("original:")
    await walk.ended("original")


async def walk_through_pages(walk: Walk, language: str) -> None:
    """Take the pages of one's own, the model lists, the gallery and inline mode."""
    prompt, *_ = PROMPTS[language]
    for name in ("start", "results", "history", "favourites", "promo"):
        await walk.say(f"/{name}", f"{name}-empty")
    for _ in range(2):
        await walk.say(f"/gen z-image {prompt}")
        await walk.ended()
    for name in (
        "results", "history", "balance", "topup", "promo", "invite", "language", "help", "terms", "privacy",
        "paysupport", "api", "models",
    ):  # fmt: skip
        await walk.say(f"/{name}", name)
    await walk.say("/history")
    await walk.press("order:", "order")
    await walk.say("/results")
    await walk.press("🗑", "remove")
    for said, shot in (
        ("/models клинг", "search"),
        ("/models qwertz", "search-none"),
        ("/gen bananana fox", "gen-meant"),
    ):
        await walk.say(said, shot)
    for page in walk.pages.values():
        await page.locator(".write textarea").press_sequentially("@sandbox_bot fox")
        await page.wait_for_timeout(1500)
    await walk.shot("inline")


async def walk_with_long_texts(walk: Walk, language: str) -> None:
    """Take a text that is too long for its model, on every way that a text comes."""
    prompt, *_ = PROMPTS[language]
    await walk.say("/start")
    await walk.press("wish:draw")
    await walk.press("Z-Image")
    await walk.say(LONG, "menu")
    await walk.press(":take:", "menu-taken")
    await walk.say(f"/gen z-image {LONG}", "command")
    await walk.press(":other", "command-other")
    await walk.say("/start")
    await walk.say(LONG, "typed")
    await walk.say("/models qwen2 image edit")
    await walk.press("model:")
    await walk.upload("send", [picture_file("navy")], "caption", caption=CAPTION)
    await walk.say("/start")
    await walk.upload("send", [picture_file("navy")], "caption-without-model", caption=CAPTION)
    await walk.say(f"/gen z-image {prompt}")
    await walk.ended()
    shown = await walk.wait(
        lambda messages: [message["message_id"] for message in messages if "photo" in message], "a picture"
    )
    await walk.say(LONG * 2, "reply", reply_to=shown[-1])


async def walk_through_the_rest(walk: Walk, language: str) -> None:
    """Take ideas, better prompts, favourites, payments, gifts, keys, erasure, and what cannot be done."""
    prompt, *_ = PROMPTS[language]
    await improve_idea(walk)
    await pay(walk)
    for said, shot in (
        ("/promo NOTACODE", "promo-unknown"), ("/promo WELCOME50", "promo-done"), ("/promo WELCOME50", "promo-used"),
        ("/nosuchthing", "unknown-command"), ("/gen", "gen-usage"), ("/cancel", "nothing-to-cancel"),
    ):  # fmt: skip
        await walk.say(said, shot)
    await walk.act("sticker", "sticker", sticker="😀")
    await walk.say("/api")
    await walk.press("apinew", "key-made")
    await walk.say("/privacy")
    await walk.press("🗑", "erase-question")
    await fail(walk, prompt)


async def improve_idea(walk: Walk) -> None:
    await walk.say("/start")
    await walk.press("wish:draw")
    await walk.press("Z-Image")
    await walk.press("🤍", "favourite-added")
    await walk.press("🎲", "idea")
    await walk.press("✨", "improve-question")
    await walk.order("improved", "✨")
    await walk.press("✅", "improved-taken")
    await walk.say("/favourites", "favourites")


async def pay(walk: Walk) -> None:
    await walk.say("/topup")
    await walk.press("⭐", "invoice")
    bill = await walk.wait(
        lambda messages: [message["message_id"] for message in messages if "invoice" in message], "invoice"
    )
    await walk.act("pay", "paid", message=bill[-1])


async def fail(walk: Walk, prompt: str) -> None:
    """Take an order for each way in which one fails, one that is cancelled, and one too many."""
    full = (await asyncio.to_thread(walk.sandbox.get, "/sim/kie"))["credits"]
    for fault in ("task_fail", "result_empty", "create_paused", "credits_as_500"):
        balance = {"credits": 0} if fault == "credits_as_500" else {}
        await asyncio.to_thread(walk.sandbox.post, "/sim/kie", {"order": [fault], **balance})
        await walk.say(f"/gen {ONE_PROVIDER} {prompt}")
        await walk.ended(fault)
        await asyncio.to_thread(walk.sandbox.post, "/sim/kie", {"credits": full})
    await walk.say(f"/gen veo3_fast {prompt}")
    await walk.press("✖️", "cancelled")
    for _ in range(6):
        await walk.do("say", text=f"/gen veo3_fast {prompt}")  # faster than a user waits
    await walk.shot("too-many")


# groups and operators


async def walk_in_group(walk: Walk, language: str) -> None:
    await walk.shot("greeting")
    await walk.say(f"@sandbox_bot {PROMPTS[language][0]}", "suggested")
    await walk.order("result")
    await walk.say("/start@sandbox_bot", "start")
    await walk.press("wish:draw", "popular")
    await walk.press("Z-Image", "card")
    await walk.say("/help@sandbox_bot", "help")
    await walk.say("/balance@sandbox_bot", "balance")
    await walk.say("/gen@sandbox_bot veo3 fox", "order")
    await walk.ended("second-result")


async def walk_as_operator(walk: Walk, language: str) -> None:
    await walk.say("/language")
    await walk.press(f"speak:{language}")
    for name, said in (
        ("admin", "/admin"), ("promo-made", "/admin promo WELCOME10 10 uses=100 days=30"), ("promos", "/admin promo"),
        ("unknown", "/admin reprot"), ("commands", "/admin commands"), ("attention", "/admin attention"),
        ("found", "/admin find Kate"), ("customer", f"/admin user {USER}"),
    ):  # fmt: skip
        await walk.say(said, name)
    await walk.press("askban", "ban-question")
    await walk.say(f"/admin user {USER}")
    await walk.press("payments", "payments")
    await walk.say(f"/admin user {USER}")
    await walk.press("orders", "orders")
    await walk.press("order:", "order")
    await walk.press("askrefund", "refund-question")
    await broadcast(walk)
    for name in ("maintenance", "refunds", "log", "dashboard"):
        await walk.say(f"/admin {name}", name)
    send_report_again(walk.database)
    await walk.wait(lambda messages: "📊" in str(messages[-1]), "daily report")
    await walk.shot("report")


def send_report_again(database: Path) -> None:
    """Have the daily report sent once more: the first one came before the figures of the history were there."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM kv WHERE key LIKE ?", (f"{daily_report.SENT}%",))


async def broadcast(walk: Walk) -> None:
    await walk.say("/admin broadcast", "broadcast-how")
    await walk.say("/admin broadcast <b>News</b>: winter styles\nOpen | https://example.com", "broadcast-preview")
    await walk.press("📣")
    await walk.shot("broadcast-begun")
    await walk.wait(lambda messages: not find_button(messages, "adm:stop"), "end of the broadcast")
    await walk.settle()
    await walk.shot("broadcast")


# the whole


WALKS: Mapping[str, Callable[[Walk, str], Awaitable[None]]] = {
    "user": walk_as_user,
    "files": walk_through_files,
    "pages": walk_through_pages,
    "long": walk_with_long_texts,
    "rest": walk_through_the_rest,
    "group": walk_in_group,
    "operator": walk_as_operator,
}


async def main(folder: Path, languages: Sequence[str], parts: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        state = Path(scratch) / "state"
        await asyncio.to_thread(write_history, state / "genlock.db")
        hour = (datetime.now(UTC) - daily_report.DELAY).hour
        (state / ".env").write_text(f"GENLOCK_DAILY_REPORT_HOUR={hour}\n")
        sandbox = Sandbox(Path(scratch), "--state", str(state), "--speed", "6")
        try:
            await asyncio.to_thread(sandbox.ready)
            async with chromium() as browser:
                for language, part in product(languages, parts):
                    async with walking(browser, sandbox, folder, part, language) as walk:
                        walk.database = state / "genlock.db"
                        await WALKS[part](walk, language)
        finally:
            sandbox.process.terminate()
            sandbox.process.wait()


if __name__ == "__main__":
    chosen = sys.argv[2:]
    spoken, ways = ([name for name in known if name in chosen] or list(known) for known in (PROMPTS, WALKS))
    asyncio.run(main(Path(sys.argv[1]), spoken, ways))
