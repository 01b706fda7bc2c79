"""The endpoint for Telegram's updates: check the secret and the size, store the update, answer 200."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from genlock.channels.telegram.updates import read_update
from genlock.domain.errors import StoreError
from genlock.domain.events import Event
from genlock.domain.update import NewUpdate
from genlock.engine.updates import UpdateWorker
from genlock.ports import Observer
from genlock.web.requests import BodyMemory, IncomingBody, RequestRefused, answer, body_too_large, refusal

UPDATE_BYTES_MAX = 1_000_000
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the name of a header


@dataclass(frozen=True, kw_only=True)
class TelegramEndpoint:
    updates: UpdateWorker
    observer: Observer
    path: str
    bot_id: str
    #: whether Telegram sends this secret with updates
    is_secret: Callable[[str], bool]
    memory: BodyMemory = field(default_factory=BodyMemory)

    async def receive(self, request: Request) -> Response:
        try:
            with IncomingBody(request, self.memory) as incoming:
                self._check_secret(request)
                incoming.authenticate()
                await self.updates.receive(await self._read(incoming))
        except RequestRefused as refused:
            self.observer.event(Event.UPDATE_REFUSED, status=refused.status, reason=refused.reason)
            return refusal(refused)
        except StoreError as error:  # the update is not stored: Telegram must send it again
            self.observer.event(Event.STAGE_ERROR, step="telegram endpoint", error=repr(error))
            return answer(503, "try again later")
        except Exception as error:  # noqa: BLE001 - Telegram would repeat it without end and hold back all others
            self.observer.event(Event.UPDATE_REFUSED, status=200, reason=repr(error)[:200])
        return Response(status_code=200)

    def _check_secret(self, request: Request) -> None:
        if not self.is_secret(request.headers.get(SECRET_HEADER, "")):
            raise RequestRefused(401, "the secret is missing or wrong")

    async def _read(self, incoming: IncomingBody) -> NewUpdate:
        body = await incoming.read(UPDATE_BYTES_MAX)
        if body is None:
            raise body_too_large()
        try:
            text = body.decode()
            return read_update(self.bot_id, json.loads(text), text)
        except (ValueError, RecursionError) as error:
            raise RequestRefused(400, f"this is not an update: {error}"[:200]) from None
