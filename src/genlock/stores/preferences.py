"""Favourite models of users, and the settings they last used."""

from genlock.domain.errors import AccountNotFound
from genlock.domain.money import Wallet
from genlock.stores.rows import read_wallet_and_favourites
from genlock.stores.session import Subject

FAVOURITES_MAX = 30
SETTINGS_MAX = 50


class Preferences(Subject):
    async def add_favourite(self, account_id: int, model: str) -> bool:
        return bool(await self.session.one("add_favourite", account_id=account_id, model=model, limit=FAVOURITES_MAX))

    async def remove_favourite(self, account_id: int, model: str) -> None:
        await self.session.one("remove_favourite", account_id=account_id, model=model)

    async def favourites(self, account_id: int) -> list[str]:
        return [row["model"] for row in await self.session.one("favourites", account_id=account_id)]

    async def wallet_and_favourites(self, account_id: int) -> tuple[Wallet, tuple[str, ...]]:
        rows = await self.session.one("wallet_and_favourites", account_id=account_id)
        if not rows:
            raise AccountNotFound
        return read_wallet_and_favourites(rows[0])

    async def save_model_settings(self, account_id: int, model: str, body: str) -> None:
        await self.session.one("save_model_settings", account_id=account_id, model=model, body=body, limit=SETTINGS_MAX)

    async def model_settings(self, account_id: int, model: str) -> str | None:
        rows = await self.session.one("model_settings", account_id=account_id, model=model)
        return rows[0]["body"] if rows else None

    async def delete_model_settings(self, account_id: int, model: str) -> None:
        await self.session.one("delete_model_settings", account_id=account_id, model=model)
