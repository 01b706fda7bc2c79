"""The simulated providers of a sandbox besides Kie.ai, and what the chat page needs of all of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from genlock.domain.catalog import Catalog
from genlock.sandbox.fal.simulator import FalSimulator, running_fal
from genlock.sandbox.generations.from_catalog import simulated_models
from genlock.sandbox.kie.simulator import KieSimulator
from genlock.sandbox.replicate.simulator import ReplicateSimulator, running_replicate
from genlock.sandbox.telegram.provider_switches import SimulatedProvider


@dataclass(frozen=True, kw_only=True)
class MoreProviders:
    """The running simulators of fal and Replicate."""

    fal: FalSimulator
    replicate: ReplicateSimulator

    def settings(self) -> dict[str, str]:
        """Settings that make an instance order from them, too."""
        return {
            "GENLOCK_FAL_KEY": self.fal.key,
            "GENLOCK_FAL_API_URL": self.fal.url,
            "GENLOCK_FAL_REST_URL": self.fal.url,
            "GENLOCK_REPLICATE_TOKEN": self.replicate.token,
            "GENLOCK_REPLICATE_API_URL": self.replicate.url,
        }

    def hosts(self) -> list[str]:
        """Hosts on this machine from which results are downloaded."""
        urls = (self.fal.url, self.fal.service.files.url, self.replicate.url, self.replicate.service.files.url)
        return [urlsplit(url).netloc for url in urls]

    def beside(self, kie: KieSimulator) -> dict[str, SimulatedProvider]:
        """All providers by name, for the chat page."""
        fal, replicate = self.fal, self.replicate
        all_ = (
            ("kie", "Kie.ai", kie.listener, lambda: len(kie.service.tasks)),
            ("fal", "fal", fal.listener, lambda: len(fal.service.generations)),
            ("replicate", "Replicate", replicate.listener, lambda: len(replicate.service.generations)),
        )
        return {
            name: SimulatedProvider(name=name, title=title, listener=listener, count_tasks=count)
            for name, title, listener, count in all_
        }


@asynccontextmanager
async def running_more_providers(
    catalog: Catalog, *, speed: float = 1.0, seed: int | None = None
) -> AsyncIterator[MoreProviders]:
    """Run the simulators of fal and Replicate with the models of the catalog's offers until the block ends."""
    async with (
        running_fal(simulated_models(catalog, "fal"), speed=speed, seed=seed) as fal,
        running_replicate(simulated_models(catalog, "replicate"), speed=speed, seed=seed) as replicate,
    ):
        yield MoreProviders(fal=fal, replicate=replicate)
