"""Groups: the bot speaks when spoken to, each menu answers to its own person, each order costs its orderer."""

from telegram import Update

from genlock.domain.money import EntryKind
from genlock.sandbox.telegram.groups import Group
from genlock.sandbox.telegram.state import Message
from tests.bot.world import Customer, Town, holds

NAME = "@sandbox_bot"


def seen(here: Town, group: Group) -> list[Message]:
    return [message for message in group.messages if message.sender == here.caller.bot.id]


async def friends(here: Town) -> tuple[Customer, Customer, Group]:
    ann, bob = await here.person("Ann"), await here.person("Bob")
    return ann, bob, here.telegram.group("Friends", [ann.hands, bob.hands])


async def test_an_order_in_a_group_is_paid_by_whoever_ordered(here: Town) -> None:
    ann, bob, group = await friends(here)
    await ann.say(f"/gen{NAME} z-image a fox", chat=group.id)
    await ann.sees("Generation complete", chat=group.id)

    assert [message.kind for message in seen(here, group)] == ["photo", "text"]
    assert await ann.available() == 1_000_000 - 800
    assert await bob.available() == 1_000_000
    assert ann.from_bot == []


async def test_a_mention_is_a_wish_and_chatter_is_not(here: Town) -> None:
    ann, _, group = await friends(here)
    await ann.hands.say("hello everybody", chat=group.id)
    await ann.say(f"{NAME} a fox in the snow", chat=group.id)
    offer = await ann.sees("Shall I make this with Z-Image?", chat=group.id)

    assert "a fox in the snow" in offer.text
    assert "Balance" not in offer.text
    assert seen(here, group) == [offer]


async def test_somebody_elses_menu_is_left_alone(here: Town) -> None:
    ann, bob, group = await friends(here)
    await ann.say(f"{NAME} a fox", chat=group.id)
    offer = await ann.sees("Shall I", chat=group.id)
    text = offer.text
    press = await bob.press(offer, offer.buttons[0]["callback_data"])

    assert press.text == "This menu belongs to somebody else. Write /start to open your own."
    assert offer.text == text
    assert await here.jobs(bob) == []
    await ann.press(offer, offer.buttons[0]["callback_data"])
    await ann.sees("Generation complete", chat=group.id)
    assert len(await here.jobs(ann)) == 1


async def test_somebody_elses_result_cannot_be_repeated(here: Town) -> None:
    ann, bob, group = await friends(here)
    await ann.say(f"/gen{NAME} z-image a fox", chat=group.id)
    notice = await ann.sees("Generation complete", chat=group.id)
    press = await bob.press(notice, "repeat:1")

    assert press.text == "This order belongs to somebody else. Write /start to make your own."


async def test_a_press_brought_to_somebody_elses_result_does_not_write_over_it(here: Town) -> None:
    ann, bob, group = await friends(here)
    await ann.say(f"{NAME} a fox", chat=group.id)
    result = await ann.sees("Shall I", chat=group.id)
    await ann.press(result, result.buttons[0]["callback_data"])
    await ann.sees("Generation complete", chat=group.id)
    await here.quiet()
    before = here.telegram.state.view(result)
    await bob.say(f"{NAME} a bear", chat=group.id)
    offer = await bob.sees(holds("Shall I", "a bear"), chat=group.id)
    press = await bob.press(result, offer.buttons[0]["callback_data"])

    assert press.text == "This button is out of date. Here is where you are now."
    assert here.telegram.state.view(result) == before
    assert await here.jobs(bob) == []
    offer = await bob.sees(holds("Price", "a bear"), chat=group.id)
    await bob.press(offer, offer.buttons[0]["callback_data"])
    await bob.sees(holds("#2", "complete"), chat=group.id)
    assert here.telegram.state.view(result) == before


async def test_a_group_offers_to_cancel_only_what_was_ordered_there(here: Town) -> None:
    here.kie.service.speed = 0.01
    ann, _, group = await friends(here)
    await ann.say("/gen z-image a secret")
    await ann.say(f"/cancel{NAME}", chat=group.id)
    assert "nothing to cancel" in seen(here, group)[-1].text
    await ann.say(f"/gen{NAME} z-image a fox", chat=group.id)
    await ann.say(f"/cancel{NAME}", chat=group.id)
    shown = await ann.sees("Which order shall I cancel?", chat=group.id)

    assert [one["callback_data"] for one in shown.buttons if "#" in one["text"]] == ["cancel:2"]
    await ann.say("/cancel")
    assert len([one for one in ann.screen.buttons if "#" in one["text"]]) == 2


async def test_questions_are_answered_by_a_reply(here: Town) -> None:
    ann, _, group = await friends(here)
    await ann.say(f"/models{NAME} z-image", chat=group.id)
    screen = seen(here, group)[-1]
    model = next(one["callback_data"] for one in screen.buttons if "Z-Image" in one["text"])
    await ann.press(screen, model)
    question = await ann.sees("Reply to this message", chat=group.id)
    await ann.say("a cat", chat=group.id, reply_to=question)
    await ann.sees("Aspect ratio", chat=group.id)

    assert len(seen(here, group)) == 1


async def test_money_is_not_talked_about_in_a_group(here: Town) -> None:
    ann, _, group = await friends(here)
    for command in ("balance", "history", "topup", "promo", "invite"):
        await ann.say(f"/{command}{NAME}", chat=group.id)
        told = seen(here, group)[-1]
        assert told.text == "🔒 This is between the two of us. Open the chat with me."
        assert told.buttons[0]["url"] == f"https://t.me/sandbox_bot?start={command}"


async def test_whoever_has_too_little_in_a_group_is_led_to_the_packages(here: Town) -> None:
    ann, _, group = await friends(here)
    await here.store.transfer(ann.number, EntryKind.DEBIT, 1_000_000, "all of it")
    await ann.say(f"{NAME} a fox", chat=group.id)
    offer = await ann.sees("Your balance is too low for this", chat=group.id)
    press = await ann.press(offer, next(one["callback_data"] for one in offer.buttons if "Top up" in one["text"]))
    assert press.url == "https://t.me/sandbox_bot?start=topup"
    assert not press.text
    await ann.say("/start topup")

    assert "Top up with Telegram Stars" in ann.screen.text
    assert any("⭐ 100 →" in one["text"] for one in ann.screen.buttons)


async def test_a_group_is_told_how_to_order_by_example(here: Town) -> None:
    ann, _, group = await friends(here)
    await group.set_bot("left", by=ann.hands)
    async with here.done():
        await group.set_bot("member", by=ann.hands)
    greeting = await ann.sees("@sandbox_bot a fox in the snow", chat=group.id)
    assert greeting.buttons[0]["url"] == "https://t.me/sandbox_bot"
    await ann.say(f"/help{NAME}", chat=group.id)

    assert "@sandbox_bot a fox in the snow" in seen(here, group)[-1].text


async def test_commands_for_other_bots_are_not_ours(here: Town) -> None:
    ann, _, group = await friends(here)
    await ann.say("/start@another_bot", chat=group.id)

    assert seen(here, group) == []


async def test_two_people_order_side_by_side_in_one_group(here: Town) -> None:
    ann, bob, group = await friends(here)
    await ann.say(f"{NAME} a fox", chat=group.id)
    await bob.say(f"{NAME} a bear", chat=group.id)
    for person, word in ((ann, "a fox"), (bob, "a bear")):
        offer = await person.sees(holds("Shall I", word), chat=group.id)
        await person.press(offer, offer.buttons[0]["callback_data"])
    await ann.sees(lambda message: "complete" in message.text and "#1" in message.text, chat=group.id)
    await ann.sees(lambda message: "complete" in message.text and "#2" in message.text, chat=group.id)

    assert [len(await here.jobs(one)) for one in (ann, bob)] == [1, 1]


async def test_the_bot_says_hello_when_it_is_taken_into_a_group(here: Town) -> None:
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
