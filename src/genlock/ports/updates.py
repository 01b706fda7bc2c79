"""Incoming updates of a channel, and one queue per user in which they are handled in order."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.update import NewUpdate, Received, Update, UpdateQueue, UpdateState
from genlock.domain.value import value
from genlock.ports.jobs import Lease


@value
class Settled:
    """What remains in an update queue after one of its updates was handled."""

    waiting: int
    #: with the next update, and still leased, while updates are waiting
    queue: UpdateQueue


class UpdateStore(Protocol):
    """Updates and their queues. A method that takes an UpdateQueue changes nothing if its lease is lost."""

    async def store_update(self, update: NewUpdate) -> Received:
        """Store an update; after that it may be acknowledged."""

    async def receive_update(self, update: NewUpdate, lease: Lease | None) -> tuple[Received, UpdateQueue | None]:
        """Store an update and, with a lease, take its queue if it was empty: no claim is needed then.

        The queue is returned with its first update, to the call that stored that update.
        """

    async def claim_update_queues(
        self, limit: int, lease: Lease, *, bots: Sequence[str], urgent: bool, poison: bool = False
    ) -> list[UpdateQueue]:
        """Lease due update queues of these bots, the longest overdue first."""

    async def next_update(self, queue: UpdateQueue) -> UpdateQueue | None:
        """Return the queue with its first update. None if it is empty or the lease was lost."""

    async def following_update(self, update: int) -> Update | None:
        """Return the next update in the queue of this one, if it has arrived."""

    async def is_update_open(self, update: int) -> bool:
        """Whether an update is not settled yet."""

    async def settle_update(self, queue: UpdateQueue, state: UpdateState, note: str, lease: Lease) -> Settled | None:
        """Set the final state of the queue's first update. None if the lease was lost.

        The lease is kept only while more updates are waiting.
        """

    async def postpone_update(self, queue: UpdateQueue, after: float, note: str) -> bool:
        """Release the queue after a failed attempt, until later."""

    async def renew_update_queues(self, queues: Sequence[UpdateQueue], lease: Lease) -> set[int]:
        """Renew leases. Returns the ids of the queues that are still leased to the caller."""

    async def release_update_queues(self, instance: str, keep: Sequence[int] = (), *, crashed: bool = False) -> int:
        """Release the update queues of an instance, except those in `keep`. With `crashed`, count a crash for each."""

    async def updates(self, state: UpdateState, limit: int) -> list[Update]:
        """Return the newest updates in a state."""

    async def retry_update(self, update: int) -> bool:
        """Queue a dead update again."""
