"""The product as it runs: real `genlock serve` processes behind a balancer, with both simulators for the world."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.simulator import KieSimulator
from genlock.sandbox.load_balancer import LoadBalancer
from genlock.sandbox.telegram.simulator import TelegramSimulator

WEBHOOK_KEY = "sandbox-webhook-key"


@dataclass(kw_only=True)
class Fleet:
    telegram: TelegramSimulator
    kie: KieSimulator
    balancer: LoadBalancer
    #: a guarded one: logs and pids are here
    folder: Path
    settings: dict[str, str]
    instances: list[Instance] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where the world reaches it."""
        return self.balancer.url

    def add(self) -> Instance:
        """One more process, begun now."""
        instance = Instance(f"instance-{len(self.instances) + 1}", self.folder, self.settings)
        self.instances.append(instance)
        instance.start()
        self.balancer.add(instance.port)
        return instance

    async def start(self, count: int) -> None:
        """So many processes, all ready."""
        await asyncio.gather(*(instance.wait_until_ready() for instance in [self.add() for _ in range(count)]))
        await self.balancer.wait_until_ready()

    def log_lines(self) -> list[dict[str, Any]]:
        """What all of them have said so far, in the order of their times."""
        return sorted((line for instance in self.instances for line in instance.log_lines), key=itemgetter("at"))

    async def stop(self) -> list[int]:
        """End all in order; their exit statuses."""
        return list(await asyncio.gather(*(one.stop() for one in self.instances if one.running)))


def simulator_settings(telegram_url: str, token: str, kie: KieSimulator, database_url: str) -> dict[str, str]:
    """The settings of an instance between the simulators: what each of them must be told."""
    return {
        "GENLOCK_TELEGRAM_TOKEN": token,
        "GENLOCK_TELEGRAM_API_URL": telegram_url,
        "GENLOCK_KIE_API_KEY": kie.key,
        "GENLOCK_KIE_API_URL": kie.url,
        "GENLOCK_KIE_UPLOAD_URL": kie.url,
        "GENLOCK_DATABASE_URL": database_url,
    }


@asynccontextmanager
async def running_fleet(
    *,
    telegram: TelegramSimulator,
    kie: KieSimulator,
    folder: Path,
    database_url: str,
    port: int = 0,
    settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Fleet]:
    """A fleet without instances yet. Whatever still runs when the block ends is killed: stop it before."""
    async with LoadBalancer.running(port) as balancer:
        shared = {
            **simulator_settings(telegram.url, telegram.token, kie, database_url),
            "GENLOCK_KIE_WEBHOOK_KEY": WEBHOOK_KEY,
            "GENLOCK_MEDIA_PRIVATE_HOSTS": ",".join(_host(url) for url in (telegram.url, kie.url, kie.files_url)),
            "GENLOCK_PUBLIC_URL": balancer.url,
        }
        fleet = Fleet(
            telegram=telegram, kie=kie, balancer=balancer, folder=folder, settings=shared | dict(settings or {})
        )
        try:
            yield fleet
        finally:
            for instance in fleet.instances:
                if instance.running:
                    instance.kill()


def _host(url: str) -> str:
    return urlsplit(url).netloc
