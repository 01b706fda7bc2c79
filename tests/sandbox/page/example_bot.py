"""A small bot for the tests of the chat page: all kinds of messages, one order with progress, one invoice."""

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
    "<blockquote>Quoted text of another user</blockquote>\n"
    '<pre><code class="language-python">def answer() -> int:\n    return 42  # a rather long line that does not '
    "fit into the bubble at all</code></pre>\n" + "Very" * 60 + "LongWord"
)
COMMANDS = {
    "en": [("start", "Open the menu"), ("help", "What the bot can do"), ("balance", "What is left")],
    "ru": [("start", "Открыть меню"), ("help", "Что умеет бот"), ("balance", "Сколько осталось")],
}


class ExampleBot:
    def __init__(self, bot: Bot) -> None:
        self.bot = bot
        #: a test sets it to finish the image of an order
        self.finish = asyncio.Event()
        self._updates: list[Update] = []
        self._arrived = asyncio.Condition()
        self.sound = make_media(Output.AUDIO, "Tone", {}, 0)

    async def introduce(self) -> None:
        await self.bot.set_my_commands(COMMANDS["en"])
        await self.bot.set_my_commands(COMMANDS["ru"], language_code="ru")
        await self.bot.set_my_description("I make pictures, films and songs from your words.")
        await self.bot.set_my_description("Делаю картинки, видео и песни из ваших слов.", language_code="ru")

    async def wait_for_updates(self, fits: Callable[[Update], Any], count: int = 1) -> list[Update]:
        """Wait for `count` matching updates."""
        async with asyncio.timeout(30), self._arrived:
            await self._arrived.wait_for(lambda: len(list(filter(fits, self._updates))) >= count)
        return list(filter(fits, self._updates))

    async def handle(self, update: Update) -> None:
        async with self._arrived:
            self._updates.append(update)
            self._arrived.notify_all()
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
        await message.reply_text(f"Hello, {name}! What would you like?", reply_markup=InlineKeyboardMarkup(rows))

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
        await message.reply_document(RICH.encode(), filename="example.txt", caption="The bot itself")

    async def on_invoice(self, message: Message) -> None:
        about = "Enough for twenty pictures"
        await self.bot.send_invoice(message.chat.id, "100 credits", about, "top-up", "XTR", [LabeledPrice("100", 100)])

    async def on_silent(self, message: Message) -> None:
        await message.reply_text("Without a sound", disable_notification=True)

    async def on_unknown(self, message: Message) -> None:
        await message.reply_text(f"Received: {message.text}")


@asynccontextmanager
async def running_bot(telegram: TelegramSimulator) -> AsyncIterator[ExampleBot]:
    bot = Bot(telegram.token, base_url=f"{telegram.url}/bot", base_file_url=f"{telegram.url}/file/bot")
    async with bot:
        example = ExampleBot(bot)
        await example.introduce()
        polling = asyncio.create_task(_poll(example))
        try:
            yield example
        finally:
            polling.cancel()
            with suppress(asyncio.CancelledError):
                await polling


async def _poll(example: ExampleBot) -> None:
    offset = None
    handling: set[asyncio.Task[Any]] = set()
    while True:
        for update in await example.bot.get_updates(offset=offset, timeout=20, read_timeout=30):
            offset = update.update_id + 1
            task = asyncio.create_task(_handle(example, update))
            handling.add(task)
            task.add_done_callback(handling.discard)


async def _handle(example: ExampleBot, update: Update) -> None:
    """Handle one update; a call that fails because of a fault ends only this update."""
    with suppress(TelegramError):
        await example.handle(update)
