"""Users and orders for the list of orders, and what its pages show."""

import json
import re
from typing import Any

import pytest

from genlock.domain.delivery import plan
from genlock.domain.job import Delivery, Job, NewJob, State, hash_secret
from genlock.domain.money import EntryKind
from genlock.engine.bulk import BulkWork
from genlock.ports import EndJob, FinishDelivery, Lease
from tests.dashboard.world import DashboardWorld
from tests.engine.fake_provider import success
from tests.stores.builders import ensure_profile

ME = Lease(owner="me", seconds=30.0)
PRICE = 12_500


async def user(dashboard: DashboardWorld, name: str) -> int:
    account_id = await dashboard.store.ensure_account("chat", "42", f"id-{name}")
    await ensure_profile(dashboard.store, account_id, language="en", name=name, username=name.lower(), referred_by=None)
    await dashboard.store.transfer(account_id, EntryKind.TOPUP, 1_000_000, f"topup:{name}")
    await dashboard.store.set_account_address(account_id, f"chat of {name}")
    return account_id


async def running_job(dashboard: DashboardWorld, account_id: int, prompt: str = "a fox", model: str = "veo") -> Job:
    store, number = dashboard.store, len(await dashboard.store.jobs(limit=1000))
    order = NewJob(
        account_id=account_id, request_key=f"k{number}", provider="fake", channel="chat", address="1", model=model,
        input=json.dumps({"prompt": prompt}, ensure_ascii=False), price=PRICE, deadline_seconds=600.0,
        placeholder=dashboard.channel.new_message(),
    )  # fmt: skip
    job = (await store.accept_job(order, ME)).job
    assert await store.begin_submit(job.id, job.lease_token, hash_secret("x"), None)
    assert await store.mark_submitted(job.id, job.lease_token, f"task-{number}", 100.0)
    return job


async def ended_job(dashboard: DashboardWorld, account_id: int, state: State = State.SUCCEEDED, **order: Any) -> Job:
    store, job = dashboard.store, await running_job(dashboard, account_id, **order)
    parts = plan(success("t").pieces)
    code = "" if state is State.SUCCEEDED else "=nsfw"
    ended = (await store.end_job(EndJob(job_id=job.id, state=state, parts=parts, error_code=code), ME)).job
    assert ended
    finish = FinishDelivery(job_id=job.id, token=ended.lease_token, delivery=Delivery.DELIVERED, parts=parts)
    assert await store.finish_delivery(finish, ME)
    assert await store.begin_notice(job.id, ended.lease_token)
    return job


def listed(text: str) -> list[int]:
    return [int(number) for number in re.findall(r'<tr id="job-(\d+)"', text)]


def stop_after_one_step(dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every search look at two ids only."""
    search = dashboard.store.search_jobs
    monkeypatch.setattr("genlock.stores.job_search.FIRST_STEP", 2)
    monkeypatch.setattr(dashboard.store, "search_jobs", lambda filters, **how: search(filters, **how, seconds=0.0))


async def work_to_the_end(dashboard: DashboardWorld) -> None:
    work = BulkWork(dashboard.engine.ctx, dashboard.engine.leader, dashboard.store, pause_seconds=0.0)
    while open_ := await dashboard.store.open_bulk_actions(10):
        await work.advance(open_[0])
