"""With the numbers of a bot, users see no id in texts or links, and what they type is understood."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.app.telegram import bot_texts
from genlock.bot.buttons import base36
from genlock.domain.public_number import PublicNumbers
from genlock.i18n.translator import package_texts
from tests.bot.conftest import BOSS
from tests.bot.pages import label, page
from tests.bot.rules import OPEN
from tests.bot.world import BotWorld, ChatUser, running_bot, sqlite_url

NUMBERS = PublicNumbers.of_bot("42:sandbox")


@pytest.fixture
async def numbered(tmp_path: Path) -> AsyncIterator[BotWorld]:
    rules = replace(OPEN, admin_ids=frozenset({BOSS}))
    async with running_bot(sqlite_url(tmp_path), rules=rules, texts=package_texts().numbered(NUMBERS)) as world:
        yield world


def shown(user: ChatUser) -> str:
    return "\n".join(
        " ".join(
            (message.text or "", *(f"{button['text']} {button.get('callback_data', '')}" for button in message.buttons))
        )
        for message in user.from_bot
    )


async def test_the_service_numbers_orders_by_its_token(world: BotWorld) -> None:
    assert bot_texts(world.caller.bot.token).numbers == PublicNumbers.of_bot(world.caller.bot.token)


async def test_an_order_is_known_by_its_number_in_texts_and_commands(numbered: BotWorld) -> None:
    boss, ann = await numbered.add_user("Boss"), await numbered.add_user("Ann")
    await ann.write("/gen z-image a fox")
    done = await ann.sees(page("order.done"))
    [job] = await numbered.jobs(ann)
    number = NUMBERS.order(job.id)

    assert page("order.done", code=f"#{number}")(done)
    await ann.tap(label("button.repeat"), on=done)
    await ann.sees(page("confirm.price"))
    await ann.write("/history")
    await ann.tap("a fox")
    await ann.sees(page("balance.capture", "order.caption"))
    assert number in shown(ann)
    assert not re.search(rf"#{job.id}\b", shown(ann))
    for typed in (f"#{number}", number.lower(), f"#{job.id}"):
        await boss.write(f"/admin order {typed}")
        card = await boss.sees(page("admin.order", code=f"#{job.id}"))
        assert page("admin.order_public", code=f"#{number}")(card), "the operator can name it to the user"
        await boss.write("/start")


async def test_an_original_is_sent_with_the_number_of_its_order(numbered: BotWorld) -> None:
    ann, bob = await numbered.add_user("Ann"), await numbered.add_user("Bob")
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))
    await bob.write("/gen z-image a fox")
    await bob.sees(page("order.done"))
    [job] = await numbered.jobs(bob)
    number = NUMBERS.order(job.id)

    await bob.tap(label("button.original"), on=bob.from_bot[0])
    document = await bob.sees(lambda message: message.kind == "document")
    assert document.content["document"]["file_name"].startswith(f"{number}-1.")
    assert page("order.original", code=f"#{number}")(document)


async def test_a_button_names_the_order_by_its_id(numbered: BotWorld) -> None:
    ann = await numbered.add_user("Ann")
    await ann.write("/gen z-image a fox")
    done = await ann.sees(page("order.done"))
    [job] = await numbered.jobs(ann)
    await ann.press(done, f"repeat:{job.id}")

    assert page("confirm.price")(ann.screen)
    assert "a fox" in ann.screen.text


@pytest.mark.parametrize("old", [True, False])
async def test_an_invitation_hides_the_account_and_old_links_keep_working(numbered: BotWorld, *, old: bool) -> None:
    ann, bob = await numbered.add_user("Ann"), await numbered.add_user("Bob")
    await ann.write("/invite")
    page_ = await ann.sees(page("invite.link"))
    link = re.search(r"start=(\S+)", page_.text or "")
    assert link is not None
    assert link[1] == f"r{NUMBERS.account(ann.number)}"
    await bob.write(f"/start r{base36(ann.number)}" if old else f"/start {link[1]}")

    assert (await numbered.store.profile(bob.number)).referred_by == ann.number
