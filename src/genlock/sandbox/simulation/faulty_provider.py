"""A provider with faults: lost answers; callbacks early, late, twice, never, forged and contradicting."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime

from genlock.domain.errors import ProviderBusy, ProviderError, SubmitRefused, SubmitUnknown
from genlock.domain.inbox import Callback
from genlock.domain.job import Job
from genlock.domain.result import Outcome, PartKind, Piece, Report
from genlock.domain.task import Handle, TaskOrder
from genlock.ports import Provider
from genlock.sandbox.simulation.world import Task, World

#: passes provider name, token and body of a callback to an instance; None if it was not acknowledged
ReceiveCallback = Callable[[str, str | None, bytes], Awaitable[Callback | None]]

TRIES = 4
_CREATE_FAULTS = ("create: busy", "create: refused", "create: request lost")
_CREATE_FAULTS_OF_TWO = (
    *_CREATE_FAULTS,
    "create: refused for lack of credit",
    "create: refused though accepted",
    "create: does not connect",
)
_OUTCOMES = {"success": Outcome.SUCCESS, "fail": Outcome.FAILURE, "generating": Outcome.RUNNING}


class FaultyProvider(Provider):
    name = "kie"

    def __init__(self, world: World, receive_callback: ReceiveCallback) -> None:
        self._world = world
        self._truth = world.truth
        self._receive_callback = receive_callback
        self._rng = world.stream("provider")

    # the Provider port

    async def create(self, order: TaskOrder) -> Handle:
        world, job = self._world, order.job
        await world.delay(job.id)
        kind = world.pick(_CREATE_FAULTS_OF_TWO if world.two_providers else _CREATE_FAULTS, job=job.id)
        if kind == "create: busy":
            raise ProviderBusy(self._rng.uniform(0.5, 5.0))
        if kind == "create: refused":
            self._truth.failures.add(job.id)
            raise SubmitRefused("bad_input", "the prompt is not allowed")
        if kind == "create: request lost":
            raise SubmitUnknown
        if kind == "create: does not connect":
            raise ProviderBusy(self._rng.uniform(0.5, 5.0), down=True)
        if kind == "create: refused for lack of credit":
            self._truth.failures.add(job.id)
            raise SubmitRefused("no_provider_credits")
        task = self._start(order)
        if kind == "create: refused though accepted":
            task.disowned = True
            self._truth.failures.add(job.id)
            raise SubmitRefused("model_unavailable")
        await world.delay(job.id)
        kind = world.pick(("create: answer lost", "create: unforeseen error"), job=job.id)
        if kind == "create: answer lost":
            raise SubmitUnknown
        if kind == "create: unforeseen error":
            raise RuntimeError("the answer made no sense")
        return Handle(task_id=task.id, details=f"at {task.id}")

    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        world, job, task_id = self._world, order.job, handle.task_id
        await world.delay(job.id)
        kinds = ("status: busy", "status: error", "status: lags behind", "status: unknown word")
        kind = world.pick(kinds, job=job.id)
        task = self._truth.tasks[task_id]
        if kind == "status: busy":
            raise ProviderBusy(self._rng.uniform(0.5, 5.0))
        if kind == "status: error":
            raise ConnectionResetError
        if kind == "status: unknown word":
            return Report(outcome=Outcome.UNKNOWN, task_id=task_id, word="unheard-of")
        if kind == "status: lags behind" or not task.done:
            return Report(outcome=Outcome.RUNNING, task_id=task_id, word="running")
        return self.read_callback(_body(task.id, task.outcome, task.pieces, unbilled=task.unbilled))

    async def find(self, order: TaskOrder, since: datetime) -> Sequence[Handle]:
        """Return the tasks of the order that this provider works on."""
        await self._world.delay(order.job.id)
        if self._world.happens("find: error", job=order.job.id):
            raise ProviderError("the list does not come")
        mine = [task for task in self._truth.tasks_of(order.job.id) if task.provider == order.offer.provider]
        found = [task for task in mine if task.asked == (order.model, order.input())]
        # After an operator's retry, the tasks of the submits before it are given up.
        first = order.job.attempt == 1 and not self._truth.retries[order.job.id]
        # An instance that has lost its lease may search after the input was erased; what it finds changes nothing.
        if first and order.job.lease_token == self._truth.tokens[order.job.id] and found != mine:
            rule = "A task whose answer was lost is searched for by what was sent."
            self._truth.add_violation(rule, order.job.id, f"{order.input()} instead of {mine[0].asked}")
        return [Handle(task_id=task.id, details=f"at {task.id}") for task in found]

    def read_callback(self, body: bytes) -> Report:
        data = json.loads(body)
        return Report(
            outcome=_OUTCOMES.get(data["state"], Outcome.UNKNOWN),
            task_id=data["task"],
            pieces=tuple(Piece(kind=PartKind(kind), value=value) for kind, value in data["pieces"]),
            error_code=data["error"],
            cost=data["cost"],
            word=data["state"],
        )

    # tasks

    def _start(self, order: TaskOrder) -> Task:
        job, callback_url = order.job, order.callback_url
        self._check_input(job)
        number = len(self._truth.tasks) + 1
        outcome, pieces = self._choose_outcome(f"t{number}")
        task = Task(
            id=f"t{number}",
            provider=order.offer.provider,
            job_id=job.id,
            asked=(order.model, order.input()),
            outcome=outcome,
            pieces=pieces,
        )
        self._truth.tasks[task.id] = task
        self._check_limit(task)
        if self._world.two_providers and self._world.happens("task: fails without a bill", job=job.id):
            task.outcome, task.pieces, task.unbilled = Outcome.FAILURE, (), True
        outcome, pieces = task.outcome, task.pieces
        if outcome is Outcome.FAILURE or not any(piece.value.strip() for piece in pieces):
            self._truth.failures.add(job.id)
        self._world.note("provider", "TASK", job=job.id, task=task.id, outcome=outcome, pieces=len(pieces))
        token = callback_url.rsplit("/", 1)[1] if callback_url else None
        self._world.spawn(self._run(task, token, (job.deadline_at - job.read_at).total_seconds()))
        return task

    def _check_limit(self, new: Task) -> None:
        """Check how many tasks run here, apart from those of orders that the engine has given up."""
        most, here = self._world.tasks_at_once, new.provider
        jobs = {task.job_id for task in self._truth.tasks.values() if task.provider == here and not task.done}
        made = sorted(job_id for job_id in jobs if self._truth.submitted_to.get(job_id) == here)
        if most is not None and len(made) > most:
            rule = "A provider works on no more tasks at once than it may."
            self._truth.add_violation(rule, new.job_id, f"{here} works on the jobs {made}, not on {most}")

    def _check_input(self, job: Job) -> None:
        """Check that a job which begins with a result gets a file that this provider made."""
        if job.input == "null":
            self._truth.add_violation("An order is made of its input.", job.id, "it was erased before")
            return
        file = json.loads(job.input).get("file")
        tasks = self._truth.tasks.values()
        made = {piece.value for task in tasks for piece in (*task.pieces, *task.other_pieces)}
        if file is not None and file not in made:
            self._truth.add_violation("A next step gets the file of the result.", job.id, f"{file!r} was never made")

    def _choose_outcome(self, name: str) -> tuple[Outcome, tuple[Piece, ...]]:
        roll = self._rng.random()
        if roll < 0.14:
            return Outcome.FAILURE, ()
        if roll < 0.20:
            return Outcome.SUCCESS, tuple(Piece(value=value) for value in ("", " ")[: self._rng.randint(0, 2)])
        if roll < 0.30:
            return Outcome.SUCCESS, (Piece(kind=PartKind.TEXT, value=f"the words of {name}"),)
        count = self._rng.choice((1, 1, 2, 3))
        pieces = tuple(Piece(value=f"https://files/{name}/{place}") for place in range(count))
        for piece in pieces:
            if self._world.happens("part: refused at some levels", value=piece.value):
                self._truth.refusals[piece.value] = self._rng.randint(1, 3)
            elif self._world.happens("part: refused at every level", value=piece.value):
                self._truth.refusals[piece.value] = 4
            elif self._world.happens("part: invalid result", value=piece.value):
                self._truth.invalid_results.add(piece.value)
        return Outcome.SUCCESS, pieces

    async def _run(self, task: Task, token: str | None, deadline_seconds: float) -> None:
        """Run a task to its end, and send its callbacks."""
        early = self._world.happens("callback: early", job=task.job_id)
        long = not early and self._world.happens("task: long", job=task.job_id)
        seconds = 0.0 if early else self._rng.uniform(25.0, 50.0) if long else self._rng.uniform(0.5, 25.0)
        if token and self._world.happens("callback: progress", job=task.job_id):
            self._call(task, token, _body(task.id, "generating"), seconds / 2)
        if token and self._world.happens("callback: unknown word", job=task.job_id):
            self._call(task, token, _body(task.id, "unheard-of"), seconds / 2)
        if self._world.happens("callback: without token", job=task.job_id):
            self._call(task, None, _body(task.id, task.outcome, task.pieces, unbilled=task.unbilled), seconds)
        with suppress(TimeoutError):
            await asyncio.wait_for(task.end_now.wait(), seconds)
        task.done = True
        if token:
            self._send_callbacks(task, token, max(0.0, deadline_seconds - seconds))
        self._send_forged(task, token)

    def _send_callbacks(self, task: Task, token: str, until_deadline: float) -> None:
        body = _body(task.id, task.outcome, task.pieces, unbilled=task.unbilled)
        when = ("callback: never", "callback: late", "callback: after the deadline")
        kind = None if task.end_now.is_set() else self._world.pick(when, job=task.job_id)
        delay = self._rng.uniform(0.0, 0.5 if task.end_now.is_set() else 1.0)
        if kind == "callback: late":
            delay += self._rng.uniform(5.0, 40.0)
        elif kind == "callback: after the deadline":
            delay += until_deadline + self._rng.uniform(0.0, 15.0)
        if kind != "callback: never":
            self._call(task, token, body, delay)
        if self._world.happens("callback: twice", job=task.job_id):
            self._call(task, token, body, self._rng.uniform(0.0, 5.0))
        if self._world.happens("callback: contradicts", job=task.job_id):
            self._call(task, token, self._opposite(task), self._rng.uniform(0.0, 5.0))
        if self._world.afterwards and self._world.happens("callback: another result", job=task.job_id):
            self._call(task, token, self._another_result(task), self._rng.uniform(0.0, 60.0))
        if self._world.happens("callback: unreadable", job=task.job_id):
            self._call(task, token, b"<html>502</html>", self._rng.uniform(0.0, 5.0))
        if self._world.happens("callback: names another task", job=task.job_id):
            other = self._rng.choice(
                [sibling for sibling in self._truth.tasks.values() if sibling.provider == task.provider]
            )
            self._truth.named_elsewhere.add((task.job_id, other.id))
            body = _body(other.id, other.outcome, other.pieces, unbilled=other.unbilled)
            self._call(task, token, body, self._rng.uniform(0.0, 5.0))

    def _opposite(self, task: Task) -> bytes:
        if task.outcome is Outcome.FAILURE:
            task.pieces = (Piece(value=f"https://files/{task.id}/after-all"),)
            return _body(task.id, Outcome.SUCCESS, task.pieces)
        self._truth.failures.add(task.job_id)
        return _body(task.id, Outcome.FAILURE)

    def _another_result(self, task: Task) -> bytes:
        task.other_pieces = (Piece(value=f"https://files/{task.id}/another"),)
        return _body(task.id, Outcome.SUCCESS, task.other_pieces)

    def _send_forged(self, task: Task, token: str | None) -> None:
        stolen = (Piece(value="https://evil/"),)
        if token and self._world.happens("callback: forged", job=task.job_id):
            wrong = token.partition(".")[0] + ".guessed"
            self._call(task, wrong, _body(task.id, Outcome.SUCCESS, stolen), self._rng.uniform(0.0, 5.0))
        if self._world.happens("callback: unauthenticated", job=task.job_id):
            unknown = f"unknown-{task.id}"
            self._call(task, None, _body(unknown, Outcome.SUCCESS, stolen), self._rng.uniform(0.0, 5.0))

    # callbacks

    def _call(self, task: Task, token: str | None, body: bytes, delay: float) -> None:
        self._world.spawn(self._call_back(task, token, body, delay))

    async def _call_back(self, task: Task, token: str | None, body: bytes, delay: float) -> None:
        await asyncio.sleep(delay)
        for _ in range(TRIES):
            if callback := await self._receive_callback(task.provider, token, body):
                self._acknowledged(task, callback)
                return
            await asyncio.sleep(self._rng.uniform(0.5, 4.0))

    def _acknowledged(self, task: Task, callback: Callback) -> None:
        try:
            report = self.read_callback(callback.body)
        except ValueError:
            self._truth.acknowledged[callback.id] = callback.job_id, None
            return
        self._truth.acknowledged[callback.id] = callback.job_id, report.task_id
        if (
            callback.job_id is not None
            and report.task_id == task.id
            and report.outcome is Outcome.SUCCESS
            and any(piece.value.strip() for piece in report.pieces)
        ):
            self._truth.acknowledged_successes.add(task.job_id)


def _body(task_id: str, state: str, pieces: tuple[Piece, ...] = (), *, unbilled: bool = False) -> bytes:
    failed = state == Outcome.FAILURE
    free = failed and unbilled
    data = {
        "task": task_id,
        "state": "fail" if failed else state,
        "pieces": [[piece.kind, piece.value] for piece in pieces],
        "error": "provider_failed" if free else "generation_failed" if failed else "",
        "cost": 0 if free else 1000,
    }
    return json.dumps(data).encode()
