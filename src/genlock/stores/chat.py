"""What the chat product keeps: profiles, drafts, files, payments, gifts, broadcasts, operators' deeds."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from genlock.domain.activity import Activity
from genlock.domain.audit import AuditLine
from genlock.domain.broadcast import Broadcast, BroadcastState
from genlock.domain.draft import SavedDraft
from genlock.domain.errors import AccountNotFound, StoreError
from genlock.domain.figures import Figures
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.profile import AccountSummary, Profile
from genlock.domain.promo import FreeRuns, Promo, PromoUse, PromoVerdict
from genlock.domain.upload import Upload
from genlock.stores.rows import Row, Time

#: how often a count is made anew because somebody else was quicker
TURNS_MAX = 200


class ChatRows(ABC):
    """The ChatStore port over named statements."""

    time: Time

    @abstractmethod
    async def one(self, name: str, /, **params: Any) -> list[Row]: ...

    @abstractmethod
    def array(self, values: Sequence[Any]) -> Any: ...

    # people

    async def see_profile(
        self, account_id: int, *, language: str, name: str, username: str, referred_by: int | None
    ) -> Profile:
        for _ in range(2):  # PostgreSQL may overlook a row that was added while it looked
            rows = await self.one(
                "see_profile",
                account_id=account_id,
                language=language,
                name=name,
                username=username,
                referred_by=referred_by,
            )
            if rows:
                return replace(self._profile(rows[0]), fresh=bool(rows[0]["fresh"]))
        raise StoreError(f"could not find or make the profile of person {account_id}")

    async def profile(self, account_id: int) -> Profile:
        rows = await self.one("profile", account_id=account_id)
        if not rows:
            raise AccountNotFound
        return self._profile(rows[0])

    async def find_profiles(self, text: str, limit: int) -> list[Profile]:
        rows = await self.one("find_profiles", **_spellings(text), limit=limit)
        return [self._profile(row) for row in rows]

    async def newest_profiles(self, limit: int) -> list[Profile]:
        return [self._profile(row) for row in await self.one("newest_profiles", limit=limit)]

    async def account_summaries(self, text: str | None, limit: int) -> list[AccountSummary]:
        return [
            AccountSummary(
                account_id=row["id"],
                channel=row["channel"],
                external_id=row["external_id"],
                name=row["name"],
                username=row["username"],
                available=row["available"],
                held=row["held"],
                since=_certain(self.time(row["created_at"])),
            )
            for row in await self.one("account_summaries", **_spellings(text), limit=limit)
        ]

    async def set_language(self, account_id: int, language: str) -> None:
        await self.one("set_language", account_id=account_id, language=language)

    async def set_last_model(self, account_id: int, model: str) -> None:
        await self.one("set_last_model", account_id=account_id, model=model)

    async def set_ban(self, account_id: int, *, banned: bool, reason: str) -> bool:
        return bool(await self.one("set_ban", account_id=account_id, banned=banned, reason=reason))

    async def set_blocked(self, account_id: int, *, blocked: bool) -> None:
        await self.one("set_blocked", account_id=account_id, blocked=blocked)

    # drafts

    async def draft(self, account_id: int, chat: int) -> SavedDraft | None:
        rows = await self.one("draft", account_id=account_id, chat=chat)
        if not rows:
            return None
        row = rows[0]
        return SavedDraft(version=row["version"], message=row["message"], body=row["body"])

    async def save_draft(self, account_id: int, chat: int, draft: SavedDraft) -> int | None:
        rows = await self.one(
            "save_draft",
            account_id=account_id,
            chat=chat,
            version=draft.version,
            message=draft.message,
            body=draft.body,
            uploads=self.array(draft.uploads),
        )
        return int(rows[0]["version"]) if rows else None

    async def show_draft(self, account_id: int, chat: int, message: int | None) -> None:
        await self.one("show_draft", account_id=account_id, chat=chat, message=message)

    async def is_of_order(self, account_id: int, message: str) -> bool:
        return bool(await self.one("is_of_order", account_id=account_id, message=message))

    async def draft_owner(self, chat: int, message: int) -> int | None:
        rows = await self.one("draft_owner", chat=chat, message=message)
        return rows[0]["account_id"] if rows else None

    # files and limits

    async def keep_upload(self, upload: Upload) -> None:
        await self.one(
            "keep_upload",
            address=upload.address,
            account_id=upload.account_id,
            file=upload.file,
            kind=upload.kind,
            seconds=upload.seconds,
        )

    async def use_upload(self, address: str) -> None:
        await self.one("use_upload", address=address)

    async def upload(self, address: str) -> Upload | None:
        rows = await self.one("upload", address=address)
        if not rows:
            return None
        row = rows[0]
        return Upload(
            address=row["address"],
            account_id=row["account_id"],
            file=row["file"],
            kind=row["kind"],
            seconds=row["seconds"],
            age_seconds=row["age_seconds"],
        )

    async def uploads_wait(self, account_id: int) -> tuple[int, float]:
        row = (await self.one("uploads_wait", account_id=account_id))[0]
        return row["hour"], row["hour_wait"]

    async def activity(self, account_id: int) -> Activity:
        row = (await self.one("activity", account_id=account_id))[0]
        return Activity(**{name: row[name] for name in ("running", "minute", "minute_wait", "hour", "hour_wait")})

    async def late_cancels(self, account_id: int) -> int:
        return int((await self.one("late_cancels", account_id=account_id))[0]["cancels"])

    # payments

    async def keep_payment(self, charge: str, account_id: int, stars: int, amount: int) -> bool:
        return bool(await self.one("keep_payment", charge=charge, account_id=account_id, stars=stars, amount=amount))

    async def payment(self, charge: str) -> Payment | None:
        rows = await self.one("payment", charge=charge)
        return self._payment(rows[0]) if rows else None

    async def payments(self, account_id: int, limit: int) -> list[Payment]:
        return [self._payment(row) for row in await self.one("payments", account_id=account_id, limit=limit)]

    async def move_payment(
        self,
        charge: str,
        before: PaymentState,
        state: PaymentState,
        refunds: int | None = None,
        *,
        untaken: bool = False,
    ) -> int | None:
        step = {"charge": charge, "before": before.value, "state": state.value}
        rows = await self.one("move_payment", **step, refunds=refunds, untaken=untaken)
        return int(rows[0]["refunds"]) if rows else None

    # gifts

    async def take_free_run(self, account_id: int, request_key: str, per_day: int) -> bool:
        row = await self._turn("take_free_run", account_id=account_id, request_key=request_key, per_day=per_day)
        return row is not None and bool(row["taken"])

    async def free_runs(self, account_id: int, per_day: int, but: str = "") -> FreeRuns:
        row = (await self.one("free_runs", account_id=account_id, but=but))[0]
        return FreeRuns(today=max(per_day - row["used"], 0), gifts=max(row["gifts"], 0))

    async def make_promo(self, promo: Promo, *, lasting: float | None, author: str) -> bool:
        rows = await self.one(
            "make_promo",
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
        return bool(await self.one("close_promo", code=code, bot=bot))

    async def promos(self, limit: int, bot: str | None = None) -> list[Promo]:
        return [
            Promo(
                code=row["code"],
                amount=row["amount"],
                runs=row["runs"],
                uses_max=row["uses_max"],
                per_account=row["per_account"],
                until=self.time(row["until_at"]),
                closed=row["closed_at"] is not None,
                uses=row["used"],
                bot=row["bot"],
            )
            for row in await self.one("promos", limit=limit, bot=bot)
        ]

    async def use_promo(self, code: str, account_id: int, request_key: str) -> PromoUse:
        row = await self._turn("use_promo", code=code, account_id=account_id, request_key=request_key)
        if row is None:
            return PromoUse(verdict=PromoVerdict.UNKNOWN)
        if row["number"] is None:
            return PromoUse(verdict=PromoVerdict.USED if row["spent"] else PromoVerdict.OVER)
        return PromoUse(verdict=PromoVerdict.GIVEN, number=row["number"], amount=row["amount"], runs=row["runs"])

    async def promo_used(self, account_id: int, request_key: str) -> bool:
        return bool(await self.one("promo_used", account_id=account_id, request_key=request_key))

    async def _turn(self, name: str, **params: Any) -> Row | None:
        """A count and what follows from it, made anew as long as others come in between."""
        for _ in range(TURNS_MAX):
            rows = await self.one(name, **params)
            if not rows:
                return None
            if not rows[0]["retry"]:
                return rows[0]
        raise StoreError(f"{name}: others were always quicker")

    async def rewards_due(self, bot: str, limit: int) -> list[tuple[int, int]]:
        return [(row["account_id"], row["referred_by"]) for row in await self.one("rewards_due", bot=bot, limit=limit)]

    async def set_rewarded(self, account_id: int) -> bool:
        return bool(await self.one("set_rewarded", account_id=account_id))

    # broadcasts

    async def reachable(self, bot: str) -> int:
        return int((await self.one("reachable", bot=bot))[0]["count"])

    async def begin_broadcast(
        self, text: str, *, bot: str, author: str, request_key: str, content: str = ""
    ) -> Broadcast:
        for _ in range(2):
            if rows := await self.one(
                "begin_broadcast", bot=bot, text=text, content=content, author=author, request_key=request_key
            ):
                return self._broadcast(rows[0])
        raise StoreError("could not find or make the broadcast")

    async def broadcast(self, broadcast_id: int) -> Broadcast | None:
        rows = await self.one("broadcast", broadcast_id=broadcast_id)
        return self._broadcast(rows[0]) if rows else None

    async def running_broadcast(self, bot: str | None = None) -> Broadcast | None:
        rows = await self.one("running_broadcast", bot=bot)
        return self._broadcast(rows[0]) if rows else None

    async def reach_next(self, broadcast_id: int) -> tuple[int, str, str] | None:
        """The next person (number, language, the channel's id), ours alone. None when there is nobody left."""
        while rows := await self.one("reach_next", broadcast_id=broadcast_id):
            row = rows[0]
            if row["moved"]:
                return row["account_id"], row["language"], row["external_id"]
            now = await self.broadcast(broadcast_id)
            if now is None or now.state is not BroadcastState.RUNNING:
                return None
        return None

    async def count_broadcast(self, broadcast_id: int, *, sent: bool) -> None:
        await self.one("count_broadcast", broadcast_id=broadcast_id, sent=sent)

    async def end_broadcast(self, broadcast_id: int, state: BroadcastState) -> bool:
        return bool(await self.one("end_broadcast", broadcast_id=broadcast_id, state=state.value))

    # operators

    async def add_audit(self, *, key: str, actor: str, action: str, subject: str, detail: str, bot: str = "") -> None:
        await self.one("add_audit", bot=bot, key=key, actor=actor, action=action, subject=subject, detail=detail)

    async def audit(self, limit: int, bot: str | None = None) -> Sequence[AuditLine]:
        return [
            AuditLine(
                id=row["id"],
                bot=row["bot"],
                at=_certain(self.time(row["at"])),
                actor=row["actor"],
                action=row["action"],
                subject=row["subject"],
                detail=row["detail"],
            )
            for row in await self.one("audit", limit=limit, bot=bot)
        ]

    async def figures(self, bot: str, seconds: float) -> Figures:
        row = (await self.one("figures", bot=bot, seconds=seconds))[0]
        return Figures(**{name: row[name] for name in Figures.__slots__})

    # rows

    def _profile(self, row: Row) -> Profile:
        return Profile(
            account_id=row["account_id"],
            external_id=row["external_id"],
            language=row["language"],
            name=row["name"],
            username=row["username"],
            referred_by=row["referred_by"],
            last_model=row["last_model"],
            banned_at=self.time(row["banned_at"]),
            ban_reason=row["ban_reason"],
            blocked_at=self.time(row["blocked_at"]),
            created_at=_certain(self.time(row["created_at"])),
        )

    def _payment(self, row: Row) -> Payment:
        return Payment(
            charge=row["charge"],
            account_id=row["account_id"],
            stars=row["stars"],
            amount=row["amount"],
            state=PaymentState(row["state"]),
            refunds=row["refunds"],
            at=_certain(self.time(row["at"])),
        )

    def _broadcast(self, row: Row) -> Broadcast:
        return Broadcast(
            id=row["id"],
            bot=row["bot"],
            text=row["text"],
            content=row["content"],
            author=row["author"],
            state=BroadcastState(row["state"]),
            reached=row["reached"],
            sent=row["sent"],
            failed=row["failed"],
            total=row["total"],
            created_at=_certain(self.time(row["created_at"])),
        )


def _certain(time: Any) -> Any:
    assert time is not None, "a column that is NOT NULL was NULL"
    return time


def _spellings(text: str | None) -> dict[str, Any]:
    """Databases know capitals of ASCII only, and of others by a locale that nobody has chosen."""
    return {"text": text, "titled": text and text.title(), "lowered": text and text.lower()}
