"""Sales figures of a period."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """A period in numbers; money in thousandths of a credit."""

    orders: int
    delivered: int
    failed: int
    users: int
    newcomers: int
    revenue: int
    topups: int
    stars: int
    #: what the provider billed without a paying user, in thousandths of its credit
    loss: int
