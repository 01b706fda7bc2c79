"""Evaluate a chaos run: compare what the chats show and which tasks were created with the job rows and the ledger.

Field names of `Evaluation` are keys of `genlock chaos --json`.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from statistics import quantiles
from typing import Any

from genlock.domain.events import Event
from genlock.domain.job import Job, State
from genlock.domain.money import HoldState
from genlock.ports import Store, Violation
from genlock.sandbox.chaos.disruptions import Disruption
from genlock.sandbox.chaos.order_counts import OrderCounts
from genlock.sandbox.records import Order, Records, is_failure_text, is_notice, job_of
from genlock.sandbox.telegram.simulated_user import SimulatedUser

PAGE = 500
ENDED = {State.FAILED, State.CANCELLED, State.EXPIRED}


@dataclass(kw_only=True)
class Evaluation(OrderCounts[Order]):
    """A result is delivered once if exactly one message shows it, and a duplicate if more results or notices do.

    An order is lost if neither its chat nor the operator's attention list shows what became of it. A result is astray
    in the wrong chat or for the wrong order, and so is an order that began with another file than the result it names.
    """

    #: orders that only the operator's attention list shows
    listed: int = 0
    #: orders that began with the result of another
    chained: int = 0


async def evaluate(
    records: Records, store: Store, orders: Sequence[Order], users: Sequence[SimulatedUser], *, welcome: int
) -> Evaluation:
    """Evaluate a finished run. `welcome` is the initial balance of every account, in thousandths of a credit."""
    rows = await all_jobs(store)
    by_prompt: dict[str, Job] = {prompt_of(job): job for job in rows}
    evaluation = Evaluation(jobs=len(orders))
    tasks = records.tasks()
    for order in orders:
        job = by_prompt.get(order.prompt)
        problems = [_check_chat(evaluation, records, order, job), _check_charge(evaluation, records, order, job)]
        problems.append(_check_file(evaluation, records, order, job))
        extra = len(tasks[order.prompt]) - 1
        if extra > 0:
            evaluation.double_submits += extra
        if any(problems) or extra > 0:
            evaluation.concerned.append(order)
    _check_recipients(evaluation, records, orders, users)
    if extra_rows := len(rows) - len(by_prompt):
        evaluation.violations.append(f"{extra_rows} jobs that no user ordered")
    broken = [*await store.violations(settled=True), *await _check_wallets(store, users, rows, welcome)]
    evaluation.violations += [f"{violation.rule} {violation.subject}: {violation.detail}" for violation in broken]
    evaluation.ledger_ok = not broken and not evaluation.wrongly_charged
    return evaluation


def _check_chat(evaluation: Evaluation, records: Records, order: Order, job: Job | None) -> bool:
    """Count what the user sees; return whether something is wrong with it."""
    results = records.results(order)
    about = [message for message in records.bot_messages(order.user) if job and job_of(message) == job.id]
    duplicates = max(0, len(results) - 1) + max(0, sum(is_notice(message) for message in about) - 1)
    evaluation.duplicates += duplicates
    if results:
        false = sum(
            not records.is_genuine(message, task) for message in results if (task := records.task_shown_by(message))
        )
        evaluation.astray += false
        evaluation.delivered_once += len(results) == 1
        return duplicates > 0 or false > 0
    if any(is_failure_text(message) for message in about):
        evaluation.failed_told += 1
        return duplicates > 0
    if job is not None and job.attention_reason is not None:
        evaluation.listed += 1
    elif job is not None and job.state in ENDED:
        evaluation.failed_silent += 1
    else:
        evaluation.lost += 1
    return True


def _check_charge(evaluation: Evaluation, records: Records, order: Order, job: Job | None) -> bool:
    """Check that exactly the results in the chat are paid; late results are free."""
    shown = bool(records.results(order))
    paid = job is not None and job.hold_state is HoldState.CAPTURED
    late = job is not None and job.late
    wrong = (paid and not shown) or (shown and not paid and not late)
    evaluation.wrongly_charged += wrong
    return wrong


def _check_file(evaluation: Evaluation, records: Records, order: Order, job: Job | None) -> bool:
    """Check that an order which changes a result got the file of that result, or a copy of it."""
    if order.previous is None or job is None:
        return False
    evaluation.chained += 1
    wrong = not records.is_result_of(order.previous, file_urls(job))
    evaluation.astray += wrong
    return wrong


def file_urls(job: Job) -> list[str]:
    """Return the links in a job's input."""
    values = json.loads(job.input).values()
    every = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [item for item in every if isinstance(item, str) and item.startswith("http")]


def _check_recipients(
    evaluation: Evaluation, records: Records, orders: Sequence[Order], users: Sequence[SimulatedUser]
) -> None:
    orders_by_prompt = {order.prompt: order for order in orders}
    for user in users:
        for message in records.bot_messages(user):
            task = records.task_shown_by(message)
            order = orders_by_prompt.get(str(task.values.get("prompt"))) if task else None
            if order is not None and order.user.id != user.id:
                evaluation.astray += 1
                evaluation.concerned.append(order)


async def _check_wallets(
    store: Store, users: Sequence[SimulatedUser], rows: Sequence[Job], welcome: int
) -> list[Violation]:
    """Check that every balance is the initial one minus the prices of delivered jobs."""
    spent: Counter[int] = Counter()
    owners: dict[str, int] = {}
    for job in rows:
        owners[job.address.partition("/")[0].partition(".")[0]] = job.account_id
        if job.hold_state is HoldState.CAPTURED:
            spent[job.account_id] += job.price
    found = []
    for user in users:
        number = owners.get(str(user.id))
        if number is None:
            continue
        wallet = await store.wallet(number)
        if (wallet.available, wallet.held) != (welcome - spent[number], 0):
            detail = f"has {wallet.available} and {wallet.held} held, not {welcome - spent[number]}"
            found.append(Violation(rule="Only what arrived is paid for.", subject=str(number), detail=detail))
    return found


async def all_jobs(store: Store) -> list[Job]:
    jobs: list[Job] = []
    while page := await store.jobs(before=jobs[-1].id if jobs else None, limit=PAGE):
        jobs += page
    return jobs


def prompt_of(job: Job) -> str:
    return str(json.loads(job.input).get("prompt", ""))


def order_history(order: Order, records: Records, jobs: Sequence[Job], lines: Sequence[dict[str, Any]]) -> list[str]:
    """Lines that describe what happened to one order: job row, log lines, tasks and chat."""
    job = next((job for job in jobs if prompt_of(job) == order.prompt), None)
    history = [f"“{order.prompt}” of {order.user.user.name}, job {job.id if job else 'none'}"]
    if order.previous:
        made = [url for task in records.tasks()[order.previous.prompt] for url in task.results]
        history.append(f"  changes “{order.previous.prompt}”: {made}; got {file_urls(job) if job else 'nothing'}")
    if job:
        history.append(
            f"  row: {job.state}, {job.delivery}, notice {job.notice}, hold {job.hold_state}, "
            f"attention {job.attention_reason}"
        )
        own = [line for line in lines if line.get("correlation_id") == job.correlation_id or line.get("job") == job.id]
        history += [f"  {format_line(line)}" for line in sorted(own, key=itemgetter("at"))]
    history += [f"  Kie.ai: task {task.id} {task.state}" for task in records.tasks()[order.prompt]]
    history += [
        f"  chat: message {message.id} {message.kind} {message.text!r}"
        for message in order.user.messages
        if message.id >= order.message
    ]
    return history


def format_line(line: Mapping[str, Any]) -> str:
    hidden = {"event", "correlation_id", "at", "process", "instance"}
    fields = " ".join(f"{key}={value}" for key, value in line.items() if key not in hidden and value is not None)
    clock = datetime.fromtimestamp(line["at"], UTC).strftime("%H:%M:%S.%f")[:-3]
    return f"{clock} {line['process']} [{line['event'] or '-'}] {fields}"


def takeovers(lines: Sequence[Mapping[str, Any]], disruptions: Sequence[Disruption]) -> list[float]:
    """Return seconds from each kill until another instance had taken over the work."""
    seen: dict[str, float] = {}
    for line in lines:
        if line["event"] == Event.INSTANCE_DEAD:
            seen.setdefault(str(line["peer"]), line["at"])
    found = []
    for disruption in disruptions:
        earlier = [line for line in lines if line["process"] == disruption.instance and line["at"] <= disruption.at]
        instance = next((line["instance"] for line in reversed(earlier) if "instance" in line), None)
        if disruption.what == "kill" and instance in seen:
            found.append(seen[instance] - disruption.at)
    return found


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile and maximum."""
    if not seconds:
        return {}
    cuts = quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else [seconds[0]] * 99
    return {"p50": round(cuts[49], 2), "p99": round(cuts[98], 2), "max": round(max(seconds), 2)}
