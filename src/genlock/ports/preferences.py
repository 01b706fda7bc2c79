"""What a user prefers: favourite models, and the settings last used with a model. Both are bounded per account."""

from typing import Protocol

from genlock.domain.money import Wallet


class PreferenceStore(Protocol):
    async def add_favourite(self, account_id: int, model: str) -> bool:
        """Add a favourite model. False if the account has as many as it may have."""

    async def remove_favourite(self, account_id: int, model: str) -> None: ...

    async def favourites(self, account_id: int) -> list[str]:
        """Return the favourite models, in the order in which they were added."""

    async def wallet_and_favourites(self, account_id: int) -> tuple[Wallet, tuple[str, ...]]:
        """Return what every menu shows of an account, in one statement. Raises AccountNotFound."""

    async def save_model_settings(self, account_id: int, model: str, body: str) -> None:
        """Keep the settings that a model was ordered with, JSON; those of models not used lately are deleted."""

    async def model_settings(self, account_id: int, model: str) -> str | None: ...

    async def delete_model_settings(self, account_id: int, model: str) -> None: ...
