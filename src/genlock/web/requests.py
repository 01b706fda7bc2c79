"""Read request bodies within limits of size and time, and answer in the form that providers expect."""

import asyncio

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

BODY_SECONDS_MAX = 15


class RequestRefused(Exception):
    """The request is answered with an error status and nothing is stored."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def body_too_large() -> RequestRefused:
    return RequestRefused(413, "the body is too large")


async def read_body(request: Request, bytes_max: int) -> bytes:
    """Return the body if it has at most `bytes_max` bytes; never hold more than that. Raises RequestRefused."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > len(str(bytes_max)) or int(declared) > bytes_max):
        raise body_too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            async for chunk in request.stream():
                body += chunk
                if len(body) > bytes_max:
                    raise body_too_large()
    except ClientDisconnect:
        raise RequestRefused(400, "the body is incomplete") from None
    except TimeoutError:
        raise RequestRefused(408, "the body took too long") from None
    return bytes(body)


def answer(status: int, text: str) -> Response:
    """Answer with a JSON body of the form that Kie.ai also uses for its own answers."""
    return JSONResponse({"code": status, "msg": text}, status)
