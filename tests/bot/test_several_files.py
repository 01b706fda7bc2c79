"""More files than one order takes: one order per file is offered with the price of all, or only the first."""

import io
import json
from pathlib import Path

import pytest
from PIL import Image

from genlock.bot.rules import BotRules
from genlock.bot.storefront.storefront import code_of
from genlock.domain.job import Job
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, ChatUser, die_once, running_bot, sqlite_url

UPSCALE = "recraft/crisp-upscale"
OPEN_UPSCALE = f"model:{code_of(UPSCALE)}:upscale"


def pictures(count: int) -> list[bytes]:
    files = []
    for shade in range(count):
        file = io.BytesIO()
        Image.new("RGB", (64, 64), (shade * 20, 0, 0)).save(file, "PNG")
        files.append(file.getvalue())
    return files


async def send_album(ann: ChatUser, count: int) -> None:
    async with ann.world.done(count):
        await ann.client.send_album(pictures(count))


def images(jobs: list[Job]) -> set[str]:
    return {json.loads(job.input)["image"] for job in jobs}


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_three_pictures_make_three_orders_at_the_price_shown(world: BotWorld, language: str) -> None:
    ann = await world.add_user(language=language)
    await ann.write("/start")
    await send_album(ann, 3)
    await ann.press(ann.screen, OPEN_UPSCALE)
    shown = await ann.sees(page("confirm.each", language=language, n=3))
    one = world.bot._buttons._storefront.usual_price(world.catalog.get(UPSCALE)).price

    assert page("confirm.price_all", language=language)(shown)
    await ann.tap(label("button.generate_all", language=language, n=3))
    await world.quiet()
    jobs = await world.jobs(ann)
    assert len(jobs) == len(images(jobs)) == 3
    assert {job.price for job in jobs} == {one}
    assert await ann.available() == 1_000_000 - 3 * one
    assert len([message for message in ann.from_bot if message.kind in ("photo", "document")]) == 3


async def test_only_the_first_picture_can_be_ordered(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await send_album(ann, 2)
    await ann.press(ann.screen, OPEN_UPSCALE)
    await ann.sees(page("confirm.each"))
    await ann.tap(label("button.generate_first"))

    assert len(await world.jobs(ann)) == 1


async def test_an_album_sent_to_a_started_order_offers_an_order_for_each(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.press(ann.screen, OPEN_UPSCALE)
    await send_album(ann, 3)
    shown = await ann.sees(page("confirm.each", n=3))
    press = await ann.tap(label("button.generate_all"), on=shown)

    assert page("order.accepted_many", n=3)(press)
    assert len(images(await world.jobs(ann))) == 3


async def test_a_crash_between_two_orders_makes_none_twice(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await send_album(ann, 3)
    await ann.press(ann.screen, OPEN_UPSCALE)
    await ann.sees(page("confirm.each"))
    die_once(world.drafts, "save", after=False)
    await ann.tap(label("button.generate_all"))
    await world.quiet()

    assert len(images(await world.jobs(ann))) == len(await world.jobs(ann)) == 3


async def test_what_the_quota_refuses_waits_as_a_draft(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=BotRules(running_max=2)) as world:
        world.kie.service.speed = 0.01
        ann = await world.add_user()
        await ann.write("/start")
        await send_album(ann, 4)
        await ann.press(ann.screen, OPEN_UPSCALE)
        await ann.sees(page("confirm.each", n=4))
        await ann.tap(label("button.generate_all"))
        shown = await ann.sees(page("limit.running"))

        assert len(await world.jobs(ann)) == 2
        assert page("confirm.each", n=2)(shown)
        ordered = images(await world.jobs(ann))
        async with world.done(4):  # two cancellations, the end of both orders, and the tap
            for job in await world.jobs(ann):
                await ann.press(shown, f"cancel:{job.id}")
            await ann.tap(label("button.generate_all"), on=shown)
        assert len(images(await world.jobs(ann)) - ordered) == 2


async def test_a_short_balance_offers_the_first_order_and_a_top_up(world: BotWorld) -> None:
    one = world.bot._buttons._storefront.usual_price(world.catalog.get(UPSCALE)).price
    ann = await world.add_user(having=-(-one // 1000))
    await ann.write("/start")
    await send_album(ann, 3)
    await ann.press(ann.screen, OPEN_UPSCALE)
    shown = await ann.sees(page("confirm.short"))

    assert [label("button.topup").search(shown.buttons[0]["text"]) is not None] == [True]
    await ann.tap(label("button.generate_first"))
    assert len(await world.jobs(ann)) == 1


async def test_pictures_beyond_the_fields_of_a_model_are_named(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await send_album(ann, 3)
    await ann.press(ann.screen, f"model:{code_of('pixverse-v6/transition')}:image-to-video")

    assert page("refused.full", n=2)(ann.screen)
