"""Suspicion: a job may be what its process died of. The more often it was in hand, the fewer like it are tried at once.

Nothing is written before work is begun: whoever takes over from the dead counts what they held. So most of those
counted are innocent, but an innocent one comes to its end as soon as its process lives long enough, and starts anew.
"""

from collections.abc import Iterable

#: how many jobs that saw one death, two crash_count, three and more may be in one instance's hands
SLOTS = (100, 10, 1)
#: from so many crash_count on a job is tried alone, after a pause that doubles each time
ISOLATED_FROM = len(SLOTS)


def free_slots(crash_count: Iterable[int]) -> list[int]:
    """How many more of each may be taken by an instance that holds jobs with these numbers of crash_count."""
    left = list(SLOTS)
    for number in crash_count:
        if number > 0:
            left[min(number, ISOLATED_FROM) - 1] -= 1
    return [max(0, room) for room in left]
