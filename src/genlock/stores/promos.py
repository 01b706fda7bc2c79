"""Promo codes, free runs and rewards for invitations."""

from typing import Any

from genlock.domain.errors import StoreError
from genlock.domain.promo import FreeRuns, Promo, PromoUse, PromoVerdict
from genlock.stores.rows import Row, Time
from genlock.stores.session import Subject

#: how often a count is repeated because another transaction changed it meanwhile
ATTEMPTS_MAX = 200


class Promos(Subject):
    async def take_free_run(self, account_id: int, request_key: str, per_day: int) -> bool:
        row = await self._counted("take_free_run", account_id=account_id, request_key=request_key, per_day=per_day)
        return row is not None and bool(row["taken"])

    async def return_free_run(self, account_id: int, request_key: str) -> None:
        await self._counted("return_free_run", account_id=account_id, request_key=request_key)

    async def free_runs(self, account_id: int, per_day: int, ignore_key: str = "") -> FreeRuns:
        row = (await self.session.one("free_runs", account_id=account_id, ignore_key=ignore_key))[0]
        return FreeRuns(today=max(per_day - row["used"], 0), gifts=max(row["gifts"], 0))

    async def create_promo(self, promo: Promo, *, lasting: float | None, author: str) -> bool:
        rows = await self.session.one(
            "create_promo",
            code=promo.code,
            bot=promo.bot,
            amount=promo.amount,
            runs=promo.runs,
            uses_max=promo.uses_max,
            per_account=promo.per_account,
            lasting=lasting,
            author=author,
        )
        return bool(rows)

    async def close_promo(self, code: str, bot: str = "") -> bool:
        return bool(await self.session.one("close_promo", code=code, bot=bot))

    async def promos(self, limit: int, bot: str | None = None, *, before: str | None = None) -> list[Promo]:
        if before is None:
            rows = await self.session.one("promos", limit=limit, bot=bot)
        else:
            rows = await self.session.one("promos_before", limit=limit, bot=bot, before_code=before)
        return [_read_promo(row, self.session.time) for row in rows]

    async def promo(self, code: str) -> Promo | None:
        rows = await self.session.one("promo", code=code)
        return _read_promo(rows[0], self.session.time) if rows else None

    async def use_promo(self, code: str, account_id: int, request_key: str) -> PromoUse:
        row = await self._counted("use_promo", code=code, account_id=account_id, request_key=request_key)
        if row is None:
            return PromoUse(verdict=PromoVerdict.UNKNOWN)
        if row["number"] is None:
            return PromoUse(verdict=PromoVerdict.USED if row["spent"] else PromoVerdict.OVER)
        return PromoUse(verdict=PromoVerdict.GIVEN, number=row["number"], amount=row["amount"], runs=row["runs"])

    async def is_promo_used(self, account_id: int, request_key: str) -> bool:
        return bool(await self.session.one("is_promo_used", account_id=account_id, request_key=request_key))

    async def _counted(self, name: str, **params: Any) -> Row | None:
        """Run a statement that counts and then writes, again while other transactions change the count meanwhile."""
        for _ in range(ATTEMPTS_MAX):
            rows = await self.session.one(name, **params)
            if not rows:
                return None
            if not rows[0]["retry"]:
                return rows[0]
        raise StoreError(f"{name}: other transactions changed the count in each of {ATTEMPTS_MAX} attempts")

    async def rewards_due(self, bot: str, after: int, limit: int) -> tuple[list[tuple[int, int]], int]:
        rows = await self.session.one("rewards_due", bot=bot, after=after, limit=limit)
        due = [(row["account_id"], row["referred_by"]) for row in rows if row["due"]]
        return due, rows[-1]["account_id"] if len(rows) == limit else 0

    async def mark_rewarded(self, account_id: int) -> bool:
        return bool(await self.session.one("mark_rewarded", account_id=account_id))


def _read_promo(row: Row, time: Time) -> Promo:
    return Promo(
        code=row["code"],
        amount=row["amount"],
        runs=row["runs"],
        uses_max=row["uses_max"],
        per_account=row["per_account"],
        until=time(row["until_at"]),
        closed=row["closed_at"] is not None,
        uses=row["used"],
        bot=row["bot"],
        author=row["author"],
        created_at=time(row["created_at"]),
    )
