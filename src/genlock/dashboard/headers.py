"""Headers of every answer: no other host is asked, no other page may frame us, nothing is cached by others."""

from starlette.types import Message, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
DEFAULTS = {
    b"content-security-policy": CONTENT_SECURITY_POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    # Other sites never learn an address of ours; with `no-referrer` browsers would not name the origin of a form.
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=()",
    b"cache-control": b"no-store",
}


def adding(send: Send) -> Send:
    """Return `send` that adds the headers an answer does not set itself."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            missing = [(name, text) for name, text in DEFAULTS.items() if name not in given]
            message["headers"] = [*message["headers"], *missing]
        await send(message)

    return send_with_headers
