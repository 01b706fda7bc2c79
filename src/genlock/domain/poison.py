"""Poison jobs: a job may be what crashed its process. The more crashes it saw, the fewer such jobs are tried at once.

Nothing is written before work begins: the instance that takes over a crashed one counts a crash for every job it held.
Most of these jobs did not cause the crash; they are processed at the next attempt, which resets their count.
"""

from collections.abc import Iterable

#: how many jobs with one crash, with two, with three and more one instance processes at the same time
SLOTS = (100, 10, 1)
#: from this many crashes on a job is tried alone, after a back-off that doubles each time
ISOLATED_FROM = len(SLOTS)


def free_slots(crash_counts: Iterable[int]) -> list[int]:
    """Return how many more jobs of each class an instance may claim that processes jobs with these crash counts."""
    left = list(SLOTS)
    for crashes in crash_counts:
        if crashes > 0:
            left[min(crashes, ISOLATED_FROM) - 1] -= 1
    return [max(0, free) for free in left]
