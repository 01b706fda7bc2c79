"""An update handled again after a crash continues what the first attempt did: the user pays once."""

from dataclasses import replace
from pathlib import Path

from tests.bot.pages import has_button, label, page
from tests.bot.rules import OPEN, with_free
from tests.bot.world import die_once, running_bot, sqlite_url

ONE_FREE = replace(OPEN, free_per_day=1)


async def test_a_free_order_accepted_before_a_crash_is_not_confirmed_again(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=ONE_FREE, catalog=with_free("z-image")) as world:
        ann = await world.add_user(having=10)
        world.kie.service.hold_tasks()
        await ann.write("a fox")
        await ann.sees(page("confirm.price_free"))
        pressed = ann.screen
        die_once(world.store, "set_last_model", after=True)  # the job is accepted, the draft is not saved yet
        await ann.tap(label("button.generate_free"))
        [job] = await world.jobs(ann)
        assert job.placeholder == str(pressed.id)
        assert not has_button(pressed, "button.generate")
        assert not page("confirm.dearer")(pressed)
        await ann.press(pressed, pressed.buttons[0]["callback_data"])
        world.kie.service.release_tasks()
        await world.quiet()

        assert len(await world.jobs(ann)) == 1
        assert await ann.available() == 10_000


async def test_a_free_run_taken_before_a_crash_still_pays_for_the_order(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=ONE_FREE, catalog=with_free("z-image")) as world:
        ann = await world.add_user(having=10)
        await ann.write("a fox")
        die_once(world.engine, "order", after=False)
        await ann.tap(label("button.generate_free"))
        await ann.sees(page("order.done", "order.done_free"))

        assert [job.price for job in await world.jobs(ann)] == [0]
        assert await ann.available() == 10_000


async def test_gen_with_a_free_run_stays_free_after_a_crash(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=ONE_FREE, catalog=with_free("z-image")) as world:
        ann = await world.add_user(having=10)
        die_once(world.engine, "order", after=False)
        await ann.write("/gen z-image a fox")
        await ann.sees(page("order.done", "order.done_free"))

        assert [job.price for job in await world.jobs(ann)] == [0]
        assert await ann.available() == 10_000


async def test_gen_after_a_crash_does_not_count_its_own_hold_as_missing(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=OPEN) as world:
        ann = await world.add_user(having=1)  # enough for one
        die_once(world.store, "set_last_model", after=True)
        await ann.write("/gen z-image a fox")
        await ann.sees(page("order.done", "order.done_free"))

        assert not any(map(page("confirm.short", "order.again_short"), ann.from_bot))
        assert await ann.available() == 200
