"""Pages that a command asks for stay in the chat; files that are no pictures are not called so; groups are told how."""

import pytest

from tests.bot.pages import label, page
from tests.bot.world import BotWorld, holds

PAGES = {
    "/help": "help.text",
    "/terms": "terms.text",
    "/invite": "invite.title",
    "/paysupport": "paysupport.text",
    "/privacy": "privacy.text",
}


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_a_page_asked_for_by_a_command_stays_readable(world: BotWorld, language: str) -> None:
    ann = await world.add_user(language=language)
    await ann.write("/start")
    for command, key in PAGES.items():
        await ann.write(command)
        shown = await ann.sees(page(key, language=language))
        await ann.tap(label("button.menu", language=language), on=shown)
        await ann.write("/balance")
    await ann.write("/start")

    for key in PAGES.values():
        assert len([message for message in ann.from_bot if page(key, language=language)(message)]) == 1, key
    assert len(ann.from_bot) == len(PAGES) + 1, "one screen beside the pages"
    assert page("menu.choose", language=language)(ann.from_bot[-1])


async def test_back_on_a_page_opens_the_order_in_progress_below_it(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a red fox")
    await ann.write("/terms")
    shown = await ann.sees(page("terms.text"))
    await ann.tap(label("button.back"), on=shown)
    order = await ann.sees(holds(page("confirm.price"), "a red fox"))

    assert order.id > shown.id
    assert page("terms.text")(shown)
    assert len(ann.from_bot) == 2
    await ann.tap(label("button.generate"))
    await ann.sees(page("order.done"))


async def test_a_page_opened_by_a_button_is_the_screen(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/balance")
    await ann.tap(label("button.invite"))
    await ann.sees(page("invite.title"))
    await ann.tap(label("button.back"))
    await ann.sees(page("balance.title"))

    assert len(ann.from_bot) == 1


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_a_pdf_is_not_called_a_picture(world: BotWorld, language: str) -> None:
    ann = await world.add_user(language=language)
    await ann.write("a red fox")
    await ann.send("document", b"%PDF-1.7 hello", name="a.pdf")
    shown = await ann.sees(page("refused.no_place_file", language=language))

    assert not page("refused.no_place_image", language=language)(shown)
