"""Sales figures of a period."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """A stretch of time in numbers; money in thousandths of a credit."""

    orders: int
    delivered: int
    failed: int
    users: int
    newcomers: int
    revenue: int
    topups: int
    stars: int
    #: what the provider billed and nobody paid for, in thousandths of its credit
    loss: int
