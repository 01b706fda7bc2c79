"""Logins to the dashboard: one-time links, the token of the settings, and sessions that every instance serves."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from hmac import compare_digest

from genlock.domain.job import hash_secret
from genlock.domain.operator import DashboardSession, LoginMethod, Operator, OperatorRole
from genlock.engine.token_attempts import TokenAttempts
from genlock.ports import Database

LINK_SECONDS = 60.0
#: a link of the command line is copied by hand
COMMAND_LINK_SECONDS = 600.0
SESSION_SECONDS = 14 * 86_400.0
#: the operator of a session that was opened with the token, and of a link of the command line without an operator
TOKEN_OPERATOR = "token"  # noqa: S105 - a name
COMMAND_OPERATOR = "command"
#: the secret of a session that was opened with the token begins with it; no other secret contains a dot
_OF_TOKEN = "token."  # noqa: S105 - a prefix
#: what is stored of the browser's own description
AGENT_LENGTH_MAX = 300


@dataclass(frozen=True, kw_only=True)
class Browser:
    remote: str
    agent: str
    #: the cookie that this browser got when the token was entered in it
    device: str = ""


@dataclass(frozen=True, kw_only=True)
class Login:
    """A session, and whose it is."""

    session: DashboardSession
    operator: Operator


class Logins:
    def __init__(
        self,
        store: Database,
        *,
        owners: frozenset[int],
        token: str | None = None,
        new_secret: Callable[[], str] = lambda: secrets.token_urlsafe(32),
    ) -> None:
        self._store = store
        self._owners = frozenset(map(str, owners))
        self._token = token
        self._attempts = TokenAttempts(store, token) if token else None
        self._new_secret = new_secret

    @property
    def has_token(self) -> bool:
        return bool(self._token)

    async def operator(self, operator_id: str) -> Operator | None:
        """Return who an id belongs to and what that operator may do; None if the id has no access."""
        if operator_id in self._owners:
            return Operator(id=operator_id, role=OperatorRole.OWNER)
        if operator_id == COMMAND_OPERATOR or (operator_id == TOKEN_OPERATOR and self._token):
            return Operator(id=operator_id, role=OperatorRole.OWNER)
        return await self._store.operator(operator_id)

    async def role_of(self, operator_id: str) -> OperatorRole | None:
        found = await self.operator(operator_id)
        return found.role if found else None

    async def make_link(self, operator_id: str, method: LoginMethod = LoginMethod.LINK) -> str | None:
        """Return the path of a link that opens one session; None if the id has no access."""
        if await self.operator(operator_id) is None:
            return None
        secret = self._new_secret()
        seconds = LINK_SECONDS if method is LoginMethod.LINK else COMMAND_LINK_SECONDS
        await self._store.add_login_link(hash_secret(secret), operator_id, method, seconds)
        return f"/dashboard/login/{secret}"

    async def link_operator(self, secret: str) -> Operator | None:
        """Return whose link this is, if it can still be used."""
        operator_id = await self._store.login_link(hash_secret(secret))
        return None if operator_id is None else await self.operator(operator_id)

    async def use_link(self, secret: str, browser: Browser) -> str | None:
        """Use a link up and return the secret of the new session; None if the link cannot be used."""
        if await self.link_operator(secret) is None:
            return None
        session_secret = self._new_secret()
        opened = await self._store.use_login_link(
            hash_secret(secret),
            hash_secret(session_secret),
            remote=browser.remote,
            agent=browser.agent[:AGENT_LENGTH_MAX],
            seconds=SESSION_SECONDS,
        )
        return session_secret if opened else None

    async def use_token(self, token: str, browser: Browser) -> str | None:
        """Open a session with the token of the settings; None if it is wrong. Raises TooManyAttempts."""
        if not self._token or self._attempts is None:
            return None
        await self._attempts.begin(browser.remote, browser.device)
        if not compare_digest(hash_secret(token), hash_secret(self._token)):
            return None
        session_secret = f"{_OF_TOKEN}{self._new_secret()}"
        await self._store.begin_session(
            self._session_hash(session_secret),
            TOKEN_OPERATOR,
            LoginMethod.TOKEN,
            remote=browser.remote,
            agent=browser.agent[:AGENT_LENGTH_MAX],
            seconds=SESSION_SECONDS,
        )
        return session_secret

    def device(self, browser: Browser) -> str | None:
        """Return the cookie by which a browser in which the token was entered is known; None without a token."""
        return self._attempts.device(browser.device) if self._attempts else None

    async def find(self, session_secret: str) -> Login | None:
        """Return the open session with this secret. It ends when its operator loses access, or the token changes."""
        session = await self._store.session_by_secret(self._session_hash(session_secret))
        if session is None or (session.method is LoginMethod.TOKEN) != session_secret.startswith(_OF_TOKEN):
            return None  # with the token, but opened by an earlier version: the token may have changed since
        operator = await self.operator(session.operator)
        return None if operator is None else Login(session=session, operator=operator)

    def _session_hash(self, session_secret: str) -> str:
        """Return the hash by which a session is stored. It depends on the token, if that opened the session."""
        of_token = f" {self._token}" if session_secret.startswith(_OF_TOKEN) else ""
        return hash_secret(f"{session_secret}{of_token}")

    async def end(self, session_id: int) -> bool:
        return await self._store.end_session(session_id)
