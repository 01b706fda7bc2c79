"""Lists of users for operators, newest first."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.user import UsedPromo, User, UserFilter


class UserLists(Protocol):
    async def users_by_id(self, account_ids: Sequence[int]) -> list[User]:
        """Return the users of these accounts, in this order. Unknown ids are left out."""

    async def users(self, which: UserFilter, *, before: int | None, limit: int) -> list[User]:
        """Return the users that a filter selects, before an account id."""

    async def invited_users(self, account_id: int, *, before: int | None, limit: int) -> list[User]:
        """Return the users whom this one has invited, before an account id."""

    async def used_promos(self, account_id: int, limit: int) -> list[UsedPromo]:
        """Return the promo codes that an account has used, the latest first."""
