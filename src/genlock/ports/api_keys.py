"""Keys of API clients. Secrets are stored as hashes only."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.api_key import ApiKey, NewApiKey
from genlock.domain.job import Job
from genlock.ports.job_queries import OrderState


class ApiKeyStore(Protocol):
    async def add_api_key(self, key: NewApiKey) -> tuple[ApiKey, bool]:
        """Store a key, once per request key. Returns the key, and whether this call stored it."""

    async def api_key_by_secret(self, secret_hash: str) -> ApiKey | None:
        """Return a key that is not revoked, and record its use, at most once a minute."""

    async def api_key_with_job(self, secret_hash: str, job_id: int) -> tuple[ApiKey, Job | None] | None:
        """Do the same, and return a job of the key's account that was ordered with an API key, in one statement."""

    async def api_key_with_order(self, secret_hash: str, request_key: str) -> tuple[ApiKey, OrderState] | None:
        """Do the same, and return what the decision about an order needs, in one statement."""

    async def api_key(self, key_id: int) -> ApiKey | None: ...

    async def api_keys(self, account_id: int | None, *, before: int | None, limit: int) -> Sequence[ApiKey]:
        """Return the keys of an account, or of all accounts, newest first, before a key id."""

    async def revoke_api_key(self, key_id: int, account_id: int | None = None) -> ApiKey | None:
        """Revoke a key for good; with an account, only a key of this account. None: it is unknown or was revoked."""
