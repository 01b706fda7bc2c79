"""Broadcasts: one message to all users of a bot."""

from genlock.domain.broadcast import Broadcast, BroadcastState
from genlock.domain.errors import StoreError
from genlock.stores.rows import read_broadcast
from genlock.stores.session import Subject


class Broadcasts(Subject):
    async def reachable(self, bot: str) -> int:
        return int((await self.session.one("reachable", bot=bot))[0]["count"])

    async def begin_broadcast(
        self, text: str, *, bot: str, author: str, request_key: str, content: str = ""
    ) -> Broadcast:
        # PostgreSQL does not see a row that another transaction adds during the statement; the second attempt does.
        for _ in range(2):
            rows = await self.session.one(
                "begin_broadcast", bot=bot, text=text, content=content, author=author, request_key=request_key
            )
            if rows:
                return read_broadcast(rows[0], self.session.time)
        raise StoreError(f"could not find or create the broadcast {request_key}")

    async def broadcast(self, broadcast_id: int) -> Broadcast | None:
        rows = await self.session.one("broadcast", broadcast_id=broadcast_id)
        return read_broadcast(rows[0], self.session.time) if rows else None

    async def running_broadcast(self, bot: str | None = None) -> Broadcast | None:
        rows = await self.session.one("running_broadcast", bot=bot)
        return read_broadcast(rows[0], self.session.time) if rows else None

    async def reach_next(self, broadcast_id: int) -> tuple[int, str, str] | None:
        while rows := await self.session.one("reach_next", broadcast_id=broadcast_id):
            row = rows[0]
            if row["moved"]:
                return row["account_id"], row["language"], row["external_id"]
            current = await self.broadcast(broadcast_id)
            if current is None or current.state is not BroadcastState.RUNNING:
                return None
        return None

    async def count_broadcast(self, broadcast_id: int, *, sent: bool) -> None:
        await self.session.one("count_broadcast", broadcast_id=broadcast_id, sent=sent)

    async def end_broadcast(self, broadcast_id: int, state: BroadcastState) -> bool:
        return bool(await self.session.one("end_broadcast", broadcast_id=broadcast_id, state=state.value))
