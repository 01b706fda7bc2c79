"""Isolation: of the jobs and update queues that may have crashed instances, an instance runs one at a time.

Otherwise each crash of a poison job would also count for the update that runs beside it, until that is dead-lettered:
both are released at the same moment, for the same time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field


def _nothing() -> bool:
    return False


@dataclass(slots=True)
class Isolation:
    #: held from the check whether something isolated runs until what was claimed has started
    claiming: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: whether an isolated job runs; whether an isolated update queue runs
    has_job: Callable[[], bool] = _nothing
    has_updates: Callable[[], bool] = _nothing
