"""The adapters of this package as subjects of the provider suite, each against its simulator."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from time import time
from typing import Any

from aiohttp import ClientTimeout

from genlock.domain.catalog import Output
from genlock.domain.task import Handle
from genlock.ports import ProviderBundle
from genlock.providers.fal import bundle as fal
from genlock.providers.kie import bundle as kie
from genlock.providers.replicate import bundle as replicate
from genlock.sandbox.fal.simulator import FalSimulator, running_fal
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.generation import SimulatedInput, SimulatedModel
from genlock.sandbox.kie.faults import Fault as KieFault
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from genlock.sandbox.replicate.simulator import ReplicateSimulator, running_replicate
from genlock.testing import NotShown, ProviderSubject, SentCallback, Situation
from tests.providers.models import CATALOG
from tests.sandbox.webhook_receiver import WebhookReceiver, receiving_webhooks

NOTHING_LISTENS = "http://127.0.0.1:9"
WEBHOOK_KEY = "whsec-of-the-simulator"
WRONG = "a-key-that-is-wrong"
PROMPT = {"prompt": "a fox in the snow"}
SLOW_SPEED = 0.001
ANSWER_SECONDS = 1.0
#: what each simulator calls a situation
FAULTS = {
    Situation.NO_CREDIT: "create_no_credit",
    Situation.UNKNOWN_MODEL: "create_unknown_model",
    Situation.TOO_MANY: "create_429",
    Situation.SERVER_ERROR: "create_500",
    Situation.ANSWER_LOST: "create_cut",
    Situation.ANSWER_GARBLED: "create_garbled",
    Situation.ANSWER_LATE: "create_slow",
    Situation.STATUS_TOO_MANY: "status_429",
    Situation.STATUS_SERVER_ERROR: "status_500",
    Situation.STATUS_GARBLED: "status_garbled",
    Situation.STATUS_WORD: "status_word",
    Situation.CANCEL_UNHEARD: "cancel_500",
    Situation.TASK_FAILS: "task_fail",
    Situation.TASK_MODERATED: "task_moderated",
    Situation.TASK_EMPTY: "result_empty",
}
KIE_FAULTS: dict[Situation, str] = {
    situation: fault
    for situation, fault in (FAULTS | {Situation.UNKNOWN_MODEL: "create_paused"}).items()
    if situation is not Situation.CANCEL_UNHEARD  # Kie.ai cannot cancel
}


class SimulatedSubject(ProviderSubject):
    """What the three have in common."""

    values: Mapping[str, Any] = PROMPT

    def __init__(self, simulator: Any, receiver: WebhookReceiver, faults: Mapping[Situation, str], kind: Any) -> None:
        self.simulator = simulator
        self.receiver = receiver
        self.callback_url = f"{receiver.url}/callback"
        self._faults = faults
        self._kind = kind
        self._made: list[ProviderBundle] = []

    def _remember(self, bundle: ProviderBundle) -> ProviderBundle:
        self._made.append(bundle)
        return bundle

    async def _lose_patience(self) -> None:
        """Let the adapters wait only as long as a test can, on connections that they make from now on."""
        for bundle in self._made:
            adapter: Any = bundle.provider
            adapter._http._timeout = ClientTimeout(total=ANSWER_SECONDS)
            await adapter._http.close()
            adapter._http._creates = adapter._http._queries = None

    async def arrange(self, situation: Situation, handle: Handle | None = None) -> None:
        if situation is Situation.ANSWER_LATE:
            await self._lose_patience()
        if situation is Situation.TASK_SLOW:
            self.simulator.service.speed = SLOW_SPEED
        elif situation not in self._faults:
            raise NotShown(f"the simulator does not show: {situation}")
        elif handle is None:
            self.simulator.faults.order(self._kind(self._faults[situation]))
        else:
            self.task(handle).faults.add(self._kind(self._faults[situation]))

    def task(self, handle: Handle) -> Any:
        return self.simulator.service.generations[handle.task_id]

    async def created(self) -> int:
        return len(self.simulator.service.generations)

    async def callback(self, handle: Handle) -> SentCallback:
        while True:
            for request in self.receiver.received:
                if handle.task_id.encode() in request.body and self.is_last(request.body):
                    return SentCallback(headers=request.headers, body=request.body, at=time())
            await self.receiver.wait_for(len(self.receiver.received) + 1)

    def is_last(self, body: bytes) -> bool:
        """Whether the callback is about the end of its task."""
        return True


class KieSubject(SimulatedSubject):
    model = "z-image"
    simulator: KieSimulator

    @property
    def secrets(self) -> tuple[str, ...]:  # type: ignore[override] # they are the simulator's
        return (self.simulator.key, WRONG)

    async def arrange(self, situation: Situation, handle: Handle | None = None) -> None:
        if situation is Situation.NO_CREDIT:
            raise NotShown("a balance is not a fault of one call")
        await super().arrange(situation, handle)

    def task(self, handle: Handle) -> Any:
        return self.simulator.service.tasks[handle.task_id]

    async def created(self) -> int:
        return len(self.simulator.service.tasks)

    def make(self, key: str | None = None, url: str | None = None) -> ProviderBundle:
        return self._remember(
            kie.make_bundle(
                key=key or self.simulator.key,
                credit_usd=Decimal("0.005"),
                api_url=url or self.simulator.url,
                upload_url=url or self.simulator.url,
                webhook_key=WEBHOOK_KEY,
            )
        )

    def make_with_wrong_key(self) -> ProviderBundle:
        return self.make(key=WRONG)

    def make_unreachable(self) -> ProviderBundle:
        return self.make(url=NOTHING_LISTENS)


class FalSubject(SimulatedSubject):
    model = "fal-ai/flux/dev"
    simulator: FalSimulator

    @property
    def secrets(self) -> tuple[str, ...]:  # type: ignore[override] # they are the simulator's
        return (self.simulator.key, WRONG)

    def make(self, key: str | None = None, url: str | None = None) -> ProviderBundle:
        url = url or self.simulator.url
        return self._remember(fal.make_bundle(key=key or self.simulator.key, credit_usd=Decimal(1), api_url=url))

    def make_with_wrong_key(self) -> ProviderBundle:
        return self.make(key=WRONG)

    def make_unreachable(self) -> ProviderBundle:
        return self.make(url=NOTHING_LISTENS)


class ReplicateSubject(SimulatedSubject):
    model = "black-forest-labs/flux-dev"
    simulator: ReplicateSimulator

    @property
    def secrets(self) -> tuple[str, ...]:  # type: ignore[override] # they are the simulator's
        return (self.simulator.token, WRONG)

    def make(self, token: str | None = None, url: str | None = None) -> ProviderBundle:
        url = url or self.simulator.url
        return self._remember(
            replicate.make_bundle(token=token or self.simulator.token, credit_usd=Decimal(1), api_url=url)
        )

    def make_with_wrong_key(self) -> ProviderBundle:
        return self.make(token=WRONG)

    def make_unreachable(self) -> ProviderBundle:
        return self.make(url=NOTHING_LISTENS)


def _models(model: str) -> dict[str, SimulatedModel]:
    prompt = SimulatedInput(name="prompt", required=True)
    return {model: SimulatedModel(id=model, output=Output.IMAGE, inputs=(prompt,))}


@asynccontextmanager
async def running_kie_subject() -> AsyncIterator[KieSubject]:
    limits: dict[str, Any] = {"create_limit": (10_000, 1.0), "status_limit": (10_000, 1.0)}
    async with (
        receiving_webhooks() as receiver,
        running_kie(catalog=CATALOG, webhook_key=WEBHOOK_KEY, speed=2000.0, slow_seconds=2.0, **limits) as one,
    ):
        yield KieSubject(one, receiver, KIE_FAULTS, KieFault)


@asynccontextmanager
async def running_fal_subject() -> AsyncIterator[FalSubject]:
    async with (
        receiving_webhooks() as receiver,
        running_fal(_models(FalSubject.model), speed=2000.0, slow_seconds=2.0) as one,
    ):
        yield FalSubject(one, receiver, FAULTS, Fault)


@asynccontextmanager
async def running_replicate_subject() -> AsyncIterator[ReplicateSubject]:
    async with (
        receiving_webhooks() as receiver,
        running_replicate(_models(ReplicateSubject.model), speed=2000.0, slow_seconds=2.0) as one,
    ):
        yield ReplicateSubject(one, receiver, FAULTS, Fault)
