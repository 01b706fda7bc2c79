"""Isolation: an instance tries what may have crashed others alone, either a job or an update queue.

Otherwise an update would be suspected of the crashes that a job causes beside it, again and again, and dead-lettered:
both are released in the same moment, for the same time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field


def _nothing() -> bool:
    return False


@dataclass(slots=True)
class Isolation:
    #: held from the look at what is isolated until the start of what was claimed
    claiming: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: whether an isolated job runs, and whether an isolated update queue does
    has_job: Callable[[], bool] = _nothing
    has_updates: Callable[[], bool] = _nothing
