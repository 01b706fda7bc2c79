"""Privacy in the chat: what is stored, erasure after a confirmation, and what becomes of orders, gifts and buttons."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.bot.buttons import button
from genlock.domain.errors import ActionNotAllowed
from genlock.domain.money import EntryKind
from genlock.domain.promo import Promo
from genlock.domain.queued_message import QueuedMessage
from genlock.engine import operate
from genlock.engine.erasure import Erasure
from genlock.i18n.translator import translator
from tests.bot.conftest import Office
from tests.bot.pages import label, page
from tests.bot.rules import OPEN
from tests.bot.world import BotWorld, ChatUser, running_bot, sqlite_url


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Erasure.run

    async def without_delay(self: Erasure, bot: str, *, older_than: float = 0.0) -> list[int]:
        return await run(self, bot, older_than=older_than)

    monkeypatch.setattr(Erasure, "run", without_delay)


async def ask_for_erasure(ann: ChatUser) -> None:
    await ann.write("/privacy")
    await ann.tap(label("button.erase"))
    await ann.tap(label("button.erase_yes"))
    await ann.sees(page("privacy.requested"))


async def test_a_user_asks_confirms_and_is_erased(database_url: str) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        ann = await world.add_user(having=50)
        await ann.write("/gen z-image a secret fox")
        await ann.sees(page("order.done"))
        await world.quiet()
        await ann.write("/privacy")
        await ann.sees(page("privacy.kept"))
        await ann.tap(label("button.erase"))
        await ann.sees(page("privacy.ask", balance="49.2\u00a0credits"))
        assert await world.bot.erase() == 0  # nothing happens before the confirmation
        await ann.tap(label("button.erase_yes"))
        assert await world.bot.erase() == 1
        await ann.sees(page("privacy.erased"))

        [job] = await world.jobs(ann)
        assert (job.input, job.parts) == ("null", ())
        assert (await world.store.profile(ann.number)).name == ""
        assert await ann.available() == 49_200
        assert await world.store.violations(settled=False) == []


async def test_erasure_is_offered_in_russian_and_can_be_declined(world: BotWorld) -> None:
    ann = await world.add_user(language="ru")
    t = translator("ru")
    await ann.write("/privacy")
    await ann.tap(t.plain("button.erase"))
    await ann.tap(t.plain("button.back"))

    await ann.sees(lambda message: "Ваши данные" in message.text)
    assert await world.bot.erase() == 0


async def test_an_order_in_the_works_is_delivered_before_the_erasure(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=OPEN) as world:
        ann = await world.add_user()
        world.kie.service.hold_tasks()
        await ann.write("/gen z-image a fox")
        await ask_for_erasure(ann)
        assert await world.bot.erase() == 0
        world.kie.service.release_tasks()
        await ann.sees(page("order.done"))
        await world.quiet()

        assert await world.bot.erase() == 1


async def test_a_stop_lets_the_message_about_an_erasure_arrive(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user()
    await ask_for_erasure(ann)
    replaced, go_on, replace_entry = asyncio.Event(), asyncio.Event(), world.store.kv_replace_by_message

    async def replace_slowly(key: str, message: QueuedMessage, bot: str = "", *, value: str | None = None) -> bool:
        done = await replace_entry(key, message, bot, value=value)
        replaced.set()
        await go_on.wait()
        return done

    monkeypatch.setattr(world.store, "kv_replace_by_message", replace_slowly)
    erasing = asyncio.create_task(world.bot.erase())
    await replaced.wait()
    erasing.cancel()
    asyncio.get_running_loop().call_soon(go_on.set)
    await asyncio.wait([erasing])

    assert erasing.cancelled()
    await ann.sees(page("privacy.erased"))


async def test_buttons_of_erased_orders_answer_kindly_and_cost_nothing(world: BotWorld) -> None:
    ann = await world.add_user(having=50)
    await ann.write("/gen z-image a fox")
    notice = await ann.sees(page("order.done"))
    await world.quiet()
    await ask_for_erasure(ann)
    assert await world.bot.erase() == 1
    before = await ann.available()
    [job] = await world.jobs(ann)
    again = await ann.press(notice, str(button("x", "again", job.id).data))
    repeat = await ann.press(notice, str(button("x", "repeat", job.id).data))
    change = await ann.press(notice, str(button("x", "change", job.id).data))
    await ann.press(notice, str(button("x", "order", job.id).data))
    with pytest.raises(ActionNotAllowed, match="erased"):
        await operate.resend(world.engine.ctx, job.id, "op")

    assert page("order.erased_result")(again)
    assert page("order.erased_input")(repeat)
    assert page("order.erased_input")(change)
    await ann.sees(page("history.erased"))
    await ann.write("/history")
    await ann.sees(page("history.none"))
    assert await ann.available() == before


async def test_a_user_who_comes_back_gets_no_gift_twice_and_can_order(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=replace(OPEN, welcome=10_000)) as world:
        ann = await world.add_user(having=0)
        gift = Promo(code="GIFTED", amount=5_000, runs=0, uses_max=None, per_account=1, until=None)
        await world.store.create_promo(gift, lasting=None, author="op")
        await ann.write("/start")
        await ann.write("/promo GIFTED")
        await ann.write("a fox")
        await ann.tap(label("button.generate"))
        await ann.sees(page("order.done"))
        await world.quiet()
        await ask_for_erasure(ann)
        assert await world.bot.erase() == 1
        async with world.another_bot():
            await ann.write("/start")
            await ann.write("/promo GIFTED")
            await ann.sees(page("promo.used"))
            assert await ann.available() == 14_200
            await ann.write("/start")
            await ann.write("another fox")
            await ann.tap(label("button.generate"))
            await ann.sees(lambda message: "#2" in message.text and page("order.done")(message))
        assert (await world.store.profile(ann.number)).name != ""
        assert len(await world.jobs(ann)) == 2


async def test_an_operator_erases_by_number_only(office: Office) -> None:
    world, boss, ann = office
    await ann.write("/start")
    await world.store.transfer(ann.number, EntryKind.GRANT, 1, "admin:1", "a name")
    name = (await world.store.profile(ann.number)).username
    await boss.write(f"/admin erase @{name or 'ann'}")
    assert await world.bot.erase() == 0
    await boss.write(f"/admin erase {ann.number}")
    await boss.tap(label("admin_ask.erase_yes"))
    await boss.sees(page("admin.erase_done", user=str(ann.number)))

    assert await world.bot.erase() == 1
    assert (await world.store.profile(ann.number)).name == ""
    assert any(line.action == "erasure" for line in await world.store.audit(10))


async def test_an_erasure_that_crashed_halfway_is_finished_by_the_next_round(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user()
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))
    await world.quiet()
    await ask_for_erasure(ann)
    for step in ("erase_messages", "erase_account", "kv_delete"):
        with monkeypatch.context() as then:

            async def dead(*_: object, **__: object) -> None:
                raise TimeoutError("the instance is gone")

            then.setattr(world.store, step, dead)
            with pytest.raises(TimeoutError):
                await world.bot.erase()

    assert await world.bot.erase() == 1
    assert await world.bot.erase() == 0
    assert len([message for message in ann.from_bot if page("privacy.erased")(message)]) == 1


async def test_inputs_are_erased_by_age_and_the_result_can_still_be_shown(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=replace(OPEN, input_days=-1)) as world:
        ann = await world.add_user()
        await ann.write("/gen z-image a fox")
        notice = await ann.sees(page("order.done"))
        await world.quiet()
        await world.bot.erase()
        [job] = await world.jobs(ann)
        assert job.input == "null"
        press = await ann.press(notice, str(button("x", "again", job.id).data))
        await world.quiet()

        assert page("order.again_soon")(press)
        assert [message.kind for message in ann.from_bot].count("photo") == 2
