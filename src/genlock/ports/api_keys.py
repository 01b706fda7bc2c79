"""Keys of API clients. Secrets are stored as hashes only."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.api_key import ApiKey, NewApiKey


class ApiKeyStore(Protocol):
    async def add_api_key(self, key: NewApiKey) -> tuple[ApiKey, bool]:
        """Store a key, once per request key. Returns the key, and whether this call stored it."""

    async def api_key_by_secret(self, secret_hash: str) -> ApiKey | None:
        """Return a key that is not revoked, and record its use, at most once a minute."""

    async def api_key(self, key_id: int) -> ApiKey | None: ...

    async def api_keys(self, account_id: int | None, *, before: int | None, limit: int) -> Sequence[ApiKey]:
        """Return the keys of an account, or of all accounts, newest first, before a key id."""

    async def revoke_api_key(self, key_id: int, account_id: int | None = None) -> ApiKey | None:
        """Revoke a key for good; with an account, only a key of this account. None: it is unknown or was revoked."""
