"""Updates of the chat, and the lanes they are worked off in."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.update import NewUpdate, Received, Update, UpdateQueue, UpdateState
from genlock.domain.value import value
from genlock.ports.store import Lease


@value
class Settled:
    """What is left in a lane after one of its updates was dealt with."""

    waiting: int
    #: still ours while something waits, with the next update
    lane: UpdateQueue


class UpdateStore(Protocol):
    """Updates of the chat and the lanes they are worked off in. What names a lane changes nothing when it is lost."""

    async def store_update(self, update: NewUpdate) -> Received:
        """Keep an update; when this returns it may be acknowledged."""

    async def claim_update_queues(
        self, limit: int, lease: Lease, *, bots: Sequence[str], urgent: bool, poison: bool = False
    ) -> list[UpdateQueue]:
        """Lease due update queues of these bots, the longest overdue first."""

    async def next_update(self, lane: UpdateQueue) -> UpdateQueue | None:
        """The first update of a lane that we hold; None if there is none, or the lane is lost."""

    async def update_behind(self, update: int) -> Update | None:
        """The update that waits right behind this one of its lane, as far as it has come by now."""

    async def settle_update(self, lane: UpdateQueue, state: UpdateState, note: str, lease: Lease) -> Settled | None:
        """An update is dealt with. None if the lane was lost; it is kept only while more is waiting there."""

    async def postpone_update(self, lane: UpdateQueue, after: float, note: str) -> bool:
        """A try failed: give the lane back until later."""

    async def renew_update_queues(self, queues: Sequence[UpdateQueue], lease: Lease) -> set[int]:
        """Keep lanes for longer; returns those that are still ours."""

    async def release_update_queues(self, instance: str, but: Sequence[int] = (), *, died: bool = False) -> int:
        """Make due the lanes that an instance holds, except some."""

    async def updates(self, state: UpdateState, limit: int) -> list[Update]: ...

    async def retry_update(self, update: int) -> bool:
        """Work off an update that was set aside."""
