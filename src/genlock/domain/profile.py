"""Chat users: their profiles, and the account summaries that operators search."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """What the bot knows of a user."""

    account_id: int
    #: the id by which the channel knows the user
    external_id: str
    language: str
    name: str
    #: in lower case, without the @
    username: str
    referred_by: int | None
    last_model: str
    banned_at: datetime | None
    ban_reason: str
    #: when the user blocked the bot, if they did
    blocked_at: datetime | None
    created_at: datetime
    #: the call that returned it created it
    created: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountSummary:
    """An account with its wallet, as operators search for it. Name and username are empty until the user writes."""

    account_id: int
    channel: str
    #: the id by which the channel knows the user
    external_id: str
    name: str
    username: str
    available: int
    held: int
    debt: int
    since: datetime
