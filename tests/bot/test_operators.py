"""What operators do in the chat, and what users are told about it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.bot.admin.screens import COMMAND_GROUPS
from genlock.stores.sqlite import SqliteStore
from tests.bot.conftest import BOSS, Office
from tests.bot.pages import EN, has_button, label, page
from tests.bot.rules import OPEN, with_free
from tests.bot.steps import bought, count_figures
from tests.bot.world import holds, running_bot, sqlite_url
from tests.stores.builders import ensure_profile


async def test_only_operators_have_operators_commands(office: Office) -> None:
    world, boss, ann = office
    await ann.write(f"/admin credit {ann.number} 1000 please")
    await ann.sees(page("misc.unknown_command"))
    press = await ann.press(ann.screen, "adm:today")
    assert press.text == EN.plain("order.unknown")

    assert await ann.available() == 10_000
    assert await world.store.audit(5) == []
    await boss.write("/admin")
    await boss.sees(page("admin.title"))


async def test_figures_of_the_day_and_the_week(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the dashboard, which the leader counts."""
    world, boss, ann = office
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))
    await bought(ann)
    await count_figures(world, monkeypatch)
    await boss.write("/admin")
    shown = await boss.sees(page("admin.today"))
    await boss.tap(label("admin.button_week"), on=shown)
    week = await boss.sees(page("admin.week"))

    for line in (
        "Orders: 1 · delivered:\u00a01 · failed:\u00a00",
        "Users who ordered: 1 · new: 2",
        "Revenue: 0.8\u00a0credits",
        "Top-ups: 100\u00a0⭐",
    ):
        assert line in shown.text
        assert line in week.text
    await boss.tap(label("admin.button_attention"), on=shown)
    await boss.sees(page("admin.attention_none"))
    assert world.intake.failures == []


async def test_users_are_found_and_money_is_moved_once_with_a_reason(office: Office) -> None:
    world, boss, ann = office
    await boss.write("/admin find Ann")
    await boss.sees(page("admin.user_balance", available="10\u00a0credits"))
    await boss.write("/admin find")
    await boss.tap("Ann · user 2")
    handle, repeated = world.bot.handle, []

    async def twice(update: object, *, first: bool, **_: object) -> None:
        repeated.append(update)
        await handle(update, first=first)  # type: ignore[arg-type]
        await handle(update, first=False)  # type: ignore[arg-type]

    world.bot.handle = twice  # type: ignore[method-assign]
    await boss.write(f"/admin credit {ann.client.id} 2,5 for the trouble")
    credited = await boss.sees(page("admin.credited", credits="2.5\u00a0credits", reached=EN.plain("admin.user_told")))
    assert page("admin.user_balance", available="12.5\u00a0credits")(credited)
    await ann.sees(page("account.credited", credits="2.5\u00a0credits", balance="12.5\u00a0credits"))
    await boss.write(f"/admin debit @ann_{ann.client.id} 2 again")
    await boss.tap(label("admin_ask.debit_yes", credits="2\u00a0credits"))
    await ann.sees(page("account.debited", credits="2\u00a0credits"))
    assert await ann.available() == 10_500
    await boss.write(f"/admin debit {ann.number} 1000 too much")
    await boss.sees(page("admin.too_little", balance="10.5\u00a0credits"))
    for wrong in ("0", "-1", "nan", "inf", "1e99999999", "1.2345", "1234567890", "1,000", "1 000", "1\u00a0000"):
        await boss.write(f"/admin credit {ann.number} {wrong} by mistake")
        assert page("admin.usage_credit")(boss.from_bot[-1]), wrong
    await boss.write(f"/admin credit {ann.number} nothing")
    await boss.sees(page("admin.not_understood"))
    await boss.write("/admin credit 99999 5 to no account")
    await boss.sees(page("admin.no_user", word="99999"))

    assert len(repeated) == 16
    assert (
        len(
            [
                message
                for message in ann.from_bot
                if page("account.credited")(message) or page("account.debited")(message)
            ]
        )
        == 2
    )
    assert [(line.action, line.detail) for line in await world.store.audit(9)] == [
        ("debit", "2: again"), ("credit", "2.5: for the trouble"),
    ]  # fmt: skip


async def test_an_order_is_looked_at_resent_and_refunded_once(office: Office) -> None:
    world, boss, ann = office
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))
    await boss.write("/admin order #1")
    shown = await boss.sees(page("admin.order", code="#1", title="Z-Image"))
    for line in ("Ann · user 2", "0.8\u00a0credits, charged", "✅ Delivered", "· sent to the provider"):
        assert line in shown.text
    await boss.write("/admin resend 1")
    await boss.sees(page("admin.resent"))
    await ann.sees(lambda message: message.kind == "photo" and message.id > 10)
    await world.quiet()
    await boss.write("/admin refund 1")
    await boss.tap(label("admin_ask.refund_yes", credits="0.8\u00a0credits"))
    card = await boss.sees(page("admin.refunded", credits="0.8\u00a0credits", reached=EN.plain("admin.user_told")))
    assert "0.8\u00a0credits, charged and refunded" in card.text
    assert not has_button(card, "admin.button_refund")
    await ann.sees(page("account.refunded", code="#1", credits="0.8\u00a0credits"))
    await boss.write("/admin refund 1")
    await boss.sees(page("admin.refunded_before"))
    await boss.write("/admin order 99")
    await boss.sees(page("admin.no_order", code="#99"))

    assert await ann.available() == 10_000
    assert await world.store.violations(settled=False) == []


async def test_whatever_is_too_long_for_a_message_is_still_answered(office: Office) -> None:
    world, boss, ann = office
    for number in range(10):
        await ann.write(f"/gen z-image a fox {number}")
    await world.quiet()
    assert isinstance(world.store, SqliteStore)
    reason = f"stage error: RuntimeError('{'<' * 460}')"
    await world.store.session.call(
        lambda connection: connection.execute(
            "UPDATE jobs SET attention_code = 'stage_error', attention_reason = ?", (reason,)
        )
    )
    for line, answer in (
        ("attention", holds("#1 · Z-Image\nUnexpected errors: stage error")),
        (f"ban {ann.number} {'why ' * 1000}", page("admin_ask.ban", name="Ann")),
        (f"maintenance on {'why ' * 1000}", page("admin_ask.maintenance")),
        (f"find {'&' * 4000}", page("admin.user_not_found")),
        (f"stars {'&' * 4000}", page("admin.refund_no_payment")),
    ):
        await boss.write(f"/admin {line}")
        assert answer(boss.from_bot[-1]), line[:20]
        assert boss.from_bot[-1].buttons


async def test_promo_codes_are_made_listed_and_closed(office: Office) -> None:
    world, boss, ann = office
    await boss.write("/admin promo spring 5 uses=10 each=1 days=30")
    await boss.sees("https://t.me/sandbox_bot?start=p_SPRING")
    await boss.write("/admin promo SPRING 5")
    await boss.sees(page("admin.promo_exists"))
    for wrong in ("x", "five5 5", "spring2", "spring2 5 runs=3", "spring2 -5", "spring2 5 5", "spring2 5 each=0",
                  "spring2 5 days=999999999", "spring2 1,000"):  # fmt: skip
        await boss.write(f"/admin promo {wrong}")
        assert page("admin.not_understood")(boss.from_bot[-1]), wrong
    await boss.write("/admin promo FREERUNS runs=3")
    await boss.sees(page("admin.promo_useless"))
    await ann.write("/start p_SPRING")
    assert await ann.available() == 15_000
    await boss.write("/admin promos")
    listed = await boss.sees(page("admin.promo_limit", uses=1, n=10))
    await boss.tap(label("admin.button_end_promo", code="SPRING"), on=listed)
    await boss.tap(label("admin_ask.close_yes", code="SPRING"), on=listed)
    await boss.sees(page("admin.promo_shut", code="SPRING"))
    assert "used 1 of 10 · closed" in listed.text
    assert not any("End" in button["text"] for button in listed.buttons)
    await boss.write("/admin close spring")
    await boss.sees(page("admin.no_promo", code="SPRING"))
    assert len(await world.store.audit(9)) == 2
    await boss.write("/admin log")
    await boss.sees("created the code SPRING: credits: 5, uses: 10, days: 30")


async def test_credit_for_a_name_that_several_users_have_is_refused(office: Office) -> None:
    world, boss, ann = office
    bob = await world.add_user("Bob", having=0)
    for user in (ann, bob):
        await ensure_profile(world.store, user.number, language="en", name="X", username="cat", referred_by=None)
    await boss.write("/admin credit @cat 5 sorry")
    await boss.sees(page("admin.many_people", word="@cat"))
    assert (await ann.available(), await bob.available()) == (10_000, 0)
    await boss.write(f"/admin credit {bob.client.id} 5 sorry")

    assert (await ann.available(), await bob.available()) == (10_000, 5_000)


async def test_what_operators_did_can_be_read(office: Office) -> None:
    _, boss, ann = office
    await boss.write("/admin log")
    await boss.sees(page("admin.log_none"))
    await boss.write(f"/admin credit {ann.number} 1 gift")
    await boss.write("/admin log")

    done = EN.plain("admin.audit_credit", subject=2, detail="1 credit, reason: gift")
    assert f"· Boss · {done}" in boss.from_bot[-1].text


async def test_what_was_done_on_the_dashboard_reads_as_words_in_the_chat(office: Office) -> None:
    world, boss, _ = office
    for number, (action, subject, detail) in enumerate(
        (
            ("ban", "7", '{"after": "spam"}'),
            ("edit model", "veo3_fast", '{"before": {"price": "60", "x": 1}, "after": {"price": "55", "x": 1}}'),
            ("free runs", "9", '{"before": "0", "after": "3"}'),
            ("broadcast", "3", "<b>News</b>: cats &amp; dogs"),
            ("ledger check", "", ""),
            ("unban", "7", ""),
            ("set_operator", "8", '{"before": {"role": "viewer"}, "after": {"role": "support"}}'),
            ("refund", "#7", '{"before": "succeeded/delivered/captured/", "after": "refunded 24 credits"}'),
            ("resend", "#7", '{"before": "succeeded/undeliverable/held/x", "after": "succeeded/pending/held/"}'),
            ("bulk_retry_done", "bulk 3", '{"jobs": 5, "done": 4, "left_out": 1}'),
            ("login", "link", ""),
            ("costs.handled", "model veo3", '{"before": "order 9"}'),
        )
    ):
        await world.store.add_audit(
            bot=world.bot_id, key=str(number), actor=str(BOSS), action=action, subject=subject, detail=detail
        )
    await boss.write("/admin log")

    assert [line.partition("· Boss · ")[2] for line in boss.from_bot[-1].text.splitlines()[1:]] == [
        "accepted a cost above the price · model veo3: order #9",
        "logged in · link from the chat",
        "bulk retry finished · bulk action 3: orders: 5, done: 4, left out: 1",
        "resent order #7",
        "refunded order #7: 24 credits",
        "assigned a role · 8: role: viewer → support",
        "restored access for user 7",
        "started a ledger check",
        "broadcast 3: News: cats & dogs",
        "gave free runs · 9: 0 → 3",
        "edited a model · veo3_fast: Own price in credits, for every order: 60 → 55",
        "banned user 7: spam",
    ]


async def test_every_page_of_the_overview_leads_back_to_it(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    _, boss, _ = office
    monkeypatch.setattr("genlock.stores.updates.REPEAT_SECONDS", 0.0)  # the same button is meant several times
    await boss.write("/admin")
    shown = boss.screen
    for name in ("find", "attention", "promos", "broadcast", "maintenance", "refunds", "log", "commands"):
        await boss.tap(label(f"admin.button_{name}"), on=shown)
        assert not page("admin.title")(shown), name
        await boss.tap(label("admin.button_home"), on=shown)
        assert page("admin.title")(shown)

    assert boss.screen == shown, "it was one message all the time"


async def test_a_command_that_is_not_whole_is_explained(office: Office) -> None:
    _, boss, _ = office
    for said, told in (
        ("credit 2", "/admin credit USER CREDITS REASON"),
        ("ban", "/admin ban USER REASON"),
        ("order x", "/admin order NUMBER"),
        ("stars", "/admin stars RECEIPT"),
        ("close", "/admin close CODE"),
        ("broadcast", "/admin broadcast TEXT"),
        ("maintenance", "/admin maintenance on"),
        ("nonsense", "/admin find NAME"),
    ):
        await boss.write(f"/admin {said}")
        assert told in boss.from_bot[-1].text


@pytest.mark.parametrize("command", ["commands", "help"])
async def test_commands_are_listed_in_groups_by_subject(office: Office, command: str) -> None:
    _, boss, _ = office
    await boss.write(f"/admin {command}")
    assert EN.plain("admin.unknown_command") not in boss.from_bot[-1].text
    groups = [re.findall(r"/admin (\w+)", group) for group in boss.from_bot[-1].text.split("\n\n")[1:]]
    assert [list(dict.fromkeys(group)) for group in groups] == [list(group) for group in COMMAND_GROUPS]


async def test_runs_are_given_where_models_are_free(tmp_path: Path) -> None:
    rules = replace(OPEN, admin_ids=frozenset({BOSS}))
    async with running_bot(sqlite_url(tmp_path), rules=rules, catalog=with_free("z-image")) as world:
        boss = await world.add_user("Boss")
        await boss.write("/admin promo FREERUNS runs=3")
        assert page("admin.promo_made", code="FREERUNS", gift=EN.plain("unit.runs", n=3))(boss.from_bot[-1])


async def test_a_user_is_shown_under_the_new_and_the_earlier_name_of_the_command(office: Office) -> None:
    _, boss, ann = office
    await boss.write(f"/admin user {ann.number}")
    card = await boss.sees(page("admin.user_balance"))
    await boss.write(f"/admin person {ann.number}")
    assert boss.from_bot[-1].id != card.id
    assert (boss.from_bot[-1].text, boss.from_bot[-1].buttons) == (card.text, card.buttons)

    await boss.write("/admin commands")
    assert "/admin user USER" in boss.from_bot[-1].text
    assert "/admin person" not in boss.from_bot[-1].text
