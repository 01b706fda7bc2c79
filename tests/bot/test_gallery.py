"""My results: a gallery with one result at a time, filtered, removed and taken back; every press twice."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

import pytest

from genlock.domain.job import Job
from genlock.sandbox.telegram.chats import Message
from tests.bot.own_program import made_by_a_program
from tests.bot.pages import label, page
from tests.bot.world import BotWorld, ChatUser, die_once

FOX = "/gen z-image a red fox"
OWL = "/gen z-image an old owl"


async def made(ann: ChatUser, *orders: str) -> list[Job]:
    """Order, wait for the results, and return them, the oldest first."""
    for order in orders:
        await ann.write(order)
    await ann.world.quiet()
    return list(reversed(await ann.world.jobs(ann)))


async def test_results_are_looked_through_in_both_directions_on_one_message(world: BotWorld) -> None:
    ann = await world.add_user()
    fox, owl = await made(ann, FOX, OWL)
    await ann.write("/results")
    shown = ann.screen
    assert (shown.kind, "an old owl" in shown.text) == ("photo", True)
    assert shown.file_id == (owl.parts[0].file or "").partition(":")[2], "Telegram's own copy, not an upload"
    await ann.tap(label("button.more"))
    assert (ann.screen.id, "a red fox" in ann.screen.text) == (shown.id, True)
    assert not any(label("button.more").search(button["text"]) for button in ann.screen.buttons)
    await ann.tap(label("button.newer"))
    assert "an old owl" in ann.screen.text
    assert fox.id < owl.id
    world.kie.service.files.expire()
    await ann.tap(label("button.more"))
    assert "a red fox" in ann.screen.text, "days later, the provider's links are gone"
    await ann.tap(label("button.next_image_animate"))
    assert page("confirm.price")(ann.screen)


async def test_the_gallery_is_filtered_by_kind(world: BotWorld) -> None:
    ann = await world.add_user()
    await made(ann, FOX, "/gen suno lyrics a song about rain")
    await ann.tap(label("gallery.button"), on=await _menu(ann))
    assert "a song about rain" in ann.screen.text
    assert ann.screen.kind == "text"
    await ann.press(ann.screen, "mine:i")
    assert (ann.screen.kind, "a red fox" in ann.screen.text) == ("photo", True)
    await ann.press(ann.screen, "mine:v")
    assert page("gallery.none_of_kind")(ann.screen)
    for forged in ("mine:zzz", "mine:i:0:9999", "mine:i:ABC:-1", "mine:all:1:5"):
        await ann.press(ann.screen, forged)


async def _menu(ann: ChatUser) -> Message:
    await ann.write("/start")
    return ann.screen


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_removed_result_is_gone_from_the_lists_and_comes_back(world: BotWorld, moment: str) -> None:
    ann = await world.add_user()
    fox, owl = await made(ann, FOX, OWL)
    money, entries = await ann.available(), await world.store.ledger_entries(ann.number, 50)
    await ann.write("/results")
    await ann.tap(label("gallery.remove"))
    assert page("gallery.remove_question")(ann.screen)
    assert not (await world.store.job(owl.id)).hidden  # type: ignore[union-attr]
    question = ann.screen
    die_once(world.store, "set_result_hidden", after=moment == "after")
    await ann.tap(label("gallery.remove_yes"))
    await ann.sees(page("gallery.removed"))
    assert "a red fox" in ann.screen.text
    await ann.press(question, f"ghide:{ann_number(world, owl)}:0:all")
    await ann.write("/history")
    assert not any("owl" in button["text"] for button in ann.screen.buttons)
    await ann.press(ann.screen, f"gundo:{ann_number(world, owl)}:0:all")
    assert "an old owl" in ann.screen.text
    await ann.write("/history")
    assert any("owl" in button["text"] for button in ann.screen.buttons)
    assert (await ann.available(), await world.store.ledger_entries(ann.number, 50)) == (money, entries)
    assert [job.id for job in await world.jobs(ann)] == [owl.id, fox.id]


def ann_number(world: BotWorld, job: Job) -> str:
    return world.bot.texts.numbers.order(job.id)


async def test_another_user_sees_and_removes_nothing(world: BotWorld) -> None:
    ann, eve = await world.add_user(), await world.add_user("Eve")
    [fox] = await made(ann, FOX)
    await eve.write("/results")
    assert page("gallery.none")(eve.screen)
    number = ann_number(world, fox)
    for forged in (f"mine:all:{number}:0", f"ghide:{number}:0:all", f"sample:{number}:0:1:all", f"gdel:{number}:0:all"):
        await eve.press(eve.screen, forged)
    job = await world.store.job(fox.id)
    assert job is not None
    assert not job.hidden
    assert page("gallery.none")(eve.screen)


async def test_all_parts_of_a_result_are_pages(world: BotWorld) -> None:
    ann = await world.add_user()
    await made(ann, FOX, "/gen suno v5 a song about rain")
    await ann.write("/results")
    song = (await world.jobs(ann))[0]
    assert len(song.parts) > 1, "the model makes two songs"
    assert (ann.screen.kind, "1 of 2" in ann.screen.text) == ("audio", True)
    await ann.tap(label("button.more"))
    assert "2 of 2" in ann.screen.text
    await ann.tap(label("button.more"))
    assert "a red fox" in ann.screen.text
    await ann.tap(label("button.newer"))
    assert "2 of 2" in ann.screen.text


async def test_a_result_of_the_users_own_program_is_not_promised_to_the_chat(world: BotWorld, tmp_path: Path) -> None:
    ann = await world.add_user()
    [owl] = await made(ann, OWL)
    made_by_a_program(tmp_path, owl)
    before = await world.store.job(owl.id)
    again, number = label("button.again"), ann_number(world, owl)
    await ann.write("/results")
    assert page("order.by_api")(ann.screen)
    for data in ("", f"order:{number}", f"nexts:{number}:0"):
        if data:
            await ann.press(ann.screen, data)
        assert not any(again.search(button["text"]) for button in ann.screen.buttons), data
    answer = await ann.press(ann.screen, f"again:{number}")

    assert page("order.by_api")(answer)
    after = await world.store.job(owl.id)
    assert before is not None
    assert after == replace(before, read_at=ANY), "it is not delivered again"


async def test_a_file_that_telegram_refuses_is_shown_as_text(world: BotWorld) -> None:
    ann = await world.add_user()
    await made(ann, FOX)
    world.telegram.state.files.known.clear()
    await ann.write("/results")
    assert ann.screen.kind == "text"
    assert "a red fox" in ann.screen.text


async def test_removed_orders_do_not_hide_the_older_ones_from_the_history(world: BotWorld) -> None:
    ann = await world.add_user()
    jobs = await made(ann, "/gen z-image the first one", *[f"/gen z-image number {n}" for n in range(9)])
    for job in jobs[1:]:
        assert await world.store.set_result_hidden(ann.number, job.id, hidden=True)
    await ann.write("/history")
    assert any("the first one" in button["text"] for button in ann.screen.buttons)


async def test_in_a_group_the_gallery_is_opened_in_the_private_chat(world: BotWorld) -> None:
    ann = await world.add_user()
    [fox] = await made(ann, FOX)
    group = world.telegram.group("Friends", [ann.client])
    await ann.write("/results", chat=group.id)
    [answer] = [message for message in group.messages if message.sender == world.caller.bot.id]
    assert page("misc.group_private")(answer)
    for forged in ("mine", f"mine:all:{ann_number(world, fox)}:0", f"gdel:{ann_number(world, fox)}:0:all"):
        await ann.press(answer, forged)
    assert not any(message.kind == "photo" for message in group.messages)
