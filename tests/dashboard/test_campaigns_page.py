"""The Campaigns page over HTTP: promo codes, broadcasts from the text to the stop, gifts and limits."""

import asyncio
import re
from html import unescape
from pathlib import Path

import pytest

from genlock.bot.admin.broadcasts import Content
from genlock.domain.broadcast import BroadcastOutcome, BroadcastState, Segment
from genlock.domain.promo import PromoVerdict
from tests.dashboard.world import OWNER_ID, Answer, Client, DashboardWorld, running_dashboard
from tests.databases import new_sqlite
from tests.stores.builders import ensure_profile

BOT = "42"
CODE = {"code": "summer-26", "amount": "12,5", "uses": "3", "each": "2", "days": "7"}


async def add_users(dashboard: DashboardWorld, *external_ids: int) -> list[int]:
    found = []
    for external_id in external_ids:
        account = await dashboard.store.ensure_account(dashboard.channel.name, BOT, str(external_id))
        await dashboard.store.set_account_address(account, f"address-{external_id}")
        await ensure_profile(dashboard.store, account, language="en", name="Ann", username="", referred_by=None)
        found.append(account)
    return found


# promo codes


async def test_a_code_is_created_used_and_closed(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    empty = (await client.get("/campaigns")).text
    assert "<h1>Campaigns</h1>" in empty, "as in the menu"
    assert "No promo codes yet" in empty
    page = await client.follow("/campaigns/promos", CODE)
    assert "The code SUMMER-26 is now valid" in page.text
    promo = await dashboard.store.promo("SUMMER-26")
    assert promo is not None
    assert (promo.amount, promo.runs, promo.uses_max, promo.per_account, promo.bot) == (12_500, 0, 3, 2, BOT)
    [account] = await add_users(dashboard, 100)
    assert (await dashboard.store.use_promo("SUMMER-26", account, "k")).verdict is PromoVerdict.GIVEN
    assert "1 / 3" in (await client.get("/campaigns")).text
    page = await client.follow("/campaigns/promos/SUMMER-26/close")
    assert "The code SUMMER-26 is closed." in page.text
    page = await client.follow("/campaigns/promos/SUMMER-26/close")
    assert "was already closed" in page.text
    assert (await client.post("/campaigns/promos/NO-SUCH/close")).status == 404
    assert [line.action for line in await dashboard.store.audit(9)][:2] == ["close promo", "create promo"]


async def test_a_form_posted_twice_creates_one_code_and_another_with_its_name_is_refused(
    dashboard: DashboardWorld,
) -> None:
    client = await dashboard.log_in()
    answers = await asyncio.gather(*(client.post("/campaigns/promos", CODE) for _ in range(3)))
    assert [answer.status for answer in answers] == [303] * 3
    assert len(await dashboard.store.promos(9, BOT)) == 1
    other = await client.post("/campaigns/promos", {**CODE, "amount": "99"})
    assert (other.status, "This code already exists" in other.text) == (409, True)
    assert 'value="99"' in other.text


async def test_wrong_values_of_a_code_are_named_at_their_boxes(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    wrong = (
        ({"code": "abc"}, "code"),
        ({"code": "<b>evil</b>"}, "code"),
        ({"amount": ""}, "amount"),
        ({"runs": "5"}, "amount"),
        ({"amount": "1.2345"}, "amount"),
        ({"amount": "1,000"}, "amount"),
        ({"amount": "", "runs": "x"}, "runs"),
        ({"amount": "", "runs": "5"}, "runs"),
        ({"uses": "0"}, "uses"),
        ({"each": "0"}, "each"),
        ({"days": "99999"}, "days"),
        ({"days": "-1"}, "days"),
    )
    problems = []
    for boxes, box in wrong:
        answer = await client.post("/campaigns/promos", {**CODE, **boxes})
        if answer.status != 422 or f'id="{box}-problem"' not in answer.text or "<b>evil" in answer.text:
            problems.append(f"{boxes}: {answer.status}")
    assert problems == []
    assert await dashboard.store.promos(9, BOT) == []


async def test_free_runs_can_be_given_when_a_model_on_sale_allows_them(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    await dashboard.parts.editor.save("z-image", {"free": True}, follows=0, author="7", request_key="k")
    page = await client.follow("/campaigns/promos", {"code": "FREE-RUNS", "runs": "3"})
    assert "3\u00a0free runs" in page.text


async def test_codes_are_listed_by_cursor(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    for number in range(27):
        await client.post("/campaigns/promos", {"code": f"CODE{number:04}", "amount": "1"})
    page = await client.get("/campaigns")
    older = re.search(r'href="/dashboard(/campaigns\?before=[^"]+)"', page.text)
    assert older
    assert ("CODE0026" in page.text, "CODE0001" in page.text) == (True, False)
    assert "CODE0001" in (await client.get(unescape(older[1]))).text
    assert (await client.get("/campaigns?before=%00%27;--")).status == 200


# broadcasts


async def preview(client: Client, text: str) -> Answer:
    return await client.post("/campaigns/broadcasts/preview", {"text": text})


async def test_a_message_is_checked_and_shown_with_the_number_of_its_recipients(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    accounts = await add_users(dashboard, OWNER_ID, 100, 101, 102)
    await dashboard.store.set_blocked(accounts[-1], blocked=True)
    wrong = await preview(client, "Hello\n<blink>you</blink>")
    assert (wrong.status, "Line 2: Telegram doesn&#39;t know the tag &lt;blink&gt;" in wrong.text) == (422, True)
    assert "&lt;blink&gt;you&lt;/blink&gt;</textarea>" in wrong.text, "the text is still there"
    shown = await preview(client, "<b>Sale</b> & more")
    assert (shown.status, "<b>Sale</b> &amp; more" in shown.text) == (200, True)
    assert "3 users will receive it." in (await client.get("/campaigns/broadcasts/recipients")).text
    assert await dashboard.store.broadcasts(9) == []


async def test_a_page_does_not_wait_for_a_long_count(
    dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, counted = await dashboard.log_in(), asyncio.Event()

    async def count(*_: object) -> int:
        await counted.wait()
        return 300_000

    monkeypatch.setattr(dashboard.store, "count_reachable", count)
    page = await preview(client, "Hello")
    assert (page.status, "Counting recipients" in page.text) == (200, True)
    waiting = asyncio.create_task(client.get("/campaigns/broadcasts/recipients"))
    counted.set()
    assert "300,000 users will receive it." in (await waiting).text
    assert "300,000 users will receive it." in (await preview(client, "Hello")).text
    assert "Send to 300,000 users" in (await preview(client, "Hello")).text


async def test_a_broadcast_goes_to_the_segment_that_was_chosen_with_its_buttons(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    accounts = await add_users(dashboard, OWNER_ID, 100, 101)
    await dashboard.store.set_language(accounts[1], "ru")
    form = {
        "text": "<b>Sale</b>",
        "language": "ru",
        "paid": "no",
        "silent": "0",
        "buttons": "Open | https://example.com/a",
    }
    wrong = await client.post("/campaigns/broadcasts/preview", {**form, "buttons": "Open https://example.com"})
    assert (wrong.status, "Each button is one line" in wrong.text) == (422, True)
    assert '<option value="ru" selected>' in wrong.text, "the choices are still there"
    shown = await client.post("/campaigns/broadcasts/preview", form)
    assert "Only: language: Russian · have never paid." in shown.text
    counted = await client.get("/campaigns/broadcasts/recipients?language=ru&paid=no&silent=")
    assert "1 user will receive it." in counted.text
    await client.follow("/campaigns/broadcasts/start", {**form, "request_key": "k"})
    [made] = await dashboard.store.broadcasts(9)
    page = await client.get(f"/campaigns/broadcasts/{made.id}")

    assert (made.total, made.segment) == (1, Segment(language="ru", paid=False))
    assert Content.load(made) == Content(text="<b>Sale</b>", buttons=(("Open", "https://example.com/a"),))
    assert ("<b>Sale</b>" in page.text, ">Open<" in page.text, "Only: language: Russian" in page.text) == (True,) * 3
    hostile = {**form, "language": "<b>", "paid": "x", "silent": "-1", "buttons": '<i>x</i> | https://a.b/"><script>'}
    page = await client.post("/campaigns/broadcasts/preview", hostile)
    assert (page.status, "<script>" in page.text.replace("<script src", ""), "<i>x</i>" in page.text) == (
        200,
        False,
        False,
    )


async def test_a_trial_goes_to_the_operator_alone(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    without_chat = await client.post("/campaigns/broadcasts/test", {"text": "<b>Sale</b>"})
    assert "be sent to your chat: you haven" in without_chat.text
    await add_users(dashboard, OWNER_ID, 100)
    tried = await client.post("/campaigns/broadcasts/test", {"text": "<b>Sale</b>"})
    assert "Sent to your chat with the bot" in tried.text
    assert dashboard.channel.told == [(f"address-{OWNER_ID}", "<b>Sale</b>")]
    assert await dashboard.store.broadcasts(9) == []
    assert (await client.post("/campaigns/broadcasts/test", {"text": "<b>Sale"})).status == 422
    assert len(dashboard.channel.told) == 1


async def test_a_broadcast_is_started_once_watched_and_stopped(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    await add_users(dashboard, OWNER_ID, 100)
    form = {"text": "<b>Sale</b>", "request_key": "k"}
    answers = await asyncio.gather(*(client.post("/campaigns/broadcasts/start", form) for _ in range(3)))
    [broadcast] = await dashboard.store.broadcasts(9)
    path = f"/campaigns/broadcasts/{broadcast.id}"
    assert {(answer.status, answer.headers["Location"]) for answer in answers} == {(303, f"/dashboard{path}")}
    assert (broadcast.text, broadcast.content, broadcast.total, broadcast.bot) == ("<b>Sale</b>", "", 2, BOT)
    assert "<bdi>Sale</bdi>" in (await client.get("/campaigns/broadcasts")).text, "without its tags"
    for outcome in (BroadcastOutcome.SENT, BroadcastOutcome.UNKNOWN):
        recipient = await dashboard.store.next_recipient(broadcast.id)
        assert recipient is not None
        await dashboard.store.count_broadcast_message(broadcast.id, recipient, outcome)
    part = await client.get(path, **{"HX-Request": "true"})
    assert "1 of 2 sent" in part.text
    assert "1 may have arrived" in part.text
    assert 'hx-trigger="every 2s"' in part.text
    assert "<html" not in part.text
    page = await client.follow(f"{path}/stop")
    assert "Stopped." in page.text
    assert "hx-trigger" not in page.text, "a page of an ended broadcast asks for nothing"
    assert "had already ended" in (await client.follow(f"{path}/stop")).text
    found = await dashboard.store.broadcast(broadcast.id)
    assert found is not None
    assert found.state is BroadcastState.STOPPED
    actions = [line.action for line in await dashboard.store.audit(9)]
    assert actions[:2] == ["stop broadcast", "broadcast"]


async def test_a_broadcast_of_another_bot_or_none_is_not_found(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    other = await dashboard.store.begin_broadcast("x", bot="another", author="1", request_key="k")
    for number in (other.id, 999, 10**25):
        assert (await client.get(f"/campaigns/broadcasts/{number}")).status == 404
        assert (await client.post(f"/campaigns/broadcasts/{number}/stop")).status == 404
    found = await dashboard.store.broadcast(other.id)
    assert found is not None
    assert found.state is BroadcastState.RUNNING


async def test_hostile_texts_of_broadcasts_are_shown_as_text(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    text = "<script>alert(1)</script>" + "Ж" * 100_000
    made = await dashboard.store.begin_broadcast(text, bot=BOT, author="<b>me</b>", request_key="k")
    for path in ("/campaigns/broadcasts", f"/campaigns/broadcasts/{made.id}"):
        page = await client.get(path)
        assert (page.status, "<script>alert" in page.text, "<b>me" in page.text) == (200, False, False)
        assert "&lt;script&gt;alert(1)" in page.text


# gifts and limits


async def test_the_rules_show_the_settings_and_where_they_come_from(tmp_path: Path) -> None:
    url = f"sqlite:///{new_sqlite(tmp_path)}"
    async with running_dashboard(url, welcome_credits=17.5, free_per_day=4) as dashboard:
        page = await (await dashboard.log_in()).get("/campaigns/rules")
    for text in ("GENLOCK_WELCOME_CREDITS", ">17.5<", "GENLOCK_FREE_PER_DAY", ">4<", "environment"):
        assert text in page.text
