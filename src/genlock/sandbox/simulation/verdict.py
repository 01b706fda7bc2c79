"""The verdict on a run: the engine's rows against what really happened."""

from collections import Counter

from genlock.domain.delivery import plan
from genlock.domain.inbox import InboxState
from genlock.domain.job import AttentionCode, Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.domain.result import PartKind
from genlock.engine.context import EngineRules, UnknownSubmit
from genlock.engine.invariants import End, ends
from genlock.ports import Store, Violation
from genlock.sandbox.simulation.bad_channel import words_of
from genlock.sandbox.simulation.world import Task, Truth

#: rules that do not hold for a job, with what was found instead
Broken = list[tuple[str, str]]


async def check(truth: Truth, store: Store, people: list[int], rules: EngineRules) -> list[Violation]:
    """Everything that is wrong when no work is left."""
    found = await store.violations(settled=True)
    jobs = await store.jobs(limit=1000)
    _hand_over(jobs, truth)
    for job in jobs:
        broken = [
            *_check_end(job, truth),
            *_check_giving_up(job, truth, rules),
            *_check_chat(job, truth),
            *_check_once(job, truth, rules),
        ]
        found += [Violation(rule=rule, subject=str(job.id), detail=detail) for rule, detail in broken]
    found += _check_orders(jobs, truth)
    found += await _check_wallets(store, jobs, people, truth)
    found += await _check_inbox(store, truth)
    return found


def _hand_over(jobs: list[Job], truth: Truth) -> None:
    """Whose task another job has taken, being told of it first, cannot have its result."""
    for job in jobs:
        for task in _tasks(job, truth):
            if task.job_id != job.id:
                truth.told.discard(task.job_id)
                if task.job_id in truth.failures:
                    truth.failures.add(job.id)


def _tasks(job: Job, truth: Truth) -> list[Task]:
    """A job's tasks. One that knew none yet believes its own address: then it has the task that was named there."""
    named = truth.tasks.get(job.task_id or "")
    return [*truth.tasks_of(job.id), *([named] if named and named.job_id != job.id else [])]


def _check_end(job: Job, truth: Truth) -> Broken:
    reached = ends(job)
    row = f"{job.state}, {job.delivery}, notice {job.notice}, hold_state {job.hold_state}, attention {job.attention_reason}"
    broken: Broken = []
    if len(reached) != 1:
        broken.append(("Every job comes to exactly one end.", f"reached {reached or 'none'}: {row}"))
    if job.id in truth.told and job.state is State.EXPIRED and not job.late and End.LISTED not in reached:
        broken.append(("No result is lost.", f"a success was acknowledged, but: {row}"))
    if job.state is State.FAILED and job.id not in truth.failures and not _spoilt(job, truth):
        broken.append(("Only the provider can fail a job.", row))
    if job.id in truth.cancelled and job.state is not State.CANCELLED:
        broken.append(("What was cancelled stays cancelled.", row))
    if End.DELIVERED in reached and _free(job) and not truth.resends[job.id]:
        broken.append(("A delivered result is paid for.", row))
    if job.state is State.CANCELLED and job.id in truth.told and job.cost is None:
        broken.append(("What the provider bills is recorded.", row))
    return broken


def _spoilt(job: Job, truth: Truth) -> bool:
    """The provider called something a result that is none."""
    return any(piece.value in truth.pages for task in _tasks(job, truth) for piece in task.pieces)


def _free(job: Job) -> bool:
    """A result in time whose money went back."""
    return job.state is State.SUCCEEDED and job.hold_state is HoldState.RELEASED


def _check_giving_up(job: Job, truth: Truth, rules: EngineRules) -> Broken:
    """A job is left to the operator only for a reason that the world knows."""
    said, tries = job.attention_reason or "", 2 * truth.hiccups[job.id]  # a lost answer may count one twice
    if job.attention_code is AttentionCode.STAGE_ERROR and tries < rules.stage_attempts:
        return [("Nobody gives up without a reason.", f"{said}, after {tries} tries")]
    exhausted = job.attention_code is AttentionCode.RETRIES_EXHAUSTED
    if job.delivery is Delivery.UNDELIVERABLE and exhausted and tries < rules.delivery_attempts:
        return [("Nobody gives up without a reason.", f"{said}, after {tries} tries")]
    if job.attention_code is AttentionCode.POISON:
        return [("Nobody gives up without a reason.", f"{said}, but no process dies of its work here")]
    refused = any(truth.refusals.get(part.value, 0) == 4 for part in job.parts)
    broken = any(part.value in truth.pages for part in job.parts)
    lasting = job.address in truth.closed or refused or broken or exhausted
    if job.delivery is Delivery.UNDELIVERABLE and not lasting:
        return [("Nobody gives up without a reason.", f"undeliverable: {job.attention_reason}")]
    places = _places(job, truth)
    deleted = any(message.deleted for message in truth.messages.values() if message.address in places)
    if job.delivery is Delivery.UNKNOWN and not deleted:
        return [
            ("Nobody gives up without a reason.", f"unknown, though no message was deleted: {job.attention_reason}")
        ]
    return []


def _places(job: Job, truth: Truth) -> set[str]:
    """Where the job's person can be: here, and where the chat was before it moved."""
    return {job.address, *(old for old, new in truth.moved.items() if new == job.address)}


def _check_chat(job: Job, truth: Truth) -> Broken:
    """What the row says is shown, is what the chat shows."""
    if job.delivery is not Delivery.DELIVERED:
        return []
    broken: Broken = []
    for part in job.parts:
        message = truth.messages.get(part.message or "")
        expected = words_of(job) if part.kind is PartKind.MESSAGE else part.value
        if message is None or not (message.deleted or message.shows == (job.id, expected)):
            broken.append(("What is delivered is in the chat.", f"{part.message} should show {expected!r}: {message}"))
    values = [part.value for part in job.parts]
    results = [[part.value for part in plan(task.pieces)] for task in _tasks(job, truth)]
    if (job.state is State.SUCCEEDED or job.late) and values not in results:
        broken.append(("Every part of the result is delivered.", f"{values}, but the provider made {results}"))
    return broken


def _check_once(job: Job, truth: Truth, rules: EngineRules) -> Broken:
    broken: Broken = []
    shown = [message for message in truth.messages.values() if message.shows and message.shows[0] == job.id]
    own = {words_of(job), *(piece.value for task in _tasks(job, truth) for piece in task.pieces)}
    times = Counter(message.shows[1] for message in shown if message.shows and not message.deleted)
    gone = {*truth.closed, *truth.moved}  # nobody can put anything right there
    late = [message for message in shown if message.progress and not message.deleted and message.address not in gone]
    broken += [("A late progress edit never overwrites a result.", str(message)) for message in late]
    for value, count in times.items():
        if count > 1 + truth.resends[job.id]:
            broken.append(("No part appears in two messages.", f"{value!r} appears in {count}"))
        if value not in own:
            broken.append(("Nobody sees what is not theirs.", f"{value!r} is not of this job"))
    if any(message.address not in _places(job, truth) for message in shown):
        broken.append(("Nobody sees what is not theirs.", "shown at another address"))
    tasks = truth.tasks_of(job.id)
    # Only an operator may submit again what was parked, knowing that the provider may have taken it.
    again = truth.retries[job.id] if rules.unknown_submit is UnknownSubmit.PARK else 0
    if len(tasks) > 1 + again:
        broken.append(("At most one task per job.", f"tasks {[task.id for task in tasks]}"))
    if truth.notices[job.id] > 1 + job.late:
        broken.append(("One notice for one end.", f"{truth.notices[job.id]} notices"))
    return broken


def _check_orders(jobs: list[Job], truth: Truth) -> list[Violation]:
    known = {(job.account_id, job.request_key): job.id for job in jobs}
    return [
        Violation(rule="What was accepted stays.", subject=str(job_id), detail=f"{order} is {known.get(order)}")
        for order, job_id in truth.orders.items()
        if known.get(order) != job_id
    ]


async def _check_wallets(store: Store, jobs: list[Job], people: list[int], truth: Truth) -> list[Violation]:
    found = []
    for person in people:
        spent = Counter[HoldState]()
        for job in jobs:
            if job.account_id == person:
                spent[job.hold_state] += job.price
        wallet = await store.wallet(person)
        expected = truth.granted[person] - spent[HoldState.CAPTURED] - spent[HoldState.HELD]
        if (wallet.available, wallet.held) != (expected, spent[HoldState.HELD]):
            detail = f"person {person} has {wallet.available} and {wallet.held} held, not {expected} and {spent}"
            found.append(Violation(rule="Only what arrived is paid for.", subject="-", detail=detail))
    return found


async def _check_inbox(store: Store, truth: Truth) -> list[Violation]:
    """Every acknowledged callback is there, and has come to the end that its kind may come to."""
    states = {callback.id: state for state in InboxState for callback in await store.callbacks(state, 1000)}
    found = []
    for number, (job_id, task_id) in truth.acknowledged.items():
        task = truth.tasks.get(task_id or "")
        if states.get(number) not in _good_ends(job_id, task_id, task.provider if task else ""):
            detail = f"callback {number} about {task_id} is {states.get(number)}"
            rule = "No acknowledged callback is lost."
            found.append(Violation(rule=rule, subject=str(job_id or "-"), detail=detail))
    return found


def _good_ends(job_id: int | None, task_id: str | None, provider: str) -> set[InboxState]:
    if task_id is None:
        return {InboxState.UNREADABLE}
    if job_id is None:
        return {InboxState.MATCHED, InboxState.EXPIRED}
    # Whoever knows the new provider may have slept for as long as a callback is left to others.
    return {InboxState.DONE} if provider == "kie" else {InboxState.DONE, InboxState.EXPIRED}
