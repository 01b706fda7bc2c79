"""A simulated Kie.ai and the real client."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from genlock.providers.kie.client import Kie
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from tests.providers.models import CATALOG

#: how long the clients wait for an answer, longer than a busy machine stalls, and how late a slow one is
TIMEOUT_SECONDS, SLOW_SECONDS = 4.0, 6.0
#: the time limit of clients in tests where the provider answers too slowly
IMPATIENT_SECONDS = 1.0
FAST: dict[str, Any] = {"speed": 300.0, "late_seconds": 0.3, "retry_seconds": 0.02, "slow_seconds": SLOW_SECONDS}


@pytest.fixture
async def simulator() -> AsyncIterator[KieSimulator]:
    """A fast simulator without rate limits."""
    async with running_kie(
        catalog=CATALOG, create_limit=(10_000, 1.0), status_limit=(10_000, 1.0), webhook_key=None, **FAST
    ) as kie:
        yield kie


@pytest.fixture
async def kie(simulator: KieSimulator) -> AsyncIterator[Kie]:
    provider = Kie(
        key=simulator.key,
        api_url=simulator.url,
        upload_url=simulator.url,
        timeout_seconds=TIMEOUT_SECONDS,
    )
    yield provider
    await provider.close()


@pytest.fixture
async def impatient_kie(simulator: KieSimulator) -> AsyncIterator[Kie]:
    provider = Kie(key=simulator.key, api_url=simulator.url, timeout_seconds=IMPATIENT_SECONDS)
    yield provider
    await provider.close()
