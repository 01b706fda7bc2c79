"""Chat users: their profiles, and the account summaries operators search."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """A person, as the chat knows them."""

    account_id: int
    #: the id that the channel knows them by
    external_id: str
    language: str
    name: str
    #: in lower case, without the @
    username: str
    referred_by: int | None
    last_model: str
    banned_at: datetime | None
    ban_reason: str
    #: when they blocked the bot, if they did
    blocked_at: datetime | None
    created_at: datetime
    #: made by the look that found it
    fresh: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountSummary:
    """A person with their wallet, as an operator looks for them. Whoever has not written has no name."""

    account_id: int
    channel: str
    #: the id that the channel knows them by
    external_id: str
    name: str
    username: str
    available: int
    held: int
    since: datetime
