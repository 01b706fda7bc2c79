"""Operators and their logins to the dashboard."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from genlock.domain.operator import DashboardSession, LoginMethod, Operator, OperatorRole
from genlock.stores.rows import Row, not_null
from genlock.stores.session import Subject

#: how exact the time of the last use is: a session is not written on every request
SEEN_PRECISION = timedelta(minutes=1)


class Operators(Subject):
    async def operators(self) -> Sequence[Operator]:
        return [_read_operator(row) for row in await self.session.one("operators")]

    async def operator(self, operator_id: str) -> Operator | None:
        return _first_operator(await self.session.one("operator", id=operator_id))

    async def set_operator(self, operator: Operator, added_by: str) -> Operator | None:
        rows = await self.session.one(
            "set_operator", id=operator.id, role=operator.role.value, name=operator.name, added_by=added_by
        )
        return _first_operator(rows)

    async def remove_operator(self, operator_id: str) -> Operator | None:
        return _first_operator(await self.session.one("remove_operator", id=operator_id))

    async def add_login_link(self, secret_hash: str, operator_id: str, method: LoginMethod, seconds: float) -> None:
        await self.session.one(
            "add_login_link", secret_hash=secret_hash, operator_id=operator_id, method=method.value, seconds=seconds
        )

    async def login_link(self, secret_hash: str) -> str | None:
        rows = await self.session.one("login_link", secret_hash=secret_hash)
        return rows[0]["operator_id"] if rows else None

    async def use_login_link(
        self, link_hash: str, session_hash: str, *, remote: str, agent: str, seconds: float
    ) -> DashboardSession | None:
        rows = await self.session.one(
            "use_login_link", link_hash=link_hash, session_hash=session_hash, remote=remote, agent=agent,
            seconds=seconds,
        )  # fmt: skip
        return self._read_session(rows[0]) if rows else None

    async def begin_session(
        self, session_hash: str, operator_id: str, method: LoginMethod, *, remote: str, agent: str, seconds: float
    ) -> DashboardSession:
        rows = await self.session.one(
            "begin_session", session_hash=session_hash, operator_id=operator_id, method=method.value, remote=remote,
            agent=agent, seconds=seconds,
        )  # fmt: skip
        return self._read_session(rows[0])

    async def session_by_secret(self, session_hash: str) -> DashboardSession | None:
        rows = await self.session.one("session_by_secret", session_hash=session_hash)
        if not rows:
            return None
        found = self._read_session(rows[0])
        if not_null(self.session.time(rows[0]["read_at"])) - found.seen_at > SEEN_PRECISION:
            await self.session.one("touch_session", id=found.id)
        return found

    async def sessions(self, limit: int) -> Sequence[DashboardSession]:
        return [self._read_session(row) for row in await self.session.one("sessions", limit=limit)]

    async def end_session(self, session_id: int) -> bool:
        return bool(await self.session.one("end_session", id=session_id))

    def _read_session(self, row: Row) -> DashboardSession:
        times: dict[str, Any] = {
            name: not_null(self.session.time(row[name])) for name in ("created_at", "seen_at", "expires_at")
        }
        return DashboardSession(
            id=row["id"],
            operator=row["operator_id"],
            method=LoginMethod(row["method"]),
            remote=row["remote"],
            agent=row["agent"],
            **times,
        )


def _read_operator(row: Row) -> Operator:
    return Operator(id=row["id"], role=OperatorRole(row["role"]), name=row["name"])


def _first_operator(rows: Sequence[Row]) -> Operator | None:
    return _read_operator(rows[0]) if rows else None
