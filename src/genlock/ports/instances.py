"""Instances of the service: heartbeats, leases of crashed instances, roles that one instance has at a time."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.value import value


@value
class Role:
    """Who has a role that one instance has at a time. The epoch grows with every change of holder."""

    holder: str
    epoch: int


class InstanceStore(Protocol):
    async def heartbeat(self, instance: str, silent_seconds: float) -> list[str]:
        """Record that this instance is alive. Returns the instances without a heartbeat for `silent_seconds`."""

    async def orphaned_instances(self) -> Sequence[str]:
        """Instances that have certainly ended, because only this process uses the database."""

    async def release_leases(self, instance: str, keep: Sequence[int] = (), *, crashed: bool = False) -> int:
        """Release the leases of an instance, except of the jobs in `keep`; if there are none, delete the instance.

        With `crashed`, count a crash for each job, because each may have caused it.
        """

    async def take_role(self, name: str, instance: str, seconds: float) -> Role:
        """Take or renew a role if it is free. Returns the current holder."""

    async def release_role(self, name: str, instance: str) -> None:
        """Give up a role at once, if this instance has it."""
