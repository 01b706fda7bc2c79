"""Record that Telegram refuses the token or has frozen the bot, so that the leader raises an alarm."""

import asyncio

from genlock.domain.alarm import BOT_REFUSED_KEY
from genlock.domain.errors import ChannelError, StoreError
from genlock.domain.events import Event
from genlock.ports import KvStore, Observer

#: a refused bot fails every call; recording one of them in this time is enough
RECORD_SECONDS = 10.0


class BotRefusals:
    """Writes one entry, again and again while the refusals last: the alarm looks at its age."""

    def __init__(self, store: KvStore, observer: Observer) -> None:
        self._store = store
        self._observer = observer
        self._recorded_at = float("-inf")

    async def record(self, error: ChannelError) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._recorded_at < RECORD_SECONDS:
            return
        self._recorded_at = now
        try:
            await self._store.kv_put(BOT_REFUSED_KEY, type(error).__name__)
        except StoreError as failure:
            self._recorded_at = float("-inf")
            self._observer.event(Event.STAGE_ERROR, step="record bot refusal", error=str(failure))
