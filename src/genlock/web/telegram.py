"""The endpoint for Telegram's updates: check the secret and the size, store the update, answer 200."""

import hmac
import json
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from genlock.channels.telegram.updates import read_update
from genlock.domain.errors import StoreError
from genlock.domain.events import Event
from genlock.domain.update import NewUpdate
from genlock.engine.updates import UpdateWorker
from genlock.ports import Observer
from genlock.web.requests import RequestRefused, answer, read_body

UPDATE_BYTES_MAX = 1_000_000
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the name of a header


@dataclass(frozen=True, kw_only=True)
class TelegramEndpoint:
    updates: UpdateWorker
    observer: Observer
    path: str
    bot_id: str
    secret: str

    async def receive(self, request: Request) -> Response:
        try:
            await self.updates.receive(await self._read(request))
        except RequestRefused as refused:
            self.observer.event(Event.UPDATE_REFUSED, status=refused.status, reason=refused.reason)
            return answer(refused.status, refused.reason)
        except StoreError as error:  # the update is not stored: Telegram must send it again
            self.observer.event(Event.STAGE_ERROR, step="telegram endpoint", error=repr(error))
            return answer(503, "try again later")
        except Exception as error:  # noqa: BLE001 - Telegram would repeat it for ever and hold back all others
            self.observer.event(Event.UPDATE_REFUSED, status=200, reason=repr(error)[:200])
        return Response(status_code=200)

    async def _read(self, request: Request) -> NewUpdate:
        secret = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(secret.encode("latin-1"), self.secret.encode()):
            raise RequestRefused(401, "the secret is missing or wrong")
        body = await read_body(request, UPDATE_BYTES_MAX)
        try:
            text = body.decode()
            return read_update(self.bot_id, json.loads(text), text)
        except (ValueError, RecursionError) as error:
            raise RequestRefused(400, f"this is not an update: {error}"[:200]) from None
