"""How fal signs its callbacks: Ed25519 over request id, user id, time and the hash of the body; keys as a JWKS."""

import base64
import hashlib
from random import Random

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

USER_ID = "sandbox-user"


class SigningKeys:
    """The keys that fal serves. After a rotation the old key is served beside the new one, which signs."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._keys = [self._new_key()]

    def rotate(self, *, drop_old: bool = False) -> None:
        """Sign with a new key from now on."""
        self._keys = [*([] if drop_old else self._keys), self._new_key()]

    def _new_key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self._rng.randbytes(32))

    def jwks(self) -> dict[str, object]:
        return {"keys": [{"kty": "OKP", "crv": "Ed25519", "use": "sig", "x": _public(key)} for key in self._keys]}

    def sign(self, request_id: str, body: bytes, timestamp: int, *, wrong_key: bool = False) -> dict[str, str]:
        """Return the headers of a callback."""
        key = self._new_key() if wrong_key else self._keys[-1]
        message = "\n".join((request_id, USER_ID, str(timestamp), hashlib.sha256(body).hexdigest()))
        return {
            "X-Fal-Webhook-Request-Id": request_id,
            "X-Fal-Webhook-User-Id": USER_ID,
            "X-Fal-Webhook-Timestamp": str(timestamp),
            "X-Fal-Webhook-Signature": key.sign(message.encode()).hex(),
        }


def _public(key: Ed25519PrivateKey) -> str:
    return base64.urlsafe_b64encode(key.public_key().public_bytes_raw()).rstrip(b"=").decode()
