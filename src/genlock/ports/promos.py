"""Promo codes, free runs and rewards for invitations."""

from typing import Protocol

from genlock.domain.promo import FreeRuns, Promo, PromoUse


class PromoStore(Protocol):
    async def take_free_run(self, account_id: int, request_key: str, per_day: int) -> bool:
        """Take a free run for an order, once per key. Runs whose job failed, or was cancelled early, do not count."""

    async def return_free_run(self, account_id: int, request_key: str) -> None:
        """Return the free run of an order that was refused, unless it was accepted meanwhile."""

    async def free_runs(self, account_id: int, per_day: int, ignore_key: str = "") -> FreeRuns:
        """Return the free runs that remain, not counting the one taken for the order with the key `ignore_key`."""

    async def create_promo(self, promo: Promo, *, lasting: float | None, author: str) -> bool:
        """Create a code that is valid for `lasting` seconds. Returns False if the code exists."""

    async def close_promo(self, code: str, bot: str = "") -> bool:
        """Close a code of this bot, or one that is valid for every bot."""

    async def promos(self, limit: int, bot: str | None = None, *, before: str | None = None) -> list[Promo]:
        """Return the newest codes: all, or those that users of one bot may use; or those created before one."""

    async def promo(self, code: str) -> Promo | None: ...

    async def use_promo(self, code: str, account_id: int, request_key: str) -> PromoUse:
        """Use a code within its limits. The same key again finds the same use."""

    async def is_promo_used(self, account_id: int, request_key: str) -> bool:
        """Whether a code was used under this key."""

    async def rewards_due(self, bot: str, after: int, limit: int) -> tuple[list[tuple[int, int]], int]:
        """Return users of a bot who have paid and bought a first result, with their unrewarded inviters.

        Looks at the next `limit` invited users after an account. The second value is the last of them, where the next
        call continues; 0 after the last one.
        """

    async def mark_rewarded(self, account_id: int) -> bool:
        """Record that the invitation of this user was rewarded. Returns False if it was before."""
