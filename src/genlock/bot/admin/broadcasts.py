"""A message to everybody: slowly, in the gaps that others leave, to nobody twice, and on after a crash."""

import asyncio
import json
import re
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any

from telegram import Message, MessageEntity
from telegram.constants import MessageEntityType, ParseMode

from genlock.bot.admin.campaign_screens import progress
from genlock.bot.chat_view import ChatView
from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.text import keyboard
from genlock.domain.broadcast import Broadcast, BroadcastState
from genlock.domain.errors import ChannelBusy, ChannelError, RecipientUnreachable
from genlock.i18n.translator import translator

#: how long one round works before it lets others look
ROUND_SECONDS = 20.0
PROGRESS_SECONDS = 3.0
#: how long one person's turn is waited for, and how often we look whether the broadcast was stopped meanwhile
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 2.0
#: an animation is a document, too, so it comes first
KINDS = ("animation", "photo", "video", "audio", "voice", "document")
#: what Telegram finds in any text by itself; everything else was chosen by whoever wrote
FOUND = frozenset({
    MessageEntityType.BOT_COMMAND, MessageEntityType.URL, MessageEntityType.EMAIL, MessageEntityType.MENTION,
    MessageEntityType.HASHTAG, MessageEntityType.CASHTAG, MessageEntityType.PHONE_NUMBER,
})  # fmt: skip
_COMMAND = re.compile(r"/admin(?:@\w+)?\s+broadcast\s*", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What is said: the operator's own words with their looks, and Telegram's number of a file if there is one."""

    text: str
    #: none: the words are Telegram's HTML, as the operator typed it
    entities: tuple[dict[str, Any], ...] = ()
    kind: str = ""
    file: str = ""

    @classmethod
    def of(cls, message: Message) -> "Content":
        """A message without the command it begins with."""
        words, entities = message.text or message.caption or "", message.entities or message.caption_entities
        cut = match.end() if (match := _COMMAND.match(words)) else 0  # the command is ASCII: as many units as letters
        kept = [part for one in entities if one.type not in FOUND and (part := _after(one, cut)) is not None]
        text = words[cut:] if kept else words[cut:].strip()
        for kind in KINDS:
            if found := getattr(message, kind):
                file = found[-1] if kind == "photo" else found
                return cls(text=text, entities=tuple(kept), kind=kind, file=file.file_id)
        return cls(text=text, entities=tuple(kept))

    @classmethod
    def load(cls, broadcast: Broadcast) -> "Content":
        if not broadcast.content:
            return cls(text=broadcast.text)
        said = json.loads(broadcast.content)
        return cls(**{**said, "entities": tuple(said["entities"])})

    def dump(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    async def send(self, caller: Caller, chat: int, priority: Priority) -> None:
        looks = [MessageEntity.de_json(one, caller.bot) for one in self.entities]
        how = {"parse_mode": ParseMode.HTML} if not looks else {}
        if not self.kind:
            arguments = {"text": self.text, "entities": looks or None}
            await caller.call(caller.bot.send_message, chat=chat, priority=priority, **arguments, **how)
            return
        arguments = {self.kind: self.file, "caption": self.text or None, "caption_entities": looks or None}
        method = getattr(caller.bot, f"send_{self.kind}")
        await caller.call(method, chat=chat, priority=priority, **arguments, **how)


def _after(entity: MessageEntity, cut: int) -> dict[str, Any] | None:
    """The part of an entity behind a place, counted from there."""
    begin, end = max(entity.offset, cut), entity.offset + entity.length
    return {**entity.to_dict(), "offset": begin - cut, "length": end - begin} if end > begin else None


class Broadcasts:
    def __init__(self, view: ChatView) -> None:
        self._view = view
        self._store = view.store

    async def show(self, chat: int, content: Content) -> None:
        """To one chat only, as everybody will see it. What is refused here would be refused everywhere."""
        await content.send(self._view.caller, chat, Priority.SCREEN)

    async def watched_at(self, broadcast_id: int, chat: int, message: int, language: str) -> None:
        """Where the operator sees how far it is."""
        place = json.dumps({"chat": chat, "message": message, "language": language})
        await self._store.kv_put(f"chat:broadcast:{broadcast_id}", place)

    async def stop(self) -> Broadcast | None:
        """Stop the one that is running; None if there is none."""
        running = await self._store.running_broadcast(str(self._view.caller.bot.id))
        if running is None or not await self._store.end_broadcast(running.id, BroadcastState.STOPPED):
            return None
        await self._show(running.id)
        return running

    async def round(self) -> int:
        """Go on with the broadcast that is running; any instance may, several at once do no harm."""
        broadcast = await self._store.running_broadcast(str(self._view.caller.bot.id))
        if broadcast is None:
            return 0
        until, shown, sent = monotonic() + ROUND_SECONDS, monotonic(), 0
        while monotonic() < until:
            found = await self._store.next_recipient(broadcast.id)
            if found is None:
                await self._store.end_broadcast(broadcast.id, BroadcastState.DONE)
                await self._show(broadcast.id)
                break
            person, _, outside = found
            arrived = await self._send(broadcast, person, int(outside))
            await self._store.count_broadcast_message(broadcast.id, sent=arrived)
            sent += 1
            if monotonic() - shown > PROGRESS_SECONDS:
                shown = monotonic()
                await self._show(broadcast.id)
        return sent

    async def _send(self, broadcast: Broadcast, person: int, chat: int) -> bool:
        """Once: what is provably not sent is tried again for a while, what may have been sent is not."""
        content, until = Content.load(broadcast), monotonic() + PATIENCE_SECONDS
        while True:
            try:
                await content.send(self._view.caller, chat, Priority.PROGRESS)
            except ChannelBusy as busy:
                if monotonic() + LOOK_SECONDS > until or not await self._runs(broadcast):
                    return False
                await asyncio.sleep(min(busy.after, LOOK_SECONDS))
            except RecipientUnreachable:
                await self._store.set_blocked(person, blocked=True)
                return False
            except ChannelError:
                return False
            else:
                return True

    async def _runs(self, broadcast: Broadcast) -> bool:
        now = await self._store.broadcast(broadcast.id)
        return now is not None and now.state is BroadcastState.RUNNING

    async def _show(self, broadcast_id: int) -> None:
        """Tell the operator how far it is; a failure to tell changes nothing."""
        fact, broadcast = (
            await self._store.kv_get(f"chat:broadcast:{broadcast_id}"),
            await self._store.broadcast(broadcast_id),
        )
        if fact is None or broadcast is None:
            return
        place = json.loads(fact.value)
        said = progress(broadcast, translator(place["language"]))
        try:
            await self._view.caller.call(
                self._view.caller.bot.edit_message_text,
                chat=place["chat"],
                priority=Priority.PROGRESS,
                message_id=place["message"],
                text=said.text,
                parse_mode=ParseMode.HTML,
                reply_markup=keyboard(said),
            )
        except ChannelError:
            return  # counted by the caller
