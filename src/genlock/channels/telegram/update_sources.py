"""How updates come in: Telegram brings them to our webhook, or the active instance asks for them. Never both."""

import asyncio
import hashlib
import json
import random
import secrets
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

from telegram import Bot, WebhookInfo
from telegram.error import Conflict, TimedOut

from genlock.channels.telegram.caller import Caller, Priority, bot_id
from genlock.channels.telegram.errors import TokenRefused, sort
from genlock.channels.telegram.updates import read_update
from genlock.domain.errors import ChannelError, StoreError
from genlock.domain.events import Event
from genlock.domain.retry import backoff
from genlock.domain.update import NewUpdate
from genlock.ports import Observer, UpkeepStore

#: what we want to hear of; all else would be kept for nothing
ALLOWED = ("message", "edited_message", "callback_query", "pre_checkout_query", "my_chat_member")
WEBHOOK_PATH = "/telegram/webhook"
CONNECTIONS = 40
POLL_SECONDS = 25
#: how often a passive instance looks whether it is active now, and an active one whether it still is
WATCH_SECONDS = 0.25
CONFLICT_SECONDS = 3.0
#: Telegram does not forget a webhook, but somebody else with the token may change it
WEBHOOK_CHECK_SECONDS = 300.0
FAILED_SECONDS = 5.0


class Poller:
    """Asks for updates while this instance is active. Only what is kept is confirmed, by the next question."""

    def __init__(
        self,
        caller: Caller,
        *,
        take_in: Callable[[NewUpdate], Awaitable[Any]],
        is_active: Callable[[], bool],
        observer: Observer,
    ) -> None:
        self._caller = caller
        self._bot_id = bot_id(caller.bot.token)
        self._take_in = take_in
        self._is_active = is_active
        self._observer = observer
        self._offset: int | None = None
        self._failures = 0

    async def run(self) -> None:
        """For ever: whoever runs this ends it."""
        while True:
            while not self._is_active():  # noqa: ASYNC110 - the role is a lease, nobody tells us
                await asyncio.sleep(WATCH_SECONDS)
            self._observer.event(Event.POLLING, bot=self._bot_id)
            work = asyncio.create_task(self._poll())
            try:
                while self._is_active():
                    await asyncio.wait([work], timeout=WATCH_SECONDS)
                    if work.done():
                        work.result()
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def _poll(self) -> None:
        free = False
        while True:
            try:
                if not free:
                    await self._come_instead()
                    free = True
                await self._fetch()
                self._failures = 0
            except Conflict as conflict:
                free = "webhook" not in str(conflict)
                self._observer.event(Event.POLL_CONFLICT, reason=str(conflict))
                await asyncio.sleep(CONFLICT_SECONDS if free else 0.0)
            except Exception as error:  # noqa: BLE001 - whatever it was, the next question comes later
                await self._fail(error)

    async def _come_instead(self) -> None:
        """Telegram does not answer questions while a webhook is set. What waits there waits for us now."""
        info = await self._caller.call(self._caller.bot.get_webhook_info, chat=None, priority=Priority.RESULT)
        if info.url:
            await self._caller.call(
                self._caller.bot.delete_webhook, chat=None, priority=Priority.RESULT, drop_pending_updates=False
            )
            self._observer.event(Event.WEBHOOK_REMOVED, bot=self._bot_id, pending=info.pending_update_count)

    async def _fetch(self) -> None:
        try:
            said = await _ask(self._caller.bot, self._offset)
        except TimedOut:
            return  # an answer that was lost: what it brought comes again
        passed = await asyncio.gather(*(self._keep(one) for one in said))
        self._offset = max((number + 1 for number in passed if number is not None), default=self._offset)

    async def _keep(self, said: Any) -> int | None:
        """Its number, when it need not come again: it is kept, or nobody can keep it. None if it has no number."""
        number: int | None = None
        try:
            number = read_update(self._bot_id, said, "").update_id
            await self._take_in(read_update(self._bot_id, said, json.dumps(said)))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - its own fault: it must not keep out all others for ever
            self._observer.event(Event.UPDATE_REFUSED, update=number, reason=f"{type(error).__name__}: {error}"[:200])
        return number

    async def _fail(self, error: Exception) -> None:
        meaning = error if isinstance(error, StoreError) else sort(error)
        self._observer.event(_name(meaning), step="poll updates", error=f"{type(meaning).__name__}: {meaning}")
        self._observer.count("stage_errors", 1, state="poll updates")
        most = 60.0 if isinstance(meaning, TokenRefused) else 15.0
        await asyncio.sleep(backoff(self._failures, random.random(), base=0.5, most=most))  # noqa: S311 - spreads only
        self._failures += 1


async def _ask(bot: Bot, offset: int | None) -> list[Any]:
    """As `get_updates`, but as Telegram said it: one that the library cannot read would keep out all others."""
    asked = {"offset": offset, "limit": 100, "timeout": POLL_SECONDS, "allowed_updates": list(ALLOWED)}
    said = await bot._post("getUpdates", asked, read_timeout=POLL_SECONDS + 10.0)  # noqa: SLF001 - see above
    return said if isinstance(said, list) else []


async def webhook_secret(store: UpkeepStore, bot_id: str) -> str:
    """What Telegram shows at our door: made once, the same for all instances."""
    return await store.kv_put_if_absent(f"webhook_secret:{bot_id}", secrets.token_urlsafe(32))


class WebhookKeeper:
    """Tells Telegram where we are, if it does not know already. Updates that wait there are never dropped."""

    def __init__(
        self,
        caller: Caller,
        store: UpkeepStore,
        *,
        public_url: str,
        secret: str,
        is_active: Callable[[], bool],
        observer: Observer,
    ) -> None:
        self._caller = caller
        self._store = store
        self._url = f"{public_url}{WEBHOOK_PATH}"
        self._secret = secret
        self._is_active = is_active
        self._observer = observer
        self._key = f"webhook:{bot_id(caller.bot.token)}"

    async def run(self) -> None:
        """For ever: the active instance looks now and then."""
        checked = float("-inf")
        while True:
            if self._is_active() and monotonic() - checked > WEBHOOK_CHECK_SECONDS:
                try:
                    await self.ensure()
                    checked = monotonic()
                except Exception as error:  # noqa: BLE001 - Telegram may be away for a while
                    self._observer.event(_name(error), step="webhook", error=f"{type(error).__name__}: {error}")
                    await asyncio.sleep(FAILED_SECONDS)
            await asyncio.sleep(WATCH_SECONDS)

    async def ensure(self) -> bool:
        """Set the webhook if it is not as it should be; whether it was set."""
        info = await self._caller.call(self._caller.bot.get_webhook_info, chat=None, priority=Priority.RESULT)
        known = await self._store.kv_get(self._key)
        if self._is_right(info) and known is not None and known.value == self._print:
            return False
        await self._caller.call(
            self._caller.bot.set_webhook,
            chat=None,
            priority=Priority.RESULT,
            url=self._url,
            secret_token=self._secret,
            allowed_updates=list(ALLOWED),
            max_connections=CONNECTIONS,
            drop_pending_updates=False,
        )
        await self._store.kv_put(self._key, self._print)
        self._observer.event(Event.WEBHOOK_SET, url=self._url, pending=info.pending_update_count)
        return True

    def _is_right(self, info: WebhookInfo) -> bool:
        return info.url == self._url and set(info.allowed_updates or ()) == set(ALLOWED)

    @property
    def _print(self) -> str:
        """What was set, without the secret: Telegram does not tell it, and the address alone does not show a change."""
        said = "\n".join((self._url, *ALLOWED, str(CONNECTIONS), self._secret))
        return hashlib.sha256(said.encode()).hexdigest()[:32]


def _name(error: Exception) -> Event:
    return Event.CHANNEL_UNREACHABLE if isinstance(error, ChannelError) else Event.STAGE_ERROR
