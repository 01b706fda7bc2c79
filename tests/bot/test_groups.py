"""Groups: the bot answers when addressed, a menu belongs to its user, the user who orders pays."""

from telegram import Update

from genlock.domain.money import EntryKind
from genlock.sandbox.telegram.groups import Group
from genlock.sandbox.telegram.state import Message
from tests.bot.pages import page
from tests.bot.world import Customer, Town, holds

NAME = "@sandbox_bot"


def seen(here: Town, group: Group) -> list[Message]:
    return [message for message in group.messages if message.sender == here.caller.bot.id]


async def friends(here: Town) -> tuple[Customer, Customer, Group]:
    ann, bob = await here.person("Ann"), await here.person("Bob")
    return ann, bob, here.telegram.group("Friends", [ann.hands, bob.hands])


async def test_an_order_in_a_group_is_paid_by_the_user_who_ordered(here: Town) -> None:
    ann, bob, group = await friends(here)
    await ann.say(f"/gen{NAME} z-image a fox", chat=group.id)
    await ann.sees(page("order.done"), chat=group.id)

    assert [message.kind for message in seen(here, group)] == ["photo", "text"]
    assert await ann.available() == 1_000_000 - 800
    assert await bob.available() == 1_000_000
    assert ann.from_bot == []


async def test_a_mention_in_a_group_is_answered_and_other_messages_are_not(here: Town) -> None:
    ann, _, group = await friends(here)
    await ann.hands.say("hello everybody", chat=group.id)
    await ann.say(f"{NAME} a fox in the snow", chat=group.id)
    offer = await ann.sees(page("confirm.suggestion", title="Z-Image"), chat=group.id)

    assert "a fox in the snow" in offer.text
    assert "Balance" not in offer.text
    assert seen(here, group) == [offer]


async def test_the_menu_of_another_user_cannot_be_used(here: Town) -> None:
    ann, bob, group = await friends(here)
    await ann.say(f"{NAME} a fox", chat=group.id)
    offer = await ann.sees(page("confirm.suggestion"), chat=group.id)
    text = offer.text
    press = await bob.press(offer, offer.buttons[0]["callback_data"])

    assert page("order.not_your_menu")(press)
    assert offer.text == text
    assert await here.jobs(bob) == []
    await ann.press(offer, offer.buttons[0]["callback_data"])
    await ann.sees(page("order.done"), chat=group.id)
    assert len(await here.jobs(ann)) == 1


async def test_the_result_of_another_user_cannot_be_repeated(here: Town) -> None:
    ann, bob, group = await friends(here)
    await ann.say(f"/gen{NAME} z-image a fox", chat=group.id)
    notice = await ann.sees(page("order.done"), chat=group.id)
    press = await bob.press(notice, "repeat:1")

    assert page("order.not_yours")(press)


async def test_forged_data_on_the_result_of_another_user_does_not_overwrite_it(here: Town) -> None:
    ann, bob, group = await friends(here)
    await ann.say(f"{NAME} a fox", chat=group.id)
    result = await ann.sees(page("confirm.suggestion"), chat=group.id)
    await ann.press(result, result.buttons[0]["callback_data"])
    await ann.sees(page("order.done"), chat=group.id)
    await here.quiet()
    before = here.telegram.state.view(result)
    await bob.say(f"{NAME} a bear", chat=group.id)
    offer = await bob.sees(holds(page("confirm.suggestion"), "a bear"), chat=group.id)
    press = await bob.press(result, offer.buttons[0]["callback_data"])

    assert press.text == "This button is out of date. Here is where you are now."
    assert here.telegram.state.view(result) == before
    assert await here.jobs(bob) == []
    offer = await bob.sees(holds(page("confirm.price"), "a bear"), chat=group.id)
    await bob.press(offer, offer.buttons[0]["callback_data"])
    await bob.sees(holds("#2", page("order.done")), chat=group.id)
    assert here.telegram.state.view(result) == before


async def test_a_group_offers_to_cancel_only_what_was_ordered_there(here: Town) -> None:
    here.kie.service.speed = 0.01
    ann, _, group = await friends(here)
    await ann.say("/gen z-image a secret")
    await ann.say(f"/cancel{NAME}", chat=group.id)
    assert "nothing to cancel" in seen(here, group)[-1].text
    await ann.say(f"/gen{NAME} z-image a fox", chat=group.id)
    await ann.say(f"/cancel{NAME}", chat=group.id)
    shown = await ann.sees(page("menu.which_to_cancel"), chat=group.id)

    assert [one["callback_data"] for one in shown.buttons if "#" in one["text"]] == ["cancel:2"]
    await ann.say("/cancel")
    assert len([one for one in ann.screen.buttons if "#" in one["text"]]) == 2


async def test_questions_in_a_group_are_answered_by_a_reply(here: Town) -> None:
    ann, _, group = await friends(here)
    await ann.say(f"/models{NAME} z-image", chat=group.id)
    screen = seen(here, group)[-1]
    model = next(one["callback_data"] for one in screen.buttons if "Z-Image" in one["text"])
    await ann.press(screen, model)
    question = await ann.sees(page("ask.in_group"), chat=group.id)
    await ann.say("a cat", chat=group.id, reply_to=question)
    await ann.sees("Aspect ratio", chat=group.id)

    assert len(seen(here, group)) == 1


async def test_balances_are_not_shown_in_a_group(here: Town) -> None:
    ann, _, group = await friends(here)
    for command in ("balance", "history", "topup", "promo", "invite"):
        await ann.say(f"/{command}{NAME}", chat=group.id)
        told = seen(here, group)[-1]
        assert told.text == "🔒 This is between the two of us. Open the chat with me."
        assert told.buttons[0]["url"] == f"https://t.me/sandbox_bot?start={command}"


async def test_a_user_with_too_few_credits_in_a_group_gets_a_link_to_the_packages(here: Town) -> None:
    ann, _, group = await friends(here)
    await here.store.transfer(ann.number, EntryKind.DEBIT, 1_000_000, "all of it")
    await ann.say(f"{NAME} a fox", chat=group.id)
    offer = await ann.sees(page("confirm.short_group"), chat=group.id)
    press = await ann.press(offer, next(one["callback_data"] for one in offer.buttons if "Top up" in one["text"]))
    assert press.url == "https://t.me/sandbox_bot?start=topup"
    assert not press.text
    await ann.say("/start topup")

    assert page("topup.title")(ann.screen)
    assert any("⭐ 100 →" in one["text"] for one in ann.screen.buttons)


async def test_the_help_in_a_group_has_an_example(here: Town) -> None:
    ann, _, group = await friends(here)
    await group.set_bot("left", by=ann.hands)
    async with here.done():
        await group.set_bot("member", by=ann.hands)
    greeting = await ann.sees("@sandbox_bot a fox in the snow", chat=group.id)
    assert greeting.buttons[0]["url"] == "https://t.me/sandbox_bot"
    await ann.say(f"/help{NAME}", chat=group.id)

    assert "@sandbox_bot a fox in the snow" in seen(here, group)[-1].text


async def test_commands_for_other_bots_are_ignored(here: Town) -> None:
    ann, _, group = await friends(here)
    await ann.say("/start@another_bot", chat=group.id)

    assert seen(here, group) == []


async def test_two_users_order_at_the_same_time_in_one_group(here: Town) -> None:
    ann, bob, group = await friends(here)
    await ann.say(f"{NAME} a fox", chat=group.id)
    await bob.say(f"{NAME} a bear", chat=group.id)
    for person, word in ((ann, "a fox"), (bob, "a bear")):
        offer = await person.sees(holds(page("confirm.suggestion"), word), chat=group.id)
        await person.press(offer, offer.buttons[0]["callback_data"])
    await ann.sees(lambda message: page("order.done")(message) and "#1" in message.text, chat=group.id)
    await ann.sees(lambda message: page("order.done")(message) and "#2" in message.text, chat=group.id)

    assert [len(await here.jobs(one)) for one in (ann, bob)] == [1, 1]


async def test_the_bot_greets_a_group_that_adds_it(here: Town) -> None:
    ann, _, group = await friends(here)
    change = {
        "update_id": 1,
        "my_chat_member": {
            "chat": {"id": group.id, "type": "group", "title": "Friends"},
            "from": {"id": ann.hands.id, "is_bot": False, "first_name": "Ann", "language_code": "ru"},
            "date": 1,
            "old_chat_member": {"status": "left", "user": {"id": 42, "is_bot": True, "first_name": "S"}},
            "new_chat_member": {"status": "member", "user": {"id": 42, "is_bot": True, "first_name": "S"}},
        },
    }
    update = Update.de_json(change, here.caller.bot)
    await here.bot.handle(update, first=True)

    assert "Каждый платит за свои заказы" in seen(here, group)[-1].text
