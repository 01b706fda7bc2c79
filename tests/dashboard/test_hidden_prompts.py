"""A viewer from whom prompts are hidden finds them nowhere: on no page, in no file, by no search."""

import json
from pathlib import Path

from genlock.domain.delivery import Part
from genlock.domain.job import AttentionCode, Delivery, State
from genlock.domain.job_event import EventRow
from genlock.domain.operator import OperatorRole
from genlock.domain.result import PartKind
from tests.dashboard.job_pages import with_result
from tests.dashboard.world import DashboardWorld, running_dashboard
from tests.databases import new_sqlite
from tests.stores.builders import end, finish, running

SECRET = "a fox in a blue hat"
PAGES = ("", "/live", "/jobs", "/jobs?text=fox", "/jobs/export.csv", "/attention", "/audit", "/audit/export.csv",
         "/jobs/bulk", "/jobs/bulk/1", "/users", "/system/log?correlation_id=corr")  # fmt: skip


async def add_secrets(world: DashboardWorld) -> list[int]:
    """Put a user's words everywhere where they may come: errors, events, results, audit lines, bulk actions."""
    store = world.store
    prompt = json.dumps({"prompt": SECRET})
    failed = await running(store, request_key="failed", input=prompt, correlation_id="corr")
    end_of = await end(store, failed, State.FAILED, error_code="nsfw", error_text=f"refused: {SECRET}")
    assert end_of.job
    code, why = AttentionCode.UNDELIVERABLE, f"look: {SECRET}"
    assert await finish(store, end_of.job, Delivery.UNDELIVERABLE, attention_code=code, attention_reason=why)
    events = json.dumps([[10, "SUBMIT_REFUSED", {"job": failed.id, "error": SECRET, "attempt": 417}]])
    await store.add_job_events("instance-7", [EventRow(correlation_id="corr", number=1, events=events)])
    result = await with_result(world, Part(kind=PartKind.TEXT, value=SECRET))
    owner = await world.log_in()
    await owner.post("/jobs/bulk", {"action": "retry", "scope": "all", "query": f"text={SECRET}", "request_key": "k"})
    await owner.post("/jobs/export", {"scope": "all", "query": f"text={SECRET}"})
    details = (json.dumps({"after": {"text": SECRET}}), json.dumps({"after": {"text": SECRET}})[:-4])
    for number, detail in enumerate(details):
        await store.add_audit(key=f"{number}", actor="7", action="message", subject="1", detail=detail)
    return [failed.id, result.id]


async def test_a_viewer_without_prompts_finds_none(tmp_path: Path) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", viewers_see_prompts=False) as world:
        jobs = await add_secrets(world)
        support, viewer = await world.log_in(OperatorRole.SUPPORT), await world.log_in(OperatorRole.VIEWER)
        paths = [*PAGES, *(f"/jobs/{job}" for job in jobs), *(f"/jobs/{job}/live" for job in jobs)]
        shown = {path for path in paths if SECRET in (await support.get(path)).text}
        leaks = {path for path in paths if SECRET in (await viewer.get(path)).text}
        assert {"/jobs", "/audit", "/audit/export.csv", "/attention", *(f"/jobs/{job}" for job in jobs)} <= shown
        assert leaks == set()
        page = (await viewer.get(f"/jobs/{jobs[0]}")).text
        assert "417" in page, "figures are shown"
