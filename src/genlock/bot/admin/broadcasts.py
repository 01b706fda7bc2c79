"""Broadcasts: a message to the users of the bot, at the lowest priority, at most once each, continued after a crash."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Message, MessageEntity
from telegram.constants import MessageEntityType, ParseMode

from genlock.bot.admin.campaign_screens import progress
from genlock.bot.admin.command import NotUnderstood
from genlock.bot.bundle import BotBundle
from genlock.channels.telegram.address import Address
from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.text import keyboard
from genlock.domain.broadcast import (
    SILENT_DAYS_MAX,
    Broadcast,
    BroadcastOutcome,
    BroadcastState,
    Recipient,
    Segment,
)
from genlock.domain.errors import ChannelBusy, ChannelError, ChannelOutcomeUnknown, RecipientUnreachable
from genlock.engine.cancellation import uninterrupted
from genlock.ports import Database
from genlock.ports.call_fence import calls_while

#: prefix of the bot's kv entries that hold which message shows the progress of a broadcast
PROGRESS = "chat:broadcast:"
#: how long one round works before other periodic work may run
ROUND_SECONDS = 20.0
PROGRESS_SECONDS = 3.0
#: how old figures may be when they are shown, and how many times we try to show the end of a broadcast
PROGRESS_VALID_SECONDS = 10.0
END_TRIES = 5
#: messages on their way at the same time: enough for the bot's rate when an answer takes a third of a second
SENDERS = 10
#: how long to wait for a permit to write to one user, and how often to check whether the broadcast was stopped
PERMIT_WAIT_SECONDS = 60.0
STOP_CHECK_SECONDS = 2.0
#: how many times the same user is tried: Telegram may ask to wait, or the sender may crash
TAKES_MAX = 10
#: an animation also has a document, so it is checked first
KINDS = ("animation", "photo", "video", "audio", "voice", "document")
#: entities that Telegram finds in any text by itself; the others are the operator's formatting
AUTOMATIC = frozenset({
    MessageEntityType.BOT_COMMAND, MessageEntityType.URL, MessageEntityType.EMAIL, MessageEntityType.MENTION,
    MessageEntityType.HASHTAG, MessageEntityType.CASHTAG, MessageEntityType.PHONE_NUMBER,
})  # fmt: skip
_COMMAND = re.compile(r"/admin(?:@\w+)?\s+broadcast\s*", re.IGNORECASE | re.ASCII)
#: options in front of the text: whom the broadcast goes to
_OPTIONS = re.compile(r"(?:(?:lang|paid|silent)=\w+\s+)*", re.IGNORECASE | re.ASCII)
#: lines at the end of the text: a label, a bar and an address make a button
_BUTTONS = re.compile(r"(?:\n[^\n|]{1,60}\|[ \t]*https?://\S{1,500}[ \t]*){1,6}$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """A message of the operator: its text with its formatting, and the Telegram id of its file, if it has one."""

    text: str
    #: without any, the text is Telegram HTML as the operator typed it
    entities: tuple[dict[str, Any], ...] = ()
    kind: str = ""
    file: str = ""
    #: label and address of each
    buttons: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, message: Message) -> "Content":
        """Return a message without the command it begins with."""
        whole, entities = message.text or message.caption or "", message.entities or message.caption_entities
        cut = match.end() if (match := _COMMAND.match(whole)) else 0  # ASCII: UTF-16 offsets equal character offsets
        if options := _OPTIONS.match(whole, cut):
            cut = options.end()
        whole, buttons = _without_buttons(whole)
        entities_left = [
            part
            for entity in entities
            if entity.type not in AUTOMATIC and (part := _within(entity, cut, _utf16_length(whole))) is not None
        ]
        text = whole[cut:] if entities_left else whole[cut:].strip()
        for kind in KINDS:
            if found := getattr(message, kind):
                file = found[-1] if kind == "photo" else found
                return cls(
                    text=text, entities=tuple(entities_left), kind=kind, file=file.file_id, buttons=tuple(buttons)
                )
        return cls(text=text, entities=tuple(entities_left), buttons=tuple(buttons))

    @classmethod
    def load(cls, broadcast: Broadcast) -> "Content":
        if not broadcast.content:
            return cls(text=broadcast.text)
        stored = json.loads(broadcast.content)
        buttons = tuple((label, url) for label, url in stored.get("buttons", ()))
        return cls(**{**stored, "entities": tuple(stored["entities"]), "buttons": buttons})

    def dump(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    async def send(self, caller: Caller, chat: int, priority: Priority | None) -> None:
        entities = [MessageEntity.de_json(entity, caller.bot) for entity in self.entities]
        how: dict[str, Any] = {"parse_mode": ParseMode.HTML} if not entities else {}
        if self.buttons:
            rows = [[InlineKeyboardButton(label, url=url)] for label, url in self.buttons]
            how["reply_markup"] = InlineKeyboardMarkup(rows)
        if not self.kind:
            arguments = {"text": self.text, "entities": entities or None}
            await caller.call(caller.bot.send_message, chat=chat, priority=priority, **arguments, **how)
            return
        arguments = {self.kind: self.file, "caption": self.text or None, "caption_entities": entities or None}
        method = getattr(caller.bot, f"send_{self.kind}")
        await caller.call(method, chat=chat, priority=priority, **arguments, **how)


def segment_of(line: str) -> Segment:
    """Return whom a broadcast goes to, from the options in front of its text. Raises NotUnderstood."""
    given = dict(word.lower().split("=", 1) for word in line.split())
    paid, silent = given.get("paid"), given.get("silent", "0")
    if paid not in (None, "yes", "no") or not silent.isdigit() or int(silent[:6]) > SILENT_DAYS_MAX:
        raise NotUnderstood
    return Segment(
        language=given.get("lang", ""), paid=None if paid is None else paid == "yes", silent_days=int(silent[:6])
    )


def options_of(message: Message) -> str:
    """Return the options in front of the text of a broadcast."""
    whole = message.text or message.caption or ""
    begin = match.end() if (match := _COMMAND.match(whole)) else 0
    options = _OPTIONS.match(whole, begin)
    return options[0].strip() if options else ""


def read_buttons(lines: str) -> tuple[tuple[str, str], ...] | None:
    """Return the buttons that lines of a label, a bar and an address make; None if a line is none."""
    text = "\n".join(line.strip() for line in lines.splitlines() if line.strip())
    rest, buttons = _without_buttons(f"\n{text}") if text else ("", [])
    return None if rest.strip() else tuple(buttons)


def _without_buttons(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a text without the lines at its end that make buttons, and the buttons."""
    found = _BUTTONS.search(text)
    if found is None:
        return text, []
    lines = [line.split("|", 1) for line in found[0].strip().splitlines()]
    return text[: found.start()], [(label.strip(), url.strip()) for label, url in lines]


def _utf16_length(text: str) -> int:
    """Return the length of a text as Telegram counts it."""
    return len(text.encode("utf-16-le")) // 2


def _within(entity: MessageEntity, cut: int, until: int) -> dict[str, Any] | None:
    """Return the part of an entity between two offsets, counted from the first; None if nothing is left."""
    begin, end = max(entity.offset, cut), min(entity.offset + entity.length, until)
    return {**entity.to_dict(), "offset": begin - cut, "length": end - begin} if end > begin else None


def _now() -> float:
    return asyncio.get_running_loop().time()


class Broadcasts:
    def __init__(self, *, bundle: BotBundle, store: Database) -> None:
        self._bundle = bundle
        self._store = store

    async def show(self, chat: int, content: Content) -> None:
        """Send it to one chat, as users will see it. What Telegram refuses here it would refuse everywhere."""
        await content.send(self._bundle.caller, chat, Priority.SCREEN)

    async def show_progress_on(self, broadcast_id: int, chat: int, message: int, language: str) -> None:
        """Remember the operator's message that shows how far the broadcast is."""
        location = json.dumps({"chat": chat, "message": message, "language": language})
        await self._store.kv_put(f"{PROGRESS}{broadcast_id}", location, self._bundle.id)

    async def stop(self) -> Broadcast | None:
        """Stop the running broadcast; None if there is none."""
        running = await self._store.running_broadcast(self._bundle.id)
        if running is None or not await self._store.end_broadcast(running.id, BroadcastState.STOPPED):
            return None
        await self._show_progress(running.id)
        return running

    async def round(self) -> int:
        """Continue the running broadcast for a while. Safe on several instances at once: each takes other users."""
        await self._store.expire_recipients()
        broadcast = await self._store.running_broadcast(self._bundle.id)
        if broadcast is None:
            return 0
        until, taking = _now() + ROUND_SECONDS, asyncio.Lock()
        showing = asyncio.create_task(self._keep_showing(broadcast.id))
        try:
            results = await asyncio.gather(
                *(self._send_until(broadcast, until, taking) for _ in range(SENDERS)), return_exceptions=True
            )
        finally:
            showing.cancel()
        errors = [result for result in results if isinstance(result, BaseException)]
        if errors:
            raise errors[0]  # only after every sender has finished the message it had begun
        counts = [result for result in results if isinstance(result, tuple)]
        if any(ended for _, ended in counts) and await self._store.end_broadcast(broadcast.id, BroadcastState.DONE):
            await self._show_progress(broadcast.id)
        return sum(sent for sent, _ in counts)

    async def _send_until(self, broadcast: Broadcast, until: float, taking: asyncio.Lock) -> tuple[int, bool]:
        """Send to one recipient after the other; return how many, and whether there are no more."""
        content, sent = Content.load(broadcast), 0
        while _now() < until:
            async with taking:  # recipients are taken one by one; the lock spares failed attempts
                found = await self._store.next_recipient(broadcast.id)
            if found is None:
                return sent, True
            sent += await self._send(broadcast, content, found)
        return sent, False

    async def _keep_showing(self, broadcast_id: int) -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            await self._show_progress(broadcast_id)

    async def _send(self, broadcast: Broadcast, content: Content, recipient: Recipient) -> bool:
        """Send to a user at most once. False: it was certainly not sent, and the user can be taken again."""
        chat = Address.parse(recipient.address).chat if recipient.address else None
        if chat is None or recipient.token > TAKES_MAX:
            await self._store.count_broadcast_message(broadcast.id, recipient, BroadcastOutcome.FAILED)
            return True
        if not await self._take_permit(broadcast, chat, recipient):
            return False
        return await uninterrupted(self._send_and_count(broadcast, content, chat, recipient))

    async def _send_and_count(self, broadcast: Broadcast, content: Content, chat: int, recipient: Recipient) -> bool:
        outcome = await self._send_once(broadcast, content, chat, recipient)
        if outcome is not None:
            await self._store.count_broadcast_message(broadcast.id, recipient, outcome)
        return outcome is not None

    async def _send_once(
        self, broadcast: Broadcast, content: Content, chat: int, recipient: Recipient
    ) -> BroadcastOutcome | None:
        if not await self._store.begin_broadcast_message(broadcast.id, recipient):
            return None
        try:
            await content.send(self._bundle.caller, chat, None)
        except ChannelBusy as busy:
            await self._give_back(broadcast, recipient, busy)
            return None
        except ChannelError as error:
            if isinstance(error, RecipientUnreachable):
                await self._store.set_blocked(recipient.account_id, blocked=True)
            unknown = isinstance(error, ChannelOutcomeUnknown)
            return BroadcastOutcome.UNKNOWN if unknown else BroadcastOutcome.FAILED
        return BroadcastOutcome.SENT

    async def _take_permit(self, broadcast: Broadcast, chat: int, recipient: Recipient) -> bool:
        """Wait for the permit to write to a chat; False if the broadcast was stopped or the chat must wait longer."""
        until = _now() + PERMIT_WAIT_SECONDS
        while True:
            try:
                await self._bundle.caller.take_permit(chat, Priority.PROGRESS)
            except ChannelBusy as busy:
                if _now() + STOP_CHECK_SECONDS > until:
                    await self._give_back(broadcast, recipient, busy)
                    return False
                if not await self._is_running(broadcast):
                    return False
                await asyncio.sleep(min(busy.after, STOP_CHECK_SECONDS))
            else:
                return True

    async def _give_back(self, broadcast: Broadcast, recipient: Recipient, busy: ChannelBusy) -> None:
        """Let a recipient be taken again, later each time: an outage of Telegram must not use up all tries."""
        await self._store.return_recipient(broadcast.id, recipient, max(busy.after, 2.0**recipient.token))

    async def _is_running(self, broadcast: Broadcast) -> bool:
        now = await self._store.broadcast(broadcast.id)
        return now is not None and now.state is BroadcastState.RUNNING

    async def _show_progress(self, broadcast_id: int) -> None:
        """Update the operator's message. Progress that cannot be shown is left out; the end is tried again."""
        for _ in range(END_TRIES):
            until = _now() + PROGRESS_VALID_SECONDS  # an instance that is paused here must not undo a later edit
            entry = await self._store.kv_get(f"{PROGRESS}{broadcast_id}", self._bundle.id)
            broadcast = await self._store.broadcast(broadcast_id)
            if entry is None or broadcast is None:
                return
            try:
                with calls_while(lambda: _now() < until):  # noqa: B023 - called inside the block
                    await self._edit_progress(json.loads(entry.value), broadcast)
            except ChannelBusy as busy:
                if broadcast.state is BroadcastState.RUNNING:
                    return
                await asyncio.sleep(min(busy.after, STOP_CHECK_SECONDS))
            except ChannelError:
                return  # the caller counts it
            else:
                return

    async def _edit_progress(self, location: Mapping[str, Any], broadcast: Broadcast) -> None:
        caller, screen = self._bundle.caller, progress(broadcast, self._bundle.texts.translator(location["language"]))
        await caller.call(
            caller.bot.edit_message_text,
            chat=location["chat"],
            priority=Priority.PROGRESS,
            message_id=location["message"],
            text=screen.text,
            parse_mode=ParseMode.HTML,
            reply_markup=keyboard(screen),
        )
