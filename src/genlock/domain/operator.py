"""Operators of the bot: who may use the dashboard, with which role, and their sessions."""

from datetime import datetime
from enum import StrEnum

from genlock.domain.value import value


class OperatorRole(StrEnum):
    OWNER = "owner"  #: may do everything
    SUPPORT = "support"  #: helps users: their orders, small credits
    VIEWER = "viewer"  #: sees, and changes nothing


class LoginMethod(StrEnum):
    LINK = "link"  #: a one-time link that the bot sent
    COMMAND = "command"  #: a one-time link of `genlock dashboard link`
    TOKEN = "token"  # noqa: S105 - the name of a method; the token itself is GENLOCK_DASHBOARD_TOKEN


@value
class Operator:
    #: the id by which the chat knows the operator; for a login without a chat, the name of the method
    id: str
    role: OperatorRole
    name: str = ""


@value
class DashboardSession:
    id: int
    operator: str
    method: LoginMethod
    #: the network address and the browser that opened it, as the browser sent them
    remote: str
    agent: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
