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
    #: how often it may be used by all together; None: as often as people like
    uses_max: int | None
    per_account: int
    until: datetime | None
    closed: bool = False
    uses: int = 0


class PromoVerdict(StrEnum):
    GIVEN = "given"
    UNKNOWN = "unknown"
    OVER = "over"
    USED = "used"


@dataclass(frozen=True, kw_only=True, slots=True)
class PromoUse:
    verdict: PromoVerdict
    #: which of the person's uses of this code it is
    number: int = 0
    amount: int = 0
    runs: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FreeRuns:
    """Free runs that a person has left."""

    today: int
    gifts: int

    @property
    def left(self) -> int:
        return self.today + self.gifts
