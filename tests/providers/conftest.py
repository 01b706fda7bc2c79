"""A simulated Kie.ai and the real client."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from genlock.providers.kie.client import Kie
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from tests.providers.models import CATALOG

FAST: dict[str, Any] = {"speed": 300.0, "late_seconds": 0.3, "retry_seconds": 0.02, "slow_seconds": 2.0}


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
        timeout_seconds=1.0,
    )
    yield provider
    await provider.close()
