"""Requests to a web application in this process, without a server."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from starlette.types import ASGIApp


async def request(
    web: ASGIApp,
    path: str,
    body: bytes | Iterable[bytes] = b"",
    headers: Mapping[str, str] | None = None,
    method: str = "POST",
) -> tuple[int, bytes]:
    """Send a request; return the status and the body. `path` may be any text: it is percent-encoded."""
    raw = quote(path, safe="/.%~:@!$&'()*+,;=", errors="replace")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw),
        "raw_path": raw.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    chunks = [body] if isinstance(body, bytes) else list(body)
    incoming: list[dict[str, Any]] = [
        {"type": "http.request", "body": chunk, "more_body": place + 1 < len(chunks)}
        for place, chunk in enumerate(chunks)
    ] or [{"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await web(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
