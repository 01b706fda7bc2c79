"""Operators and their logins to the dashboard. Secrets are stored as hashes only."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.operator import DashboardSession, LoginMethod, Operator


class OperatorStore(Protocol):
    async def operators(self) -> Sequence[Operator]:
        """Return the operators whose role was set in the dashboard. Those of GENLOCK_ADMIN_IDS are not among them."""

    async def operator(self, operator_id: str) -> Operator | None: ...

    async def set_operator(self, operator: Operator, added_by: str) -> Operator | None:
        """Add an operator or change the role. Returns the operator as it was before."""

    async def remove_operator(self, operator_id: str) -> Operator | None:
        """Remove an operator, and end the operator's sessions. Returns the operator as it was before."""

    async def add_login_link(self, secret_hash: str, operator_id: str, method: LoginMethod, seconds: float) -> None:
        """Store a one-time link that expires after some seconds."""

    async def login_link(self, secret_hash: str) -> str | None:
        """Return the operator of a link that has not been used and has not expired."""

    async def use_login_link(
        self, link_hash: str, session_hash: str, *, remote: str, agent: str, seconds: float
    ) -> DashboardSession | None:
        """Open a session for the operator of a link, in the commit that uses the link up. None if that is not possible.

        The link was used before, has expired, or never existed.
        """

    async def begin_session(
        self, session_hash: str, operator_id: str, method: LoginMethod, *, remote: str, agent: str, seconds: float
    ) -> DashboardSession: ...

    async def session_by_secret(self, session_hash: str) -> DashboardSession | None:
        """Return a session that has neither expired nor been ended, and record that it was used."""

    async def sessions(self, limit: int) -> Sequence[DashboardSession]:
        """Return the open sessions, the one that was used last first."""

    async def end_session(self, session_id: int) -> bool:
        """End a session. Returns False if it had ended before."""
