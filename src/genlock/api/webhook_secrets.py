"""Secrets of webhooks: random, and sealed in the database with a key that only the settings have.

A sealed secret is `v1.NUMBER.KEY.CONTENT`: the rotation that it belongs to, the name of the key that sealed it, and the
encrypted secret. It opens only for its own endpoint and rotation. A row of an earlier version has none: there, the
secret is derived from the bot's token.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from genlock.domain.webhook import Webhook

SECRET_BYTES = 32
_NONCE_BYTES = 12
_VERSION = "v1"


class SecretUnreadable(Exception):
    """None of the keys in the settings opens the secret."""


@dataclass(frozen=True, kw_only=True)
class WebhookSecrets:
    #: by name; the first one seals, all of them open
    keys: dict[str, bytes] = field(repr=False)
    #: from which earlier versions derived the secrets
    former_key: bytes = field(repr=False)
    random_bytes: Callable[[int], bytes] = secrets.token_bytes

    @classmethod
    def of_installation(cls, sealing_keys: Sequence[str], token: str) -> "WebhookSecrets":
        """Return secrets sealed with the first of the given keys, or with a key of the bot's token without them."""
        derived = [
            hmac.digest(key.encode(), b"genlock: seals the secrets of webhooks", "sha256")
            for key in (*sealing_keys, token)
        ]
        return cls(
            keys={hashlib.sha256(key).hexdigest()[:12]: key for key in derived},
            former_key=hmac.digest(token.encode(), b"genlock: secrets of webhooks", "sha256"),
        )

    def make(self, public_id: str, number: int) -> tuple[bytes, str]:
        """Return a new secret, and the same sealed for its row."""
        secret = self.random_bytes(SECRET_BYTES)
        return secret, self._seal(secret, public_id, number)

    def current(self, webhook: Webhook) -> bytes:
        """Raises SecretUnreadable."""
        return self._open(webhook.secret, webhook, webhook.secret_number)

    def signing(self, webhook: Webhook, now: datetime) -> list[bytes]:
        """Return the secrets that sign now, the current one first. Raises SecretUnreadable if that one is lost."""
        found = [self.current(webhook)]
        if webhook.previous_secret_until is not None and now < webhook.previous_secret_until:
            with suppress(SecretUnreadable):  # the owner has rotated because of that
                found.append(self._previous(webhook))
        return found

    def sealed_anew(self, webhook: Webhook) -> tuple[str, str] | None:
        """Return both secrets sealed with the first key; None if they are already. Raises SecretUnreadable."""
        first = next(iter(self.keys))
        if _header(webhook.secret) == (str(webhook.secret_number), first):
            return None
        secret = self._seal(self.current(webhook), webhook.public_id, webhook.secret_number)
        previous = webhook.previous_secret
        if webhook.previous_secret_until is not None:
            with suppress(SecretUnreadable):
                previous = self._seal(self._previous(webhook), webhook.public_id, webhook.secret_number - 1)
        return secret, previous

    def _previous(self, webhook: Webhook) -> bytes:
        return self._open(webhook.previous_secret, webhook, webhook.secret_number - 1)

    def _open(self, sealed: str, webhook: Webhook, number: int) -> bytes:
        header = _header(sealed)
        if header is None or header[0] != str(number):  # an instance of an earlier version has made or rotated it
            return hmac.digest(self.former_key, f"webhook {webhook.public_id} {number}".encode(), "sha256")
        key = self.keys.get(header[1])
        if key is None:
            raise SecretUnreadable
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - slow to import, and only webhooks need it
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        content = base64.b64decode(sealed.rpartition(".")[2])
        try:
            return AESGCM(key).decrypt(
                content[:_NONCE_BYTES], content[_NONCE_BYTES:], _context(webhook.public_id, number)
            )
        except (InvalidTag, ValueError):
            raise SecretUnreadable from None

    def _seal(self, secret: bytes, public_id: str, number: int) -> str:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        name, key = next(iter(self.keys.items()))
        nonce = self.random_bytes(_NONCE_BYTES)
        content = nonce + AESGCM(key).encrypt(nonce, secret, _context(public_id, number))
        return f"{_VERSION}.{number}.{name}.{base64.b64encode(content).decode()}"


def _context(public_id: str, number: int) -> bytes:
    return f"{public_id} {number}".encode()


def _header(sealed: str) -> tuple[str, str] | None:
    """Return the rotation and the key's name of a sealed secret; None if it is none."""
    parts = sealed.split(".")
    return (parts[1], parts[2]) if len(parts) == 4 and parts[0] == _VERSION else None  # noqa: PLR2004
