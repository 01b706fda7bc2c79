"""Replicate's callback signatures: the Standard Webhooks scheme, HMAC-SHA256 with the account's secret."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"
WINDOW_SECONDS = 300
PREFIX = "whsec_"
_DIGITS_MAX = 12
_SIGNATURES_MAX = 10


def read_secret(text: object) -> bytes | None:
    """Return the key of a secret as Replicate shows it; None if it is not one."""
    if not isinstance(text, str) or not text.startswith(PREFIX):
        return None
    try:
        return base64.b64decode(text.removeprefix(PREFIX), validate=True) or None
    except binascii.Error:
        return None


def is_recent(headers: Mapping[str, str], now: float) -> bool:
    """Tell whether a callback says that it was signed within the last minutes."""
    timestamp = headers.get(TIMESTAMP, "")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _DIGITS_MAX):
        return False
    return abs(now - int(timestamp)) <= WINDOW_SECONDS


def is_signed(headers: Mapping[str, str], body: bytes, key: bytes) -> bool:
    """Tell whether a callback was signed with the key."""
    signed = f"{headers.get(ID, '')}.{headers.get(TIMESTAMP, '')}.".encode(errors="replace") + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    given = headers.get(SIGNATURE, "").split(" ")[:_SIGNATURES_MAX]
    return any(
        hmac.compare_digest(expected, signature.removeprefix("v1,").encode(errors="replace"))
        for signature in given
        if signature.startswith("v1,")
    )
