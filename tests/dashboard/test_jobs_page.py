"""The list of orders over HTTP: filters, rows, searches and the export."""

import csv
import io
import re
from html import unescape
from pathlib import Path

import pytest

from genlock.domain.job import State
from genlock.domain.operator import OperatorRole
from tests.dashboard.job_list import ended_job, listed, running_job, stop_after_one_step, user
from tests.dashboard.world import DashboardWorld, running_dashboard
from tests.databases import new_sqlite


async def test_the_list_shows_what_the_filters_of_the_address_ask_for(dashboard: DashboardWorld) -> None:
    ann, bob = await user(dashboard, "Ann"), await user(dashboard, "Bob")
    fox, cat = await ended_job(dashboard, ann), await ended_job(dashboard, bob, prompt="a cat", model="suno")
    failed, open_ = await ended_job(dashboard, bob, State.FAILED), await running_job(dashboard, ann, "50%_off")
    client, wrong = await dashboard.log_in(), []
    for query, expected in {
        "": [open_, failed, cat, fox],
        "state=open": [open_],
        "state=unsuccessful": [failed],
        "state=succeeded&hold=captured&delivery=delivered": [cat, fox],
        "model=suno": [cat],
        "user=@ann": [open_, fox],
        f"user=%23{bob}": [failed, cat],
        "user=Bo": [failed, cat],
        "user=zoe": [],
        "text=a+CAT&user=Bob": [cat],
        "text=%25_": [open_],
        "error=%3Dnsfw": [failed],
        "task=task-0": [fox],
        "period=1h": [open_, failed, cat, fox],
        "until=2020-01-01": [],
        "attention=1": [],
        f"before={cat.id}": [fox],
        "before=junk&nonsense=1": [open_, failed, cat, fox],
    }.items():
        answer = await client.get(f"/jobs?{query}")
        if answer.status != 200 or listed(answer.text) != [job.id for job in expected]:
            wrong.append(f"{query}: {answer.status} {listed(answer.text)}")
    assert wrong == []


async def test_a_row_is_in_the_operators_language_and_a_failed_order_was_told_and_not_delivered(
    dashboard: DashboardWorld,
) -> None:
    await ended_job(dashboard, await user(dashboard, "Ann"), State.FAILED, model="wan/2-6-image-to-video")
    client = await dashboard.log_in()
    for language, title, told, delivered in (
        ("en", "Wan 2.6 from an image", ">notified<", ">delivered<"),
        ("ru", "Wan 2.6 по картинке", ">сообщено<", ">доставлен<"),
    ):
        text = (await client.get("/jobs", **{"Accept-Language": language})).text
        rows = text[text.index('<tr id="job-') :]
        assert title in rows
        assert told in rows
        assert delivered not in rows


async def test_filters_are_chips_that_can_be_removed_and_unknown_ones_are_named(dashboard: DashboardWorld) -> None:
    await ended_job(dashboard, await user(dashboard, "Ann"))
    page = unescape((await (await dashboard.log_in()).get("/jobs?state=succeeded&user=ann&colour=red")).text)
    assert "There's no filter “colour”, so “red” has no effect." in page
    assert 'href="/dashboard/jobs?user=ann&colour=red"' in page  # without the state
    assert 'href="/dashboard/jobs?state=succeeded&user=ann"' in page  # without the unknown one
    assert '<input type="hidden" name="colour" value="red">' in page
    assert re.search(r'name="scope" value="all" disabled', page)
    page = unescape((await (await dashboard.log_in()).get("/jobs?sate=failed")).text)
    assert "There's no filter “sate”, so “failed” has no effect. Did you mean “state”?" in page


async def test_a_name_that_several_users_have_asks_which_one_and_finds_nothing(dashboard: DashboardWorld) -> None:
    ann, anna = await user(dashboard, "Ann A"), await user(dashboard, "Ann B")
    await ended_job(dashboard, ann)
    answer = await (await dashboard.log_in()).get("/jobs?user=Ann")
    assert listed(answer.text) == []
    assert f"user=%23{ann}" in answer.text
    assert f"user=%23{anna}" in answer.text


async def test_an_order_is_found_by_its_number(dashboard: DashboardWorld) -> None:
    job = await running_job(dashboard, await user(dashboard, "Ann"))
    client = await dashboard.log_in()
    for number in (f"{job.id}", f" %23{job.id} "):
        answer = await client.get(f"/jobs/find?number={number}")
        assert (answer.status, answer.headers["Location"]) == (303, f"/dashboard/jobs/{job.id}")
    for number in ("404", "", "-1", "x" * 500, "9" * 30):
        answer = await client.get(f"/jobs/find?number={number}")
        assert (answer.status, answer.headers["Location"]) == (303, "/dashboard/jobs")
        assert "There&#39;s no order" in (await client.get("/jobs")).text


async def test_without_orders_the_page_says_so(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    assert "No orders yet" in (await client.get("/jobs")).text
    assert "No matching orders" in (await client.get("/jobs?state=failed")).text
    assert "No bulk actions yet" in (await client.get("/jobs/bulk")).text
    assert (await client.get("/jobs/bulk/404")).status == 404


async def test_prompts_are_hidden_from_a_viewer_where_the_setting_says_so(tmp_path: Path) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", viewers_see_prompts=False) as dashboard:
        job = await ended_job(dashboard, await user(dashboard, "Ann"), prompt="my secret wish")
        viewer = await dashboard.log_in(OperatorRole.VIEWER)
        for path in ("/jobs", "/jobs?text=secret", f"/jobs/rows?ids={job.id}.x", "/jobs/export.csv"):
            answer = await viewer.get(path)
            assert str(job.id) in answer.text, path
            assert "secret wish" not in answer.text, path
        assert "see prompts, so the filter" in (await viewer.get("/jobs?text=secret")).text
        refused = await viewer.get("/jobs/export.csv?text=secret")
        assert refused.status == 303
        assert 'name="job"' not in (await viewer.get("/jobs")).text
        assert "my secret wish" in (await (await dashboard.log_in()).get("/jobs")).text


async def test_only_rows_that_have_changed_are_sent_again(dashboard: DashboardWorld) -> None:
    ann = await user(dashboard, "Ann")
    job, _ = await running_job(dashboard, ann), await ended_job(dashboard, ann)
    client = await dashboard.log_in()
    [ids] = re.findall(r'hx-get="/dashboard/jobs/rows\?ids=([^"]+)"', (await client.get("/jobs")).text)
    assert re.fullmatch(rf"{job.id}\.\w+", ids)  # the ended one does not change any more
    assert (await client.get(f"/jobs/rows?ids={ids}")).status == 204

    await dashboard.engine.cancel(job.id, "ann")
    changed = await client.get(f"/jobs/rows?ids={ids}")

    assert listed(changed.text) == [job.id]
    assert "cancelled" in changed.text
    for junk in ("", "x", "1.2.3,,-5", "9" * 50, ",".join(["1.a"] * 1500)):
        assert (await client.get(f"/jobs/rows?ids={junk}")).status in (200, 204)


async def test_a_search_that_is_not_over_continues_where_it_stopped(
    dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await user(dashboard, "Ann")
    jobs = [await ended_job(dashboard, ann, prompt="needle" if number == 0 else "hay") for number in range(5)]
    stop_after_one_step(dashboard, monkeypatch)
    client = await dashboard.log_in()

    answer, seen, steps = await client.get("/jobs?text=needle"), [], 0
    while match := re.search(r'hx-get="(/dashboard/jobs/more[^"]+)"', answer.text):
        assert "Searched orders back to" in answer.text
        answer = await client.get(unescape(match[1]).removeprefix("/dashboard"))
        seen += listed(answer.text)
        steps += 1

    assert seen == [jobs[0].id]
    assert steps == 2
    assert "No more orders." in answer.text


async def test_orders_are_exported_as_csv(dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.dashboard.job_export.PAGE", 2)
    monkeypatch.setattr("genlock.dashboard.job_export.PAUSE_SECONDS", 0.0)
    ann = await user(dashboard, "=Ann")
    jobs = [await ended_job(dashboard, ann, State.FAILED, prompt='=HYPERLINK("x"), лиса') for _ in range(5)]
    client = await dashboard.log_in()

    answer = await client.get("/jobs/export.csv?state=failed")

    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["Content-Disposition"]
    assert answer.text.startswith("\ufeff")
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert [int(row["order"]) for row in rows] == [job.id for job in reversed(jobs)]
    assert rows[0]["prompt"] == '\'=HYPERLINK("x"), лиса'
    assert (rows[0]["user"], rows[0]["error"], rows[0]["price_credits"]) == ("'=Ann", "'=nsfw", "12.5")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", rows[0]["created_at"])
    chosen = await client.post("/jobs/export", {"scope": "chosen", "job": [jobs[1].id, jobs[3].id]})
    assert [line.split(",")[0] for line in chosen.text.splitlines()[1:]] == [str(jobs[3].id), str(jobs[1].id)]
    everything = await client.post("/jobs/export", {"scope": "all", "query": "state=failed"})
    assert everything.text == answer.text
    assert "select orders first" in (await client.follow("/jobs/export", {"scope": "chosen"})).text
    assert [line.action for line in await dashboard.store.audit(3)] == ["export_jobs"] * 3
