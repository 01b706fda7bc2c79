"""The checker of a run: compares the engine's rows with what really happened."""

from collections import Counter
from dataclasses import replace

from genlock.domain.attempt import Attempt
from genlock.domain.delivery import Step, plan
from genlock.domain.inbox import InboxState
from genlock.domain.job import AttentionCode, Delivery, Job, Notice, State
from genlock.domain.money import HoldState
from genlock.domain.result import PartKind, Piece
from genlock.engine.context import EngineRules, UnknownSubmit
from genlock.engine.invariants import End, ends
from genlock.ports import Store, Violation
from genlock.sandbox.simulation.faulty_channel import message_of
from genlock.sandbox.simulation.world import Message, Task, Truth

#: (rule, detail) of every rule that a job violates
Findings = list[tuple[str, str]]


async def check(truth: Truth, store: Store, accounts: list[int], rules: EngineRules) -> list[Violation]:
    """Return every violation found when no work is left."""
    found = await store.violations(settled=True)
    jobs = await store.jobs(limit=1000)
    attempts = {job.id: await store.attempts(job.id) for job in jobs}
    _credit_adopted_tasks(jobs, truth)
    for job in jobs:
        findings = [
            *_check_end(job, truth),
            *_check_payment(job, truth),
            *_check_notices(job, truth),
            *_check_attention(job, truth, rules),
            *_check_poison(job, truth, rules),
            *_check_chat(job, truth),
            *_check_once(job, truth),
            *_check_placeholders(job, truth),
            *_check_attempts(job, attempts[job.id], truth, rules),
        ]
        found += [Violation(rule=rule, subject=str(job.id), detail=detail) for rule, detail in findings]
    found += _check_orders(jobs, truth)
    found += await _check_wallets(store, jobs, accounts, truth)
    found += await _check_inbox(store, truth)
    found += await _check_slots(store, jobs)
    return found


async def _check_slots(store: Store, jobs: list[Job]) -> list[Violation]:
    """Check that only orders which are at a provider have its slots: those that wait for the operator."""
    found = []
    for provider in sorted({job.provider for job in jobs}):
        there = [job.id for job in jobs if job.provider == provider and job.state in (State.SUBMITTING, State.RUNNING)]
        used = await store.slots_used(provider)
        if used > len(there):
            detail = f"{used} slots of {provider} are taken, though only the jobs {there} are there"
            found.append(Violation(rule="No slot is left over.", subject="-", detail=detail))
    return found


def _credit_adopted_tasks(jobs: list[Job], truth: Truth) -> None:
    """Correct the truth for jobs that adopted another job's task, which a callback to their URL named first."""
    for job in jobs:
        for task in _tasks(job, truth):
            if task.job_id != job.id:
                truth.acknowledged_successes.discard(task.job_id)
                if task.job_id in truth.failures:
                    truth.failures.add(job.id)


def _tasks(job: Job, truth: Truth) -> list[Task]:
    """Return a job's tasks, including one that it adopted from a callback to its own URL before it knew its own."""
    named = truth.tasks.get(job.task_id or "")
    return [*truth.tasks_of(job.id), *([named] if named and named.job_id != job.id else [])]


def _check_end(job: Job, truth: Truth) -> Findings:
    reached = ends(job) or ([End.LISTED] if job.id in truth.handled else [])
    if not reached and job.id in truth.erased and job.hold_state is not HoldState.HELD:
        return []  # the parts and the reason of its end are gone, and no result can come any more
    row = f"{job.state}, {job.delivery}, notice {job.notice}, hold {job.hold_state}, attention {job.attention_reason}"
    found: Findings = []
    if len(reached) != 1:
        found.append(("Every job reaches exactly one end.", f"reached {reached or 'none'}: {row}"))
    if (
        job.id in truth.acknowledged_successes
        and job.state in (State.EXPIRED, State.FAILED)
        and not (job.late or _has_invalid_result(job, truth))
        and _knows_its_task(job, truth)
        and End.LISTED not in reached
    ):
        found.append(("No result is lost.", f"a success was acknowledged, but: {row}"))
    if job.state is State.FAILED and not (
        job.id in truth.failures or _has_invalid_result(job, truth) or _was_not_submitted(job, truth)
    ):
        found.append(("A job fails only if the provider said so, or its user was unreachable before.", row))
    if job.id in truth.cancelled and job.state is not State.CANCELLED:
        found.append(("A cancelled job stays cancelled.", row))
    known = job.id in truth.acknowledged_successes and _knows_its_task(job, truth)
    if job.state is State.CANCELLED and known and job.cost is None and job.id not in truth.erased:
        found.append(("The cost of a cancelled job is recorded.", row))
    return found


def _knows_its_task(job: Job, truth: Truth) -> bool:
    """Whether the job's task is the only one that was created for it.

    A job may have adopted another job's task, named at its own URL, and an operator who submits a parked job again
    gives up the task of the first submit.
    """
    return {task.id for task in truth.tasks_of(job.id)} <= {job.task_id}


def _was_not_submitted(job: Job, truth: Truth) -> bool:
    """Whether the job ended before its first submit, or an operator's next, because its user had blocked the bot."""
    submitted = bool(truth.tasks_of(job.id)) and not truth.retries[job.id]
    return job.error_code == "user_unreachable" and _was_unreachable(job, truth) and not submitted


def _has_invalid_result(job: Job, truth: Truth) -> bool:
    """Whether the provider returned a page instead of a result."""
    return any(piece.value in truth.invalid_results for task in _tasks(job, truth) for piece in task.pieces)


def _late_ends(job: Job, truth: Truth) -> int:
    """Return how often a result came late. A caller that was cancelled did not see its answer, but the row shows it."""
    return max(truth.late_ends[job.id], int(job.late))


def _check_payment(job: Job, truth: Truth) -> Findings:
    """Check that a result in time is paid for if any of its parts was shown before it was resent."""
    free = job.hold_state is HoldState.RELEASED and not _late_ends(job, truth)
    if job.id in truth.shown and free:
        shown = f"{job.state}, {job.delivery}, parts {[part.step.value for part in job.parts]}"
        return [("A result of which a part was shown is paid for.", shown)]
    return []


def _check_notices(job: Job, truth: Truth) -> Findings:
    found: Findings = []
    unknown = job.delivery is Delivery.UNKNOWN or job.attention_code is AttentionCode.UNKNOWN_DELIVERY
    if unknown and job.notice is not Notice.SENT:
        found.append(("The user is told of a delivery whose outcome is unknown.", f"the notice is {job.notice}"))
    if truth.notices[job.id] > 1 + _late_ends(job, truth) + truth.unknown_ends[job.id]:
        found.append(("One notice for each end.", f"{truth.notices[job.id]} notices"))
    if truth.late_ends[job.id] > 1:
        found.append(("A late result is shown once.", f"{truth.late_ends[job.id]} late ends"))
    return found


def _check_attention(job: Job, truth: Truth, rules: EngineRules) -> Findings:
    """Check that a job is on the operator's list only for a reason that really existed."""
    if job.id in truth.erased:
        return []  # its parts and what was wrong with them are gone
    reason, tries = job.attention_reason or "", 2 * truth.failed_calls[job.id]  # a lost answer may count twice
    if job.attention_code is AttentionCode.STAGE_ERROR and tries < rules.stage_attempts:
        return [("The engine gives up only for a reason.", f"{reason}, after {tries} tries")]
    if job.attention_code is AttentionCode.RETRIES_EXHAUSTED and tries < rules.delivery_attempts:
        return [("The engine gives up only for a reason.", f"{reason}, after {tries} tries")]
    refused = any(truth.refusals.get(part.value, 0) == 4 for part in job.parts)
    lasting = _was_unreachable(job, truth) or refused or _has_invalid_result(job, truth)
    if job.attention_code is AttentionCode.UNDELIVERABLE and not lasting:
        return [("The engine gives up only for a reason.", f"undeliverable: {job.attention_reason}")]
    gone = any(truth.messages[name].deleted for name in truth.placeholders[job.id])
    gone = gone or job.id in truth.refused_placeholders or not truth.frozen.isdisjoint(_addresses(job, truth))
    if job.delivery is Delivery.UNKNOWN and not gone:
        return [
            (
                "The engine gives up only for a reason.",
                f"unknown, though no message was deleted: {job.attention_reason}",
            )
        ]
    return []


def _check_poison(job: Job, truth: Truth, rules: EngineRules) -> Findings:
    """Check that a job is given up as poison if it crashes instances, and only then."""
    crashes = truth.crashes[job.id]
    if job.attention_code is AttentionCode.POISON and not crashes:
        return [("The engine gives up only for a reason.", f"{job.attention_reason}, but no process crashed over it")]
    tried = 1 + truth.resends[job.id] + truth.retries[job.id] + _late_ends(job, truth)
    if crashes > 2 * rules.crashes_max * tried:
        return [("A poison job is given up.", f"it crashed {crashes} instances")]
    return []


def _was_unreachable(job: Job, truth: Truth) -> bool:
    return any(address in truth.unreachable or address in truth.unblocked for address in _addresses(job, truth))


def _addresses(job: Job, truth: Truth) -> set[str]:
    """Return the addresses of the job's chat: the current one, and the one before it changed."""
    return {job.address, *(old for old, new in truth.moved.items() if new == job.address)}


def _check_chat(job: Job, truth: Truth) -> Findings:
    """Check that the chat shows what the row says is delivered."""
    if job.delivery is not Delivery.DELIVERED or job.id in truth.erased:
        return []
    found: Findings = []
    for part in job.parts:
        if part.step is not Step.DONE:  # then the job is on the operator's list
            continue
        message = truth.messages.get(part.message or "")
        expected = message_of(job) if part.kind is PartKind.MESSAGE else part.value
        if message is None or not (message.deleted or message.shows == (job.id, expected)):
            found.append(("A delivered result is in the chat.", f"{part.message} should show {expected!r}: {message}"))
    values = [part.value for part in job.parts if part.kind is not PartKind.MESSAGE]
    results = [_valid_values(pieces, truth) for task in _tasks(job, truth) for pieces in _results(task)]
    complete = all(part.step is Step.DONE for part in job.parts)
    if job.has_result and complete and values not in results:
        found.append(("Every part of the result is delivered.", f"{values}, but the provider made {results}"))
    return found


def _valid_values(pieces: tuple[Piece, ...], truth: Truth) -> list[str]:
    return [part.value for part in plan(pieces) if part.value not in truth.invalid_results]


def _results(task: Task) -> list[tuple[Piece, ...]]:
    """Return the result of a task, and what its provider called its result as well."""
    return [task.pieces, *([task.other_pieces] if task.other_pieces else [])]


def _check_once(job: Job, truth: Truth) -> Findings:
    found: Findings = []
    shown = [message for message in truth.messages.values() if message.shows and message.shows[0] == job.id]
    messages = {message_of(job)}
    if _late_ends(job, truth):  # the message about the end before it stays
        messages |= {message_of(replace(job, state=state)) for state in (State.EXPIRED, State.FAILED)}
    if job.state is State.FAILED and _has_invalid_result(job, truth):  # an older message may say so
        messages.add(message_of(replace(job, state=State.SUCCEEDED)))
    own = {*messages, *(piece.value for task in _tasks(job, truth) for pieces in _results(task) for piece in pieces)}
    # What was put just before its chat froze may have to be sent to the new address: nothing tells that it was shown.
    open_ = [message for message in shown if not message.deleted and message.address not in truth.frozen]
    times = Counter(message.shows[1] for message in open_ if message.shows)
    reachable = _editable(truth).values()
    late = [each for each in reachable if each.progress and each.shows and each.shows[0] == job.id]
    settled = truth.resends[job.id] and job.hold_state in (HoldState.CAPTURED, HoldState.FREE)
    if job.delivery is Delivery.UNDELIVERABLE and not settled:
        # A result that was given up is not put again unless it was settled before; our own message always is.
        late = [each for each in late if each.shows and each.shows[1] in messages]
    if job.attention_code is AttentionCode.STAGE_ERROR and job.delivery in (Delivery.PENDING, Delivery.SENDING):
        # Its delivery is not over: it waits for the operator, whose retry puts the end again, or what was resent.
        results = [message for message in late if message.shows and message.shows[1] not in messages]
        late = [] if truth.resends[job.id] else results
    found += [("A late progress edit never overwrites a result.", str(message)) for message in late]
    for value, count in times.items():
        # A late result that is invalid leaves the user with a second message about the failure.
        twice = value in messages and _late_ends(job, truth) and _has_invalid_result(job, truth)
        if count > 1 + truth.resends[job.id] + bool(twice):
            found.append(("No part appears in two messages.", f"{value!r} appears in {count}"))
        if value not in own:
            found.append(("A user sees only results of their own jobs.", f"{value!r} does not belong to this job"))
    if any(message.address not in _addresses(job, truth) for message in shown):
        found.append(("A user sees only results of their own jobs.", "shown at another address"))
    return found


def _editable(truth: Truth) -> dict[str, Message]:
    """Return the messages that edits can reach, and that were not blocked for the put that would have repaired them."""
    lost, blocked = {*truth.unreachable, *truth.moved}, truth.blocked_puts | truth.given_up
    return {
        name: message
        for name, message in truth.messages.items()
        if not message.deleted and message.address not in lost and name not in blocked
    }


def _check_placeholders(job: Job, truth: Truth) -> Findings:
    """Check that an end appears on every message that was to become the result, and none keeps showing progress.

    A job remembers one message on which its end is put again, which may be that of a progress edit: another one may
    be left waiting.
    """
    if job.delivery is not Delivery.DELIVERED or job.attention_reason is not None or job.id in truth.handled:
        return []
    known = truth.placeholders[job.id] - truth.further_parts
    waiting = [name for name, message in _editable(truth).items() if name in known and not message.shows]
    if len(waiting) > max(0, len(truth.left_over[job.id]) - (job.id not in truth.edited)):
        return [("No message of an ended job is left waiting.", str(waiting))]
    return []


def _check_attempts(job: Job, attempts: list[Attempt], truth: Truth, rules: EngineRules) -> Findings:
    """Check that one task was made of a job, apart from those that the provider gave up itself and does not bill."""
    found: Findings = []
    tasks = truth.tasks_of(job.id)
    # Only an operator may resubmit a parked job, knowing that the provider may have accepted the first submit.
    again = truth.retries[job.id] if rules.unknown_submit is UnknownSubmit.PARK else 0
    # The provider called this job's URL about another job's task, and nothing tells a job that does not know its own.
    misled = sum((job.id, attempt.task_id) in truth.named_elsewhere for attempt in attempts)
    kept = [task for task in tasks if not (task.unbilled or task.disowned)]
    if len(kept) > 1 + again + misled:
        found.append(("At most one task per job is made or billed.", f"tasks {[task.id for task in kept]}"))
    asked = Counter(attempt.provider for attempt in attempts)
    if any(task.provider not in asked for task in tasks):
        found.append(("An attempt is recorded before its call.", f"{asked}, but there are tasks {tasks}"))
    if job.ended and any(attempt.outcome is None for attempt in attempts):
        found.append(("The attempts of an ended job have ended.", str(attempts)))
    given_up = {attempt.provider for attempt in attempts if attempt.number < job.attempt}
    given_up -= {attempt.provider for attempt in attempts if attempt.number == job.attempt}
    abandoned = [task for task in tasks if task.provider in given_up]
    if job.task_id in {task.id for task in abandoned}:
        found.append(("An abandoned attempt does not end the job.", f"it took the task {job.task_id}"))
    results = {piece.value: task.id for task in abandoned for piece in task.pieces}
    # The provider may have called another job's URL about the task; a job that does not know its own yet adopts it.
    shown = {
        message.shows[1]
        for message in truth.messages.values()
        if message.shows
        and message.shows[1] in results
        and (message.shows[0], results[message.shows[1]]) not in truth.named_elsewhere
    }
    if shown:
        found.append(("The result of an abandoned attempt is not shown.", str(sorted(shown))))
    if job.cost is not None and job.cost > 1000:
        found.append(("A job has the cost of one task.", f"{job.cost}"))
    return found


def _check_orders(jobs: list[Job], truth: Truth) -> list[Violation]:
    known = {(job.account_id, job.request_key): job.id for job in jobs}
    return [
        Violation(rule="An accepted order is not lost.", subject=str(job_id), detail=f"{order} is {known.get(order)}")
        for order, job_id in truth.orders.items()
        if known.get(order) != job_id
    ]


async def _check_wallets(store: Store, jobs: list[Job], accounts: list[int], truth: Truth) -> list[Violation]:
    found = []
    for account in accounts:
        spent = Counter[HoldState]()
        for job in jobs:
            if job.account_id == account:
                spent[job.hold_state] += job.price
        wallet = await store.wallet(account)
        expected = truth.granted[account] + truth.refunded[account] - spent[HoldState.CAPTURED] - spent[HoldState.HELD]
        if (wallet.available - wallet.debt, wallet.held) != (expected, spent[HoldState.HELD]):
            detail = f"account {account} has {wallet}, not {expected} and {spent}"
            found.append(Violation(rule="Users pay exactly for what was delivered.", subject="-", detail=detail))
    return found


async def _check_inbox(store: Store, truth: Truth) -> list[Violation]:
    """Check that every acknowledged callback is stored, in a state that its kind may end in."""
    stored = [callback for state in InboxState for callback in await store.callbacks(state, 1000)]
    states = {callback.id: callback.state for callback in stored}
    repeated = {callback.id for callback in stored if callback.job_id is None and callback.note == "repeated"}
    erased = {callback.id for callback in stored if not callback.body}
    found = []
    for number, (job_id, task_id) in truth.acknowledged.items():
        task = truth.tasks.get(task_id or "")
        if number in repeated | erased:
            continue  # an earlier callback about the same task is checked; the result of an order that is open is, too
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
    # The instances that have the new provider may have been paused until the callback expired.
    return {InboxState.DONE, InboxState.EXPIRED} if provider == "new" else {InboxState.DONE}
