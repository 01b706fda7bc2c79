"""The endpoint for providers' callbacks: check the size and the signature, store the raw body, answer 200."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import time

from starlette.requests import Request
from starlette.responses import Response

from genlock.domain.events import Event
from genlock.domain.job import hash_secret
from genlock.engine.collect import read_token
from genlock.engine.engine import Engine
from genlock.engine.unauthenticated import TooManyUnauthenticated
from genlock.ports.provider import VerifyCallback
from genlock.web.requests import (
    SMALL_BODY_BYTES,
    BodyMemory,
    IncomingBody,
    RequestRefused,
    answer,
    body_too_large,
    refusal,
)

BODY_BYTES_MAX = 1_000_000
#: limit for a callback without a valid signature and without a job's secret
UNAUTHENTICATED_BYTES_MAX = SMALL_BODY_BYTES


@dataclass(frozen=True, kw_only=True)
class CallbackEndpoint:
    """Receives the callbacks of one provider. A callback without a job's secret is stored as untrusted."""

    engine: Engine
    provider: str
    #: None: the provider does not sign, and the secret in the URL is the only authentication
    verify: VerifyCallback | None = None
    #: whether other customers of the provider have callbacks with a valid signature, which they could send here, and
    #: again for minutes: then only the secret of a job authenticates
    shared_signature: bool = False
    #: seconds since 1970
    now: Callable[[], float] = time
    memory: BodyMemory = field(default_factory=BodyMemory)

    async def receive(self, request: Request) -> Response:
        observer = self.engine.ctx.observer
        try:
            with IncomingBody(request, self.memory) as incoming:
                token = request.path_params.get("token")
                token = token if token is None or token.isascii() else ""
                body = await self._read(incoming, token)
                # Acknowledge only what is stored: the provider repeats a callback that was not acknowledged.
                await self._store(request, token, body)
        except RequestRefused as refused:
            # Reported, because a wrong webhook key refuses every callback.
            status, reason = refused.status, refused.reason
            observer.event(Event.CALLBACK_REFUSED, provider=self.provider, status=status, reason=reason)
            observer.count("callbacks", 1, outcome="refused")
            return refusal(refused)
        except Exception as error:  # noqa: BLE001 - after any error the callback is not stored
            observer.event(Event.STAGE_ERROR, step="callback endpoint", error=repr(error))
            return answer(503, "try again later")
        return answer(200, "success")

    async def _read(self, incoming: IncomingBody, token: str | None) -> bytes:
        """Read the body. A large one is read only if its URL has a job's secret, or a signature may prove it later."""
        body = await incoming.read(UNAUTHENTICATED_BYTES_MAX)
        if body is None:
            if await self._has_secret(token):
                incoming.authenticate()
            elif self.verify is None:
                raise body_too_large()
            body = await incoming.read(BODY_BYTES_MAX)
        if body is None:
            raise body_too_large()
        return body

    async def _store(self, request: Request, token: str | None, body: bytes) -> None:
        authenticated = False
        if self.verify is not None:
            if not await self.verify(request.headers, body, self.now()):
                raise RequestRefused(401, "the signature is missing, wrong or too old")
            authenticated = not self.shared_signature
        try:
            await self.engine.callback(self.provider, token, body, authenticated=authenticated)
        except TooManyUnauthenticated:
            raise RequestRefused(429, "too many unauthenticated callbacks; try again later") from None

    async def _has_secret(self, token: str | None) -> bool:
        """Whether the token holds the secret of a job. Asked only for bodies over the unauthenticated limit."""
        job_id, secret = read_token(token)
        return job_id is not None and await self.engine.ctx.store.is_callback_secret(
            job_id, self.provider, hash_secret(secret)
        )
