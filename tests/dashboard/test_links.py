"""Every link of every page leads to a page."""

import re
from html import unescape
from pathlib import Path

from tests.dashboard.browser_pages import addresses
from tests.dashboard.hostile import add_hostile_rows
from tests.dashboard.world import running_dashboard
from tests.databases import new_sqlite
from tests.stores.builders import delivered

#: files and results of providers, which are not there
NOT_FOLLOWED = re.compile(r"\.csv|/results/|/static/|/v1/")


async def test_every_link_of_every_page_leads_to_a_page(tmp_path: Path) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}") as world:
        job = await delivered(world.store, model="z-image")
        rows, client = await add_hostile_rows(world), await world.log_in()
        found: dict[str, str] = {}
        paths = [path for path, _ in addresses(world.routes, rows, every_row=False)]
        for path in [f"/jobs/{job.id}", *paths]:
            page = (await client.get(path)).text
            for link in re.findall(r'href="/dashboard([^"#]*)', page):
                if not NOT_FOLLOWED.search(link):
                    # Rows of the same kind have the same link with another number.
                    found.setdefault(re.sub(r"\d+", "0", link.partition("?")[0]), unescape(link))

        dead = [
            f"{link}: {answer.status}" for link in found.values() if (answer := await client.get(link)).status >= 400
        ]

    assert len(found) > 30
    assert dead == []
