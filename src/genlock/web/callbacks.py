"""The endpoint for providers' callbacks: check the size and the signature, store the raw body, answer 200."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from genlock.domain.events import Event
from genlock.domain.job import hash_secret
from genlock.engine.collect import TooManyUnauthenticated, read_token
from genlock.engine.engine import Engine
from genlock.web.requests import RequestRefused, answer, body_too_large, read_body

BODY_BYTES_MAX = 1_000_000
#: limit for a callback without a valid signature and without a job's secret
UNAUTHENTICATED_BYTES_MAX = 64_000
#: whether a callback comes from the provider, by its headers and body
Verify = Callable[[Mapping[str, str], bytes], Awaitable[bool]]


@dataclass(frozen=True, kw_only=True)
class CallbackEndpoint:
    """Receives the callbacks of one provider. A callback without a job's secret is stored as untrusted."""

    engine: Engine
    provider: str
    #: None: the provider does not sign, and the secret in the URL is the only authentication
    verify: Verify | None = None

    async def receive(self, request: Request) -> Response:
        observer = self.engine.ctx.observer
        try:
            token, body = await self._read(request)
            # Acknowledge only what is stored: the provider repeats a callback that was not acknowledged.
            await self._store(token, body)
        except RequestRefused as refused:
            # Reported, because a wrong webhook key refuses every callback.
            status, reason = refused.status, refused.reason
            observer.event(Event.CALLBACK_REFUSED, provider=self.provider, status=status, reason=reason)
            observer.count("callbacks", 1, outcome="refused")
            return answer(status, reason)
        except Exception as error:  # noqa: BLE001 - after any error the callback is not stored
            observer.event(Event.STAGE_ERROR, step="callback endpoint", error=repr(error))
            return answer(503, "try again later")
        return answer(200, "success")

    async def _read(self, request: Request) -> tuple[str | None, bytes]:
        token = request.path_params.get("token")
        token = token if token is None or token.isascii() else ""
        anonymous = self.verify is None and read_token(token)[0] is None
        body = await read_body(request, UNAUTHENTICATED_BYTES_MAX if anonymous else BODY_BYTES_MAX)
        if self.verify is not None and not await self.verify(request.headers, body):
            raise RequestRefused(401, "the signature is missing, wrong or too old")
        if self.verify is None and len(body) > UNAUTHENTICATED_BYTES_MAX and not await self._has_secret(token):
            raise body_too_large()
        return token, body

    async def _store(self, token: str | None, body: bytes) -> None:
        try:
            await self.engine.callback(self.provider, token, body, authenticated=self.verify is not None)
        except TooManyUnauthenticated:
            raise RequestRefused(429, "too many unauthenticated callbacks; try again later") from None

    async def _has_secret(self, token: str | None) -> bool:
        """Whether the token holds the secret of a job. Asked only for bodies over the unauthenticated limit."""
        job_id, secret = read_token(token)
        return job_id is not None and await self.engine.ctx.store.is_secret(job_id, self.provider, hash_secret(secret))
