"""A tiny bot of the page's tests: every kind of message, one order that is made step by step, one invoice."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from telegram import (
    Bot,
    CopyTextButton,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaPhoto,
    KeyboardButton,
    LabeledPrice,
    Message,
    ReplyKeyboardMarkup,
    ReplyKeyboardRemove,
    Update,
)
from telegram.error import TelegramError

from genlock.domain.catalog import Output
from genlock.sandbox.kie.media import make_media
from genlock.sandbox.telegram.simulator import TelegramSimulator

RICH = (
    "<b>Bold</b>, <i>italic</i>, <u>underline</u>, <s>gone</s>, <code>code</code>, "
    '<a href="https://example.org/a">a link</a>, <tg-spoiler>secret</tg-spoiler>\n'
    "<blockquote>Quoted words of somebody</blockquote>\n"
    '<pre><code class="language-python">def answer() -> int:\n    return 42  # a rather long line that does not '
    "fit into the bubble at all</code></pre>\n" + "Very" * 60 + "LongWord"
)
COMMANDS = {
    "en": [("start", "Open the menu"), ("help", "What the bot can do"), ("balance", "What is left")],
    "ru": [("start", "Открыть меню"), ("help", "Что умеет бот"), ("balance", "Сколько осталось")],
}


class TinyBot:
    def __init__(self, bot: Bot) -> None:
        self.bot = bot
        #: set by a test to let the picture of an order be finished
        self.finish = asyncio.Event()
        self._heard: list[Update] = []
        self._news = asyncio.Condition()
        self.sound = make_media(Output.AUDIO, "Tone", {}, 0)

    async def introduce(self) -> None:
        await self.bot.set_my_commands(COMMANDS["en"])
        await self.bot.set_my_commands(COMMANDS["ru"], language_code="ru")
        await self.bot.set_my_description("I make pictures, films and songs from your words.")
        await self.bot.set_my_description("Делаю картинки, видео и песни из ваших слов.", language_code="ru")

    async def hears(self, fits: Callable[[Update], Any], count: int = 1) -> list[Update]:
        """Wait for so many updates of a kind."""
        async with asyncio.timeout(10), self._news:
            await self._news.wait_for(lambda: len(list(filter(fits, self._heard))) >= count)
        return list(filter(fits, self._heard))

    async def handle(self, update: Update) -> None:
        async with self._news:
            self._heard.append(update)
            self._news.notify_all()
        if update.pre_checkout_query:
            await update.pre_checkout_query.answer(ok=True)
        elif update.callback_query:
            await self.pressed(update)
        elif update.message and update.message.successful_payment:
            await update.message.reply_text(f"Thank you for {update.message.successful_payment.total_amount} Stars")
        elif update.message and update.message.text:
            word = update.message.text.lstrip("/").partition(" ")[0].partition("@")[0]
            await getattr(self, f"on_{word}", self.on_unknown)(update.message)
        elif update.message and (update.message.photo or update.message.document):
            kind = "photo" if update.message.photo else "document"
            await update.message.reply_text(f"Got a {kind}: {update.message.caption or 'no words'}")

    async def pressed(self, update: Update) -> None:
        query = update.callback_query
        assert query is not None
        assert isinstance(query.message, Message)
        match query.data:
            case "picture":
                await query.answer("Your order is taken")
                await self.order(query.message)
            case "alert":
                await query.answer("This is an alert", show_alert=True)
            case "open":
                await query.answer(url="https://t.me/sandbox_bot?start=payload")
            case "slow":
                await self.finish.wait()
                await query.answer()

    async def order(self, message: Message) -> None:
        """The placeholder becomes the picture; a notice follows."""
        await message.edit_text("Queued…")
        await self.bot.send_chat_action(message.chat.id, "upload_photo")
        for share in (20, 60):
            await message.edit_text(f"Drawing… {share} %")
        await self.finish.wait()
        picture = self.picture("a fox in the snow")
        again = InlineKeyboardMarkup([[InlineKeyboardButton("Show again", callback_data="again:17")]])
        await message.edit_media(InputMediaPhoto(picture, caption="A fox in the snow"), reply_markup=again)
        await self.bot.send_message(message.chat.id, "✅ Generation complete")

    def picture(self, prompt: str, shape: str = "4:3", number: int = 0) -> bytes:
        return make_media(Output.IMAGE, "Tiny", {"prompt": prompt, "aspect_ratio": shape}, number)

    async def on_start(self, message: Message) -> None:
        rows = [
            [
                InlineKeyboardButton("Draw a picture", callback_data="picture"),
                InlineKeyboardButton("Alert", callback_data="alert"),
            ],
            [
                InlineKeyboardButton("Site", url="https://example.org/"),
                InlineKeyboardButton("Copy", copy_text=CopyTextButton("COPIED-TEXT")),
                InlineKeyboardButton("Slow", callback_data="slow"),
            ],
        ]
        name = message.from_user.first_name if message.from_user else ""
        await message.reply_text(f"Hello, {name}! What shall it be?", reply_markup=InlineKeyboardMarkup(rows))

    async def on_open(self, message: Message) -> None:
        row = [InlineKeyboardButton("Open", callback_data="open")]
        await message.reply_text("In private?", reply_markup=InlineKeyboardMarkup([row]))

    async def on_help(self, message: Message) -> None:
        await message.reply_text("Helpful words", do_quote=True)

    async def on_rich(self, message: Message) -> None:
        await message.reply_html(RICH)

    async def on_keyboard(self, message: Message) -> None:
        rows = [[KeyboardButton("/help"), KeyboardButton("Blue")], [KeyboardButton("Red")]]
        await message.reply_text("Choose a colour", reply_markup=ReplyKeyboardMarkup(rows))

    async def on_nokeyboard(self, message: Message) -> None:
        await message.reply_text("No keyboard", reply_markup=ReplyKeyboardRemove())

    async def on_photo(self, message: Message) -> None:
        await message.reply_photo(self.picture("a lake"), caption="A <b>lake</b>", parse_mode="HTML")

    async def on_album(self, message: Message) -> None:
        pictures = [InputMediaPhoto(self.picture(f"tree {number}", "1:1", number)) for number in range(4)]
        await message.reply_media_group(pictures, caption="Four trees")

    async def on_video(self, message: Message) -> None:
        film = await asyncio.to_thread(make_media, Output.VIDEO, "Tiny", {"prompt": "waves", "aspect_ratio": "16:9"}, 0)
        await message.reply_video(film, caption="Waves")

    async def on_animation(self, message: Message) -> None:
        film = await asyncio.to_thread(make_media, Output.VIDEO, "Tiny", {"prompt": "loop", "aspect_ratio": "1:1"}, 0)
        await message.reply_animation(film, filename="loop.mp4")

    async def on_audio(self, message: Message) -> None:
        await message.reply_audio(self.sound, title="Tone", performer="Tiny")

    async def on_voice(self, message: Message) -> None:
        await message.reply_voice(self.sound)

    async def on_document(self, message: Message) -> None:
        await message.reply_document(RICH.encode(), filename="tiny_bot.txt", caption="The bot itself")

    async def on_invoice(self, message: Message) -> None:
        about = "Enough for twenty pictures"
        await self.bot.send_invoice(message.chat.id, "100 credits", about, "top-up", "XTR", [LabeledPrice("100", 100)])

    async def on_silent(self, message: Message) -> None:
        await message.reply_text("Without a sound", disable_notification=True)

    async def on_unknown(self, message: Message) -> None:
        await message.reply_text(f"I heard: {message.text}")


@asynccontextmanager
async def running_bot(telegram: TelegramSimulator) -> AsyncIterator[TinyBot]:
    bot = Bot(telegram.token, base_url=f"{telegram.url}/bot", base_file_url=f"{telegram.url}/file/bot")
    async with bot:
        tiny = TinyBot(bot)
        await tiny.introduce()
        polling = asyncio.create_task(_poll(tiny))
        try:
            yield tiny
        finally:
            polling.cancel()
            with suppress(asyncio.CancelledError):
                await polling


async def _poll(tiny: TinyBot) -> None:
    offset = None
    handling: set[asyncio.Task[Any]] = set()
    while True:
        for update in await tiny.bot.get_updates(offset=offset, timeout=20, read_timeout=30):
            offset = update.update_id + 1
            task = asyncio.create_task(_handle(tiny, update))
            handling.add(task)
            task.add_done_callback(handling.discard)


async def _handle(tiny: TinyBot, update: Update) -> None:
    """A call that fails by a fault that somebody switched on ends only its own update."""
    with suppress(TelegramError):
        await tiny.handle(update)
