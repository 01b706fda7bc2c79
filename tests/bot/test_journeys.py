"""Whole orders of users, from the first message to the result."""

import json
from pathlib import Path

import pytest

from genlock.domain.catalog import Category
from genlock.domain.events import Event
from genlock.domain.job import State
from genlock.sandbox.kie.faults import Fault
from tests.bot.pages import has_button, label, page
from tests.bot.world import BotWorld, holds, running_bot, sqlite_url

WORDS = {
    "en": {
        "describe": "Describe what you want",
        "price": "Price: 0.8\u00a0credits",
        "go": "Generate · 0.8\u00a0credits",
        "done": "Generation complete",
    },
    "ru": {
        "describe": "Опишите, что вы хотите",
        "price": "Цена: 0,8\N{NO-BREAK SPACE}кредита",
        "go": "Создать · 0,8\N{NO-BREAK SPACE}кредита",
        "done": "Готово",
    },
}


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_a_new_user_gets_an_image_with_three_taps_after_start_and_one_text(
    database_url: str, language: str
) -> None:
    words = WORDS[language]
    async with running_bot(database_url) as world:
        ann = await world.add_user("Ann", language=language)
        await ann.write("/start")
        await ann.sees("Ann")
        await ann.tap(label("wish.draw", language=language))
        await ann.sees(page("wish.hint_draw", language=language))
        await ann.tap("Z-Image")
        await ann.sees(words["describe"])
        await ann.write("cat astronaut")
        confirm = await ann.sees(words["price"])
        await ann.tap(words["go"])
        notice = await ann.sees(words["done"])

        [started, text, picture, last] = ann.client.messages
        assert (started.text, text.text) == ("/start", "cat astronaut")
        assert picture.kind == "photo"
        assert picture.id == confirm.id, "the pressed message becomes the result"
        assert last is notice
        assert await ann.available() == 1_000_000 - 800
        assert len(world.telegram.calls("answerCallbackQuery")) == 3
        assert await world.store.violations(settled=False) == []


async def test_a_text_without_an_order_needs_one_tap(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a red fox in the snow")
    await ann.sees(page("confirm.suggestion", title="Z-Image"))
    await ann.tap(label("button.generate"))
    await ann.sees(page("order.done"))

    [job] = await world.jobs(ann)
    assert (job.model, '"a red fox in the snow"' in job.input) == ("z-image", True)


async def test_the_model_used_last_is_suggested(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/gen qwen/text-to-image a fox")
    await ann.sees(page("order.done"))
    await ann.write("a bear")

    assert page("confirm.suggestion", title="Qwen Image")(ann.screen)


async def test_choosing_another_model_keeps_the_text(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a red fox")
    await ann.sees(page("confirm.suggestion"))
    await ann.tap(label("button.other_model"))
    await ann.sees(page("list.carried_text", text="a red fox"))
    await ann.tap("Seedream 4.5")
    confirm = await ann.sees(holds(page("confirm.price"), "Seedream 4.5"))

    assert "a red fox" in confirm.text


async def test_gen_orders_at_once(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/gen Nano Banana 2 Lite two cats")
    await ann.sees(page("order.done"))

    [job] = await world.jobs(ann)
    assert (job.model, job.state) == ("nano-banana-2-lite", State.SUCCEEDED)
    assert job.correlation_id == world.recorder.of(Event.UPDATE_RECEIVED)[0].correlation_id
    assert [message.kind for message in ann.client.messages] == ["text", "photo", "text"]


async def test_gen_asks_for_what_is_missing(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/gen recraft/remove-background")
    await ann.sees(page("ask.image"))
    await ann.write("/gen")
    await ann.sees(page("misc.gen_usage"))
    await ann.write("/gen nothing-like-it a cat")
    await ann.sees(page("misc.gen_unknown", name="nothing-like-it"))

    assert await world.jobs(ann) == []


async def test_models_are_listed_cheapest_first_in_pages_and_can_be_searched(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.sees(page("menu.hello"))
    await ann.press(ann.screen, "cat:text-to-video:0:every")
    first = await ann.sees(page("category.text-to-video"))
    prices = [float(button["text"].rpartition(" ")[2]) for button in first.buttons[:8]]
    assert prices == sorted(prices)
    assert any(button["text"] == "1 / 4" for button in first.buttons)
    await ann.tap(label("button.later"))
    await ann.sees(lambda message: any(button["text"] == "2 / 4" for button in message.buttons))
    await ann.write("kling")
    found = await ann.sees("🔎 kling")
    titles = [button["text"] for button in found.buttons if button["callback_data"].startswith("model:")]

    assert titles
    assert all("Kling" in title for title in titles)
    await ann.write("qqqqq")
    await ann.sees(page("list.none", query="qqqqq"))


async def test_a_sentence_at_a_model_list_is_a_prompt_for_that_category(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.tap(label("wish.video"))
    await ann.write("a paper boat on a rainy street")
    offer = await ann.sees(page("confirm.suggestion"))
    await ann.tap(label("button.generate"))
    await ann.sees(page("order.done"))
    [job] = await world.jobs(ann)

    assert Category.TEXT_TO_VIDEO in (world.catalog.get(job.model).category, *world.catalog.get(job.model).also)
    assert offer.id == int(job.placeholder or 0)


async def test_back_and_cancel_are_on_every_step(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.sees(page("menu.hello"))
    await ann.press(ann.screen, "cat:text-to-image:0:every")
    await ann.sees(page("list.search_hint"))
    await ann.tap("Z-Image")
    await ann.sees("Describe what you want")
    await ann.write("a cat")
    await ann.sees("Aspect ratio")
    await ann.tap(label("button.back"))
    await ann.sees(lambda message: "Now: a cat" in message.text)
    await ann.write("a dog")
    await ann.sees("Aspect ratio")
    await ann.tap("16:9")
    await ann.sees("a dog")
    await ann.tap(label("button.back"))
    await ann.sees(lambda message: any(button["text"] == "✓ 16:9" for button in message.buttons))
    await ann.tap(label("button.back"))
    await ann.sees("Now: a dog")
    await ann.tap(label("button.back"))
    await ann.sees(page("list.carried_text", text="a dog"))
    await ann.tap(label("button.cancel"))
    await ann.sees(page("menu.cancelled"))

    assert len(ann.from_bot) == 1


async def test_options_change_the_price_that_is_shown(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/models Kling 3.0")
    await ann.tap("Kling 3.0 ·")
    await ann.sees("Describe")
    await ann.write("a storm")
    await ann.sees("Aspect ratio")
    await ann.tap(label("button.rest"))
    await ann.sees(page("confirm.price", price="90\u00a0credits"))
    await ann.tap(label("button.options"))
    await ann.sees(page("options.title"))
    await ann.tap("With sound")
    await ann.sees(lambda message: any(button["text"] == "Yes" for button in message.buttons))
    await ann.tap(label("button.yes"))
    await ann.sees(page("options.title"))
    await ann.tap(label("button.done"))
    shown = await ann.sees(page("confirm.price", price="135\u00a0credits"))

    assert "With sound: Yes" in shown.text


async def test_conflicting_choices_are_explained_with_field_names(world: BotWorld) -> None:
    ann = await world.add_user(language="ru")
    await ann.write("/models GPT Image 2")
    await ann.tap("GPT Image 2 ·")
    await ann.write("кот")
    await ann.sees(page("confirm.price", language="ru"))
    await ann.tap(label("button.options", language="ru"))
    await ann.sees(page("options.title", language="ru"))
    await ann.tap("Разрешение")
    await ann.sees("Разрешение")
    await ann.tap("4K")
    told = await ann.sees(page("refused.never", language="ru"))

    assert "Соотношение сторон: Авто + Разрешение: 2K / 4K" in told.text


async def test_a_failure_is_explained_and_costs_nothing(world: BotWorld) -> None:
    ann = await world.add_user()
    world.kie.faults.order(Fault.TASK_MODERATED)
    await ann.write("something")
    await ann.sees(page("confirm.suggestion"))
    await ann.tap(label("button.generate"))
    told = await ann.sees(page("failed.moderation"))

    assert "Order #1 failed" in told.text
    assert page("failed.money_back", credits="0.8\u00a0credits")(told)
    assert await ann.available() == 1_000_000
    assert not has_button(told, "button.try_again")
    await ann.tap(label("button.change_repeat"), on=told)
    await ann.sees(page("options.title"))
    world.kie.faults.order(Fault.TASK_FAIL)
    await ann.write("/gen z-image another thing")
    told = await ann.sees(page("failed.provider_failed"))
    await ann.tap(label("button.try_again"), on=told)
    await ann.sees(page("confirm.price"))


async def test_two_concurrent_orders_each_get_their_own_result(world: BotWorld) -> None:
    ann = await world.add_user()
    for word in ("fox", "bear"):
        await ann.write(word)
        shown = await ann.sees(holds(page("confirm.suggestion"), word))
        await ann.tap(label("button.generate"), on=shown)  # the notice of the other order may be newer
    await ann.sees(lambda message: page("order.done")(message) and "#1" in message.text)
    await ann.sees(lambda message: page("order.done")(message) and "#2" in message.text)
    pictures = {message.text.splitlines()[1]: message for message in ann.client.messages if message.kind == "photo"}

    assert pictures.keys() == {"fox", "bear"}


async def test_a_restart_in_the_middle_of_an_order_loses_nothing(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path)) as world:
        ann = await world.add_user()
        await ann.write("/models z-image")
        await ann.tap("Z-Image")
        await ann.sees("Describe")
        await ann.write("a cat")
        shown = await ann.sees("Aspect ratio")
        async with world.another_bot():
            await ann.tap("3:4", on=shown)
            await ann.sees(page("confirm.price"))
            await ann.tap(label("button.generate"))
            await ann.sees(page("order.done"))
        [job] = await world.jobs(ann)
        assert '"3:4"' in job.input


async def test_the_user_can_change_the_language(world: BotWorld) -> None:
    ann = await world.add_user(language="ru")
    await ann.write("/start")
    await ann.sees(page("menu.hello", language="ru"))
    await ann.write("/language")
    await ann.tap("English")
    await ann.sees(page("language.chosen"))
    await ann.write("/balance")
    await ann.sees("Your balance: 1,000\u00a0credits")
    await ann.write("/language")
    await ann.sees(page("language.choose"))
    await ann.tap("Русский")
    assert page("language.chosen", language="ru")(ann.screen)
    assert (await world.store.profile(ann.number)).language == "ru"


async def test_the_chat_has_one_screen_message_that_is_edited(world: BotWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one screen, below the last message of the user."""
    monkeypatch.setattr("genlock.stores.updates.REPEAT_SECONDS", 0.0)  # the menu button is tapped twice on purpose
    ann = await world.add_user()
    await ann.write("/start")
    await world.store.set_last_model(ann.number, "z-image")  # the menu of a user who has ordered
    await ann.write("/start")
    await ann.sees(page("menu.hello"))
    for button, shown in (
        ("button.balance", "balance.title"), ("button.history", "history.none"), ("button.menu", "menu.nothing_chosen"),
        ("button.help", "help.text"), ("button.menu", "menu.nothing_chosen"), ("button.models", "list.all"),
    ):  # fmt: skip
        await ann.tap(label(button))
        await ann.sees(page(shown))
    await ann.write("/balance")
    await ann.sees(page("balance.title"))

    assert ann.from_bot == [ann.client.last]


def in_parts(length: int, size: int = 4000) -> tuple[list[str], str]:
    """A long text as a client splits it, and the whole text."""
    words = " ".join(f"word{number}" for number in range(length // 6))[:length]
    parts = [words[start : start + size].strip() for start in range(0, length, size)]
    return parts, "\n".join(parts)


async def test_a_text_split_over_several_messages_is_joined(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/models GPT Image 1.5")
    await ann.tap("GPT Image 1.5 ·")
    parts, whole = in_parts(9000)
    for part in parts:
        await ann.write(part)
    await ann.sees("Aspect ratio")
    await ann.tap("1:1")
    await ann.tap("Medium")
    await ann.tap(label("button.generate"))
    await ann.sees(page("order.done"))
    [job] = await world.jobs(ann)

    assert len(parts) == 3
    assert json.loads(job.input)["prompt"] == whole


async def test_the_rest_of_a_text_that_is_too_long_is_not_taken_for_the_whole_text(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/models z-image")
    await ann.tap("Z-Image")
    parts, whole = in_parts(4500)
    for part in parts:
        await ann.write(part)
    told = await ann.sees(page("refused.length_most"))
    assert f"{len(whole):,}\u00a0characters" in told.text
    assert "Describe what you want" in told.text
    await ann.write("a cat")
    await ann.sees("Aspect ratio")


async def test_a_long_prompt_is_offered_whole_and_a_long_gen_waits_for_its_rest(world: BotWorld) -> None:
    ann = await world.add_user()
    parts, whole = in_parts(4500)
    await ann.write("/models GPT Image 2")
    await ann.tap("GPT Image 2 ·")
    await ann.write("a cat")
    await ann.tap(label("button.generate"))
    await ann.sees(page("order.done"))
    for part in parts:
        await ann.write(part)
    await ann.sees(page("confirm.suggestion", title="GPT Image 2"))
    await ann.tap(label("button.generate"))
    await ann.sees(lambda message: "#2" in message.text and page("order.done")(message))
    for part in (f"/gen gpt-image-2-text-to-image {parts[0]}", parts[1]):
        await ann.write(part)
    assert len(await world.jobs(ann)) == 2, "it may go on, so it is not ordered at once"
    await ann.tap(label("button.generate"))
    await ann.sees(lambda message: "#3" in message.text and page("order.done")(message))

    last, before, _ = await world.jobs(ann)
    assert json.loads(last.input)["prompt"] == json.loads(before.input)["prompt"] == whole


async def test_two_separate_texts_are_not_joined(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a cat")
    await ann.sees("a cat")
    await ann.write("a dog")
    shown = await ann.sees("a dog")

    assert "a cat" not in shown.text
