"""What a user has ordered recently: the input of the quotas."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Activity:
    """Orders of a user in the last minute and hour. The waits are seconds until the oldest order leaves its window."""

    running: int
    minute: int
    minute_wait: float
    hour: int
    hour_wait: float
