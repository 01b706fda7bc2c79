"""How Replicate signs its callbacks: the Standard Webhooks scheme, with one secret per account."""

import base64
import hashlib
import hmac
from random import Random

PREFIX = "whsec_"


class WebhookSecret:
    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._key = rng.randbytes(24)

    @property
    def text(self) -> str:
        return PREFIX + base64.b64encode(self._key).decode()

    def rotate(self) -> None:
        """Sign with a new secret from now on."""
        self._key = self._rng.randbytes(24)

    def sign(self, message_id: str, body: bytes, timestamp: int, *, wrong_key: bool = False) -> dict[str, str]:
        """Return the headers of a callback."""
        key = self._rng.randbytes(24) if wrong_key else self._key
        signed = f"{message_id}.{timestamp}.".encode() + body
        signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return {
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": f"v1,{signature}",
        }
