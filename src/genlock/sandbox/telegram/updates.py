"""Pending updates for the bot, which fetches them with getUpdates or receives them at its webhook."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from genlock.sandbox.telegram.api_call import ApiError, CallArguments, Upload, bad_request
from genlock.sandbox.telegram.events import Events
from genlock.sandbox.telegram.links import LinkRefused, split_url
from genlock.sandbox.telegram.webhook import RunCall, Webhook

POLL_SECONDS_MAX = 50
CONFLICT_SECONDS = 3.0
REPEATED_POLL_SECONDS = 3.0
OTHER_POLL = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)
#: kinds that are only sent if `allowed_updates` names them
OPT_IN_KINDS = {"chat_member", "message_reaction", "message_reaction_count"}
#: seconds after which an update is dropped
EXPIRE = {"callback_query": 150, "pre_checkout_query": 150, "shipping_query": 150, "inline_query": 30}
EXPIRE_OTHERS = 86_400
SECRET = re.compile(r"[A-Za-z0-9_-]+")
SECRET_MAX = 256


@dataclass(kw_only=True)
class Update:
    id: int
    kind: str
    payload: dict[str, Any]
    #: ordering key: updates of one queue are delivered one after the other
    queue: str
    expires: float

    def as_json(self) -> dict[str, Any]:
        return {"update_id": self.id, self.kind: self.payload}


class Updates:
    def __init__(self, events: Events, rng: Random, speed: float, clock: Callable[[], float]) -> None:
        self._events = events
        self._speed = speed
        self._clock = clock
        self.last_id = rng.randrange(100_000_000, 900_000_000)
        self.pending: dict[int, Update] = {}
        self.allowed: list[str] = []
        self.webhook: Webhook | None = None
        #: executes a Bot API call that the bot returned in its webhook response
        self.run_call: RunCall | None = None
        #: called with the chat in which a user wrote or tapped
        self.note_action: Callable[[int], None] | None = None
        self._arrived = asyncio.Event()
        self._poll: asyncio.Future[str] | None = None
        self._conflict_until = 0.0
        self._last_poll: tuple[int, float] = (-1, 0.0)

    async def close(self) -> None:
        if self.webhook:
            await self.webhook.close()

    def add(self, kind: str, payload: dict[str, Any], queue: str) -> None:
        if not self._wanted(kind):
            return
        self.last_id += 1
        expires = self._clock() + EXPIRE.get(kind, EXPIRE_OTHERS)
        update = Update(id=self.last_id, kind=kind, payload=payload, queue=queue, expires=expires)
        self.pending[update.id] = update
        self._events.add("update", update=update.as_json())
        self._arrived.set()
        chat = (payload.get("message") or payload).get("chat")
        if self.note_action is not None and isinstance(chat, dict):
            self.note_action(chat["id"])
        if self.webhook:
            self.webhook.take(update)

    def _wanted(self, kind: str) -> bool:
        return kind in self.allowed if self.allowed else kind not in OPT_IN_KINDS

    def remove(self, update: Update) -> None:
        self.pending.pop(update.id, None)
        self._events.wake()

    def note_failure(self) -> None:
        self._events.wake()

    def _remove_expired(self) -> None:
        now = self._clock()
        self._retain(lambda update: update.expires > now)

    def _allow(self, arguments: CallArguments) -> None:
        asked = arguments.json("allowed_updates", "allowed_updates")
        if isinstance(asked, list):
            self.allowed = [str(kind) for kind in asked]

    # getUpdates

    async def get(self, arguments: CallArguments) -> list[dict[str, Any]]:
        if self.webhook:
            raise await self._conflict(WEBHOOK_ACTIVE)
        loop = asyncio.get_running_loop()
        offset, limit, timeout = self._asked(arguments, loop.time())
        self._allow(arguments)
        self._end_poll(OTHER_POLL)
        mine: asyncio.Future[str] = loop.create_future()
        self._poll = mine
        self._events.wake()
        deadline = loop.time() + timeout
        try:
            while not (found := self._take(offset)[:limit]) and loop.time() < deadline:
                self._arrived = asyncio.Event()
                arrived = loop.create_task(self._arrived.wait())
                both: list[asyncio.Future[Any]] = [arrived, mine]
                await asyncio.wait(both, timeout=deadline - loop.time(), return_when="FIRST_COMPLETED")
                arrived.cancel()
                if mine.done():
                    raise await self._conflict(mine.result())
            return [update.as_json() for update in found]
        finally:
            if self._poll is mine:
                self._poll = None

    def _asked(self, arguments: CallArguments, now: float) -> tuple[int, int, float]:
        """Offset, limit and time-out. Quick repeats with the same offset are slowed down, as by the real server."""
        offset = arguments.number("offset")
        limit = min(max(arguments.number("limit", 100), 1), 100)
        timeout: float = min(max(arguments.number("timeout"), 0), POLL_SECONDS_MAX)
        last_offset, last_at = self._last_poll
        if offset == last_offset and now < last_at + REPEATED_POLL_SECONDS / self._speed:
            timeout = max(timeout, REPEATED_POLL_SECONDS / self._speed)
            limit = 1 if now < last_at + 0.5 / self._speed else limit
        self._last_poll = (offset, now)
        return offset, limit, timeout

    def _take(self, offset: int) -> list[Update]:
        """Updates from `offset` on. Earlier ones are confirmed and removed; a negative offset keeps the last ones."""
        self._remove_expired()
        if offset < 0:
            offset = next(iter(list(self.pending)[offset:]), 0)
        self._retain(lambda update: update.id >= offset)
        return list(self.pending.values())

    def _retain(self, keep: Callable[[Update], bool]) -> None:
        self.pending = {number: update for number, update in self.pending.items() if keep(update)}
        self._events.wake()

    def _end_poll(self, reason: str) -> None:
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(reason)

    async def _conflict(self, text: str) -> ApiError:
        """Return the conflict error: at once the first time, repeated ones three seconds late."""
        now = asyncio.get_running_loop().time()
        if now < self._conflict_until:
            await asyncio.sleep(CONFLICT_SECONDS / self._speed)
        else:
            self._conflict_until = now + CONFLICT_SECONDS / self._speed
        return ApiError(409, text)

    # webhook

    async def set_webhook(self, arguments: CallArguments) -> str:
        """Set the webhook; return the description for the answer."""
        url, secret = arguments.text("url"), arguments.text("secret_token")
        if not url:
            return await self.delete_webhook(arguments)
        if not url.startswith(("http://", "https://")):
            raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
        try:
            _, _, host, _, _ = split_url(url)
        except LinkRefused:
            raise bad_request("invalid webhook URL specified") from None
        if len(secret) > SECRET_MAX:
            raise bad_request("secret token is too long")
        if secret and not SECRET.fullmatch(secret):
            raise bad_request("secret token contains unallowed characters")
        connections = min(max(arguments.number("max_connections", 40), 1), 100)
        self._allow(arguments)
        if arguments.flag("drop_pending_updates"):
            self.pending.clear()
        ip = arguments.text("ip_address") or _local_address(host)
        certified = isinstance(arguments.media("certificate"), Upload)
        same = self.webhook is not None and self.webhook.settings == (url, secret, connections, ip, False)
        if same and not certified and not arguments.flag("drop_pending_updates"):
            return "Webhook is already set"
        await self.close()
        self._end_poll("Conflict: terminated by setWebhook request")
        self.webhook = Webhook(
            url=url,
            secret=secret,
            connections=connections,
            ip=ip,
            certified=certified,
            speed=self._speed,
            updates=self,
            clock=self._clock,
        )
        for update in self.pending.values():
            self.webhook.take(update)
        return "Webhook was set"

    async def delete_webhook(self, arguments: CallArguments) -> str:
        if arguments.flag("drop_pending_updates"):
            self.pending.clear()
        if not self.webhook:
            return "Webhook is already deleted"
        await self.close()
        self.webhook = None
        return "Webhook was deleted"

    def webhook_info(self) -> dict[str, Any]:
        self._remove_expired()
        info: dict[str, Any] = {"url": "", "has_custom_certificate": False, "pending_update_count": len(self.pending)}
        if self.webhook:
            info |= self.webhook.as_json()
        return info | ({"allowed_updates": self.allowed} if self.allowed else {})


def _local_address(host: str) -> str:
    """Return the address of a host on this machine. Other names are not resolved: that would leave the machine."""
    return "127.0.0.1" if host in {"localhost", "127.0.0.1"} else ""
