"""API clients of a simulation: they repeat orders under their idempotency keys, and get signed webhooks."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import cast

from genlock.api.job_view import JobView, status_of
from genlock.api.order_acceptance import check_same_request, client_request_key
from genlock.api.problems import Problem
from genlock.api.result_links import ResultLinks
from genlock.api.types import FINAL
from genlock.api.webhook_owners import WebhookOwners
from genlock.api.webhook_secrets import SECRET_BYTES, WebhookSecrets
from genlock.api.webhook_sender import WebhookSender
from genlock.channels.api.address import ApiAddress
from genlock.channels.api.channel import NAME as CHANNEL
from genlock.client.errors import InvalidWebhook
from genlock.client.webhooks import verify_webhook
from genlock.domain.api_key import ALL_SCOPES, NewApiKey
from genlock.domain.catalog import Catalog, Category, Model, Output
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.delivery import Part
from genlock.domain.field import Field, FieldType
from genlock.domain.job import Job, State
from genlock.domain.money import EntryKind, HoldState
from genlock.domain.public_number import PublicNumbers
from genlock.domain.result import PartKind
from genlock.domain.stored_file import StoredFile
from genlock.domain.webhook import NewWebhook, WebhookEvent, show_secret
from genlock.engine.context import EngineContext
from genlock.engine.periodic import PeriodicTask
from genlock.engine.sell import NotSold, Order, SaleRules, Seller
from genlock.i18n.translator import package_texts
from genlock.media.download import FetchFailed
from genlock.media.post import PostAnswer, Posts
from genlock.ports import Database, Placed, Violation
from genlock.sandbox.simulation.addition import Addition
from genlock.sandbox.simulation.faulty_channel import FaultyChannel
from genlock.sandbox.simulation.fleet import Fleet, Instance
from genlock.sandbox.simulation.instances import InstanceLifecycle, transmit
from genlock.sandbox.simulation.virtual_time import VirtualClock
from genlock.sandbox.simulation.world import WEBHOOK_FAULTS, World

ORDERS = 10
MONEY, SPEND_LIMIT = 30_000, 4500
RULES = SaleRules(free_per_day=2, running_max=6, per_minute=None, per_hour=None)
#: the events that each endpoint wants; none stands for all
ENDPOINTS: Mapping[str, frozenset[WebhookEvent]] = {
    "https://a/hook": frozenset(),
    "https://b/hook": frozenset({WebhookEvent.JOB_SUCCEEDED, WebhookEvent.JOB_FAILED}),
}
#: how long an instance waits for the answer of an endpoint
ANSWER_SECONDS = 15.0


def _model(name: str, *, free: bool) -> Model:
    return Model(
        id=name, title=name, vendor="", category=next(iter(Category)), provider="kie", provider_credit_usd=Decimal(1),
        outputs=(next(iter(Output)),), fields=(Field(name="prompt", type=FieldType.TEXT),), own_price=1500,
        expected_seconds=31, deadline_seconds=40, free=free,
    )  # fmt: skip


CATALOG = CurrentCatalog(Catalog(models={name: _model(name, free=name == "free") for name in ("model", "free")}))


class ApiChannel(FaultyChannel):
    """Stores results for API clients."""

    name = CHANNEL

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        return _stored(await super().put(job, index, part), job, index, part)

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        return _stored(await super().send(job, index, part), job, index, part)

    def progress_points(self, job: Job) -> Sequence[float]:
        return ()


def _stored(placed: Placed, job: Job, index: int, part: Part) -> Placed:
    if part.kind is not PartKind.FILE:
        return Placed(message=placed.message)
    key = f"20300101/{job.account_id}/{job.id}-{index}"
    return Placed(message=placed.message, file=str(StoredFile(key=key, content_type="image/png", size=1, sha256="0")))


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    url: str
    id: str
    event: str
    job_id: int


class Receiver:
    """The endpoints of the clients: some first attempts of an event meet a fault."""

    def __init__(self, world: World, store: Database, view: JobView) -> None:
        self._world = world
        self._store = store
        self._view = view
        self._rng = world.stream("webhook receiver")
        self._seen: set[tuple[str, str]] = set()
        self.secrets: dict[str, str] = {}
        self.arrivals: list[Arrival] = []

    async def receive(self, url: str, body: bytes, headers: Mapping[str, str]) -> PostAnswer:
        await asyncio.sleep(self._rng.random() * 0.4)
        event = url, headers["webhook-id"]
        kind = None if event in self._seen else self._world.pick(WEBHOOK_FAULTS)
        self._seen.add(event)
        if kind == "webhook: refused":
            return PostAnswer(status=503, headers={}, text="")
        if kind != "webhook: request lost":
            await self._record(url, body, headers)
        if kind:
            await asyncio.sleep(self._rng.random() * ANSWER_SECONDS)
            raise FetchFailed("no answer")
        return PostAnswer(status=204, headers={}, text="")

    async def _record(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        now = VirtualClock(self._world.loop).now().timestamp
        try:
            event = verify_webhook(self.secrets[url], headers, body, now=now)
        except InvalidWebhook as invalid:
            self._world.truth.add_violation("A webhook is signed for its endpoint.", 0, f"{url}: {invalid}")
            return
        job_id = self._view.job_id(event.data["id"])
        assert job_id is not None
        self.arrivals.append(Arrival(url=url, id=event.id, event=event.type, job_id=job_id))
        self._world.note("client", "WEBHOOK", job=job_id, event=event.type, url=url)
        await self._check_state(job_id, event.type)

    async def _check_state(self, job_id: int, event: str) -> None:
        """Check that what is told has happened.

        A result that is shown again makes the job's state go back, and one that is late and invalid makes it failed.
        """
        job = await self._store.job(job_id)
        assert job is not None
        if event == WebhookEvent.JOB_STARTED:
            happened = job.submitted_at is not None
        else:
            was_expired = event == WebhookEvent.JOB_EXPIRED and job_id in self._world.truth.invalid_ends
            happened = event == f"job.{status_of(job)}" or was_expired or self._world.truth.resends[job_id] > 0
        if not happened:
            detail = f"{event}, though the job is {job.state}, {job.delivery}"
            self._world.truth.add_violation("A webhook tells only what has happened.", job_id, detail)


class _Posts:
    """The connection of one instance to the endpoints."""

    def __init__(self, world: World, lifecycle: InstanceLifecycle, receiver: Receiver) -> None:
        self._world = world
        self._lifecycle = lifecycle
        self._receiver = receiver

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> PostAnswer:
        send = self._receiver.receive
        return await transmit(self._world, self._lifecycle, "webhook.post", lambda: send(url, body, headers))


class ApiClients(Addition):
    calls = (
        "webhook.post", "webhook.post", "store.claim_webhooks", "store.due_webhook_deliveries",
        "store.settle_webhook_deliveries", "store.release_webhook", "store.take_free_run",
    )  # fmt: skip

    def __init__(self, world: World, store: Database, fleet: Fleet) -> None:
        self._world = world
        self._truth = world.truth
        self._store = store
        self._fleet = fleet
        self._rng = world.stream("api clients")
        self._secrets = WebhookSecrets(
            keys={"key": b"k" * 32}, former_key=b"", random_bytes=world.stream("webhook secrets").randbytes
        )
        self._view = JobView(
            numbers=PublicNumbers(),
            catalog=CATALOG,
            texts=package_texts().translator("en"),
            links=ResultLinks(key=b"key", now=world.loop.time),
            keep_days=30,
        )
        self._receiver = Receiver(world, store, self._view)
        self._account_id = self._key_id = 0
        #: the answers that say that a job is new, by idempotency key
        self._new: Counter[str] = Counter()
        fleet.more_channels = {CHANNEL: ApiChannel(world)}

    async def prepare(self) -> None:
        store = self._store
        account_id = self._account_id = await store.ensure_account(CHANNEL, "", "client")
        await store.transfer(account_id, EntryKind.GRANT, MONEY, f"grant:{account_id}")
        self._truth.granted[account_id] = MONEY
        new_key = NewApiKey(
            account_id=account_id, name="", scopes=ALL_SCOPES, shown="", secret_hash="", spend_limit=SPEND_LIMIT,
            request_key="key", author="operator",
        )  # fmt: skip
        key, _ = await store.add_api_key(new_key)
        self._key_id = key.id
        for number, (url, events) in enumerate(ENDPOINTS.items()):
            secret, sealed = self._secrets.make(f"we_{number}", 1)
            assert len(secret) == SECRET_BYTES
            self._receiver.secrets[url] = show_secret(secret)
            webhook = NewWebhook(
                account_id=account_id, public_id=f"we_{number}", url=url, events=events, secret=sealed
            )  # fmt: skip
            await store.add_webhook(webhook, most=len(ENDPOINTS))

    def tasks_of(self, lifecycle: InstanceLifecycle, ctx: EngineContext) -> Sequence[PeriodicTask]:
        async def disable(*_: object) -> None:
            self._truth.add_violation("An endpoint is disabled only after days.", 0, "it was disabled")

        sender = WebhookSender(
            store=cast("Database", ctx.store),
            instance=ctx.instance,
            posts=cast("Posts", _Posts(self._world, lifecycle, self._receiver)),
            view=self._view,
            secrets=self._secrets,
            base_url="https://api",
            observer=ctx.observer,
            now=VirtualClock(self._world.loop, lambda: lifecycle.clock_offset).now,
            rng=self._world.stream(f"webhook sender {ctx.instance}"),
            owners=cast("WebhookOwners", SimpleNamespace(disable=disable)),
        )
        self._fleet.closing[lifecycle.name].append(sender.close)
        return [PeriodicTask(name="send_webhooks", period_seconds=1.0, run=sender.round)]

    # what clients do

    async def work(self) -> None:
        free_share = self._rng.choice((0.3, 0.9))
        for number in range(ORDERS):
            await asyncio.sleep(self._rng.choice((0.0, 0.0, 10.0)) * self._rng.random())
            model = "free" if self._rng.random() < free_share else "model"
            self._world.spawn(self._order_repeatedly(f"k{number}", model))

    async def _order_repeatedly(self, key: str, model: str) -> None:
        """Order, at the same moment more than once, and again later; then use the key for something else."""
        copies = self._rng.choice((1, 2, 3))
        answers = await asyncio.gather(*(self._order(key, model, "a fox") for _ in range(copies)))
        for _ in range(self._rng.choice((0, 1, 2))):
            await asyncio.sleep(self._rng.uniform(0.0, 30.0))
            answers.append(await self._order(key, model, "a fox"))
        jobs = sorted({job.id for job in answers if isinstance(job, Job)})
        if jobs:
            self._truth.orders[self._account_id, client_request_key(key)] = jobs[0]
            if isinstance(await self._order(key, model, "an owl"), Job):
                self._truth.add_violation("An idempotency key stands for one order.", jobs[0], "it gave another one")
        if len(jobs) > 1 or self._new[key] > 1:
            detail = f"key {key} gave the jobs {jobs}; {self._new[key]} answers said that the job was new"
            self._truth.add_violation("An idempotency key gives one job.", jobs[0], detail)

    async def _order(self, key: str, model: str, prompt: str) -> Job | NotSold | None:
        """Order until an instance answers. None: the key was used for another order."""
        correlation_id = f"{key}/{self._rng.getrandbits(32):x}"
        placeholder = self._fleet.more_channels[CHANNEL].post(str(ApiAddress(request_hash=prompt)))
        order = Order(
            account_id=self._account_id, model=model, values={"prompt": prompt}, key=client_request_key(key),
            channel=CHANNEL, address=str(ApiAddress(request_hash=prompt)), correlation_id=correlation_id,
            api_key_id=self._key_id, placeholder=placeholder,
        )  # fmt: skip

        async def sell(instance: Instance) -> Job | NotSold:
            store = cast("Database", instance.store)
            return await Seller(engine=instance.engine, store=store, catalog=CATALOG, rules=RULES).sell(order)

        job = await self._fleet.ask_until_answered(sell, self._rng)
        if isinstance(job, NotSold):
            return job
        self._new[key] += job.correlation_id == correlation_id
        self._truth.placeholders[job.id].update([job.placeholder] if job.placeholder else [])
        try:
            check_same_request(job, prompt)
        except Problem:
            return None
        return job

    # checking

    async def is_settled(self) -> bool:
        for webhook in await self._store.webhooks(self._account_id):
            if await self._store.count_waiting_deliveries(webhook.id, 1):
                return False
        return True

    async def check(self) -> list[Violation]:
        jobs = await self._store.api_jobs(self._account_id, before=None, limit=1000)
        found = [_violation(job, rule, detail) for job in jobs for rule, detail in self._check_webhooks(job)]
        spent = sum(job.price for job in jobs if job.hold_state is not HoldState.RELEASED)
        if spent > SPEND_LIMIT:
            found.append(_violation(jobs[0], "A key spends no more than its limit.", f"{spent} of {SPEND_LIMIT}"))
        free = [job.id for job in jobs if job.model == "free" and not job.price and job.state is State.SUCCEEDED]
        if len(free) > RULES.free_per_day:
            found.append(
                _violation(jobs[0], "A user has no more free runs than a day gives.", f"the jobs {free} were free")
            )
        return found

    def _check_webhooks(self, job: Job) -> list[tuple[str, str]]:
        """Check that each endpoint was told the end of a job at least once, and of each event under one id."""
        found, end = [], f"job.{status_of(job)}"
        for url, wanted in ENDPOINTS.items():
            events, ids = [], defaultdict[str, set[str]](set)
            for arrival in self._receiver.arrivals:
                if (arrival.url, arrival.job_id) == (url, job.id):
                    events.append(arrival.event)
                    ids[arrival.event].add(arrival.id)
            if wanted and not wanted.issuperset(events):
                found.append(("An endpoint gets only the events it wants.", f"{url} got {events}"))
            due = status_of(job) in FINAL and (not wanted or end in wanted)
            if due and (end not in events or (events[-1] != end and end not in events[events.index(events[-1]) :])):
                found.append(("An endpoint is told the end of a job.", f"{url} got {events}, not {end} last"))
            if WebhookEvent.JOB_STARTED in events[1:] and events[0] != WebhookEvent.JOB_STARTED:
                found.append(("Events of a job arrive in their order.", f"{url} got {events}"))
            often = [event for event, known in ids.items() if len(known) > self._times(job)]
            if often:
                found.append(("A webhook that is repeated keeps its id.", f"{url}: {often} have several ids"))
        return found

    def _times(self, job: Job) -> int:
        """Return how often the same may have happened to a job: attempts, and results that were shown again."""
        return 1 + self._truth.resends[job.id] + self._truth.retries[job.id] + max(0, job.attempt - 1)


def _violation(job: Job, rule: str, detail: str) -> Violation:
    return Violation(rule=rule, subject=str(job.id), detail=detail)
