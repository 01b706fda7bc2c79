"""The call fence: a task calls a channel only while no other instance can have taken over what it works on.

A fencing token protects the database, but a channel cannot check it. So an instance that was paused between its
decision and its call would make a late edit. The engine sets the check, and a channel asks it when it sends.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from genlock.domain.errors import ChannelBusy

#: how long to wait before the work is tried again, if it is still ours
RETRY_SECONDS = 0.5


def _always() -> bool:
    return True


#: whether the current task still works on what is leased to this instance; tasks without a lease may always call
may_call: ContextVar[Callable[[], bool]] = ContextVar("may_call", default=_always)


class CallFenced(ChannelBusy):
    """This instance was silent so long that another may have taken over the work; nothing was sent."""

    def __init__(self) -> None:
        super().__init__(RETRY_SECONDS)


@contextmanager
def calls_while(holds: Callable[[], bool]) -> Iterator[None]:
    """Refuse the calls inside the block also when `holds` is false."""
    outer = may_call.get()
    token = may_call.set(lambda: outer() and holds())
    try:
        yield
    finally:
        may_call.reset(token)


def check_call() -> None:
    """Raise CallFenced if another instance may have taken over the work of this task."""
    if not may_call.get()():
        raise CallFenced
