"""`genlock chaos --through api` passes on the real product, and its verdict finds every kind of broken guarantee."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from genlock.sandbox.chaos.api_chaos import ApiChaosRun, report, run_orders, running_api_chaos
from genlock.sandbox.chaos.api_clients import ApiOrder
from genlock.sandbox.chaos.api_evaluation import STARTED, ApiEvaluation, check_job_webhooks
from genlock.sandbox.chaos.disrupted_run import Plan
from genlock.sandbox.chaos.webhook_receiver import Arrival, Endpoint
from genlock.sandbox.processes import guarded_folder

ORDERS = 30


@pytest.fixture
async def chaos_run() -> AsyncIterator[ApiChaosRun]:
    """A finished run: clients repeat their orders while the only instance is killed again and again."""
    with guarded_folder() as folder:
        async with running_api_chaos(Plan(jobs=ORDERS, kill_every=2.0, through="api"), folder, None) as running:
            await run_orders(running)
            yield running


def delivered_order(chaos: ApiChaosRun) -> ApiOrder:
    return next(order for order in chaos.clients.orders if order.result_sha256)


def end_of(chaos: ApiChaosRun) -> Arrival:
    """The webhook that first told one endpoint, which also knew of the start, that a job has succeeded."""
    started = {(arrival.endpoint, arrival.job) for arrival in chaos.receiver.arrivals if arrival.event == STARTED}
    return next(
        arrival
        for arrival in chaos.receiver.arrivals
        if arrival.event == "job.succeeded" and (arrival.endpoint, arrival.job) in started
    )


def change_arrival(chaos: ApiChaosRun, old: Arrival, *new: Arrival) -> Callable[[], None]:
    """Replace every arrival of this webhook; return what undoes it."""
    before = list(chaos.receiver.arrivals)
    others = [arrival for arrival in before if arrival.message_id != old.message_id]
    chaos.receiver.arrivals[:] = [*others, *new]

    def undo() -> None:
        chaos.receiver.arrivals[:] = before

    return undo


def accepted_twice(chaos: ApiChaosRun) -> Callable[[], None]:
    order = delivered_order(chaos)
    order.ids.add("job_another")
    return lambda: order.ids.discard("job_another")


def a_job_without_an_order(chaos: ApiChaosRun) -> Callable[[], None]:
    account = delivered_order(chaos).account
    failed = {"id": "job_x", "status": "failed", "charged": False, "price": 0.0, "late": False}
    account.jobs["job_x"] = failed
    told = [replace(end_of(chaos), endpoint=endpoint, job="job_x", event="job.failed", message_id="x", data=failed)
            for endpoint in account.endpoints if endpoint.takes("job.failed")]  # fmt: skip
    chaos.receiver.arrivals += told

    def undo() -> None:
        del account.jobs["job_x"]
        del chaos.receiver.arrivals[-len(told) :]

    return undo


def submitted_twice(chaos: ApiChaosRun) -> Callable[[], None]:
    tasks = chaos.fleet.kie.service.tasks
    [task] = chaos.records.tasks()[delivered_order(chaos).prompt]
    tasks["another"] = replace(task, id="another")

    def undo() -> None:
        del tasks["another"]

    return undo


def another_picture(chaos: ApiChaosRun) -> Callable[[], None]:
    order = delivered_order(chaos)
    right, order.result_sha256 = order.result_sha256, "0" * 64
    return lambda: setattr(order, "result_sha256", right)


def no_answer(chaos: ApiChaosRun) -> Callable[[], None]:
    order = chaos.clients.orders[0]
    job, order.job = order.job, None
    return lambda: setattr(order, "job", job)


def not_charged(chaos: ApiChaosRun) -> Callable[[], None]:
    order = delivered_order(chaos)
    assert order.job is not None
    job = order.account.jobs[order.job["id"]]
    job["charged"] = False
    return lambda: job.update(charged=True)


def balance_too_high(chaos: ApiChaosRun) -> Callable[[], None]:
    balance = chaos.clients.accounts[0].balance
    balance["available"] += 0.001
    return lambda: balance.update(available=balance["available"] - 0.001)


def webhook_lost(chaos: ApiChaosRun) -> Callable[[], None]:
    return change_arrival(chaos, end_of(chaos))


def webhook_forged(chaos: ApiChaosRun) -> Callable[[], None]:
    return change_arrival(chaos, (end := end_of(chaos)), replace(end, is_verified=False))


def webhook_before_the_start(chaos: ApiChaosRun) -> Callable[[], None]:
    return change_arrival(chaos, (end := end_of(chaos)), replace(end, number=-1))


def webhook_sent_twice(chaos: ApiChaosRun) -> Callable[[], None]:
    return change_arrival(chaos, (end := end_of(chaos)), end, replace(end, message_id="msg_other"))


def webhook_for_another_account(chaos: ApiChaosRun) -> Callable[[], None]:
    end = end_of(chaos)
    other = next(account for account in chaos.clients.accounts if account.name != end.endpoint.account)
    return change_arrival(chaos, end, end, replace(end, endpoint=other.endpoints[0]))


def webhook_that_says_free(chaos: ApiChaosRun) -> Callable[[], None]:
    return change_arrival(chaos, (end := end_of(chaos)), replace(end, data={**end.data, "charged": False}))


def redirect_followed(chaos: ApiChaosRun) -> Callable[[], None]:
    chaos.receiver.redirects_followed = 1
    return lambda: setattr(chaos.receiver, "redirects_followed", 0)


DEFECTS: dict[Callable[[ApiChaosRun], Callable[[], None]], str] = {
    accepted_twice: "duplicates",
    a_job_without_an_order: "duplicates",
    submitted_twice: "double_submits",
    another_picture: "astray",
    no_answer: "lost",
    not_charged: "wrongly_charged",
    webhook_lost: "webhooks_missing",
    webhook_forged: "webhooks_unverified",
    webhook_before_the_start: "webhooks_out_of_order",
    webhook_sent_twice: "webhooks_doubled",
    webhook_for_another_account: "webhooks_astray",
    webhook_that_says_free: "webhooks_untrue",
    redirect_followed: "redirects_followed",
}


@pytest.mark.timeout(240)
async def test_every_order_is_made_once_and_told_and_the_verdict_finds_every_broken_guarantee(
    chaos_run: ApiChaosRun,
) -> None:
    """All defects are tried on one run, and each is undone afterwards."""
    result, histories = await report(chaos_run)
    assert result["ok"], (result, histories)
    assert result["delivered_once"] + result["failed_told"] + result["cancelled"] == ORDERS
    assert result["kills"] > 0
    assert result["replays"] > 0
    missed: dict[str, Any] = {}
    for defect, figure in DEFECTS.items():
        undo = defect(chaos_run)
        result, _ = await report(chaos_run)
        if result["ok"] or result[figure] != 1:
            missed[defect.__name__] = result
        undo()
    assert missed == {}
    undo = balance_too_high(chaos_run)
    result, _ = await report(chaos_run)
    assert (result["ok"], result["ledger_ok"]) == (False, False)
    undo()
    assert (await report(chaos_run))[0]["ok"]


@pytest.mark.parametrize(("told", "found", "untrue"), [(False, True, 0), (True, False, 1), (False, False, 0)])
def test_a_result_that_comes_after_the_webhook_of_a_failure_does_not_make_it_untrue(
    *, told: bool, found: bool, untrue: int
) -> None:
    endpoint = Endpoint(account="a", path="/a")
    job = {"id": "job_1", "status": "failed", "charged": False, "price": 1.0, "late": found}
    data = {**job, "late": told}
    arrival = Arrival(
        endpoint=endpoint, number=0, message_id="m", event="job.failed", job="job_1", data=data, is_verified=True
    )
    evaluation = ApiEvaluation()
    check_job_webhooks(evaluation, endpoint, job, [arrival])

    assert evaluation.webhooks_untrue == untrue
