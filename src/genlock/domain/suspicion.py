"""Suspicion: a job may be what its process died of. The more often it was in hand, the fewer like it are tried at once.

Nothing is written before work is begun: whoever takes over from the dead counts what they held. So most of those
counted are innocent, but an innocent one comes to its end as soon as its process lives long enough, and starts anew.
"""

from collections.abc import Iterable

#: how many jobs that saw one death, two deaths, three and more may be in one instance's hands
ROOMS = (100, 10, 1)
#: from so many deaths on a job is tried alone, after a pause that doubles each time
OFTEN = len(ROOMS)
#: how the operator's list tells of a job that was given up
GIVEN_UP = "its work ended the process"


def is_given_up(attention: str | None) -> bool:
    """Whether a job is on the operator's list because processes died of it."""
    return attention is not None and attention.startswith(GIVEN_UP)


def rooms_left(deaths: Iterable[int]) -> list[int]:
    """How many more of each may be taken by an instance that holds jobs with these numbers of deaths."""
    left = list(ROOMS)
    for number in deaths:
        if number > 0:
            left[min(number, OFTEN) - 1] -= 1
    return [max(0, room) for room in left]
