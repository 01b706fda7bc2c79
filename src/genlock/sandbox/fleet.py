"""Real `genlock serve` processes behind a load balancer, which use the simulators of Telegram and the providers."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.simulator import KieSimulator
from genlock.sandbox.load_balancer import LoadBalancer
from genlock.sandbox.providers import MoreProviders
from genlock.sandbox.telegram.simulator import TelegramSimulator

WEBHOOK_KEY = "sandbox-webhook-key"


@dataclass(kw_only=True)
class Fleet:
    telegram: TelegramSimulator
    kie: KieSimulator
    balancer: LoadBalancer
    #: from `guarded_folder`: holds logs and pid files
    folder: Path
    settings: dict[str, str]
    instances: list[Instance] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The public address, that of the load balancer."""
        return self.balancer.url

    def add(self) -> Instance:
        """Start one more process."""
        instance = Instance(f"instance-{len(self.instances) + 1}", self.folder, self.settings)
        self.instances.append(instance)
        instance.start()
        self.balancer.add(instance.port)
        return instance

    async def start(self, count: int) -> None:
        """Start `count` processes and wait until all are ready."""
        await asyncio.gather(*(instance.wait_until_ready() for instance in [self.add() for _ in range(count)]))
        await self.balancer.wait_until_ready()

    def log_lines(self) -> list[dict[str, Any]]:
        """Return log lines of all instances so far, in order of time."""
        return sorted((line for instance in self.instances for line in instance.log_lines), key=itemgetter("at"))

    async def stop(self) -> list[int]:
        """Stop all running instances gracefully; return their exit statuses."""
        return list(await asyncio.gather(*(instance.stop() for instance in self.instances if instance.running)))


def simulator_settings(telegram_url: str, token: str, kie: KieSimulator, database_url: str) -> dict[str, str]:
    """Settings that make an instance use the simulators."""
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
    more: MoreProviders | None = None,
    port: int = 0,
    private_hosts: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Fleet]:
    """Yield a fleet without instances, which will also use the providers in `more`.

    Instances that still run when the block ends are killed; stop them before.
    """
    async with LoadBalancer.running(port) as balancer:
        hosts = [_host(url) for url in (telegram.url, kie.url, kie.files_url)] + (more.hosts() if more else [])
        shared = {
            **simulator_settings(telegram.url, telegram.token, kie, database_url),
            "GENLOCK_KIE_WEBHOOK_KEY": WEBHOOK_KEY,
            "GENLOCK_MEDIA_PRIVATE_HOSTS": ",".join([*hosts, *private_hosts]),
            "GENLOCK_PUBLIC_URL": balancer.url,
            **(more.settings() if more else {}),
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
