"""What some seeds add to the scenario: more work for the instances, with checks of its own."""

from collections.abc import Sequence

from genlock.engine.context import EngineContext
from genlock.engine.periodic import PeriodicTask
from genlock.ports import Violation
from genlock.sandbox.simulation.instances import InstanceLifecycle


class Addition:
    """Does nothing; each addition overrides what it needs. Its random streams are its own."""

    #: calls at which instances are killed and paused besides
    calls: Sequence[str] = ()

    def tasks_of(self, lifecycle: InstanceLifecycle, ctx: EngineContext) -> Sequence[PeriodicTask]:
        """Return the further periodic tasks of a new instance."""
        return []

    async def prepare(self) -> None:
        """Store what must be there before the first instance starts."""

    async def work(self) -> None:
        """Act until the faults are over."""

    async def is_settled(self) -> bool:
        """Whether nothing is left to be done."""
        return True

    async def check(self) -> list[Violation]:
        """Return the violations found when no work is left."""
        return []
