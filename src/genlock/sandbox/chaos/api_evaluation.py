"""Evaluate chaos through the API, from the records of the clients, of their webhook receiver and of the provider.

Field names of `ApiEvaluation` are keys of `genlock chaos --through api --json`.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from genlock.sandbox.chaos.api_clients import FINAL, Account, ApiOrder
from genlock.sandbox.chaos.order_counts import OrderCounts
from genlock.sandbox.chaos.webhook_receiver import Arrival, Endpoint, WebhookReceiver
from genlock.sandbox.kie.simulator import KieSimulator
from genlock.sandbox.records import Records

STARTED = "job.started"


@dataclass(kw_only=True)
class ApiEvaluation(OrderCounts[ApiOrder]):
    """An order is delivered once if it has one job, one task at the provider, and the result byte for byte.

    Duplicates are further jobs for the same idempotency key, and jobs of an account that no client ordered. An order
    without an answer, or whose job has not ended, is lost. Astray is a result that is not what the provider made for
    the order, and a job that another account could read.
    """

    cancelled: int = 0
    #: webhooks that were due, by endpoint, job and event, and how many arrivals they had
    webhooks: int = 0
    webhook_arrivals: int = 0
    webhooks_missing: int = 0
    #: events that were sent as more than one webhook, which a receiver could not tell apart by the webhook's id
    webhooks_doubled: int = 0
    webhooks_unverified: int = 0
    webhooks_out_of_order: int = 0
    #: webhooks about the job of another account, or about events that the endpoint had not asked for
    webhooks_astray: int = 0
    #: last webhooks of a job that contradict the API
    webhooks_untrue: int = 0
    redirects_followed: int = 0

    def faults(self) -> tuple[int, ...]:
        webhooks = (
            *(self.webhooks_missing, self.webhooks_doubled, self.webhooks_unverified, self.webhooks_out_of_order),
            *(self.webhooks_astray, self.webhooks_untrue),
        )
        return (*super().faults(), self.wrongly_charged, *webhooks, self.redirects_followed)


def evaluate_api(
    orders: Sequence[ApiOrder],
    accounts: Sequence[Account],
    receiver: WebhookReceiver,
    records: Records,
    kie: KieSimulator,
    *,
    credited: float,
) -> ApiEvaluation:
    """Evaluate a finished run. `credited` is the initial balance of every account, in credits."""
    evaluation = ApiEvaluation(jobs=len(orders), redirects_followed=receiver.redirects_followed)
    tasks = records.tasks()
    for order in orders:
        extra = max(0, len(tasks[order.prompt]) - 1)
        evaluation.double_submits += extra
        problems = (_check_answers(evaluation, order), _check_end(evaluation, order, tasks[order.prompt], kie))
        if extra or any(problems):
            evaluation.concerned.append(order)
    ordered = {job_id for order in orders for job_id in order.ids}
    for account in accounts:
        evaluation.duplicates += len(account.jobs.keys() - ordered)
        _check_money(evaluation, account, credited)
    _check_webhooks(evaluation, accounts, receiver.arrivals)
    return evaluation


def _check_answers(evaluation: ApiEvaluation, order: ApiOrder) -> bool:
    """Check that all answers named one job, that repeated orders were replayed, and that nothing else was answered."""
    more = max(0, len(order.ids) - 1)
    evaluation.duplicates += more
    evaluation.violations += [f"{order.key}: {wrong}" for wrong in order.wrong]
    # One answer told of a new job, unless it was lost; all others repeat it.
    unmarked = order.answers - order.replays
    if unmarked > 1:
        evaluation.violations.append(f"{order.key}: {unmarked} answers say that the job is new")
    return bool(more or order.wrong or unmarked > 1)


def _final(order: ApiOrder) -> dict[str, Any] | None:
    """Return the job as the account's list shows it in the end."""
    return order.account.jobs.get(order.job["id"]) if order.job else None


def _check_end(evaluation: ApiEvaluation, order: ApiOrder, tasks: Sequence[Any], kie: KieSimulator) -> bool:
    job = _final(order)
    if job is None or job["status"] not in FINAL:
        evaluation.lost += 1
        return True
    has_result = bool(job["results"])
    wrong_charge = bool(job["charged"]) != (has_result and not job["late"])
    evaluation.wrongly_charged += wrong_charge
    if has_result:
        made = [file.content for task in tasks for url in task.results if (file := kie.service.files.find(url))]
        genuine = {hashlib.sha256(content).hexdigest() for content in made if content}
        is_false = job["results"][0]["sha256"] not in genuine or order.result_sha256 not in {*genuine, None}
        evaluation.astray += is_false
        evaluation.delivered_once += not is_false and len(order.ids) == 1
        return wrong_charge or is_false
    if job["status"] == "canceled":
        evaluation.cancelled += 1
    elif job["error"] and job["error"]["message"]:
        evaluation.failed_told += 1
    else:
        evaluation.failed_silent += 1
        return True
    return wrong_charge


def _check_money(evaluation: ApiEvaluation, account: Account, credited: float) -> None:
    """Check balance and ledger against the sum of what the jobs say was charged."""
    charged = {job["id"]: job["price"] for job in account.jobs.values() if job["charged"]}
    found = (account.balance["available"], account.balance["held"])
    if (round(found[0], 3), found[1]) != (round(credited - sum(charged.values()), 3), 0):
        evaluation.ledger_ok = False
        evaluation.violations.append(
            f"account {account.name} has {found[0]} and {found[1]} held; {sum(charged.values()):g} were charged"
        )
    captured: Counter[str] = Counter()
    for line in account.ledger:
        if line["kind"] == "capture":
            captured[line["job"]] += round(line["amount"] * 1000)
    if captured != {job: round(price * 1000) for job, price in charged.items()}:
        evaluation.ledger_ok = False
        evaluation.violations.append(f"the ledger of account {account.name} does not charge what the jobs say")


def _check_webhooks(evaluation: ApiEvaluation, accounts: Sequence[Account], arrivals: Sequence[Arrival]) -> None:
    jobs = {job["id"]: (account.name, job) for account in accounts for job in account.jobs.values()}
    by_webhook: dict[tuple[Endpoint, str], list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        by_webhook[arrival.endpoint, arrival.job].append(arrival)
        owner = jobs.get(arrival.job, ("", None))[0]
        if owner != arrival.endpoint.account or not arrival.endpoint.takes(arrival.event):
            evaluation.webhooks_astray += 1
        evaluation.webhooks_unverified += not arrival.is_verified
    evaluation.webhook_arrivals = len(arrivals)
    for account in accounts:
        for job in account.jobs.values():
            for endpoint in account.endpoints:
                check_job_webhooks(evaluation, endpoint, job, by_webhook[endpoint, job["id"]])


def check_job_webhooks(
    evaluation: ApiEvaluation, endpoint: Endpoint, job: dict[str, Any], arrivals: Sequence[Arrival]
) -> None:
    """Check what one endpoint was told about one job: its end, at least once, and after its start."""
    first: dict[str, Arrival] = {}
    for arrival in arrivals:
        first.setdefault(arrival.event, arrival)
    evaluation.webhooks += len(first)
    ids = {(arrival.event, arrival.message_id) for arrival in arrivals}
    evaluation.webhooks_doubled += len(ids) - len(first)
    end = f"job.{job['status']}"
    if not endpoint.takes(end) or job["status"] not in FINAL:
        return
    if end not in first:
        evaluation.webhooks += 1
        evaluation.webhooks_missing += 1
        return
    if STARTED in first and first[STARTED].number > first[end].number:
        evaluation.webhooks_out_of_order += 1
    told = max((arrival for arrival in arrivals if arrival.event == end), key=lambda arrival: arrival.number).data
    # A result may come after the webhook that told the failure: then the job is late, and the webhook could not know.
    is_late_untrue = told["late"] and not job["late"]
    if is_late_untrue or any(told[name] != job[name] for name in ("status", "charged", "price")):
        evaluation.webhooks_untrue += 1
