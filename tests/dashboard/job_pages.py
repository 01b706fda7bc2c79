"""Jobs in the states that their pages show, and the forms of those pages."""

import re
from typing import Any

from genlock.domain.delivery import Part
from genlock.domain.job import Job, State
from genlock.ports import EndJob
from tests.dashboard.world import DashboardWorld
from tests.stores.builders import delivered, running, see


async def settled(dashboard: DashboardWorld, **changes: Any) -> Job:
    """A delivered job whose notice has been sent."""
    job = await delivered(dashboard.store, **changes)
    assert await dashboard.store.begin_notice(job.id, job.lease_token)
    return await see(dashboard.store, job)


def form(page: str, action: str) -> dict[str, str]:
    """The hidden fields of a button on the page, as a browser would post them."""
    [found] = re.findall(rf'action="/dashboard/jobs/\d+/{action}".*?</form>', page, re.DOTALL)
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', found))


async def with_result(dashboard: DashboardWorld, *parts: Part) -> Job:
    job = await running(dashboard.store, price=0)
    ending = EndJob(job_id=job.id, state=State.SUCCEEDED, parts=parts)
    assert (await dashboard.store.end_job(ending, None)).job
    return await see(dashboard.store, job)
