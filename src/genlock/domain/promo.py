"""Promo codes and free runs."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, kw_only=True, slots=True)
class Promo:
    """A code that gives credits or free runs."""

    code: str
    amount: int
    runs: int
    #: uses by all users together; None: unlimited
    uses_max: int | None
    per_account: int
    until: datetime | None
    closed: bool = False
    uses: int = 0
    #: "" for a code that users of every bot may use
    bot: str = ""
    #: the operator who created it
    author: str = ""
    #: None until it is stored
    created_at: datetime | None = None


class PromoVerdict(StrEnum):
    GIVEN = "given"
    UNKNOWN = "unknown"
    OVER = "over"
    USED = "used"


@dataclass(frozen=True, kw_only=True, slots=True)
class PromoUse:
    verdict: PromoVerdict
    #: 1 for the account's first use of this code, 2 for the second, …
    number: int = 0
    amount: int = 0
    runs: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FreeRuns:
    """Free runs that a user has left."""

    today: int
    gifts: int

    @property
    def left(self) -> int:
        return self.today + self.gifts
