"""`genlock smoke`: one real `genlock serve` process with both simulators, checked in nine phases.

The phases go from a user's first message to the retry of a delivery that failed. What happened is read from the
simulators; the ledger is read from the database after the process has stopped.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import time
from typing import TypeVar

import aiohttp

from genlock.app.databases import open_store
from genlock.domain.inbox import InboxState
from genlock.domain.money import HoldState
from genlock.domain.printable import escape_unprintable
from genlock.log import Silent
from genlock.providers.kie.signature import SIGNATURE, TIMESTAMP, sign
from genlock.sandbox.chaos.evaluation import all_jobs, prompt_of
from genlock.sandbox.fleet import WEBHOOK_KEY, Fleet, running_fleet
from genlock.sandbox.kie.endpoints import ENDPOINTS
from genlock.sandbox.kie.faults import Fault as KieFault
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.kie.task import Task
from genlock.sandbox.processes import ProgramFailed, guarded_folder
from genlock.sandbox.records import Order, Records, is_notice
from genlock.sandbox.telegram.chats import Message
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.journal import Call
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import running_telegram

PHASES = ("person", "balance", "job", "task", "callback", "money", "delivery", "orphan", "undelivered retry")
#: the other phases depend on these
NEEDED = {"person", "job", "task"}
WELCOME_CREDITS = 500
MODEL = "z-image"
PROMPT, LOST, RETRIED = "cat astronaut", "cat whose callback got lost", "cat that would not be shown"
#: a task takes about one second; a slow create answer takes SLOW_SECONDS
KIE_SPEED = 60.0
SLOW_SECONDS = 2.0
TIMEOUT_SECONDS = 15.0


class PhaseFailed(Exception):
    """A phase found something wrong."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    name: str
    ok: bool
    detail: str


T = TypeVar("T")
#: phases that run at the same time
PhaseGroup = dict[str, Callable[[], Awaitable[str]]]


@dataclass(kw_only=True)
class Smoke:
    fleet: Fleet
    records: Records
    ann: SimulatedUser
    bob: SimulatedUser
    eve: SimulatedUser
    database_url: str
    orders: dict[str, Order] = field(default_factory=dict)

    async def person(self) -> str:
        await self.ann.start()
        answers = await self._wait_for(
            "an answer to /start",  # the welcome picture comes without a text
            lambda: [message for message in self.records.bot_messages(self.ann) if message.text],
        )
        first_line = answers[0].text.splitlines()[0].replace("\u00a0", " ")  # the space between a number and its word
        return f"/start was answered: “{first_line}”"

    async def balance(self) -> str:
        asked = await self.ann.say("/balance")
        await self._wait_for(
            f"{WELCOME_CREDITS} credits after /balance",
            lambda: [
                message
                for message in self.records.bot_messages(self.ann)
                if message.id > asked.id and str(WELCOME_CREDITS) in message.text
            ],
        )
        return f"/balance shows the {WELCOME_CREDITS} credits that every user starts with"

    async def job(self) -> str:
        order = await self._order(PROMPT, self.ann)
        await self._wait_for(
            "an answer to the order",
            lambda: [message for message in self.records.bot_messages(self.ann) if message.id > order.message],
        )
        return f"/gen {MODEL} {PROMPT} was accepted after {time() - order.asked_at:.1f} s"

    async def task(self) -> str:
        task = await self._task(PROMPT)
        if task.model.id != MODEL or not (task.callback_url or "").startswith(self.fleet.url):
            raise PhaseFailed(f"Kie.ai was asked for {task.model.id} with callbacks to {task.callback_url}")
        return f"Kie.ai was asked once for {task.model.id}: task {task.id}"

    async def callback(self) -> str:
        task = await self._task(PROMPT)
        calls = await self._wait_for(
            "a callback", lambda: [sent for sent in self.fleet.kie.service.callback_sender.sent if sent.task == task.id]
        )
        if calls[-1].status != 200:
            raise PhaseFailed(f"Kie.ai's callback was answered with {calls[-1].status}")
        return "Kie.ai's signed callback was stored and answered with 200"

    async def delivery(self) -> str:
        seconds = await self._check_delivered(PROMPT)
        return f"one image in the chat {seconds:.1f} s after the order, and one notice"

    async def orphan(self) -> str:
        """A callback arrives at the URL without a secret while the create call is still unanswered."""
        self.fleet.kie.faults.order(KieFault.CREATE_SLOW, KieFault.CALLBACK_LOST)
        await self._order(LOST, self.bob)
        status = await self._send_untrusted_callback(await self._task(LOST))
        if status != 200:
            raise PhaseFailed(f"a callback without a job was answered with {status}")
        await self._check_delivered(LOST)
        return "a callback without a job was stored, matched to its job, and the image was delivered"

    async def retry(self) -> str:
        """One edit fails; the next takes effect but its answer is lost."""
        faults = self.fleet.telegram.faults
        await self._task(LOST)  # the faults set for the next order belong to this one
        faults.once(Fault.BAD_GATEWAY, method="editMessageMedia", chat=self.eve.id)
        await self._order(RETRIED, self.eve)
        await self._wait_for(
            "an edit that failed", lambda: [call for call in self._edits() if Fault.BAD_GATEWAY in call.faults]
        )
        faults.once(Fault.DROP_AFTER, method="editMessageMedia", chat=self.eve.id)
        await self._wait_for(
            "an edit whose answer was lost", lambda: [call for call in self._edits() if Fault.DROP_AFTER in call.faults]
        )
        seconds = await self._check_delivered(RETRIED)
        return f"shown once after a failed edit and a lost answer, {seconds:.1f} s after the order"

    async def money(self) -> str:
        """Check the ledger after the service has stopped."""
        [status] = await self.fleet.stop()
        if status:
            raise PhaseFailed(f"the service ended with {status}:\n{self.fleet.instances[0].log_tail()}")
        store = await open_store(self.database_url, observer=Silent())
        try:
            broken = await store.violations(settled=True)
            jobs = await all_jobs(store)
            wallets = {job.account_id: await store.wallet(job.account_id) for job in jobs}
            matched = [callback.task_id for callback in await store.callbacks(InboxState.MATCHED, 10)]
        finally:
            await store.close()
        paid = {prompt_of(job): job.price for job in jobs if job.hold_state is HoldState.CAPTURED}
        if broken or set(paid) != set(self.orders):
            raise PhaseFailed(f"paid for {paid}, violations {broken}")
        left = {number: (wallet.available, wallet.held) for number, wallet in wallets.items()}
        if left != {job.account_id: (WELCOME_CREDITS * 1000 - job.price, 0) for job in jobs}:
            raise PhaseFailed(f"accounts have {left} (available, held) in thousandths of a credit")
        if matched != [self.records.tasks()[LOST][0].id]:
            raise PhaseFailed(f"unexpected matched orphan callbacks: {matched}")
        return f"{len(paid)} users paid for one image each ({jobs[0].price / 1000:g} credits); the ledger balances"

    # actions and waiting

    async def _order(self, prompt: str, user: SimulatedUser) -> Order:
        message = await user.say(f"/gen {MODEL} {prompt}")
        order = Order(user=user, prompt=prompt, message=message.id, asked_at=time())
        self.orders[prompt] = order
        return order

    async def _task(self, prompt: str) -> Task:
        tasks = await self._wait_for(f"a task for {prompt!r}", lambda: self.records.tasks()[prompt])
        if len(tasks) > 1:
            raise PhaseFailed(f"Kie.ai was asked {len(tasks)} times for {prompt!r}")
        return tasks[0]

    async def _check_delivered(self, prompt: str) -> float:
        order = self.orders[prompt]
        await self._wait_for(f"the image for {prompt!r}", lambda: self.records.results(order))
        seconds = time() - order.asked_at
        await self._wait_for("the notice", lambda: [message for message in self._after(order) if is_notice(message)])
        results = len(self.records.results(order))
        notices = sum(is_notice(message) for message in self._after(order))
        if (results, notices) != (1, 1) or len(self.records.tasks()[prompt]) != 1:
            raise PhaseFailed(f"{results} images and {notices} notices of {len(self.records.tasks()[prompt])} tasks")
        return seconds

    def _after(self, order: Order) -> list[Message]:
        return [message for message in self.records.bot_messages(order.user) if message.id > order.message]

    def _edits(self) -> list[Call]:
        return self.fleet.telegram.calls("editMessageMedia", chat=self.eve.id)

    async def _send_untrusted_callback(self, task: Task) -> int:
        """Send a callback as Kie.ai would, but to the URL without a job secret; return the HTTP status."""
        kinds = (task.model.family, task.model.operation)
        endpoint = next(endpoint for endpoint in ENDPOINTS if (endpoint.family, endpoint.operation) == kinds)
        body = json.dumps(endpoint.callbacks(replace(task, ended=time()))[-1][1]).encode()
        now = int(time())
        headers = {
            "Content-Type": "application/json",
            TIMESTAMP: str(now),
            SIGNATURE: sign(task.id, now, WEBHOOK_KEY),
        }
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.fleet.url}/callbacks/kie", data=body, headers=headers) as response,
        ):
            return response.status

    async def _wait_for(self, what: str, look: Callable[[], list[T]]) -> list[T]:
        """Wait until `look` returns something. Raises PhaseFailed after TIMEOUT_SECONDS."""
        deadline = time() + TIMEOUT_SECONDS
        while not (found := look()):
            if time() > deadline:
                users = (self.ann, self.bob, self.eve)
                shown = [(message.kind, message.text[:80]) for user in users for message in user.messages]
                raise PhaseFailed(f"did not see {what} within {TIMEOUT_SECONDS:.0f} s; the chats show {shown}")
            await asyncio.sleep(0.02)
        return found

    def phases(self) -> list[PhaseGroup]:
        """In the order in which they run; the ledger is read last."""
        return [
            {"person": self.person},
            {"balance": self.balance},
            {"job": self.job},
            {"task": self.task},
            {"callback": self.callback},
            {"delivery": self.delivery},
            {"orphan": self.orphan, "undelivered retry": self.retry},
            {"money": self.money},
        ]


def run(*, as_json: bool) -> int:
    with guarded_folder() as folder:
        began = time()
        phases = asyncio.run(_run(folder))
    ok = all(phase.ok for phase in phases)
    if as_json:
        report = {"ok": ok, "phases": [asdict(phase) for phase in phases], "seconds": round(time() - began, 1)}
        text = json.dumps(report, ensure_ascii=False, indent=2)
        sys.stdout.write(escape_unprintable(text, keep="\n") + "\n")
    else:
        _print(phases, time() - began)
    return 0 if ok else 1


async def _run(folder: Path) -> list[Phase]:
    found: dict[str, Phase] = {}
    try:
        async with _running(folder) as smoke:
            for together in smoke.phases():
                done = await asyncio.gather(*(_try(name, try_) for name, try_ in together.items()))
                found |= {phase.name: phase for phase in done}
                if any(not phase.ok and phase.name in NEEDED for phase in done):
                    break
    except ProgramFailed as error:
        found["person"] = Phase(name="person", ok=False, detail=str(error))
    return [found.get(name) or Phase(name=name, ok=False, detail="not reached") for name in PHASES]


async def _try(name: str, try_: Callable[[], Awaitable[str]]) -> Phase:
    try:
        return Phase(name=name, ok=True, detail=await try_())
    except PhaseFailed as error:
        return Phase(name=name, ok=False, detail=str(error))


@asynccontextmanager
async def _running(folder: Path) -> AsyncIterator[Smoke]:
    url = f"sqlite:///{folder}/genlock.db"
    async with (
        running_telegram(files=folder / "telegram") as telegram,
        running_kie(webhook_key=WEBHOOK_KEY, speed=KIE_SPEED, slow_seconds=SLOW_SECONDS) as kie,
        running_fleet(
            telegram=telegram,
            kie=kie,
            folder=folder,
            database_url=url,
            settings={"GENLOCK_WELCOME_CREDITS": str(WELCOME_CREDITS)},
        ) as fleet,
    ):
        await fleet.start(1)
        ann, bob, eve = (telegram.add_user(name, language="en", started=False) for name in ("Ann", "Bob", "Eve"))
        yield Smoke(fleet=fleet, records=Records(telegram, kie), ann=ann, bob=bob, eve=eve, database_url=url)


def _print(phases: list[Phase], seconds: float) -> None:
    from rich.console import Console  # noqa: PLC0415 - not needed for JSON

    console = Console(highlight=False)
    for phase in phases:
        mark = "[green]✓[/green]" if phase.ok else "[red]✗[/red]"
        console.print(f"{mark} {phase.name:18}", end="")
        console.print(escape_unprintable(phase.detail, keep="\n"), markup=False, soft_wrap=True)
    good = sum(phase.ok for phase in phases)
    console.print(f"{good} of {len(phases)} phases passed ({seconds:.1f} s)")
