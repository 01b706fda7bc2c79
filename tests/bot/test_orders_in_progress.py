"""What a user does with an order: cancel it, see its progress, get its result again, find it in the history."""

from pathlib import Path

import pytest

from genlock.bot.rules import BotRules
from genlock.channels.telegram import channel
from genlock.domain.job import Delivery, State
from genlock.stores.sqlite import SqliteStore
from tests.bot.pages import has_button, label, page
from tests.bot.steps import confirmed
from tests.bot.world import BotWorld, ChatUser, running_bot, sqlite_url
from tests.changes import PATIENCE_SECONDS


async def test_a_running_order_can_be_cancelled(world: BotWorld) -> None:
    world.kie.service.speed = 0.01
    ann = await world.add_user()
    await confirmed(ann)
    assert await ann.available() == 1_000_000 - 800
    await ann.write("/cancel")
    await ann.sees(page("menu.which_to_cancel"))
    press = await ann.tap("#1 · ⏳ a fox")
    told = await ann.sees("Order #1 cancelled")

    assert page("order.cancelled_toast")(press)
    assert page("failed.money_back", credits="0.8\u00a0credits")(told)
    assert await ann.available() == 1_000_000
    [job] = await world.jobs(ann)
    assert job.state is State.CANCELLED
    await world.quiet()
    assert len([message for message in ann.from_bot if "cancelled" in message.text]) == 1
    again = await ann.press(told, f"cancel:{job.id}")
    assert page("order.too_late")(again)


@pytest.mark.parametrize(("language", "told"), [("en", "too late to cancel"), ("ru", "Отменить уже нельзя")])
async def test_cancelling_submitted_orders_is_limited_per_day(tmp_path: Path, language: str, told: str) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=BotRules(late_cancels_per_day=1)) as world:
        world.kie.service.speed = 0.01
        ann = await world.add_user(language=language)
        for _ in range(2):
            await ann.write("/gen z-image a fox")
            await reached(world, ann, State.RUNNING)
            [job, *_] = await world.jobs(ann)
            press = await ann.press(ann.from_bot[-1], f"cancel:{job.id}")
            assert (told in press.text) is (job.id > 1)

        assert [job.state for job in await world.jobs(ann)] == [State.RUNNING, State.CANCELLED]


async def reached(world: BotWorld, ann: ChatUser, state: State) -> None:
    """Wait until the newest order is in this state."""

    async def holds() -> bool:
        return (await world.jobs(ann))[0].state is state

    await world.recorder.changes.until(holds, PATIENCE_SECONDS)


@pytest.mark.parametrize("by_command", [True, False])
async def test_an_order_can_be_cancelled_from_its_own_message_at_once(world: BotWorld, *, by_command: bool) -> None:
    world.kie.service.speed = 0.01
    ann = await world.add_user()
    if by_command:
        await ann.write("/gen z-image a fox")
    else:
        await confirmed(ann)
    shown = await ann.sees("akes about 55\u00a0seconds.")
    await ann.tap(label("button.stop"), on=shown)
    await ann.sees("Order #1 cancelled")

    assert await ann.available() == 1_000_000


@pytest.mark.slow
async def test_progress_is_shown_on_the_message_that_becomes_the_result(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "PROGRESS_POINTS", (0.08,))  # of 55 s
    world.kie.service.hold_tasks()
    ann = await world.add_user()
    await confirmed(ann)
    accepted = await ann.sees(page("order.accepted"))
    progress = await ann.sees("%")
    world.kie.service.release_tasks()
    assert progress.id == accepted.id
    assert "Z-Image · #1" in progress.text
    assert any(label("button.stop").search(button["text"]) for button in progress.buttons)
    await ann.sees(page("order.done"))
    picture_ = next(message for message in ann.from_bot if message.id == accepted.id)

    assert picture_.kind == "photo"


async def test_a_poison_result_cannot_be_sent_again_by_the_user(world: BotWorld) -> None:
    ann = await world.add_user()
    await confirmed(ann)
    notice = await ann.sees(page("order.done"))
    await world.quiet()
    assert isinstance(world.store, SqliteStore)
    words = "the worker crashed 8 times while processing it"
    await world.store.session.call(
        lambda connection: connection.execute(
            "UPDATE jobs SET attention_code = 'poison', attention_reason = ?", (words,)
        )
    )

    press = await ann.press(notice, f"again:{(await world.jobs(ann))[0].id}")

    assert page("order.again_broken")(press)
    [job] = await world.jobs(ann)
    assert (job.delivery, job.due_at, job.attention_reason) == (Delivery.DELIVERED, None, words)


async def test_a_result_can_be_sent_again_repeated_and_changed(world: BotWorld) -> None:
    ann = await world.add_user()
    await confirmed(ann)
    notice = await ann.sees(page("order.done"))
    await ann.tap(label("button.what_next"), on=notice)
    await ann.sees(page("next.choose"))
    press = await ann.tap(label("button.again"))
    await ann.sees(lambda message: message.kind == "photo" and message.id > notice.id)
    assert page("order.again_soon")(press)
    shown = world.telegram.calls("editMessageMedia")[-1]
    assert shown.uploaded == 0, "from Telegram's own copy"
    assert not shown.arguments["media"]["media"].startswith("http")
    assert await ann.available() == 1_000_000 - 800

    await ann.tap(label("button.change_repeat"), on=notice)
    options = await ann.sees(page("options.title"))
    assert options.id > notice.id, "the notice stays, with its buttons"
    await ann.tap("Aspect ratio")
    await ann.tap("9:16")
    await ann.tap(label("button.done"))
    await ann.sees("a fox")
    await ann.tap(label("button.generate"))
    second = await ann.sees(lambda message: "#2" in message.text and page("order.done")(message))
    jobs = await world.jobs(ann)
    assert '"9:16"' in jobs[0].input

    await ann.tap(label("button.repeat"), on=second)
    await ann.sees(lambda message: message.id > second.id and page("confirm.price")(message))
    assert has_button(second, "button.repeat")
    await ann.tap(label("button.generate"))
    await ann.sees(lambda message: "#3" in message.text and page("order.done")(message))
    jobs = await world.jobs(ann)
    assert jobs[0].input == jobs[1].input


async def test_the_history_has_pages_and_buttons_for_each_order(world: BotWorld) -> None:
    ann = await world.add_user()
    for number in range(10):
        await ann.write(f"/gen z-image fox {number}")
    await ann.sees(lambda message: "#10" in message.text and page("order.done")(message))
    await world.quiet()  # all notices have arrived, so the list is the newest message
    await ann.write("/history")
    rows = [button["text"] for button in ann.screen.buttons if button["callback_data"].startswith("order:")]
    assert len(rows) == 8
    await ann.tap(label("button.more"))
    rows = [button["text"] for button in ann.screen.buttons if button["callback_data"].startswith("order:")]
    assert len(rows) == 2
    await ann.tap(label("button.newer"))
    await ann.tap("fox 9")
    await ann.sees(page("history.delivered"))
    await ann.tap(label("button.repeat"))
    await ann.sees(page("confirm.price"))
