"""What a user has ordered recently: the input of the quotas."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Activity:
    """What a person has done of late, for the limits. Waits: until the oldest falls out of its window."""

    running: int
    minute: int
    minute_wait: float
    hour: int
    hour_wait: float
