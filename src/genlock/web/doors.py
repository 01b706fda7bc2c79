"""The doors for callbacks: check the size and the signature, keep the bytes, say 200, whatever they say."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from genlock.domain.events import Event
from genlock.engine.engine import Engine

BODY_BYTES_MAX = 1_000_000
BODY_SECONDS_MAX = 15
#: whether a callback comes from the provider, by its headers and body
Check = Callable[[Mapping[str, str], bytes], bool]


class _TooLarge(Exception):
    """There is more of this body than anybody keeps."""


@dataclass(frozen=True, kw_only=True)
class CallbackDoor:
    """One provider's callbacks: `/callbacks/NAME/TOKEN` for those we asked for, `/callbacks/NAME` for hints."""

    engine: Engine
    provider: str
    #: without it whoever has the address is believed
    check: Check | None = None

    def routes(self) -> list[Route]:
        path = f"/callbacks/{self.provider}"
        return [
            Route(path, self.receive, methods=["POST"]),
            Route(f"{path}/{{token:path}}", self.receive, methods=["POST"]),
        ]

    async def receive(self, request: Request) -> Response:
        try:
            async with asyncio.timeout(BODY_SECONDS_MAX):
                body = await read_body(request, BODY_BYTES_MAX)
        except _TooLarge:
            return self._refuse(413, "the body is too large")
        except ClientDisconnect:
            return answer(400, "the body broke off")
        except TimeoutError:
            return answer(408, "the body took too long")
        if self.check is not None and not self.check(request.headers, body):
            return self._refuse(401, "the signature is missing, wrong or too old")
        return await self._keep(request.path_params.get("token"), body)

    def _refuse(self, status: int, reason: str) -> Response:
        """The operator should know: a wrong key refuses every callback there is."""
        self.engine.kit.observer.event(Event.CALLBACK_REFUSED, provider=self.provider, status=status, reason=reason)
        return answer(status, reason)

    async def _keep(self, token: str | None, body: bytes) -> Response:
        """Only what is kept is acknowledged: anything else makes the provider call again."""
        try:
            await self.engine.callback(self.provider, token if token is None or token.isascii() else "", body)
        except Exception as error:  # noqa: BLE001 - whatever it was, the callback is not in the inbox
            self.engine.kit.observer.event(Event.STAGE_ERROR, step="callback door", error=repr(error))
            return answer(503, "try again later")
        return answer(200, "success")


async def read_body(request: Request, most: int) -> bytes:
    """The body, if it has at most so many bytes; no more than that is ever held."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > len(str(most)) or int(declared) > most):
        raise _TooLarge
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise _TooLarge
    return bytes(body)


def answer(status: int, text: str) -> Response:
    """In the provider's own form."""
    return JSONResponse({"code": status, "msg": text}, status)
