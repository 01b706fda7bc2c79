"""A message to everybody: slowly, in the gaps that others leave, to nobody twice, and on after a crash."""

import asyncio
import json
from time import monotonic

from telegram.constants import ParseMode

from genlock.bot.buttons import button
from genlock.bot.desk import Desk
from genlock.bot.tongue import Tongue, tongue
from genlock.domain.chat import Broadcast, BroadcastState
from genlock.domain.errors import ChannelBusy, ChannelError, ChatClosed
from genlock.telegram.calls import Priority
from genlock.telegram.text import keyboard
from genlock.telegram.words import Said

#: how long one round works before it lets others look
ROUND_SECONDS = 20.0
PROGRESS_SECONDS = 3.0
#: how long one person's turn is waited for, and how often we look whether the broadcast was stopped meanwhile
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 2.0


class Broadcasts:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._store = desk.store

    async def begin(self, text: str, *, author: str, key: str) -> Broadcast:
        return await self._store.begin_broadcast(text, author=author, request_key=key)

    async def watched_at(self, broadcast_id: int, chat: int, message: int, language: str) -> None:
        """Where the operator sees how far it is."""
        place = json.dumps({"chat": chat, "message": message, "language": language})
        await self._store.set_fact(f"chat:broadcast:{broadcast_id}", place)

    async def stop(self) -> Broadcast | None:
        """Stop the one that is running; None if there is none."""
        running = await self._store.running_broadcast()
        if running is None or not await self._store.end_broadcast(running.id, BroadcastState.STOPPED):
            return None
        await self._show(running.id)
        return running

    async def round(self) -> int:
        """Go on with the broadcast that is running; any instance may, several at once do no harm."""
        broadcast = await self._store.running_broadcast()
        if broadcast is None:
            return 0
        until, shown, sent = monotonic() + ROUND_SECONDS, monotonic(), 0
        while monotonic() < until:
            found = await self._store.reach_next(broadcast.id)
            if found is None:
                await self._store.end_broadcast(broadcast.id, BroadcastState.DONE)
                await self._show(broadcast.id)
                break
            person, _, outside = found
            arrived = await self._send(broadcast, person, int(outside))
            await self._store.count_broadcast(broadcast.id, sent=arrived)
            sent += 1
            if monotonic() - shown > PROGRESS_SECONDS:
                shown = monotonic()
                await self._show(broadcast.id)
        return sent

    async def _send(self, broadcast: Broadcast, person: int, chat: int) -> bool:
        """Once: what is provably not sent is tried again for a while, what may have been sent is not."""
        until = monotonic() + PATIENCE_SECONDS
        while True:
            try:
                await self._desk.caller.call(
                    self._desk.caller.bot.send_message,
                    chat=chat,
                    priority=Priority.PROGRESS,
                    text=broadcast.text,
                    parse_mode=ParseMode.HTML,
                )
            except ChannelBusy as busy:
                if monotonic() + LOOK_SECONDS > until or not await self._runs(broadcast):
                    return False
                await asyncio.sleep(min(busy.after, LOOK_SECONDS))
            except ChatClosed:
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
            await self._store.fact(f"chat:broadcast:{broadcast_id}"),
            await self._store.broadcast(broadcast_id),
        )
        if fact is None or broadcast is None:
            return
        place = json.loads(fact.value)
        said = progress(broadcast, tongue(place["language"]))
        try:
            await self._desk.caller.call(
                self._desk.caller.bot.edit_message_text,
                chat=place["chat"],
                priority=Priority.PROGRESS,
                message_id=place["message"],
                text=said.text,
                parse_mode=ParseMode.HTML,
                reply_markup=keyboard(said),
            )
        except ChannelError:
            return  # counted by the caller


def progress(broadcast: Broadcast, t: Tongue) -> Said:
    text = t.say(
        "admin.broadcast",
        number=broadcast.id,
        state=t.tag(f"admin.broadcast_{broadcast.state.value}"),
        sent=broadcast.sent,
        failed=broadcast.failed,
        total=broadcast.total,
    )
    if broadcast.state is not BroadcastState.RUNNING:
        return Said(text=text)
    return Said(text=text, buttons=((button(t.tag("admin.button_stop"), "adm", "stop"),),))
