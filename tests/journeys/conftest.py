"""Fixtures of the tests with real processes."""

from typing import Any

import pytest

from genlock.sandbox.telegram import simulator


@pytest.fixture(autouse=True)
def forked(forked_services: None) -> None:
    """Fork the services that a test starts."""


@pytest.fixture
def sends_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the simulator execute every sendMessage twice, as if the channel retried it blindly."""
    name, send = simulator.METHODS["sendmessage"]

    async def twice(state: Any, arguments: Any) -> Any:
        await send(state, arguments)
        return await send(state, arguments)

    monkeypatch.setitem(simulator.METHODS, "sendmessage", (name, twice))
