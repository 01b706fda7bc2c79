"""fal's callback signatures: Ed25519 over the request id, the user id, the time and the hash of the body."""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

REQUEST_ID = "X-Fal-Webhook-Request-Id"
USER_ID = "X-Fal-Webhook-User-Id"
TIMESTAMP = "X-Fal-Webhook-Timestamp"
SIGNATURE = "X-Fal-Webhook-Signature"
WINDOW_SECONDS = 300
KEYS_MAX = 20
_SIGNATURE_LENGTH = 128
_DIGITS_MAX = 12


def read_keys(jwks: Any) -> list[bytes]:
    """Return the public keys of a JWKS document."""
    keys = jwks.get("keys") if isinstance(jwks, dict) else None
    found = []
    for key in (keys if isinstance(keys, list) else [])[:KEYS_MAX]:
        text = key.get("x") if isinstance(key, dict) else None
        try:
            content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) if isinstance(text, str) else b""
        except (binascii.Error, ValueError):
            continue
        if len(content) == 32:  # noqa: PLR2004 - the size of an Ed25519 key
            found.append(content)
    return found


def is_recent(headers: Mapping[str, str], now: float) -> bool:
    """Tell whether a callback says that it was signed within the last minutes."""
    timestamp = headers.get(TIMESTAMP, "")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _DIGITS_MAX):
        return False
    return abs(now - int(timestamp)) <= WINDOW_SECONDS


def is_signed(headers: Mapping[str, str], body: bytes, keys: Sequence[bytes]) -> bool:
    """Tell whether one of the keys signed a callback."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - slow to import, and only fal needs it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    text = headers.get(SIGNATURE, "")
    if len(text) != _SIGNATURE_LENGTH or not text.isascii():
        return False
    try:
        signature = bytes.fromhex(text)
    except ValueError:
        return False
    head = (headers.get(name, "") for name in (REQUEST_ID, USER_ID, TIMESTAMP))
    message = "\n".join((*head, hashlib.sha256(body).hexdigest())).encode(errors="replace")
    for key in keys:
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        except InvalidSignature:
            continue
        return True
    return False
