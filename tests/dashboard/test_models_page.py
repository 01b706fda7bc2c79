"""The Models page over HTTP: lists and filters, edits with preview, stale forms, undo, and the provider's list."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from genlock.domain.catalog import Catalog, Status
from genlock.domain.catalog_change import NewCatalogChange
from genlock.domain.figures import hour_number
from genlock.domain.model_schema import InputSchema, ModelSchema
from genlock.domain.operator import OperatorRole
from genlock.ports import PublicLists
from genlock.ports.provider import ListsIncomplete
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from genlock.stores.sqlite import SqliteStore
from tests.dashboard.world import Answer, Client, DashboardWorld, running_dashboard
from tests.databases import new_sqlite
from tests.packaged import CATALOG

MODEL = "kling-2.6/text-to-video"
PATH = f"/models/{MODEL}"
ROW = "kling 2.6, text-to-video, without audio-5.0s"


def field(page: Answer, name: str) -> str:
    """Return the value of the first hidden field or box with this name."""
    found = re.search(rf'name="{name}"[^>]*? value="([^"]*)"', page.text)
    assert found, f"no field {name}"
    return unescape(found[1])


async def save(client: Client, follows: int | str, key: str = "", **boxes: str) -> Answer:
    form = {"follows": str(follows), "step": "save", **({"request_key": key} if key else {}), **boxes}
    return await client.post(PATH, form)


def title(dashboard: DashboardWorld, model: str = MODEL) -> str:
    return dashboard.parts.editor.current.model(model).title


# lists


async def test_the_list_has_prices_costs_and_margins_and_follows_its_filters(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    page = await client.get("/models?q=z-image&status=all")
    assert "Z-Image" in page.text
    assert "$0.0040" in page.text
    assert "50.0%" in page.text
    assert "Kling" not in page.text
    assert "No matching models" in (await client.get("/models?q=nosuchmodel")).text
    dead = next(model for model in CATALOG.models.values() if model.status is Status.DEAD)
    assert dead.title in (await client.get(f"/models?status=dead&q={dead.id}")).text
    assert dead.title not in (await client.get(f"/models?q={dead.id}")).text


async def test_the_list_says_which_models_the_chat_does_not_count(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in(OperatorRole.VIEWER)
    current = dashboard.parts.editor.current
    current.replace(CATALOG.sold_through({"kie", "fal"}))
    assert sum(not model.listed for model in current.get().offered()) == 1

    assert "1 of them isn't in the bot's menus" in unescape((await client.get("/models")).text)
    assert "in the bot's menus" not in unescape((await client.get("/models?category=text-to-video")).text)


async def test_the_list_is_sorted_by_any_column_and_comes_in_pages(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    pages = [await client.get(f"/models?sort=-price&page={number}") for number in (1, 2, 3, 9999)]
    prices = [
        [float(text.replace(",", "")) for text in re.findall(r'data-label="Price">([\d,.]+)<', page.text)]
        for page in pages
    ]
    last = len(prices[2])
    assert [len(page_prices) for page_prices in prices] == [50, 50, last, last]
    assert 0 < last <= 50
    everything = [price for page in prices[:3] for price in page]
    assert everything == sorted(everything, reverse=True)
    problems = []
    for sort in ("menu", "title", "cost", "margin", "orders", "failures", "median", "p95", "last_failure"):
        answer = await client.get(f"/models?sort={sort}")
        if answer.status != 200 or "no filter “" in answer.text:
            problems.append(sort)
    assert problems == []


async def test_an_unknown_filter_is_named_and_the_others_apply(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    page = await client.get("/models?category=<b>&sort=color&days=5&status=lost&colour=red&q=z-image")
    for name, value in (
        ("category", "&lt;b&gt;"),
        ("sort", "color"),
        ("days", "5"),
        ("status", "lost"),
        ("colour", "red"),
    ):
        assert f"no filter “{name}” with the value “{value}”" in page.text
    assert "Z-Image" in page.text


async def test_the_list_shows_the_figures_of_the_period(dashboard: DashboardWorld) -> None:
    store: Any = dashboard.store
    assert isinstance(store, SqliteStore)
    day = hour_number(await store.read_clock()) // 24
    rows = [("day", day, 420, 380, 20, 77), ("hour", day * 24, 420, 380, 20, 77)]
    insert = (
        "INSERT INTO job_figures (span, start, bot, provider, model, orders, delivered, failed, last_failed_job)"
        " VALUES (?, ?, '42', 'kie', 'z-image', ?, ?, ?, ?)"
    )
    await store.session.call(lambda connection: [connection.execute(insert, row) for row in rows])
    durations = "INSERT INTO job_durations VALUES ('result', ?, '42', 'kie', 'z-image', 15, 400)"
    await store.session.call(lambda connection: connection.execute(durations, (day,)))
    page = await (await dashboard.log_in()).get("/models?q=z-image")
    for text in (">420</a>", "5%", "25\u00a0seconds", 'href="/dashboard/jobs/77">#77<'):
        assert text in page.text


# edits


async def test_an_edit_is_shown_as_a_difference_before_it_is_saved(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    boxes = {"title": "Films", "price": "12,5", "featured": "yes", "row": ROW, "credits": "60"}
    preview = await client.post(PATH, {"follows": "0", "step": "preview", **boxes})
    for text in ("This will be saved", "<ins><bdi>Films</bdi></ins>", "<ins>12.5</ins>", "<ins>60</ins>"):
        assert text in preview.text
    assert await dashboard.store.newest_catalog_change() == 0
    answer = await save(client, field(preview, "follows"), field(preview, "request_key"), **boxes)
    assert (answer.status, answer.headers["Location"]) == (303, f"/dashboard{PATH}")
    model = dashboard.parts.editor.current.model(MODEL)
    assert (model.title, model.own_price, model.featured) == ("Films", 12_500, True)
    assert model.prices[0].credits == Decimal(60)
    page = await client.get(PATH)
    assert "Saved. All instances" in page.text
    assert field(page, "price") == "12.5"
    [line] = [audit_line for audit_line in await dashboard.store.audit(10) if audit_line.action == "edit model"]
    assert (line.actor, line.subject) == ("7", MODEL)
    assert '"before": {}' in line.detail
    assert '"title": "Films"' in line.detail


async def test_the_same_form_posted_twice_saves_once(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    answers = await asyncio.gather(*(save(client, 0, "same", title="Films") for _ in range(3)))
    again = await save(client, 0, "same", title="Films")
    assert [answer.status for answer in (*answers, again)] == [303] * 4
    assert await dashboard.store.newest_catalog_change() == 1
    assert len([line for line in await dashboard.store.audit(10) if line.action == "edit model"]) == 1


async def test_wrong_values_are_named_at_their_boxes_and_nothing_is_lost(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    wrong = {
        "title": "x" * 61, "price": "1,000", "order": "0", "expected_seconds": "abc", "status": "lost", "free": "maybe",
        "row": ROW, "credits": "1e5",
    }  # fmt: skip
    for step in ("preview", "save"):
        answer = await client.post(PATH, {"follows": "0", "step": step, **wrong})
        assert (answer.status, "Nothing was saved: 7 values don&#39;t fit" in answer.text) == (422, True)
        for name in ("title", "price", "expected_seconds", "status", "free"):
            assert f'id="{name}-problem"' in answer.text, name
        assert 'value="1,000"' in answer.text
        assert 'value="1e5"' in answer.text
    contradiction = await client.post(PATH, {"follows": "0", "step": "save", "expected_seconds": "99999", "order": "0"})
    assert "More than 0 and no more than the deadline" not in contradiction.text, "malformed values come first"
    contradiction = await client.post(PATH, {"follows": "0", "step": "save", "expected_seconds": "99999"})
    assert "More than 0 and no more than the deadline" in contradiction.text
    assert await dashboard.store.newest_catalog_change() == 0


async def test_an_edit_of_an_older_state_is_refused_with_what_changed_meanwhile(dashboard: DashboardWorld) -> None:
    first, second = await dashboard.log_in(), await dashboard.log_in()
    opened = field(await second.get(PATH), "follows")
    await save(first, 0, title="Films", order="4")
    unsaved = await second.post(PATH, {"follows": opened, "step": "preview", "price": "9"})
    assert (unsaved.status, "This will be saved" in unsaved.text) == (409, False)
    answer = await save(second, opened, "mine", price="9")
    assert (answer.status, "the model has changed since you opened the form" in answer.text) == (409, True)
    assert "<ins><bdi>Films</bdi></ins>" in answer.text
    assert dashboard.parts.editor.current.model(MODEL).own_price is None
    assert (field(answer, "title"), field(answer, "price"), field(answer, "order")) == ("Films", "9", "4")
    boxes = {name: field(answer, name) for name in ("title", "price", "order")}
    assert (await save(second, field(answer, "follows"), **boxes)).status == 303
    model = dashboard.parts.editor.current.model(MODEL)
    assert (model.title, model.own_price, model.order) == ("Films", 9000, 4)


async def test_a_change_is_undone_unless_a_later_one_set_the_same_values(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    await save(client, 0, title="Films")
    await save(client, 1, title="Movies")
    page = await client.follow("/models/undo/1", {"request_key": "u1"})
    assert "a later change set the same values" in page.text
    assert title(dashboard) == "Movies"
    page = await client.follow("/models/undo/2", {"request_key": "u2"})
    assert "The change is undone" in page.text
    assert title(dashboard) == "Films"
    assert (await client.post("/models/undo/2", {"request_key": "u2"})).status == 303
    assert await dashboard.store.newest_catalog_change() == 3, "the same request undoes once"
    changes = await client.get("/models/changes")
    assert "Undo of change 2" in changes.text
    assert (await client.post("/models/undo/99")).status == 404
    assert (await client.post(f"/models/undo/{10**30}")).status == 404


async def test_changes_are_listed_newest_first_by_cursor(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    for number in range(23):
        await save(client, number, title=f"Title {number:02}")
    page = await client.get("/models/changes")
    assert [f"Title {number:02}</bdi></ins>" in page.text for number in (22, 3, 2)] == [True, True, False]
    older = re.search(r'href="/dashboard(/models/changes\?before=\d+)"', page.text)
    assert older
    assert "Title 02</bdi></ins>" in (await client.get(older[1])).text
    assert (await client.get("/models/changes?before=nonsense")).status == 200
    assert (await client.get(f"/models/changes?before={10**40}")).status == 200


async def test_a_model_and_the_choices_of_its_inputs_have_names_in_the_operators_language(
    dashboard: DashboardWorld,
) -> None:
    client = await dashboard.log_in()
    text = (await client.get("/models/veo3_fast", **{"Accept-Language": "ru"})).text
    assert "Из текста, Первый и последний кадр, По образцам" in text
    assert "REFERENCE_2_VIDEO" not in text
    assert (
        "Wan 2.6 по картинке" in (await client.get("/models/wan/2-6-image-to-video", **{"Accept-Language": "ru"})).text
    )


async def test_hostile_titles_and_reasons_are_shown_as_text(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    evil = "<script>alert(1)</script>{{7*7}}"
    refused = await save(client, 0, title=evil, reason=f"{evil}\u202e")
    assert (refused.status, 'id="reason-problem"' in refused.text) == (422, True)
    assert (await save(client, 0, title=evil, status="hidden", reason=evil)).status == 303
    for path in ("/models?status=all&q=alert", PATH, "/models/changes"):
        page = await client.get(path)
        assert page.status == 200
        assert "<script>alert" not in page.text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}" in page.text


async def test_an_edit_that_does_not_fit_any_more_is_named_and_can_be_removed(dashboard: DashboardWorld) -> None:
    store, client = dashboard.store, await dashboard.log_in()
    for model, table in (("gone/model", {"title": "x"}), (MODEL, {"credits": {"renamed row": 5}})):
        new = NewCatalogChange(model=model, before={}, after=table, author="7", request_key=model, follows=0)
        assert await store.add_catalog_change(new)
    page = await client.get("/models")
    assert "An edit of gone/model is ignored" in page.text
    assert f"An edit of {MODEL} is ignored" in page.text
    assert "renamed row" in (await client.get(PATH)).text
    for model in ("gone/model", MODEL):
        page = await client.follow(f"/models/clear/{model}")
        assert f"The edits of {model} were removed." in page.text
    assert "is ignored because" not in (await client.get("/models")).text


async def test_only_owners_see_the_form(dashboard: DashboardWorld) -> None:
    for role in OperatorRole:
        page = await (await dashboard.log_in(role)).get(PATH)
        assert (page.status, "Check and preview" in page.text) == (200, role is OperatorRole.OWNER)


# the provider's list


@pytest.fixture
async def kie() -> AsyncIterator[KieSimulator]:
    async with running_kie(catalog=CATALOG) as simulator:
        yield simulator


@pytest.fixture
async def compared(tmp_path: Path, kie: KieSimulator) -> AsyncIterator[DashboardWorld]:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", kie_api_url=kie.url) as world:
        yield world


def other_prices(kie: KieSimulator) -> None:
    """Let the provider ask more for a row, drop a model and add one."""
    dear = CATALOG.get(MODEL)
    dear = replace(dear, prices=(replace(dear.prices[0], credits=Decimal("66.5")), *dear.prices[1:]))
    models = {**CATALOG.models, MODEL: dear, "new/<i>model</i>": replace(dear, id="new/<i>model</i>")}
    del models["z-image"]
    kie.service.catalog = Catalog(models=models)


async def test_differences_are_shown_and_taken_over_one_by_one_or_all(
    compared: DashboardWorld, kie: KieSimulator
) -> None:
    client = await compared.log_in()
    assert "Not read yet" in (await client.get("/models/provider")).text
    page = await client.follow("/models/provider/read")
    assert "The catalog matches the provider" in page.text
    other_prices(kie)
    page = await client.follow("/models/provider/read")
    assert "2 differences" in page.text
    assert "66.5" in page.text
    assert "new/&lt;i&gt;model&lt;/i&gt;" in page.text
    keys = [unescape(key) for key in re.findall(r'name="difference" value="([^"]*)"', page.text)]
    price = next(key for key in keys if key.startswith('["price"'))
    page = await client.follow("/models/provider/take", {"difference": price, "request_key": "k"})
    assert "1 difference was applied." in page.text
    assert compared.parts.editor.current.model(MODEL).prices[0].credits == Decimal("66.5")
    page = await client.follow("/models/provider/take", {"difference": price, "request_key": "k"})
    assert "already applied" in page.text
    await client.follow("/models/provider/take", {"all": "1"})
    model = compared.parts.editor.current.model("z-image")
    assert (model.status, model.reason.startswith("gone from the provider's list on")) == (Status.PAUSED, True)
    assert [change.model for change in await compared.store.catalog_changes(9)] == ["z-image", MODEL]
    kie.service.catalog = CATALOG
    await client.follow("/models/provider/read")
    await client.follow("/models/provider/take", {"all": "1"})
    assert compared.parts.editor.current.model("z-image").status is Status.OFFERED
    assert compared.parts.editor.current.model(MODEL).prices[0].credits == CATALOG.get(MODEL).prices[0].credits


async def test_a_provider_that_does_not_answer_is_said_and_the_last_list_stays(
    compared: DashboardWorld, kie: KieSimulator
) -> None:
    client = await compared.log_in()
    other_prices(kie)
    await client.follow("/models/provider/read")
    kie.service.catalog = Catalog(models={})
    answer = await client.post("/models/provider/read")
    assert "A provider&#39;s list couldn&#39;t be read. Nothing was changed" in answer.text
    assert "list of models is empty" in answer.text
    assert "66.5" in answer.text


async def test_differences_from_published_schemas_are_listed_and_one_provider_that_is_down_hides_no_other(
    tmp_path: Path,
) -> None:
    offer = next(candidate for candidate in CATALOG.get("kling/v2-1-pro").offers if candidate.provider == "fal")
    inputs = {"<b>new</b>": InputSchema(), "clip": InputSchema(choices=("5", "10"))}
    answers: list[dict[str, PublicLists] | ListsIncomplete] = [
        {"fal": PublicLists(schemas={offer.model: ModelSchema(inputs=inputs, deprecated=True)})},
        ListsIncomplete({"replicate": PublicLists()}, {"fal": "GET http://x: TimeoutError"}),
    ]

    async def fetch() -> dict[str, PublicLists]:
        answer = answers.pop(0)
        if isinstance(answer, ListsIncomplete):
            raise answer
        return answer

    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", fetch_lists=fetch) as world:
        client = await world.log_in()
        page = await client.follow("/models/provider/read")
        assert "7 differences from the providers" in page.text
        assert "the provider will take this model down" in page.text
        assert "Prices of 1 model weren&#39;t compared" in page.text
        assert "fal: the provider publishes no price" in re.sub(r"<[^>]*>", "", page.text)
        assert "it may have a new name now: <code>clip</code>" in page.text
        assert "<code>&lt;b&gt;new&lt;/b&gt;</code>: a new input" in page.text
        page = await client.post("/models/provider/read")
        assert "fal: GET http://x: TimeoutError" in page.text
        assert "7 differences from the providers" in page.text
