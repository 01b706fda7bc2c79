"""Promo codes and free runs."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from genlock.domain.money import write_amount

#: databases cannot add more days to a date than this
DAYS_MAX = 36_500
RUNS_MAX = USES_MAX = 999_999_999
_CODE = re.compile(r"[A-Z0-9_-]{6,40}")


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


def promo_terms(promo: Promo, days: int | None) -> dict[str, str | int]:
    """Return what a new code gives and how often, as the audit log keeps it; without what is not limited."""
    terms: dict[str, str | int] = {
        "credits": write_amount(promo.amount) if promo.amount else "",
        "runs": promo.runs,
        "uses": promo.uses_max or 0,
        "each": promo.per_account if promo.per_account != 1 else 0,
        "days": days or 0,
    }
    return {name: value for name, value in terms.items() if value}


def promo_problems(promo: Promo, days: int | None) -> dict[str, str]:
    """Return what is wrong with a new code that is valid for some days: kinds of problems by field."""
    uses = 1 if promo.uses_max is None else promo.uses_max
    wrong = {
        "code": ("code", not _CODE.fullmatch(promo.code)),
        "amount": ("gift", (promo.amount > 0) == (promo.runs > 0)),
        "runs": ("count", not 0 <= promo.runs <= RUNS_MAX),
        "uses": ("count", not 1 <= uses <= USES_MAX),
        "each": ("count", not 1 <= promo.per_account <= USES_MAX),
        "days": ("days", days is not None and not 1 <= days <= DAYS_MAX),
    }
    return {field: problem for field, (problem, is_wrong) in wrong.items() if is_wrong}


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
