"""Lists of users for operators."""

from collections.abc import Sequence
from typing import Any

from genlock.domain.user import UsedPromo, User, UserFilter
from genlock.stores.rows import Row, Time, not_null
from genlock.stores.scan import NEWEST
from genlock.stores.session import Subject

_IDS = {
    UserFilter.ALL: "newest_user_ids",
    UserFilter.BANNED: "banned_user_ids",
    UserFilter.OWING: "owing_user_ids",
    UserFilter.PAYING: "paying_user_ids",
}


class Users(Subject):
    async def users_by_id(self, account_ids: Sequence[int]) -> list[User]:
        if not account_ids:
            return []
        rows = await self.session.one("users_by_id", ids=self.session.array(account_ids))
        found = {row["id"]: _read_user(row, self.session.time) for row in rows}
        return [found[account_id] for account_id in account_ids if account_id in found]

    async def users(self, which: UserFilter, *, before: int | None, limit: int) -> list[User]:
        return await self._listed(_IDS[which], before, limit)

    async def invited_users(self, account_id: int, *, before: int | None, limit: int) -> list[User]:
        return await self._listed("invited_user_ids", before, limit, account_id=account_id)

    async def _listed(self, name: str, before: int | None, limit: int, **params: Any) -> list[User]:
        upper = NEWEST if before is None else min(before, NEWEST)
        rows = await self.session.one(name, before=upper, limit=limit, **params)
        return await self.users_by_id([row["id"] for row in rows])

    async def used_promos(self, account_id: int, limit: int) -> list[UsedPromo]:
        rows = await self.session.one("account_promo_uses", account_id=account_id, limit=limit)
        return [_read_used_promo(row, self.session.time) for row in rows]


def _read_user(row: Row, time: Time) -> User:
    return User(
        account_id=row["id"],
        channel=row["channel"],
        bot=row["bot"],
        external_id=row["external_id"],
        has_address=bool(row["address"]),
        available=row["available"],
        held=row["held"],
        debt=row["debt"],
        since=not_null(time(row["created_at"])),
        language=row["language"] or "",
        name=row["name"] or "",
        username=row["username"] or "",
        referred_by=row["referred_by"],
        last_model=row["last_model"] or "",
        banned_at=time(row["banned_at"]),
        ban_reason=row["ban_reason"] or "",
        blocked_at=time(row["blocked_at"]),
        seen_at=time(row["seen_at"]),
    )


def _read_used_promo(row: Row, time: Time) -> UsedPromo:
    return UsedPromo(
        code=row["code"],
        at=not_null(time(row["at"])),
        amount=row["amount"] or 0,
        runs=row["runs"] or 0,
        author=row["author"] or "",
    )
