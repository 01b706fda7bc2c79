"""Sources of updates: Telegram calls our webhook, or the leader polls getUpdates. Never both."""

import asyncio
import base64
import hashlib
import hmac
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any

from telegram import Bot, WebhookInfo
from telegram.error import Conflict, TimedOut

from genlock.channels.telegram.caller import Caller, Priority, bot_id
from genlock.channels.telegram.errors import BotFrozen, TokenRefused, classify_error
from genlock.channels.telegram.updates import read_update
from genlock.domain.errors import ChannelError, StoreError
from genlock.domain.events import Event
from genlock.domain.retry import backoff
from genlock.domain.update import NewUpdate
from genlock.ports import KvStore, Observer

#: the kinds of updates that the bot handles
ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "pre_checkout_query", "my_chat_member")
#: sent while a user types the bot's name and a text in any chat
INLINE_QUERY = "inline_query"
WEBHOOK_PATH = "/telegram/webhook"
CONNECTIONS = 40
POLL_SECONDS = 25
#: how often an instance checks whether it is the leader
LEADER_CHECK_SECONDS = 0.25
CONFLICT_SECONDS = 3.0
#: another program with the same token may change the webhook
WEBHOOK_CHECK_SECONDS = 300.0
RETRY_SECONDS = 5.0


def allowed_updates(*, inline: bool) -> tuple[str, ...]:
    """Return the kinds of updates to ask Telegram for."""
    return (*ALLOWED_UPDATES, INLINE_QUERY) if inline else ALLOWED_UPDATES


class Poller:
    """Polls getUpdates while this instance is the leader.

    The next request confirms the updates of the last one, so only stored updates are confirmed.
    """

    def __init__(
        self,
        caller: Caller,
        *,
        receive: Callable[[NewUpdate], Awaitable[Any]],
        is_active: Callable[[], bool],
        observer: Observer,
        allowed: Sequence[str] = ALLOWED_UPDATES,
    ) -> None:
        self._caller = caller
        self._bot_id = bot_id(caller.bot.token)
        self._receive = receive
        self._is_active = is_active
        self._observer = observer
        self._allowed = list(allowed)
        self._offset: int | None = None
        self._failures = 0

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            while not self._is_active():  # noqa: ASYNC110 - leadership is a lease, it sends no signal
                await asyncio.sleep(LEADER_CHECK_SECONDS)
            self._observer.event(Event.POLLING, bot=self._bot_id)
            work = asyncio.create_task(self._poll())
            try:
                while self._is_active():
                    await asyncio.wait([work], timeout=LEADER_CHECK_SECONDS)
                    if work.done():
                        work.result()
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def _poll(self) -> None:
        webhook_removed = False
        while True:
            try:
                if not webhook_removed:
                    await self._remove_webhook()
                    webhook_removed = True
                await self._fetch()
                self._failures = 0
            except Conflict as conflict:
                webhook_removed = "webhook" not in str(conflict)
                self._observer.event(Event.POLL_CONFLICT, reason=str(conflict))
                await asyncio.sleep(CONFLICT_SECONDS if webhook_removed else 0.0)
            except Exception as error:  # noqa: BLE001 - polling continues after any error
                await self._fail(error)

    async def _remove_webhook(self) -> None:
        """Remove the webhook: getUpdates fails while one is set. Pending updates are kept."""
        info = await self._caller.call(self._caller.bot.get_webhook_info, chat=None, priority=Priority.RESULT)
        if info.url:
            await self._caller.call(
                self._caller.bot.delete_webhook, chat=None, priority=Priority.RESULT, drop_pending_updates=False
            )
            self._observer.event(Event.WEBHOOK_REMOVED, bot=self._bot_id, pending=info.pending_update_count)

    async def _fetch(self) -> None:
        try:
            updates = await _get_updates(self._caller.bot, self._offset, self._allowed)
        except TimedOut:
            return  # the updates of a lost answer come again
        stored = await asyncio.gather(*(self._store_update(update) for update in updates))
        self._offset = max((update_id + 1 for update_id in stored if update_id is not None), default=self._offset)

    async def _store_update(self, update: Any) -> int | None:
        """Store an update and return its id. An update that cannot be stored is dropped; None if it has no id."""
        update_id: int | None = None
        try:
            update_id = read_update(self._bot_id, update, "").update_id
            await self._receive(read_update(self._bot_id, update, json.dumps(update)))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad update must not block all others
            reason = f"{type(error).__name__}: {error}"[:200]
            self._observer.event(Event.UPDATE_REFUSED, update=update_id, reason=reason)
        return update_id

    async def _fail(self, error: Exception) -> None:
        cause = error if isinstance(error, StoreError) else classify_error(error)
        self._observer.event(_event_for(cause), step="poll updates", error=f"{type(cause).__name__}: {cause}")
        self._observer.count("stage_errors", 1, state="poll updates")
        await self._caller.report_bot_refusal(cause)
        most = 60.0 if isinstance(cause, TokenRefused | BotFrozen) else 15.0
        await asyncio.sleep(backoff(self._failures, random.random(), base=0.5, most=most))  # noqa: S311 - spreads only
        self._failures += 1


async def _get_updates(bot: Bot, offset: int | None, allowed: list[str]) -> list[Any]:
    """Return the updates as raw JSON: one update that the library cannot parse would fail the whole batch."""
    parameters = {"offset": offset, "limit": 100, "timeout": POLL_SECONDS, "allowed_updates": allowed}
    updates = await bot._post("getUpdates", parameters, read_timeout=POLL_SECONDS + 10.0)  # noqa: SLF001 - raw JSON
    return updates if isinstance(updates, list) else []


def update_secret(token: str) -> str:
    """Return the secret that Telegram sends with each update. It is derived from the bot's token and stored nowhere."""
    digest = hmac.new(token.encode(), b"genlock: secret of the Telegram webhook", hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class UpdateSecrets:
    """The secrets that an update may carry: the derived one, and for a while the one of an earlier version.

    Earlier versions stored a random secret in the database. While instances of both versions run, Telegram may send
    either. The stored one is deleted, and refused, once the webhook has been registered with the derived one for some
    minutes.
    """

    def __init__(self, store: KvStore, token: str, hide: Callable[[str], None]) -> None:
        self.derived = update_secret(token)
        self._store = store
        self._key = f"webhook_secret:{bot_id(token)}"
        self._stored: str | None = None
        self._hide = hide
        hide(self.derived)

    async def read(self) -> None:
        """Read the stored secret of an earlier version, if there is still one."""
        entry = await self._store.kv_get(self._key)
        self._stored = None if entry is None else entry.value
        if self._stored is not None:
            self._hide(self._stored)

    async def retire_stored(self) -> None:
        """Delete the stored secret: the webhook is registered with the derived one."""
        if self._stored is not None:
            await self._store.kv_delete(self._key)
            self._stored = None

    def accepts(self, secret: str) -> bool:
        known = (self.derived, self._stored or self.derived)
        return any([hmac.compare_digest(secret.encode("latin-1", "replace"), expected.encode()) for expected in known])  # noqa: C419 - compares both


class WebhookRegistrar:
    """Keeps the webhook registered at Telegram while this instance is the leader. Pending updates are never dropped."""

    def __init__(
        self,
        caller: Caller,
        store: KvStore,
        *,
        public_url: str,
        secrets: UpdateSecrets,
        is_active: Callable[[], bool],
        observer: Observer,
        allowed: Sequence[str] = ALLOWED_UPDATES,
    ) -> None:
        self._caller = caller
        self._store = store
        self._url = f"{public_url}{WEBHOOK_PATH}"
        self._secrets = secrets
        self._is_active = is_active
        self._observer = observer
        self._allowed = list(allowed)
        self._key = f"webhook:{bot_id(caller.bot.token)}"

    async def run(self) -> None:
        """Check the registration periodically until cancelled."""
        checked, was_active = float("-inf"), False
        while True:
            active = self._is_active()
            was_active = was_active and active
            if monotonic() - checked > WEBHOOK_CHECK_SECONDS or active != was_active:
                try:
                    await self._check(active)
                    checked, was_active = monotonic(), active
                except Exception as error:  # noqa: BLE001 - tried again
                    self._observer.event(_event_for(error), step="webhook", error=f"{type(error).__name__}: {error}")
                    await asyncio.sleep(RETRY_SECONDS)
            await asyncio.sleep(LEADER_CHECK_SECONDS)

    async def _check(self, active: bool) -> None:  # noqa: FBT001 - the caller's own state
        if active and not await self.ensure():
            await self._secrets.retire_stored()
        elif not active:
            await self._secrets.read()

    async def ensure(self) -> bool:
        """Register the webhook if its settings differ; return whether it was registered."""
        info = await self._caller.call(self._caller.bot.get_webhook_info, chat=None, priority=Priority.RESULT)
        stored = await self._store.kv_get(self._key)
        if self._is_registered(info) and stored is not None and stored.value == self._fingerprint:
            return False
        await self._caller.call(
            self._caller.bot.set_webhook,
            chat=None,
            priority=Priority.RESULT,
            url=self._url,
            secret_token=self._secrets.derived,
            allowed_updates=self._allowed,
            max_connections=CONNECTIONS,
            drop_pending_updates=False,
        )
        await self._store.kv_put(self._key, self._fingerprint)
        self._observer.event(Event.WEBHOOK_SET, url=self._url, pending=info.pending_update_count)
        return True

    def _is_registered(self, info: WebhookInfo) -> bool:
        return info.url == self._url and set(info.allowed_updates or ()) == set(self._allowed)

    @property
    def _fingerprint(self) -> str:
        """A hash of all settings: Telegram does not return the secret, so a change of it shows only here."""
        settings = "\n".join((self._url, *self._allowed, str(CONNECTIONS), self._secrets.derived))
        return hashlib.sha256(settings.encode()).hexdigest()[:32]


def _event_for(error: Exception) -> Event:
    return Event.CHANNEL_UNREACHABLE if isinstance(error, ChannelError) else Event.STAGE_ERROR
