"""Chaos through the HTTP API: clients repeat lost requests, and a faulty receiver takes their webhooks."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from time import time
from typing import Any

import aiohttp

from genlock.app.databases import open_store
from genlock.domain.api_key import ALL_SCOPES
from genlock.domain.money import EntryKind
from genlock.engine.api_keys import create_api_key, ensure_api_account
from genlock.log import Silent
from genlock.ports import Database
from genlock.sandbox.chaos.api_clients import Account, ApiClients, ApiOrder
from genlock.sandbox.chaos.api_evaluation import ApiEvaluation, evaluate_api
from genlock.sandbox.chaos.disrupted_run import (
    WELCOME_CREDITS,
    DisruptedRun,
    Plan,
    figures_of,
    finish_work,
    place_orders,
    running_processes,
    stop_instances,
)
from genlock.sandbox.chaos.evaluation import all_jobs, format_line, percentiles, prompt_of
from genlock.sandbox.chaos.webhook_receiver import Endpoint, WebhookReceiver, receiving_webhooks
from genlock.sandbox.postgres import PostgresServer

ACCOUNTS = 5
KEYS_EACH = 2
#: the events of each endpoint of an account; the first takes all
FILTERS = (frozenset[str](), frozenset({"job.succeeded", "job.failed"}), frozenset({"job.canceled", "job.started"}))
#: how long webhooks may take after the last order has ended: repeats come after 5 s
WEBHOOKS_SECONDS_MAX = 180.0
HISTORIES_MAX = 5


@dataclass(kw_only=True)
class ApiChaosRun(DisruptedRun):
    clients: ApiClients
    receiver: WebhookReceiver


@asynccontextmanager
async def running_api_chaos(
    plan: Plan, folder: Path, database: PostgresServer | None, **settings: str
) -> AsyncIterator[ApiChaosRun]:
    """Yield ready instances and clients that have not ordered yet. `settings` override the defaults of chaos."""
    async with AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(receiving_webhooks(Random(plan.seed)))
        host = receiver.url.removeprefix("http://")
        accounts: list[Account] = []
        prepare = partial(_make_accounts, accounts)
        run = await stack.enter_async_context(running_processes(plan, folder, database, settings, [host], prepare))
        await _register_endpoints(run.fleet.url, accounts, receiver)
        clients = ApiClients(run.fleet.url, accounts, rng=run.rng, deadline=run.deadline)
        yield ApiChaosRun(**vars(run), clients=clients, receiver=receiver)


async def _make_accounts(accounts: list[Account], database_url: str) -> None:
    """Do what the operator does: make accounts with keys, and credit them."""
    store = await open_store(database_url, observer=Silent())
    try:
        accounts += [await _make_account(store, f"client-{number}") for number in range(1, ACCOUNTS + 1)]
    finally:
        await store.close()


async def _make_account(store: Database, name: str) -> Account:
    account_id = await ensure_api_account(store, name)
    await store.transfer(account_id, EntryKind.GRANT, WELCOME_CREDITS * 1000, f"chaos:{name}")
    account = Account(name=name, keys=[])
    for number in range(KEYS_EACH):
        _, secret = await create_api_key(
            store,
            account_id,
            name=f"{name} {number}",
            scopes=ALL_SCOPES,
            spend_limit=None,
            request_key=f"chaos:{name}:{number}",
            author="chaos",
            random_bytes=secrets.token_bytes,
        )
        assert secret is not None
        account.keys.append(secret)
    return account


async def _register_endpoints(url: str, accounts: list[Account], receiver: WebhookReceiver) -> None:
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        for account in accounts:
            for number, events in enumerate(FILTERS):
                endpoint = Endpoint(account=account.name, path=f"/{account.name}/{number}", events=events)
                body = {"url": receiver.add(endpoint), "events": sorted(events)}
                headers = {"Authorization": f"Bearer {account.keys[0]}"}
                async with session.post(f"{url}/v1/webhooks", json=body, headers=headers) as answer:
                    endpoint.secret = (await answer.json())["secret"]
                account.endpoints.append(endpoint)


async def run_orders(chaos: ApiChaosRun, watch: Callable[[], None] = lambda: None) -> None:
    """Place orders while disrupting, wait for the webhooks, read the accounts, and stop the instances."""
    await place_orders(chaos, chaos.clients, watch)
    await finish_work(chaos)
    await chaos.clients.read_accounts()
    await _until_told(chaos)
    await chaos.clients.read_accounts()
    await stop_instances(chaos)


async def _until_told(chaos: ApiChaosRun) -> None:
    """Wait until every endpoint has been told the end of every job; the evaluation counts what is missing."""
    deadline = time() + WEBHOOKS_SECONDS_MAX
    while evaluate_now(chaos).webhooks_missing and time() < deadline:  # noqa: ASYNC110 - the evaluation tells
        await asyncio.sleep(0.5)


def evaluate_now(chaos: ApiChaosRun) -> ApiEvaluation:
    clients = chaos.clients
    return evaluate_api(
        clients.orders,
        clients.accounts,
        chaos.receiver,
        chaos.records,
        chaos.fleet.kie,
        credited=WELCOME_CREDITS,
    )


async def report(chaos: ApiChaosRun) -> tuple[dict[str, Any], list[list[str]]]:
    """Return the report as JSON, and the histories of orders with problems."""
    evaluation = evaluate_now(chaos)
    evaluation.violations += chaos.problems
    if len(chaos.clients.orders) < chaos.plan.jobs:
        evaluation.violations.append(f"only {len(chaos.clients.orders)} of {chaos.plan.jobs} orders could be placed")
    store = await open_store(chaos.database_url, observer=Silent())
    try:
        broken = await store.violations(settled=True)
        evaluation.violations += [f"{violation.rule} {violation.subject}: {violation.detail}" for violation in broken]
        evaluation.ledger_ok &= not broken
        histories = await _histories(chaos, store, evaluation.concerned[:HISTORIES_MAX])
    finally:
        await store.close()
    return evaluation.as_json() | figures_of(chaos) | _figures(chaos), histories


def _figures(chaos: ApiChaosRun) -> dict[str, Any]:
    clients = chaos.clients
    ended = [(order, order.ended_at) for order in clients.orders if order.ended_at]
    return {
        "order_seconds": percentiles([at - order.asked_at for order, at in ended]),
        "requests": dict(clients.counts),
        "replays": sum(order.replays for order in clients.orders),
        "receiver_faults": {fault.value: count for fault, count in chaos.receiver.faults.items()},
    }


async def _histories(chaos: ApiChaosRun, store: Database, orders: list[ApiOrder]) -> list[list[str]]:
    rows = {prompt_of(job): job for job in await all_jobs(store)} if orders else {}
    lines = chaos.fleet.log_lines() if orders else []
    found = []
    for order in orders:
        job = rows.get(order.prompt)
        own = [line for line in lines if job and job.id == line.get("job")]
        found.append(
            [
                f"“{order.prompt}” of {order.account.name}, key {order.key}, jobs {sorted(order.ids)}: {order.job}",
                f"  row: {job.state}, {job.delivery}, hold {job.hold_state}" if job else "  no row",
                *(f"  {format_line(line)}" for line in own),
                *(f"  Kie.ai: task {task.id} {task.state}" for task in chaos.records.tasks()[order.prompt]),
                *(
                    f"  webhook {arrival.number}: {arrival.event} at {arrival.endpoint.path}, {arrival.message_id}"
                    for arrival in chaos.receiver.arrivals
                    if arrival.job in order.ids
                ),
            ]
        )
    return found
