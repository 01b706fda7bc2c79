"""Broadcasts: one message to the users of a bot."""

from dataclasses import asdict

from genlock.domain.broadcast import EVERYONE, Broadcast, BroadcastOutcome, BroadcastState, Recipient, Segment
from genlock.domain.errors import StoreError
from genlock.stores.rows import Row, Time, not_null
from genlock.stores.scan import NEWEST
from genlock.stores.session import Subject

#: profiles that one statement counts
COUNTED_AT_ONCE = 20_000
#: profiles that one statement reads to find the next recipient
PROFILES_AT_ONCE = 1000
#: a sender that has not reported for this long has crashed: longer than it waits for a permit, or for an answer
SENDER_SECONDS = 180.0


class Broadcasts(Subject):
    async def count_reachable(self, bot: str, segment: Segment = EVERYONE) -> int:
        after = count = 0
        chosen = asdict(segment)
        while (
            until := (await self.session.one("step_profiles", after=after, size=COUNTED_AT_ONCE))[0]["until"]
        ) is not None:
            count += (await self.session.one("count_reachable", bot=bot, after=after, until=until, **chosen))[0][
                "count"
            ]
            after = until
        return count

    async def begin_broadcast(
        self,
        text: str,
        *,
        bot: str,
        author: str,
        request_key: str,
        content: str = "",
        segment: Segment = EVERYONE,
    ) -> Broadcast:
        total = await self.count_reachable(bot, segment)
        # PostgreSQL does not see a row that another transaction adds during the statement; the second attempt does.
        for _ in range(2):
            rows = await self.session.one(
                "begin_broadcast",
                bot=bot,
                text=text,
                content=content,
                author=author,
                request_key=request_key,
                total=total,
                **asdict(segment),
            )
            if rows:
                return _read_broadcast(rows[0], self.session.time)
        raise StoreError(f"could not find or create the broadcast {request_key}")

    async def broadcast(self, broadcast_id: int) -> Broadcast | None:
        rows = await self.session.one("broadcast", broadcast_id=broadcast_id)
        return _read_broadcast(rows[0], self.session.time) if rows else None

    async def broadcasts(self, limit: int, bot: str | None = None, *, before: int | None = None) -> list[Broadcast]:
        older_than = NEWEST if before is None else before
        rows = await self.session.one("newest_broadcasts", limit=limit, bot=bot, before_id=older_than)
        return [_read_broadcast(row, self.session.time) for row in rows]

    async def running_broadcast(self, bot: str | None = None) -> Broadcast | None:
        rows = await self.session.one("running_broadcast", bot=bot)
        return _read_broadcast(rows[0], self.session.time) if rows else None

    async def next_recipient(self, broadcast_id: int) -> Recipient | None:
        while rows := await self.session.one(
            "next_recipient", broadcast_id=broadcast_id, window=PROFILES_AT_ONCE, seconds=SENDER_SECONDS
        ):
            row = rows[0]
            if row["moved"] and row["account_id"] is not None:
                return _read_recipient(row)
            if not row["moved"]:
                current = await self.broadcast(broadcast_id)
                if current is None or current.state is not BroadcastState.RUNNING:
                    return None
        rows = await self.session.one("retake_recipient", broadcast_id=broadcast_id, seconds=SENDER_SECONDS)
        return _read_recipient(rows[0]) if rows else None

    async def begin_broadcast_message(self, broadcast_id: int, recipient: Recipient) -> bool:
        taken = _taken(broadcast_id, recipient)
        return bool(await self.session.one("begin_broadcast_message", **taken, seconds=SENDER_SECONDS))

    async def return_recipient(self, broadcast_id: int, recipient: Recipient, after: float) -> None:
        await self.session.one("return_recipient", **_taken(broadcast_id, recipient), after=after)

    async def count_broadcast_message(self, broadcast_id: int, recipient: Recipient, outcome: BroadcastOutcome) -> None:
        taken = _taken(broadcast_id, recipient)
        await self.session.one("count_broadcast_message", **taken, outcome=outcome.value)

    async def expire_recipients(self) -> None:
        await self.session.one("expire_recipients")

    async def end_broadcast(self, broadcast_id: int, state: BroadcastState) -> bool:
        return bool(await self.session.one("end_broadcast", broadcast_id=broadcast_id, state=state.value))


def _read_recipient(row: Row) -> Recipient:
    return Recipient(account_id=row["account_id"], language=row["language"], address=row["address"], token=row["token"])


def _taken(broadcast_id: int, recipient: Recipient) -> dict[str, int]:
    return {"broadcast_id": broadcast_id, "account_id": recipient.account_id, "token": recipient.token}


def _read_broadcast(row: Row, time: Time) -> Broadcast:
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
        unknown=row["unknown"],
        total=row["total"],
        created_at=not_null(time(row["created_at"])),
        segment=_segment(row, time),
    )


def _segment(row: Row, time: Time) -> Segment:
    since, paid = time(row["silent_since"]), row["paid"]
    days = round((not_null(time(row["created_at"])) - since).total_seconds() / 86_400) if since else 0
    return Segment(language=row["language"], paid=None if paid is None else bool(paid), silent_days=days)
