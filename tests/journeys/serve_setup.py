"""Processes of `genlock serve`, with the simulators that they need."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from genlock.app.databases import open_store
from genlock.domain.update import UpdateState
from genlock.log import Silent
from genlock.sandbox.fleet import simulator_settings
from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.packaged import CATALOG

TOKEN = "7123456789:AAF0dQ-x5R9fJ3k1Lm_pQ7rS2tU4vW6xY8z"
WEBHOOK_KEY = "whsec-5f2b8c1d9e3a4706"


@dataclass
class ServeSetup:
    """Both simulators, a database, and the instances that run on them."""

    folder: Path
    url: str
    telegram: TelegramSimulator
    kie: KieSimulator
    instances: list[Instance] = field(default_factory=list)
    #: settings of all instances
    more: dict[str, str] = field(default_factory=dict)

    def settings(self, **more: str) -> dict[str, str]:
        return {
            **simulator_settings(self.telegram.url, self.telegram.token, self.kie, self.url),
            "GENLOCK_KIE_WEBHOOK_KEY": WEBHOOK_KEY,
            **self.more,
            **more,
        }

    async def start(self, **more: str) -> Instance:
        instance = self.begin(**more)
        await instance.wait_for_event("READY")
        return instance

    def begin(self, **more: str) -> Instance:
        """Start an instance without waiting until it is ready."""
        instance = Instance(f"instance-{len(self.instances) + 1}", self.folder, self.settings(**more))
        self.instances.append(instance)
        instance.start()
        return instance

    async def done_updates(self) -> list[int]:
        """Ids of handled updates in the store, oldest first."""
        store = await open_store(self.url, observer=Silent())
        try:
            return [update.update_id for update in reversed(await store.updates(UpdateState.DONE, 1000))]
        finally:
            await store.close()

    def handled_updates(self) -> list[int]:
        """Ids of updates that the instances logged as handled."""
        return [line["update"] for instance in self.instances for line in instance.events("UPDATE_DONE")]


async def running_setup(url: str, folder: Path) -> AsyncIterator[ServeSetup]:
    async with running_telegram(token=TOKEN) as telegram, running_kie(catalog=CATALOG) as kie:
        setup = ServeSetup(folder, url, telegram, kie)
        try:
            yield setup
        finally:
            for instance in setup.instances:
                instance.kill()
            for instance in setup.instances:
                for secret in (TOKEN, TOKEN.partition(":")[2], kie.key, WEBHOOK_KEY):
                    assert secret not in instance.text
                assert "Traceback" not in instance.text, instance.text[instance.text.index("Traceback") - 500 :]
