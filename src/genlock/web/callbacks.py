"""The doors for callbacks: check the size and the signature, keep the bytes, say 200, whatever they say."""

import asyncio
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from genlock.domain.events import Event
from genlock.domain.job import hash_secret
from genlock.engine.collect import TooManyUnauthenticated, read_token
from genlock.engine.engine import Engine
from genlock.ports.provider import VerifyCallback

BODY_BYTES_MAX = 1_000_000
#: from somebody whom nothing but the address vouches for, and not even that
STRANGER_BYTES_MAX = 64_000
BODY_SECONDS_MAX = 15
#: whether a callback comes from the provider, by its headers and body
Check = VerifyCallback


class Refused(Exception):
    """This is not taken in."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def _too_large() -> Refused:
    return Refused(413, "the body is too large")


@dataclass(frozen=True, kw_only=True)
class CallbackEndpoint:
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
            token, body = await self._read(request)
            # Only what is kept is acknowledged: anything else makes the provider call again.
            await self._keep(token, body)
        except Refused as refused:
            # The operator should know: a wrong key refuses every callback there is.
            status, reason = refused.status, refused.reason
            self.engine.ctx.observer.event(Event.CALLBACK_REFUSED, provider=self.provider, status=status, reason=reason)
            self.engine.ctx.observer.count("callbacks", 1, outcome="refused")
            return answer(status, reason)
        except Exception as error:  # noqa: BLE001 - whatever it was, the callback is not in the inbox
            self.engine.ctx.observer.event(Event.STAGE_ERROR, step="callback door", error=repr(error))
            return answer(503, "try again later")
        return answer(200, "success")

    async def _read(self, request: Request) -> tuple[str | None, bytes]:
        token = request.path_params.get("token")
        token = token if token is None or token.isascii() else ""
        most = STRANGER_BYTES_MAX if self.check is None and read_token(token)[0] is None else BODY_BYTES_MAX
        body = await read_body(request, most)
        if self.check is not None and not await self.check(request.headers, body):
            raise Refused(401, "the signature is missing, wrong or too old")
        if self.check is None and len(body) > STRANGER_BYTES_MAX and not await self._is_known(token):
            raise _too_large()
        return token, body

    async def _keep(self, token: str | None, body: bytes) -> None:
        try:
            await self.engine.callback(self.provider, token, body, authenticated=self.check is not None)
        except TooManyUnauthenticated:
            raise Refused(429, "too many callbacks of nobody's; try again later") from None

    async def _is_known(self, token: str | None) -> bool:
        """Whether a job has this secret. Asked only for bodies that are too large for a stranger."""
        job_id, secret = read_token(token)
        return job_id is not None and await self.engine.ctx.store.is_secret(job_id, self.provider, hash_secret(secret))


async def read_body(request: Request, most: int) -> bytes:
    """The body, if it has at most so many bytes; no more than that is ever held. Raises Refused."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > len(str(most)) or int(declared) > most):
        raise _too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise _too_large()
    except ClientDisconnect:
        raise Refused(400, "the body broke off") from None
    except TimeoutError:
        raise Refused(408, "the body took too long") from None
    return bytes(body)


def answer(status: int, text: str) -> Response:
    """In the provider's own form."""
    return JSONResponse({"code": status, "msg": text}, status)
