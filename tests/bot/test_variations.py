"""Variations: the same order several times with other seeds, each a job of its own, with one notice for all."""

import json
import re
from pathlib import Path
from random import Random

import pytest

from genlock.bot.order import draft as drafts
from genlock.bot.order.draft import Draft
from genlock.bot.order.variations import copies_of, varies, with_copies
from genlock.bot.rules import BotRules
from genlock.domain.job import Job
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.telegram.chats import Message
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, ChatUser, die_once, running_bot, sqlite_url
from tests.packaged import CATALOG

SEEDED = "/gen bytedance/seedream a red fox"
PLAIN = "/gen z-image a red fox"


async def ask_for(ann: ChatUser, count: int, order: str = PLAIN, language: str = "en") -> Message:
    """Make one order, then open its variations."""
    await ann.write(order)
    done = await ann.sees(page("order.done", language=language))
    await ann.world.quiet()
    await ann.tap(label("variations.button", language=language), on=done)
    shown = await ann.sees(page("variations.count", language=language))
    if count != 2:
        await ann.tap(re.compile(f"^{count}$"))
    return shown


async def varied(ann: ChatUser) -> list[Job]:
    await ann.world.quiet()
    return [job for job in await ann.world.jobs(ann) if job.request_key.startswith("group:")]


def notices(ann: ChatUser) -> list[Message]:
    return [
        message for message in ann.from_bot if page("variations.ready", "variations.partly", "variations.none")(message)
    ]


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_four_variations_are_four_jobs_with_other_seeds_and_one_notice(world: BotWorld, language: str) -> None:
    ann = await world.add_user(language=language)
    await ask_for(ann, 4, SEEDED, language)
    before = await ann.available()
    one = (await world.jobs(ann))[0].price
    shown = await ann.sees(page("variations.count", language=language, n=4))
    assert page("confirm.price_all", language=language)(shown)
    await ann.tap(label("button.generate_all", language=language, n=4))
    notice = await ann.sees(page("variations.ready", language=language, n=4))
    jobs = await varied(ann)

    assert len(jobs) == 4
    seeds = {json.loads(job.input)["seed"] for job in jobs}
    assert len(seeds) == 4, "each has a seed of its own"
    assert await ann.available() == before - 4 * one
    assert len([message for message in ann.from_bot if message.kind == "photo"]) == 5
    assert len([message for message in ann.from_bot if page("order.done", language=language)(message)]) == 1, (
        "that of the first"
    )
    assert notice.reply_to in {int(job.parts[0].message or 0) for job in jobs}
    assert await world.store.violations(settled=True) == []


async def test_a_group_fails_by_part_and_its_notice_tells_of_the_money(world: BotWorld) -> None:
    ann = await world.add_user()
    await ask_for(ann, 3)
    before = await ann.available()
    world.kie.faults.order(Fault.TASK_MODERATED)
    await ann.tap(label("button.generate_all", n=3))
    notice = await ann.sees(page("variations.partly", done=2, n=3))
    jobs = await varied(ann)
    assert before - await ann.available() == 2 * jobs[0].price
    assert page("variations.returned")(notice)
    assert len(notices(ann)) == 1
    assert not any(page("failed.notice")(message) for message in ann.from_bot)


async def test_pressing_again_or_crashing_between_two_orders_makes_none_twice(world: BotWorld) -> None:
    ann = await world.add_user()
    await ask_for(ann, 3)
    shown = ann.screen
    press = next(button["callback_data"] for button in shown.buttons if ":all" in button["callback_data"])
    die_once(world.drafts, "save", after=False)
    await ann.press(shown, press)
    await ann.press(shown, press)
    await ann.sees(page("variations.ready", n=3))
    jobs = await varied(ann)
    assert len(jobs) == 3
    assert len(notices(ann)) == 1
    for job in jobs:
        await world.engine.ctx.end_handlers[world.bot_id](job)
    await ann.write("/balance")
    assert len(notices(ann)) == 1, "an end that is reported again tells nothing twice"


async def test_the_notice_of_what_was_sold_comes_when_the_quota_refuses_the_rest(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=BotRules(running_max=2)) as world:
        ann = await world.add_user()
        await ask_for(ann, 4)
        world.kie.service.hold_tasks()
        await ann.tap(label("button.generate_all"))
        shown = await ann.sees(page("limit.running"))
        assert page("variations.count", n=2)(shown), "the others wait as a draft"
        world.kie.service.release_tasks()
        await ann.sees(page("variations.ready", n=2))
        assert len(await varied(ann)) == 2


async def test_a_new_order_can_be_made_several_times_at_once(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a fox")
    await ann.tap(label("variations.button"))
    await ann.sees(page("variations.count", n=2))
    await ann.tap(re.compile("^1$"))
    shown = await ann.sees(page("confirm.price"))
    assert any(label("variations.button").search(button["text"]) for button in shown.buttons)


def test_seeds_are_within_the_field_and_survive_the_draft() -> None:
    checked = 0
    for model in CATALOG.models.values():
        if (field := model.field("seed")) is None or not varies(model) or field.internal:
            continue
        draft = with_copies(Draft(model=model.id), model, 4, Random(7))
        again = drafts.load(drafts.dump(draft), version=0, message=None)
        assert again.copies == 4, model.id
        assert again.seeds == draft.seeds, model.id
        seeds = [order.values["seed"] for order in copies_of(again) if "seed" in order.values]
        assert [field.clean(seed) for seed in seeds] == seeds == list(draft.seeds), model.id
        checked += len(set(seeds)) > 1
    assert checked > 5
    kept = with_copies(Draft(values={"seed": 5}), CATALOG.get("bytedance/seedream"), 2, Random(7))
    assert copies_of(kept)[0].values["seed"] == 5
    assert with_copies(Draft(), CATALOG.get("recraft/crisp-upscale"), 3, Random(7)).copies == 1
    assert with_copies(Draft(), CATALOG.get("z-image"), 100, Random(7)).copies == 1
