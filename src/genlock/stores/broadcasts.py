"""Broadcasts: one message to the users of a bot."""

from dataclasses import asdict

from genlock.domain.broadcast import EVERYONE, Broadcast, BroadcastState, Recipient, Segment
from genlock.domain.errors import StoreError
from genlock.stores.rows import Row, Time, not_null
from genlock.stores.scan import NEWEST
from genlock.stores.session import Subject

#: profiles that one statement counts
COUNTED_AT_ONCE = 20_000
#: profiles that one statement reads to find the next recipient
PROFILES_AT_ONCE = 1000


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
        while rows := await self.session.one("next_recipient", broadcast_id=broadcast_id, window=PROFILES_AT_ONCE):
            row = rows[0]
            if row["moved"] and row["account_id"] is not None:
                return Recipient(account_id=row["account_id"], language=row["language"], address=row["address"])
            if not row["moved"]:
                current = await self.broadcast(broadcast_id)
                if current is None or current.state is not BroadcastState.RUNNING:
                    return None
        return None

    async def count_broadcast_message(self, broadcast_id: int, *, sent: bool) -> None:
        await self.session.one("count_broadcast_message", broadcast_id=broadcast_id, sent=sent)

    async def end_broadcast(self, broadcast_id: int, state: BroadcastState) -> bool:
        return bool(await self.session.one("end_broadcast", broadcast_id=broadcast_id, state=state.value))


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
        total=row["total"],
        created_at=not_null(time(row["created_at"])),
        segment=_segment(row, time),
    )


def _segment(row: Row, time: Time) -> Segment:
    since, paid = time(row["silent_since"]), row["paid"]
    days = round((not_null(time(row["created_at"])) - since).total_seconds() / 86_400) if since else 0
    return Segment(language=row["language"], paid=None if paid is None else bool(paid), silent_days=days)
