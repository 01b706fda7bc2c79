"""A result is the beginning of the next order: from its buttons, its notice and the history."""

from dataclasses import replace

import pytest

from genlock.domain.field import FieldType
from genlock.domain.job import State
from tests.bot.pages import EN, label, page
from tests.bot.steps import drawn, inputs
from tests.bot.world import BotWorld, die_once


async def test_a_picture_is_animated_with_two_taps(world: BotWorld) -> None:
    ann = await world.add_user()
    job = await drawn(ann)
    [picture] = [message for message in ann.from_bot if message.kind == "photo"]
    labels = [button["text"] for button in picture.buttons]
    keys = ("next_image_animate", "next_image_edit", "next_image_upscale", "original", "next_more")
    assert labels == [EN.plain(f"button.{key}") for key in keys]

    await ann.tap(label("button.next_image_animate"), on=picture)
    confirm = await ann.sees(page("confirm.price"))
    assert "Animate" in confirm.text
    assert "a red fox" in confirm.text
    await ann.tap(label("button.generate"), on=confirm)
    await ann.sees(lambda message: message.kind == "video")

    animated, first = await world.jobs(ann)
    assert first.id == job.id
    model = world.catalog.get(animated.model)
    assert model.category.value == "image-to-video"
    assert inputs(animated)["image_url"] == job.parts[0].value, "the file goes by the provider's link"
    assert picture.kind == "photo", "the result stays"
    await world.quiet()
    assert await world.store.violations(settled=True) == []


async def test_a_result_whose_link_is_gone_is_taken_from_the_chat(world: BotWorld) -> None:
    ann = await world.add_user()
    job = await drawn(ann)
    world.kie.service.files.expire()

    await ann.tap(label("button.next_image_upscale"), on=ann.from_bot[0])
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))
    await ann.sees(lambda message: message.kind == "document")
    larger, _ = await world.jobs(ann)
    assert inputs(larger)["image"] != job.parts[0].value
    assert world.kie.service.files.find(str(inputs(larger)["image"])) is not None, "a copy was uploaded"


async def test_a_step_is_repeated_days_later_with_the_file_of_the_chat(world: BotWorld) -> None:
    ann = await world.add_user()
    await drawn(ann)
    await ann.tap(label("button.next_image_upscale"), on=ann.from_bot[0])
    await ann.tap(label("button.generate"))
    await ann.sees(lambda message: message.kind == "document")
    await world.quiet()
    world.kie.service.files.expire()
    await world.age_uploads(days=3)
    await ann.tap(label("button.repeat"), on=ann.from_bot[-1])
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))
    await world.quiet()
    again, larger, _ = await world.jobs(ann)
    assert again.model == larger.model
    assert inputs(again)["image"] != inputs(larger)["image"]
    assert again.state is State.SUCCEEDED


async def test_a_result_that_is_gone_everywhere_is_said_and_costs_nothing(world: BotWorld) -> None:
    ann = await world.add_user()
    await drawn(ann)
    before = await ann.available()
    world.kie.service.files.expire()
    world.telegram.state.files.known.clear()

    await ann.tap(label("button.next_image_animate"), on=ann.from_bot[0])
    refusal = await ann.sees(page("refused.result_gone"))
    assert page("failed.money_none")(refusal)
    await ann.tap(label("button.original"), on=ann.from_bot[0])
    await ann.sees(page("order.original_gone"))
    assert (await ann.available(), len(await world.jobs(ann))) == (before, 1)


async def test_the_notice_and_the_history_offer_the_same_steps(world: BotWorld) -> None:
    ann = await world.add_user()
    await drawn(ann)
    notice = await ann.sees(page("order.done"))
    await ann.tap(label("button.what_next"), on=notice)
    await ann.sees(page("next.choose"))
    await ann.tap(label("button.next_image_animate"))
    await ann.sees(page("confirm.price"))
    await ann.write("/history")
    await ann.sees(page("history.title"))
    await ann.tap("a red fox")
    await ann.sees(page("history.delivered"))
    await ann.tap(label("button.next_more"))
    more = await ann.sees(page("next.choose"))

    labels = [button["text"] for button in more.buttons]
    for name in ("animate", "edit", "upscale", "remove_background", "avatar"):
        assert any(label(f"button.next_image_{name}").search(text) for text in labels), name
    await ann.tap(label("variations.button"))
    await ann.sees(page("variations.count", n=2))


async def test_a_notice_repeats_no_button_of_its_result(world: BotWorld) -> None:
    for command in ("/gen z-image a red fox", "/gen suno/generate a song about the sea"):
        ann = await world.add_user()
        await ann.write(command)
        notice = await ann.sees(page("order.done"))
        result = next(
            message for message in ann.from_bot if message.id < notice.id and message.kind in ("photo", "audio")
        )
        labels = [button["text"] for button in notice.buttons]
        assert not set(labels) & {button["text"] for button in result.buttons}
        assert notice.markup
        assert len(notice.markup["inline_keyboard"]) <= 3


async def test_a_prompt_that_is_too_long_for_the_next_model_is_shortened(world: BotWorld) -> None:
    ann = await world.add_user()
    job = await drawn(ann, "/gen seedream/5-lite-text-to-image " + "a red fox " * 150)
    step = world.catalog.step("image_animate")
    assert step is not None
    [model, *_] = world.catalog.step_models(step)
    prompts = [field for field in model.fields if field.name == "prompt"]
    shorter = replace(
        model, fields=(*(field for field in model.fields if field not in prompts), replace(prompts[0], max_length=50))
    )
    world.current.replace(replace(world.catalog, models={**world.catalog.models, model.id: shorter}))
    await ann.tap(label("button.next_image_animate"), on=ann.from_bot[0])
    confirm = await ann.sees(page("confirm.price"))
    assert "a red fox" in confirm.text
    assert len(inputs(job)["prompt"]) > 50  # type: ignore[arg-type]


async def test_another_model_gets_the_same_file(world: BotWorld) -> None:
    ann = await world.add_user()
    job = await drawn(ann)
    await ann.tap(label("button.next_image_animate"), on=ann.from_bot[0])
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.other_model"))
    await ann.sees(page("list.carried_files"))
    await ann.tap("Grok Imagine")
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))
    await ann.sees(lambda message: message.kind == "video")

    assert job.parts[0].value in (await world.jobs(ann))[0].input


async def test_one_of_several_results_is_chosen_by_its_number(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/gen suno/generate a song about the sea")
    notice = await ann.sees(page("order.done"))
    [job] = await world.jobs(ann)
    assert len(job.parts) == 2
    await ann.tap(label("button.what_next"), on=notice)
    await ann.sees(page("next.choose_of", index=1, count=2))
    await ann.tap("2")
    await ann.sees(page("next.choose_of", index=2, count=2))
    await ann.tap(label("button.next_audio_vocals"))
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))
    await ann.sees("Isolation")

    assert inputs((await world.jobs(ann))[0])["audio_url"] == job.parts[1].value


async def test_a_press_that_is_handled_twice_makes_one_draft_and_one_order(world: BotWorld) -> None:
    ann = await world.add_user()
    await drawn(ann)
    die_once(world.drafts, "show", after=False)
    await ann.tap(label("button.next_image_animate"), on=ann.from_bot[0])
    confirm = await ann.sees(page("confirm.price"))
    saved = await world.store.draft(ann.number, ann.client.id)
    assert saved is not None
    data = confirm.buttons[0]["callback_data"]
    die_once(world.bot._buttons._orders, "_save_ordered", after=False)
    await ann.press(confirm, data)
    await ann.press(confirm, data)
    await ann.sees(lambda message: message.kind == "video")

    assert len(await world.jobs(ann)) == 2
    await world.quiet()
    assert await world.store.violations(settled=True) == []


async def test_a_result_of_another_user_has_no_next_step(world: BotWorld) -> None:
    ann, bob = await world.add_user("Ann"), await world.add_user("Bob")
    job = await drawn(ann)
    await bob.write("/start")
    for verb in ("next", "nexts", "original"):
        press = await bob.press(bob.screen, f"{verb}:{job.id}:0:image_animate")
        assert page("order.not_yours")(press), verb
    for data in (
        "next:99999999:0:image_animate",
        f"next:{job.id}:7:image_animate",
        f"next:{job.id}:0:nothing",
        f"next:{job.id}:0:text_speak",
    ):
        press = await ann.press(ann.from_bot[0], data)
        assert press.text, data
    assert (await world.jobs(bob), len(await world.jobs(ann))) == ([], 1)


MADE_BY = {
    FieldType.IMAGE: "z-image a fox",
    FieldType.VIDEO: "grok-imagine/text-to-video a fox",
    FieldType.AUDIO: "suno/generate a song",
    FieldType.TEXT: "ai-music-api/generate-lyrics the sea",
}


@pytest.mark.parametrize("kind", MADE_BY)
async def test_every_step_of_a_result_leads_to_a_confirmation_or_one_question(world: BotWorld, kind: FieldType) -> None:
    ann = await world.add_user(having=100_000)
    job = await drawn(ann, f"/gen {MADE_BY[kind]}")
    steps = world.catalog.steps_for(kind, world.catalog.get(job.model).category)
    assert len(steps) >= 2
    for step in steps:
        await ann.press(ann.from_bot[0], f"next:{job.id}:0:{step.key}")
        shown = ann.screen
        assert label(f"button.next_{step.key}").search(shown.text), (step.key, shown.text)
        assert page("confirm.price", "ask.text", "ask.audio", "ask.image")(shown), (step.key, shown.text)
        assert "⚠️" not in shown.text, (step.key, shown.text)
        if kind is not FieldType.TEXT:
            assert page("confirm.line", "ask.have_files", "ask.have_other")(shown), (step.key, shown.text)
