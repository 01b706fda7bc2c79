"""Groups: the bot answers when addressed, a menu belongs to its user, the user who orders pays."""

from pathlib import Path

import pytest

from genlock.domain.errors import InsufficientBalance, TooManyOpenJobs
from genlock.domain.events import Event
from genlock.domain.money import EntryKind
from genlock.ports import Accepted
from tests.bot.groups import NAME, friends, seen
from tests.bot.own_program import made_by_a_program
from tests.bot.pages import label, page, text_pattern
from tests.bot.world import BotWorld, holds


async def test_an_order_in_a_group_is_paid_by_the_user_who_ordered(world: BotWorld) -> None:
    ann, bob, group = await friends(world)
    await ann.write(f"/gen{NAME} z-image a fox", chat=group.id)
    await ann.sees(page("order.done"), chat=group.id)

    assert [message.kind for message in seen(world, group)] == ["photo", "text"]
    assert await ann.available() == 1_000_000 - 800
    assert await bob.available() == 1_000_000
    assert ann.from_bot == []


async def test_a_mention_in_a_group_is_answered_and_other_messages_are_not(world: BotWorld) -> None:
    ann, _, group = await friends(world)
    await ann.client.say("hello all", chat=group.id)
    await ann.write(f"{NAME} a fox in the snow", chat=group.id)
    offer = await ann.sees(page("confirm.suggestion", title="Z-Image"), chat=group.id)

    assert "a fox in the snow" in offer.text
    assert "Balance" not in offer.text
    assert seen(world, group) == [offer]


async def test_the_menu_of_another_user_cannot_be_used(world: BotWorld) -> None:
    ann, bob, group = await friends(world)
    await ann.write(f"{NAME} a fox", chat=group.id)
    offer = await ann.sees(page("confirm.suggestion"), chat=group.id)
    text = offer.text
    press = await bob.press(offer, offer.buttons[0]["callback_data"])

    assert page("order.not_your_menu")(press)
    assert offer.text == text
    assert await world.jobs(bob) == []
    await ann.press(offer, offer.buttons[0]["callback_data"])
    await ann.sees(page("order.done"), chat=group.id)
    assert len(await world.jobs(ann)) == 1


async def test_a_sale_that_is_refused_after_it_was_begun_shows_the_refusal_on_the_pressed_message(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, _, group = await friends(world)
    await ann.write(f"{NAME} a fox", chat=group.id)
    offer = await ann.sees(page("confirm.suggestion"), chat=group.id)
    accept_job, shown = world.store.accept_job, []
    for refusal, told in (
        (InsufficientBalance(price=800, available=0), page("confirm.price")),
        (TooManyOpenJobs(open_jobs=9), page("limit.running", n=9)),
    ):

        async def refuse(*_: object, refusal: Exception = refusal) -> Accepted:
            shown.append(offer.text)
            raise refusal  # other orders were accepted since the checks

        monkeypatch.setattr(world.store, "accept_job", refuse)
        await ann.press(offer, offer.buttons[0]["callback_data"])
        await world.quiet()
        assert text_pattern("order.accepted").search(shown[-1])
        assert seen(world, group) == [offer], "no second message"
        assert told(offer)
    assert await world.jobs(ann) == []

    monkeypatch.setattr(world.store, "accept_job", accept_job)
    await ann.press(offer, offer.buttons[0]["callback_data"])
    await ann.sees(page("order.done"), chat=group.id)
    assert len(await world.jobs(ann)) == 1
    assert [message.kind for message in seen(world, group)] == ["photo", "text"]


async def test_a_button_of_before_the_group_became_a_supergroup_is_answered_there(world: BotWorld) -> None:
    """Clients show the old group's messages above those of the supergroup; presses on them come from the old group."""
    ann, _, group = await friends(world)
    await ann.write(f"/gen{NAME} z-image a fox", chat=group.id)
    notice = await ann.sees(page("order.done"), chat=group.id)
    await world.quiet()
    async with world.done(2):
        new = await group.migrate()
    await ann.press(notice, "repeat:1")

    again = await ann.sees(page("confirm.price"), chat=new.id)
    await ann.press(again, again.buttons[0]["callback_data"])
    await ann.sees(holds("#2", page("order.done")), chat=new.id)
    assert world.recorder.of(Event.UPDATE_FAIL) == []


async def test_the_result_of_another_user_cannot_be_repeated(world: BotWorld) -> None:
    ann, bob, group = await friends(world)
    await ann.write(f"/gen{NAME} z-image a fox", chat=group.id)
    notice = await ann.sees(page("order.done"), chat=group.id)
    press = await bob.press(notice, "repeat:1")

    assert page("order.not_yours")(press)


async def test_forged_data_on_the_result_of_another_user_does_not_overwrite_it(world: BotWorld) -> None:
    ann, bob, group = await friends(world)
    await ann.write(f"{NAME} a fox", chat=group.id)
    result = await ann.sees(page("confirm.suggestion"), chat=group.id)
    await ann.press(result, result.buttons[0]["callback_data"])
    await ann.sees(page("order.done"), chat=group.id)
    await world.quiet()
    before = world.telegram.state.view(result)
    await bob.write(f"{NAME} a bear", chat=group.id)
    offer = await bob.sees(holds(page("confirm.suggestion"), "a bear"), chat=group.id)
    press = await bob.press(result, offer.buttons[0]["callback_data"])

    assert page("order.stale")(press)
    assert world.telegram.state.view(result) == before
    assert await world.jobs(bob) == []
    offer = await bob.sees(holds(page("confirm.price"), "a bear"), chat=group.id)
    await bob.press(offer, offer.buttons[0]["callback_data"])
    await bob.sees(holds("#2", page("order.done")), chat=group.id)
    assert world.telegram.state.view(result) == before


async def test_a_group_offers_to_cancel_only_what_was_ordered_there(world: BotWorld) -> None:
    world.kie.service.speed = 0.01
    ann, _, group = await friends(world)
    await ann.write("/gen z-image a secret")
    await ann.write(f"/cancel{NAME}", chat=group.id)
    assert page("menu.nothing_to_cancel")(seen(world, group)[-1])
    await ann.write(f"/gen{NAME} z-image a fox", chat=group.id)
    await ann.write(f"/cancel{NAME}", chat=group.id)
    shown = await ann.sees(page("menu.which_to_cancel"), chat=group.id)

    assert [button["callback_data"] for button in shown.buttons if "#" in button["text"]] == ["cancel:2"]
    await ann.write("/cancel")
    assert len([button for button in ann.screen.buttons if "#" in button["text"]]) == 2


async def test_a_group_does_not_see_what_a_program_of_the_user_has_ordered(world: BotWorld, tmp_path: Path) -> None:
    world.kie.service.speed = 0.01
    ann, _, group = await friends(world)
    await ann.write("/gen z-image a secret")
    [job] = await world.jobs(ann)
    made_by_a_program(tmp_path, job)
    await ann.write(f"/cancel{NAME}", chat=group.id)

    assert page("menu.nothing_to_cancel")(seen(world, group)[-1])
    await ann.write("/cancel")
    assert "a secret" in ann.screen.buttons[0]["text"]


async def test_questions_in_a_group_are_answered_by_a_reply(world: BotWorld) -> None:
    ann, _, group = await friends(world)
    await ann.write(f"/models{NAME} z-image", chat=group.id)
    screen = seen(world, group)[-1]
    model = next(button["callback_data"] for button in screen.buttons if "Z-Image" in button["text"])
    await ann.press(screen, model)
    question = await ann.sees(page("ask.in_group"), chat=group.id)
    await ann.write("a cat", chat=group.id, reply_to=question)
    await ann.sees("Aspect ratio", chat=group.id)

    assert len(seen(world, group)) == 1


async def test_the_menu_of_a_group_says_how_to_answer_it(world: BotWorld) -> None:
    ann, _, group = await friends(world)
    await ann.write(f"/start{NAME}", chat=group.id)
    menu = await ann.sees(page("menu.choose_group"), chat=group.id)
    await ann.write("a fox in the snow", chat=group.id, reply_to=menu)
    offer = await ann.sees(page("confirm.suggestion", title="Z-Image"), chat=group.id)

    assert "a fox in the snow" in offer.text


async def test_balances_are_not_shown_in_a_group(world: BotWorld) -> None:
    ann, _, group = await friends(world)
    for command in ("balance", "history", "topup", "promo", "invite"):
        await ann.write(f"/{command}{NAME}", chat=group.id)
        told = seen(world, group)[-1]
        assert page("misc.group_private")(told)
        assert told.buttons[0]["url"] == f"https://t.me/sandbox_bot?start={command}"


async def test_a_user_with_too_few_credits_in_a_group_gets_a_link_to_the_packages(world: BotWorld) -> None:
    ann, _, group = await friends(world)
    await world.store.transfer(ann.number, EntryKind.DEBIT, 1_000_000, "all of it")
    await ann.write(f"{NAME} a fox", chat=group.id)
    offer = await ann.sees(page("confirm.short_group"), chat=group.id)
    press = await ann.press(
        offer, next(button["callback_data"] for button in offer.buttons if label("button.topup").search(button["text"]))
    )
    assert press.url == "https://t.me/sandbox_bot?start=topup"
    assert not press.text
    await ann.write("/start topup")

    assert page("topup.title")(ann.screen)
    assert any("⭐ 100 →" in button["text"] for button in ann.screen.buttons)


async def test_the_help_in_a_group_has_an_example(world: BotWorld) -> None:
    ann, _, group = await friends(world)
    await group.set_bot("left", by=ann.client)
    async with world.done():
        await group.set_bot("member", by=ann.client)
    greeting = await ann.sees("@sandbox_bot a fox in the snow", chat=group.id)
    assert greeting.buttons[0]["url"] == "https://t.me/sandbox_bot"
    await ann.write(f"/help{NAME}", chat=group.id)

    assert "@sandbox_bot a fox in the snow" in seen(world, group)[-1].text


async def test_commands_for_other_bots_are_ignored(world: BotWorld) -> None:
    ann, _, group = await friends(world)
    await ann.write("/start@another_bot", chat=group.id)

    assert seen(world, group) == []


async def test_two_users_order_at_the_same_time_in_one_group(world: BotWorld) -> None:
    ann, bob, group = await friends(world)
    await ann.write(f"{NAME} a fox", chat=group.id)
    await bob.write(f"{NAME} a bear", chat=group.id)
    for user, word in ((ann, "a fox"), (bob, "a bear")):
        offer = await user.sees(holds(page("confirm.suggestion"), word), chat=group.id)
        await user.press(offer, offer.buttons[0]["callback_data"])
    await ann.sees(lambda message: page("order.done")(message) and "#1" in message.text, chat=group.id)
    await ann.sees(lambda message: page("order.done")(message) and "#2" in message.text, chat=group.id)

    assert [len(await world.jobs(user)) for user in (ann, bob)] == [1, 1]


@pytest.mark.parametrize("kind", ["group", "supergroup", "channel"])
async def test_the_bot_greets_a_group_that_adds_it_and_posts_nothing_in_a_channel(world: BotWorld, kind: str) -> None:
    """The subscribers of a channel cannot order there."""
    ann = await world.add_user("Ann", language="ru")
    chat = world.telegram.group("Friends", [ann.client], kind=kind)
    status = chat.chat.bot_status
    async with world.done(2):
        await chat.set_bot("left", by=ann.client)
        await chat.set_bot(status, by=ann.client)

    greetings = [page("misc.added_to_group", language="ru")(message) for message in seen(world, chat)]
    assert greetings == ([] if kind == "channel" else [True])
