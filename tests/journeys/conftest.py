"""What the journeys share."""

from typing import Any

import pytest

from genlock.sandbox.telegram import simulator


@pytest.fixture
def sends_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The channel repeats what is sent, as a client does that tries again without asking about its first try."""
    name, send = simulator.METHODS["sendmessage"]

    async def twice(world: Any, given: Any) -> Any:
        await send(world, given)
        return await send(world, given)

    monkeypatch.setitem(simulator.METHODS, "sendmessage", (name, twice))
