"""Users as operators list them: an account with its balances, and what the bot knows of its user."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class UserFilter(StrEnum):
    ALL = "all"
    BANNED = "banned"
    OWING = "owing"  #: with a debt, after refunds that the payment service made without us
    PAYING = "paying"  #: with at least one payment


@dataclass(frozen=True, kw_only=True, slots=True)
class User:
    """An account and its user. What the profile says is empty until the user has written to the bot."""

    account_id: int
    channel: str
    bot: str
    #: the id by which the channel knows the user
    external_id: str
    #: whether the channel knows where to send a message
    has_address: bool
    available: int
    held: int
    debt: int
    since: datetime
    language: str = ""
    name: str = ""
    username: str = ""
    referred_by: int | None = None
    last_model: str = ""
    banned_at: datetime | None = None
    ban_reason: str = ""
    blocked_at: datetime | None = None
    seen_at: datetime | None = None

    @property
    def has_profile(self) -> bool:
        return self.seen_at is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class UsedPromo:
    """A promo code that a user has used. Amount and runs are 0 if the code was deleted since."""

    code: str
    at: datetime
    amount: int
    runs: int
    author: str
