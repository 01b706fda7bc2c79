"""Signed links to results: a browser that has the link may read the result until it expires."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field

LINK_SECONDS = 3600
_DIGITS_MAX = 12


@dataclass(frozen=True, kw_only=True)
class ResultLinks:
    key: bytes = field(repr=False)
    #: seconds since 1970
    now: Callable[[], float]

    @classmethod
    def of_installation(cls, secret: str, now: Callable[[], float]) -> "ResultLinks":
        """Return links that are signed with a key derived from a secret that all instances share."""
        return cls(key=hmac.digest(secret.encode(), b"genlock: signed links to results", "sha256"), now=now)

    def sign(self, job_id: int, index: int) -> str:
        """Return the query that opens a result without a key."""
        expires = int(self.now()) + LINK_SECONDS
        return f"expires={expires}&signature={self._signature(job_id, index, expires)}"

    def accepts(self, job_id: int, index: int, expires: str, signature: str) -> bool:
        if not (expires.isascii() and expires.isdigit() and len(expires) <= _DIGITS_MAX):
            return False
        expected = self._signature(job_id, index, int(expires))
        return hmac.compare_digest(signature.encode(), expected.encode()) and int(expires) > self.now()

    def _signature(self, job_id: int, index: int, expires: int) -> str:
        return hmac.digest(self.key, f"{job_id}/{index}/{expires}".encode(), "sha256").hex()[:40]
