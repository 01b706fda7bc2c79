"""Numbers of one column line up: all have the same decimals."""

import re
from collections import defaultdict

import pytest

from genlock.domain.job import State
from genlock.domain.money import EntryKind
from tests.dashboard.users import add_user
from tests.dashboard.world import DashboardWorld
from tests.stores.builders import end, running

_CELL = re.compile(r'<td class="num[^"]*" data-label="([^"]+)">(.*?)</td>', re.DOTALL)
_NUMBER = re.compile(r"[0-9][0-9,\u00a0]*(?:\.([0-9]+))?")


def decimals(page: str) -> dict[str, set[int]]:
    """Return how many decimals the numbers of every column have."""
    found: dict[str, set[int]] = defaultdict(set)
    for label, cell in _CELL.findall(page):
        text = re.sub(r"<[^>]*>", "", cell)
        if number := _NUMBER.search(text):
            found[label].add(len(number[1] or ""))
    return found


async def test_prices_costs_and_shares_of_models_line_up(dashboard: DashboardWorld) -> None:
    page = (await (await dashboard.log_in()).get("/models?status=all&sort=-cost")).text
    cheap = (await (await dashboard.log_in()).get("/models?status=all&sort=cost")).text

    found = decimals(page + cheap)

    assert {name: found[name] for name in ("Price", "Cost", "Margin")} == {"Price": {2}, "Cost": {4}, "Margin": {1}}


@pytest.mark.parametrize("path", ["/users", "/money/ledger", "/money"])
async def test_credits_line_up(dashboard: DashboardWorld, path: str) -> None:
    for number, amount in enumerate((500, 12_000, 4_999_200, 80)):
        account = await add_user(dashboard, f"100{number}")
        await dashboard.store.transfer(account, EntryKind.GRANT, amount, f"gift:{number}")

    found = decimals((await (await dashboard.log_in()).get(path)).text)

    labels = {"/users": ["Balance"], "/money/ledger": ["Credits", "Change"], "/money": ["Revenue, credits"]}[path]
    assert {name: found[name] for name in labels} == {name: {2} for name in labels}


async def test_costs_of_orders_line_up_below_and_above_ten_cents(dashboard: DashboardWorld) -> None:
    for cost in (6_500, 2_000, 400_000):
        await end(dashboard.store, await running(dashboard.store), State.SUCCEEDED, cost=cost)

    page = (await (await dashboard.log_in()).get("/jobs")).text

    assert decimals(page)["Cost"] == {4}
    assert "$0.0325" in page
    assert "$2.0000" in page


async def test_the_page_of_an_order_does_not_round_its_cost(dashboard: DashboardWorld) -> None:
    job = await running(dashboard.store)
    await end(dashboard.store, job, State.SUCCEEDED, cost=6_500)

    assert "$0.0325" in (await (await dashboard.log_in()).get(f"/jobs/{job.id}")).text
