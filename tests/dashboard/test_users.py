"""The pages about users: what they show, what they do, and what happens with hostile names and stale forms."""

import asyncio
import random

import pytest

from genlock.domain.errors import ChannelOutcomeUnknown, LevelRefused, RecipientUnreachable
from genlock.domain.money import EntryKind
from genlock.domain.operator import OperatorRole
from genlock.domain.payment import PaymentState
from tests.dashboard.users import BOT, HOSTILE, add_payment, add_user, field
from tests.dashboard.world import DashboardWorld


async def available(dashboard: DashboardWorld, account_id: int) -> int:
    return (await dashboard.store.wallet(account_id)).available


def credit(key: str, amount: str = "10", **more: str) -> dict[str, str]:
    return {"request_key": key, "direction": "credit", "amount": amount, "reason": "an apology", **more}


async def test_users_are_found_by_name_username_and_numbers(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in(OperatorRole.VIEWER)
    assert "No users yet" in (await client.get("/users")).text
    ann = await add_user(dashboard, "1001", name="Ann Archer")
    await add_user(dashboard, "1002", name="Bob Brown")

    for text in ("archer", "@user1001", "1001", str(ann)):
        page = (await client.get(f"/users?q={text}")).text
        assert "Ann Archer" in page, text
        assert "Bob Brown" not in page, text  # three letters may be part of a random token
    assert "No users found" in (await client.get("/users?q=missing")).text


async def test_filters_select_and_bad_ones_are_named(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    for number in range(3):
        await add_user(dashboard, f"200{number}", name=f"Name{number}")
    banned = await add_user(dashboard, "2009", name="Spammer")
    await dashboard.store.set_ban(banned, banned=True, reason="spam")

    page = (await client.get("/users?which=banned")).text
    assert "Spammer" in page
    assert "Name0" not in page
    page = (await client.get("/users?which=nonsense&colour=<b>red&before=x")).text
    assert "Name0" in page, "what cannot be read changes nothing"
    for text in ("nonsense", "colour", "before"):
        assert text in page
    assert "<b>red" not in page


async def test_the_list_goes_on_with_older_users(dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.dashboard.pages.users.PAGE", 2)
    client = await dashboard.log_in()
    ids = [await add_user(dashboard, f"300{number}", name=f"Name{number}.") for number in range(3)]

    first = (await client.get("/users")).text
    assert "Name2." in first
    assert "Name0." not in first
    assert f"before={ids[1]}" in first
    assert "Name0." in (await client.get(f"/users?before={ids[1]}")).text


async def test_a_profile_shows_money_limits_and_who_invited_whom(dashboard: DashboardWorld) -> None:
    client, store = await dashboard.log_in(OperatorRole.VIEWER), dashboard.store
    inviter = await add_user(dashboard, "1", name="Inviter")
    ann = await add_user(dashboard, "2", name="Ann", credits_=50, invited_by=inviter)
    await add_payment(dashboard, ann, "charge-1")
    await store.set_ban(ann, banned=True, reason="rude words")
    await store.transfer(ann, EntryKind.DEBIT, 20_000, "spent", "a model")

    page = (await client.get(f"/users/{ann}")).text
    for text in ("Inviter", "rude words", "0 of 5", "charge-1", "150", "a model"):
        assert text in page, text
    assert '<form class="panel' not in page, "a viewer has no actions"
    assert "Ann" in (await client.get(f"/users/{inviter}/gifts")).text
    ledger = (await client.get(f"/users/{ann}/ledger")).text
    assert ledger.index(">150.00<") < ledger.index(">170.00<"), "balances after each line, newest first"
    assert (await client.get(f"/users/{ann}/payments")).status == 200
    assert (await client.get("/users/999999")).status == 404
    assert (await client.get("/users/99999999999999999999999999")).status == 404


async def test_a_long_ledger_is_read_in_pages(dashboard: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.dashboard.pages.users.PAGE", 3)
    client, ann = await dashboard.log_in(), await add_user(dashboard)
    for number in range(5):
        await dashboard.store.transfer(ann, EntryKind.GRANT, 1000, f"gift-{number}", f"gift {number}.")

    first = (await client.get(f"/users/{ann}/ledger")).text
    assert "gift 4." in first
    assert "gift 1." not in first
    [older] = [link.split('"')[0] for link in first.split('href="/dashboard') if "before=" in link[:80]]
    second = (await client.get(older)).text
    assert "gift 1." in second
    assert "Balance after" not in second
    assert "was ignored" in (await client.get(f"/users/{ann}/ledger?before=rubbish")).text


async def test_credits_move_once_per_form_and_the_user_is_told(dashboard: DashboardWorld) -> None:
    client, ann = await dashboard.log_in(), await add_user(dashboard)

    page = await client.follow(f"/users/{ann}/credits", credit("form", "12.5"))
    again = await client.follow(f"/users/{ann}/credits", credit("form", "12.5"))

    assert "Credited 12.5\u00a0credits" in page.text
    assert "changed only once" in again.text
    assert await available(dashboard, ann) == 12_500
    [(address, text)] = dashboard.channel.told
    assert address == "chat-1001"
    assert "12.5\u00a0credits" in text
    [line] = [audit_line for audit_line in await dashboard.store.audit(10) if audit_line.action == "credit"]
    assert (line.actor, line.subject) == ("7", str(ann))
    assert '"balance": "12.5"' in line.detail


async def test_two_operators_press_the_same_form_at_once(dashboard: DashboardWorld) -> None:
    client, ann = await dashboard.log_in(), await add_user(dashboard)

    answers = await asyncio.gather(*(client.post(f"/users/{ann}/credits", credit("form")) for _ in range(8)))

    assert {answer.status for answer in answers} == {303}
    assert await available(dashboard, ann) == 10_000
    assert len(dashboard.channel.told) == 1


async def test_a_form_from_before_another_operator_s_credit_says_what_changed(dashboard: DashboardWorld) -> None:
    first, second = await dashboard.log_in(), await dashboard.log_in(OperatorRole.SUPPORT)
    ann = await add_user(dashboard)
    state = field((await second.get(f"/users/{ann}")).text, "state")
    await first.follow(f"/users/{ann}/credits", credit("one", state=state))

    stale = await second.post(f"/users/{ann}/credits", credit("two", "11", state=state))

    assert stale.status == 409
    assert "another operator credited 10\u00a0credits" in stale.text
    assert 'value="11"' in stale.text, "what was typed is still there"
    assert await available(dashboard, ann) == 10_000
    await second.follow(f"/users/{ann}/credits", credit("three", "11", state=field(stale.text, "state")))
    assert await available(dashboard, ann) == 21_000


async def test_support_has_a_limit_per_day_and_is_told_its_figures(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in(OperatorRole.SUPPORT)
    ann, bob = await add_user(dashboard, "1"), await add_user(dashboard, "2")
    await client.follow(f"/users/{ann}/credits", credit("one", "60"))

    refused = await client.post(f"/users/{bob}/credits", credit("two", "41"))

    assert refused.status == 400
    for figure in ("41\u00a0credits", "100\u00a0credits per day", "60\u00a0credits used", "40\u00a0credits left"):
        assert figure in refused.text, figure
    assert await available(dashboard, bob) == 0
    await client.follow(f"/users/{bob}/credits", credit("three", "40"))
    owner = await dashboard.log_in()
    await owner.follow(
        f"/users/{bob}/credits", credit("four", "5000", state=field((await owner.get(f"/users/{bob}")).text, "state"))
    )
    assert await available(dashboard, bob) == 5_040_000


async def test_what_cannot_be_done_is_refused_with_the_reason(dashboard: DashboardWorld) -> None:
    client, ann = await dashboard.log_in(), await add_user(dashboard, credits_=5)
    cases = [
        (credit("a", "0"), "enter the amount"), (credit("b", "-5"), "enter the amount"),
        (credit("c", "1e3"), "enter the amount"), (credit("d", "٣"), "enter the amount"),
        (credit("e", "5", reason=""), "enter a reason"), (credit("f", "5", reason="x" * 301), "enter a reason"),
        (credit("g", "6", direction="debit"), "balance is 5\u00a0credits"),
        (credit("h", direction="steal"), "choose credit"),
    ]  # fmt: skip
    problems = []
    for form, text in cases:
        answer = await client.post(f"/users/{ann}/credits", form)
        if answer.status != 400 or text not in answer.text:
            problems.append(f"{form}: {answer.status}")
    assert problems == []
    assert await available(dashboard, ann) == 5000


async def test_a_user_who_cannot_be_told_is_credited_and_the_operator_sees_it(dashboard: DashboardWorld) -> None:
    client, ann = await dashboard.log_in(), await add_user(dashboard)
    dashboard.channel.faults.add("tell", RecipientUnreachable("blocked"))

    page = await client.follow(f"/users/{ann}/credits", credit("form"))

    assert "couldn&#39;t be notified" in page.text
    assert 'class="notice bad"' in page.text
    assert await available(dashboard, ann) == 10_000


async def test_a_ban_and_its_end_are_done_once(dashboard: DashboardWorld) -> None:
    client, ann = await dashboard.log_in(OperatorRole.SUPPORT), await add_user(dashboard)

    assert "is banned" in (await client.follow(f"/users/{ann}/ban", {"reason": "spam"})).text
    second = await client.follow(f"/users/{ann}/ban", {"reason": "other"})
    assert "already banned. Reason: spam" in second.text
    assert (await dashboard.store.profile(ann)).ban_reason == "spam"
    assert "Access is restored" in (await client.follow(f"/users/{ann}/unban")).text
    assert "isn&#39;t banned" in (await client.follow(f"/users/{ann}/unban")).text
    assert (await client.post(f"/users/{ann}/ban", {"reason": ""})).status == 400


async def test_a_message_is_previewed_escaped_and_sent_once(dashboard: DashboardWorld) -> None:
    client, ann = await dashboard.log_in(), await add_user(dashboard)
    text = "Hello <b>Ann</b> & {name}\nsecond line"

    preview = await client.post(f"/users/{ann}/message", {"text": text})
    assert (preview.status, dashboard.channel.told) == (200, [])
    assert "Hello &lt;b&gt;Ann" in preview.text
    form = {"text": text, "request_key": field(preview.text, "request_key")}
    sent = await client.follow(f"/users/{ann}/message/send", form)
    again = await client.follow(f"/users/{ann}/message/send", form)

    assert "is on its way" in sent.text
    assert "be sent twice" in again.text
    [(_, told)] = dashboard.channel.told
    assert told.endswith("Hello &lt;b&gt;Ann&lt;/b&gt; &amp; {name}\nsecond line")
    assert (await client.post(f"/users/{ann}/message", {"text": " "})).status == 400
    assert (await client.post(f"/users/{ann}/message", {"text": "x" * 4000})).status == 400


async def test_a_message_that_does_not_arrive_is_shown_as_such(dashboard: DashboardWorld) -> None:
    client, ann = await dashboard.log_in(), await add_user(dashboard)
    dashboard.channel.faults.add("tell", ChannelOutcomeUnknown())

    page = await client.follow(f"/users/{ann}/message/send", {"text": "hello", "request_key": "k"})

    assert "wasn&#39;t delivered" in page.text
    assert {line.action for line in await dashboard.store.audit(5)} >= {"message", "message not delivered"}


async def test_of_two_operators_who_give_free_runs_the_second_is_told(dashboard: DashboardWorld) -> None:
    ann = await add_user(dashboard, "Ann")
    first, second = await dashboard.log_in(), await dashboard.log_in(OperatorRole.SUPPORT)
    states = [field((await client.get(f"/users/{ann}")).text, "gift_state") for client in (first, second)]
    form = {"runs": "3", "request_key": "k"}
    assert (await first.post(f"/users/{ann}/free-runs", {**form, "gift_state": states[0]})).status == 303
    again = await first.follow(f"/users/{ann}/free-runs", {**form, "gift_state": states[0]})
    assert "Given only once" in again.text, "the same form sent twice is not another operator's"

    late = await second.post(f"/users/{ann}/free-runs", {**form, "gift_state": states[1]})

    assert late.status == 409
    assert "another operator gave 3\u00a0free runs" in late.text
    assert (await dashboard.store.free_runs(ann, 0)).gifts == 3
    shown = field(late.text, "gift_state")
    assert (await second.post(f"/users/{ann}/free-runs", {**form, "gift_state": shown})).status == 303
    assert (await dashboard.store.free_runs(ann, 0)).gifts == 6


async def test_free_runs_are_given_once(dashboard: DashboardWorld) -> None:
    client, ann = await dashboard.log_in(OperatorRole.SUPPORT), await add_user(dashboard)

    given = await client.follow(f"/users/{ann}/free-runs", {"runs": "3", "request_key": "k"})
    assert "3\u00a0free runs" in given.text
    assert "Given only once" in (await client.follow(f"/users/{ann}/free-runs", {"runs": "3", "request_key": "k"})).text
    assert (await dashboard.store.free_runs(ann, 0)).gifts == 3
    for runs in ("0", "-1", "x", "101", "9" * 50):
        assert (await client.post(f"/users/{ann}/free-runs", {"runs": runs})).status == 400
    assert "3\u00a0free runs" in (await client.get(f"/users/{ann}/gifts")).text


async def test_a_payment_is_refunded_once_if_the_credits_are_there(dashboard: DashboardWorld) -> None:
    client, ann = await dashboard.log_in(), await add_user(dashboard)
    bob = await add_user(dashboard, "1002")
    await add_payment(dashboard, ann, "c1")
    await add_payment(dashboard, ann, "c2")
    await dashboard.store.transfer(ann, EntryKind.DEBIT, 100_000, "spent")

    wrong = await client.post(f"/users/{bob}/refund", {"charge": "c1"})
    assert (wrong.status, dashboard.telegram.refunded) == (400, [])
    assert "Refunded 100\u00a0⭐" in (await client.follow(f"/users/{ann}/refund", {"charge": "c1"})).text
    again = await client.post(f"/users/{ann}/refund", {"charge": "c1"})
    assert "already been refunded" in again.text
    spent = await client.post(f"/users/{ann}/refund", {"charge": "c2"})
    assert "the balance is 20\u00a0credits" in spent.text

    assert dashboard.telegram.refunded == ["c1"]
    assert await available(dashboard, ann) == 20_000
    assert await dashboard.store.violations(settled=False) == []


@pytest.mark.parametrize(
    ("error", "text", "state"),
    [
        (ChannelOutcomeUnknown(), "hasn&#39;t confirmed the refund", PaymentState.REFUNDING),
        (LevelRefused("CHARGE_EXPIRED"), "Telegram refused (CHARGE_EXPIRED)", PaymentState.PAID),
    ],
)
async def test_what_telegram_answers_to_a_refund_is_shown(
    dashboard: DashboardWorld, error: Exception, text: str, state: PaymentState
) -> None:
    client, ann = await dashboard.log_in(), await add_user(dashboard)
    await add_payment(dashboard, ann, "c1")
    dashboard.telegram.error = error

    answer = await client.post(f"/users/{ann}/refund", {"charge": "c1"})
    page = answer.text if answer.status != 303 else (await client.get(f"/users/{ann}")).text

    assert text in page
    payment = await dashboard.store.payment("c1")
    assert payment is not None
    assert payment.state is state
    if state is PaymentState.REFUNDING:
        assert "1 refund is open" in (await client.get("/money/payments")).text
        done = await client.follow("/money/refunds")
        assert "Refunds still open: 0" in done.text


async def test_an_erasure_needs_the_account_number(dashboard: DashboardWorld) -> None:
    client, ann = await dashboard.log_in(), await add_user(dashboard)

    assert (await client.post(f"/users/{ann}/erase", {"number": "1"})).status in (400, 303)
    assert (await client.post(f"/users/{ann}/erase", {"number": f"{ann}0"})).status == 400
    assert "Erasure requested" in (await client.follow(f"/users/{ann}/erase", {"number": str(ann)})).text
    assert [entry.key for entry in await dashboard.store.kv_list("erase:", BOT)] == [f"erase:{ann}"]


async def test_hostile_names_and_reasons_are_escaped_on_every_page(dashboard: DashboardWorld) -> None:
    client = await dashboard.log_in()
    long = HOSTILE + "x" * 100_000
    ann = await add_user(dashboard, "1001", name=long)
    await add_user(dashboard, "1002", name=HOSTILE, invited_by=ann)
    await dashboard.store.set_ban(ann, banned=True, reason=long)
    await dashboard.store.transfer(ann, EntryKind.GRANT, 1000, f"admin:{HOSTILE}", long)
    await add_payment(dashboard, ann, "charge-<script>alert(1)</script>")
    stale = await client.post(f"/users/{ann}/credits", credit("x"))

    pages = ("/users", "/users?q=script", f"/users/{ann}", f"/users/{ann}/ledger", f"/users/{ann}/payments",
             f"/users/{ann}/gifts", "/money/ledger", "/money/payments")  # fmt: skip
    problems = []
    for path in pages:
        answer = await client.get(path)
        if answer.status != 200 or "<script>alert" in answer.text or "<img" in answer.text or "\u202e" in answer.text:
            problems.append(path)
        if len(answer.text) > 80_000:
            problems.append(f"{path}: {len(answer.text)}")
    assert problems == []
    assert (stale.status, "<script>alert" in stale.text) == (409, False)


async def test_money_adds_up_after_a_random_series_of_actions(dashboard: DashboardWorld, first_seed: int) -> None:
    rng, client = random.Random(first_seed + 3), await dashboard.log_in(OperatorRole.OWNER)
    users = [await add_user(dashboard, f"5{number}") for number in range(3)]
    for number in range(6):
        await add_payment(dashboard, rng.choice(users), f"c{number}")
    for number in range(40):
        ann = rng.choice(users)
        match rng.randrange(3):
            case 0:
                page = (await client.get(f"/users/{ann}")).text
                form = credit(f"k{number % 25}", str(rng.randrange(1, 90)), state=field(page, "state"))
                form["direction"] = rng.choice(("credit", "debit"))
                answer = await client.post(f"/users/{ann}/credits", form)
            case 1:
                dashboard.telegram.error = rng.choice((None, None, ChannelOutcomeUnknown(), LevelRefused("NO")))
                answer = await client.post(f"/users/{ann}/refund", {"charge": f"c{rng.randrange(6)}"})
            case _:
                answer = await client.post("/money/refunds")
        assert answer.status in (303, 400, 409)

    assert await dashboard.store.violations(settled=False) == []
