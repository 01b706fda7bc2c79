"""Forms posted at the same moment on two instances with one PostgreSQL: each acts once, and the ledger adds up."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from genlock.domain.operator import OperatorRole
from genlock.engine import operate
from genlock.engine.accounts import MOVING
from tests.dashboard.job_pages import form, settled
from tests.dashboard.users import add_payment, add_user, field
from tests.dashboard.world import Answer, Client, DashboardWorld, running_dashboard

Pair = tuple[DashboardWorld, DashboardWorld]
LIMIT = 50
CREDIT = {"direction": "credit", "amount": "7", "reason": "x", "state": ""}
NO_AMOUNTS = (
    "-5",
    "1e3",
    "٣",
    "\uff11",
    "1_000",
    "0x10",
    "NaN",
    "inf",
    "0",
    "0.0001",
    "9999999999",
    "1,000,000",
    "+1",
    "1 0",
)


@pytest.fixture
async def pair(migrated_postgres_url: str) -> AsyncIterator[Pair]:
    url = migrated_postgres_url
    async with (
        running_dashboard(url, support_credits_max=LIMIT) as one,
        running_dashboard(url, support_credits_max=LIMIT) as two,
    ):
        yield one, two


async def at_once(pair: Pair, client: Client, path: str, *forms: dict[str, str]) -> list[Answer]:
    """Post every form on both instances at the same moment, from the same session."""
    clients = [world.client() for world in pair]
    for instance_client in clients:
        instance_client.cookies = client.cookies
    return await asyncio.gather(*(instance_client.post(path, form) for form in forms for instance_client in clients))


async def balance(pair: Pair, account_id: int) -> int:
    return (await pair[0].store.wallet(account_id)).available


async def test_the_same_form_acts_once(pair: Pair) -> None:
    world, _ = pair
    ann, job = await add_user(world), await settled(world, price=10)
    support, owner = await world.log_in(OperatorRole.SUPPORT), await world.log_in()
    resend = form((await owner.get(f"/jobs/{job.id}")).text, "resend")

    await at_once(pair, support, f"/users/{ann}/credits", *[{**CREDIT, "request_key": "k"}] * 3)
    await at_once(pair, support, f"/users/{ann}/free-runs", *[{"runs": "3", "request_key": "k"}] * 3)
    await at_once(pair, owner, f"/jobs/{job.id}/resend", resend, resend)

    assert await balance(pair, ann) == 7_000
    assert (await world.store.free_runs(ann, 0)).gifts == 3
    resent = [line for line in await world.store.audit(100) if line.action == "resend"]
    assert [line.subject for line in resent] == [f"#{job.id}"]
    assert await world.store.violations(settled=False) == []


async def test_of_two_operators_who_credit_at_once_the_second_is_told(pair: Pair) -> None:
    world, _ = pair
    ann, owner = await add_user(world), await world.log_in()
    state = field((await owner.get(f"/users/{ann}")).text, "state")
    forms = [{**CREDIT, "state": state, "request_key": f"k{number}"} for number in range(3)]

    answers = await at_once(pair, owner, f"/users/{ann}/credits", *forms)

    assert await balance(pair, ann) == 7_000
    assert {answer.status for answer in answers} == {303, 409}
    assert await world.store.kv_list(MOVING) == []


async def test_a_form_that_crashed_keeps_no_operator_from_moving_credits(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = pair
    ann, owner = await add_user(world), await world.log_in()
    await world.store.kv_put(f"{MOVING}{ann}", "a form whose instance is gone")
    assert (await owner.post(f"/users/{ann}/credits", {**CREDIT, "request_key": "k"})).status == 409
    monkeypatch.setattr("genlock.engine.accounts.MOVING_SECONDS", 0.0)
    assert (await owner.post(f"/users/{ann}/credits", {**CREDIT, "request_key": "k"})).status == 303
    assert await balance(pair, ann) == 7_000


async def test_support_stays_within_the_limit(pair: Pair) -> None:
    world, _ = pair
    support = await world.log_in(OperatorRole.SUPPORT)
    users = [await add_user(world, f"{1000 + number}") for number in range(9)]

    answers = await asyncio.gather(
        *(at_once(pair, support, f"/users/{ann}/credits", {**CREDIT, "request_key": f"k{ann}"}) for ann in users)
    )

    assert sum([await balance(pair, ann) for ann in users]) == 49_000
    assert sum(answer.status == 303 for both in answers for answer in both) >= 7
    for number, amount in enumerate(NO_AMOUNTS):
        odd = {**CREDIT, "amount": amount, "request_key": f"odd{number}"}
        assert (await support.post(f"/users/{users[0]}/credits", odd)).status == 400, amount


async def test_an_order_and_a_payment_are_refunded_once(pair: Pair) -> None:
    world, _ = pair
    ann, job, owner = await add_user(world), await settled(world, price=750), await world.log_in()
    await add_payment(world, ann, "charge")
    refund = form((await owner.get(f"/jobs/{job.id}")).text, "refund")
    before = await balance(pair, job.account_id)

    await asyncio.gather(
        at_once(pair, owner, f"/jobs/{job.id}/refund", refund, {**refund, "request_key": "another"}),
        at_once(pair, owner, "/jobs/bulk", {"action": "refund", "job": str(job.id), "request_key": "b"}),
        *(operate.refund(instance.engine.ctx, job.id, "chat") for instance in pair),
        at_once(pair, owner, f"/users/{ann}/refund", *({"charge": "charge", "request_key": f"r{n}"} for n in range(3))),
    )

    assert len(await world.store.bulk_actions(10)) == 1
    assert await balance(pair, job.account_id) == before + 750
    assert await balance(pair, ann) == 0
    assert await world.store.violations(settled=False) == []
