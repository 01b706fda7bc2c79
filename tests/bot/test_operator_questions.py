"""Operators are asked before a ban and a refund, see what an order was about, and choose whom a broadcast goes to."""

import pytest

from genlock.domain.attempt import AttemptOutcome
from genlock.ports import Reschedule
from genlock.sandbox.kie.faults import Fault
from tests.bot.conftest import Office
from tests.bot.pages import label, page
from tests.bot.steps import bought, count_figures
from tests.bot.world import BotWorld
from tests.stores.builders import queued, see


async def test_a_refund_is_asked_for_once_and_subtracted_from_the_revenue(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, boss, ann = office
    await ann.write("/gen z-image a fox in the snow")
    await ann.sees(page("order.done"))
    await count_figures(world, monkeypatch)
    await boss.write("/admin")
    shown = await boss.sees(page("admin.today"))
    assert shown.text.startswith("🛠 For operators · this bot, last 24 hours"), "those of all bots are on the dashboard"
    assert "Now, all bots and the API\n⏳ In progress: 0" in shown.text
    assert "Revenue: 0.8\u00a0credits · $0.0080" in shown.text
    assert "Provider cost: $0.0040 · margin:\u00a0$0.0040 (50%)" in shown.text

    await boss.write("/admin order 1")
    card = await boss.sees(page("admin.order", code="#1"))
    assert "✍️ a fox in the snow" in card.text
    assert "🎯 http" in card.text
    await boss.tap(label("admin.button_refund"), on=card)
    await boss.sees("Refund order #1?")
    assert await ann.available() == 9_200
    await boss.tap(label("admin.button_back"), on=card)
    await boss.sees(page("admin.order", code="#1"))
    await boss.tap(label("admin.button_refund"), on=card)
    await boss.tap("Yes, refund 0.8\u00a0credits", on=card)
    await boss.sees(page("admin.refunded", credits="0.8\u00a0credits"))
    assert await ann.available() == 10_000
    await boss.press(card, "adm:askrefund:1")
    await boss.sees(page("admin.refunded_before"))

    await count_figures(world, monkeypatch)
    await boss.write("/admin")
    shown = await boss.sees(page("admin.revenue", revenue="0\u00a0credits"))
    assert "margin:\u00a0\N{MINUS SIGN}$0.0040 (—)" in shown.text
    assert "Provider cost that no user paid for: 0.8" in shown.text
    assert world.intake.failures == []


async def test_an_order_that_the_provider_may_have_accepted_is_submitted_again_only_after_a_question(
    office: Office,
) -> None:
    world, boss, ann = office
    job = await queued(world.store, account_id=ann.number)
    assert await world.store.begin_submit(job.id, job.lease_token, "hash", None)
    parked = Reschedule(job_id=job.id, token=job.lease_token, after=None, attention_reason="submit_unknown")
    assert await world.store.reschedule(parked)

    await boss.write(f"/admin retry {job.id}")
    card = await boss.sees(page("admin.order_now"))
    assert (await see(world.store, job)).is_parked_submit
    await boss.tap(label("admin.button_resubmit"), on=card)
    await boss.sees("then we pay for it twice")
    assert (await see(world.store, job)).is_parked_submit
    await boss.tap(label("admin_ask.resubmit_yes"), on=card)
    await boss.sees(page("admin.resubmitted"))
    assert (await world.store.attempts(job.id))[0].outcome is AttemptOutcome.UNKNOWN
    await boss.press(card, f"adm:askresubmit:{job.id}")
    await boss.sees(page("admin.order_now"))


async def test_a_ban_is_asked_for_once(office: Office) -> None:
    world, boss, ann = office
    await boss.write(f"/admin person {ann.number}")
    card = await boss.sees(page("admin.user_balance"))
    await boss.tap(label("admin.button_ban"), on=card)
    await boss.sees("Ban Ann (user 2)?")
    assert (await world.store.profile(ann.number)).banned_at is None
    await boss.tap(label("admin_ask.ban_yes"), on=card)
    await boss.sees(page("admin.ban_done"))
    assert (await world.store.profile(ann.number)).banned_at is not None
    await boss.tap(label("admin.button_unban"), on=card)
    await boss.sees(page("admin.unban_done"))


async def test_typed_commands_that_take_something_away_ask_first_and_run_once(office: Office) -> None:
    world, boss, ann = office
    charge = await bought(ann)
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))
    await boss.write("/admin promo SPRING 5")
    await world.quiet()
    for command, question, told in (
        ("refund 1", "The user gets 0.8\u00a0credits back and is notified", page("admin.refunded")),
        (f"debit {ann.number} 3 a mistake",
         "Balance: 130\u00a0credits → 127\u00a0credits. The user is notified.\nReason: a mistake",
         page("admin.debited", credits="3\u00a0credits")),
        (f"stars {charge}", "Deducted from the balance: 120\u00a0credits. Balance now: 127\u00a0credits",
         page("admin.stars_refunded")),
        ("close spring", "Close the code SPRING (5\u00a0credits)?", page("admin.promo_shut")),
        ("maintenance on Back at noon", "Everyone else reads:\n\n🛠 Back at noon", page("admin.maintenance_on")),
        (f"ban {ann.number} spam", "the balance of 7\u00a0credits stays.\nReason: spam", page("admin.ban_done")),
        (f"erase {ann.number}", "the balance of 7\u00a0credits and the ledger stay", page("admin.erase_done")),
    ):  # fmt: skip
        before = await everything(world)
        await boss.write(f"/admin {command}")
        asked = boss.from_bot[-1]
        assert question in asked.text, command
        assert await everything(world) == before, f"{command} waits for a yes"
        [yes] = [button["callback_data"] for button in asked.buttons if button["text"][2:].strip().startswith("Yes, ")]
        await boss.press(asked, yes)
        await boss.sees(told)
        after = await everything(world)
        assert after != before, command
        await boss.press(asked, yes)
        assert await everything(world) == after, f"a second yes to {command} changes nothing"

    assert world.intake.failures == []


async def everything(world: BotWorld) -> object:
    """Return what the commands change: money, bans, promo codes, settings of the bot and the log."""
    store, bot = world.store, world.bot_id
    return (
        [await store.wallet(number) for number in (1, 2)],
        (await store.profile(2)).banned_at,
        [promo.closed for promo in await store.promos(9)],
        await store.kv_get("chat:maintenance", bot) is None,
        [(line.action, line.subject, line.detail) for line in await store.audit(50)],
    )


async def test_a_yes_to_an_earlier_question_does_nothing(office: Office) -> None:
    world, boss, ann = office
    await boss.write(f"/admin debit {ann.number} 3 a mistake")
    earlier = boss.from_bot[-1]
    await boss.write(f"/admin debit {ann.number} 9 another one")
    later = boss.from_bot[-1]
    await boss.tap(label("admin_ask.debit_yes"), on=earlier)
    assert page("admin_ask.old")(earlier)
    assert await ann.available() == 10_000
    await ann.press(ann.screen, later.buttons[0]["callback_data"])
    assert await ann.available() == 10_000, "no other user says yes for the operator"
    await boss.tap(label("admin.button_back"), on=later)
    assert page("admin.user_balance")(later)

    assert await world.store.audit(9) == []


async def test_an_order_in_progress_is_cancelled_after_a_question(office: Office) -> None:
    world, boss, ann = office
    world.kie.service.speed = 0.01
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.accepted", "order.queued", "order.running_unknown"))
    await boss.write("/admin order 1")
    card = boss.screen
    await boss.tap(label("button.stop"), on=card)
    assert page("admin_ask.cancel", credits="0.8\u00a0credits", name="Ann")(card)
    assert await ann.available() == 9_200
    await boss.tap(label("admin_ask.cancel_yes"), on=card)
    await boss.sees(page("admin.cancelled"))

    assert await ann.available() == 10_000


async def test_a_failure_that_is_sent_again_does_not_tell_of_a_second_refund(office: Office) -> None:
    world, boss, ann = office
    world.kie.faults.order(Fault.TASK_FAIL)
    await ann.write("/gen z-image a fox")
    await ann.sees(page("failed.money_back", credits="0.8\u00a0credits"))
    await world.quiet()
    await boss.write("/admin resend 1")
    await boss.sees(page("admin.resent"))
    again = await ann.sees(page("failed.money_none"))

    assert "Order #1 failed" in again.text
    assert len([message for message in ann.from_bot if page("failed.money_back")(message)]) == 1
    assert await ann.available() == 10_000


async def test_promo_codes_are_listed_by_their_command_without_arguments(office: Office) -> None:
    _, boss, _ = office
    await boss.write("/admin promo")
    shown = await boss.sees(page("admin.promo_none"))
    assert "/admin promo CODE CREDITS" in shown.text
    await boss.write("/admin promo SPRING 5")
    await boss.write("/admin promo")
    await boss.sees("SPRING · 5\u00a0credits")


async def test_a_broadcast_goes_to_a_segment_with_its_buttons(office: Office) -> None:
    world, boss, ann = office
    ivan = await world.add_user("Ivan", language="ru")
    await ivan.write("/start")
    text = "lang=ru paid=no Новости 🎉 жирно\nЗдесь | https://example.com/a\nДалее | https://example.com/b"  # noqa: RUF001
    bold = {"type": "bold", "offset": 44, "length": 40}
    await boss.write(f"/admin broadcast {text}", entities=[{"type": "bot_command", "offset": 0, "length": 6}, bold])
    shown = await boss.sees(page("admin.preview"))
    assert "Only: language: Russian · have never paid" in shown.text
    await boss.tap(label("admin.broadcast_go", people="1\u00a0person"))
    await world.bot.broadcast()
    seen = await ivan.sees("Новости")

    assert seen.text == "Новости 🎉 жирно"
    assert [(button["text"], button["url"]) for button in seen.buttons] == [
        ("Здесь", "https://example.com/a"), ("Далее", "https://example.com/b"),
    ]  # fmt: skip
    assert [(entity["offset"], entity["length"]) for entity in seen.content["entities"]] == [(11, 5)]
    assert not any("Новости" in message.text for message in ann.from_bot)
    for wrong in ("paid=maybe Hi", "silent=99999 Hi", "silent=x Hi"):
        await boss.write(f"/admin broadcast {wrong}")
        assert page("admin.not_understood")(boss.from_bot[-1]), wrong
    await boss.write("/admin broadcast lang=xx Hi")
    await boss.sees("There's no language “xx” here")
