"""Styles, ideas, better prompts, favourites and last settings: each press may be handled twice."""

import json
from dataclasses import replace
from pathlib import Path

from genlock.bot.order import remembered, wizard
from genlock.bot.order.draft import Draft, SentFile, Step
from genlock.bot.order.styles import sheet, styles_for
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Category
from genlock.domain.field import FieldType
from genlock.domain.job import Job
from genlock.domain.money import HoldState
from genlock.domain.presets import PromptImprover
from genlock.sandbox.kie.faults import Fault
from tests.bot.pages import label, page
from tests.bot.steps import inputs, opened
from tests.bot.world import BotWorld, ChatUser, die_once, running_bot, sqlite_url
from tests.packaged import CATALOG

SONG = "a calm song about the sea"


def buttons(ann: ChatUser) -> list[str]:
    return [button["text"] for button in ann.screen.buttons]


async def ordered(ann: ChatUser) -> Job:
    await ann.tap(label("button.generate"))
    await ann.world.quiet()
    return (await ann.world.jobs(ann))[0]


# styles


async def test_a_style_with_its_picture_is_added_to_the_prompt_once(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a red fox")
    await ann.tap(label("style.button"))
    chooser = ann.screen
    assert (chooser.kind, page("style.choose")(chooser)) == ("photo", True)
    assert sum(". " in text for text in buttons(ann)) == len(world.catalog.styles), "a button for each picture"
    await ann.tap(label("button.back"))
    assert (ann.screen.kind, page("confirm.price")(ann.screen)) == ("text", True), "the order's message is a text"
    await ann.tap(label("style.button"))
    await ann.tap("Watercolour")
    assert page("style.line", name="Watercolour")(ann.screen)
    first = await ordered(ann)
    style = next(candidate for candidate in world.catalog.styles if candidate.key == "watercolour")
    assert inputs(first)["prompt"] == style.added_to("a red fox")

    await ann.tap(label("button.repeat"), on=ann.from_bot[-1])
    assert page("style.line", name="Watercolour")(ann.screen), "the style is apart from the prompt again"
    assert style.text not in ann.screen.text
    await ann.tap(label("style.button"))
    await ann.tap("Pixel art")
    second = await ordered(ann)
    assert str(inputs(second)["prompt"]).count(". ") == 1
    assert "Pixel art" in str(inputs(second)["prompt"])
    uploads = {
        message.file_id for message in ann.client.messages if message.kind == "photo" and page("style.choose")(message)
    }
    assert len(uploads) <= 1, "the sheet is uploaded once"


async def test_a_style_that_leaves_no_room_is_said_and_left_out(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a red fox")
    await ann.tap(label("style.button"))
    await ann.tap("Neon")
    draft = await world.store.draft(ann.number, ann.client.id)
    assert draft is not None
    one = CATALOG.get(json.loads(draft.body)["model"])
    most = one.field("prompt").max_length or 0  # type: ignore[union-attr]
    await ann.write(("long " * most)[: most - 10])
    assert page("style.no_room")(ann.screen)
    job = await ordered(ann)
    assert "Cyberpunk" not in str(inputs(job)["prompt"])


def test_every_style_has_a_picture_and_fits_some_model(tmp_path: Path) -> None:
    kinds = {output for style in CATALOG.styles for output in style.of}
    assert kinds == {"image", "video"}
    assert len(CATALOG.styles) >= 10
    assert all(Path(style.picture).is_file() for style in CATALOG.styles)
    whole = sheet(CATALOG.styles)
    assert whole is not None
    assert whole.read is not None
    assert whole.read().startswith(b"\xff\xd8")
    assert sheet([replace(CATALOG.styles[0], picture=str(tmp_path / "none.jpg"))]) is None, "no picture, no sheet"
    assert not styles_for(CATALOG, CATALOG.get("elevenlabs/text-to-speech-turbo-2-5"))
    for style in CATALOG.styles:
        assert style.taken_from(style.added_to("A fox.")) == "A fox"
        assert style.taken_from("A fox.") is None


# ideas


async def test_a_surprise_is_an_idea_for_this_kind_of_model(world: BotWorld) -> None:
    ann = await world.add_user(language="ru")
    await opened(ann, "Z-Image")
    await ann.tap(label("idea.surprise", language="ru"))
    ideas = [idea.text["ru"] for idea in world.catalog.ideas if "text-to-image" in idea.of]
    draft = await world.store.draft(ann.number, ann.client.id)
    assert draft is not None
    assert json.loads(draft.body)["values"]["prompt"] in ideas


# a better prompt


async def asked_for_a_song(ann: ChatUser) -> None:
    await opened(ann, "Suno")
    await ann.write(SONG)
    await ann.tap(label("button.rest"))
    assert page("confirm.price")(ann.screen)


async def test_a_better_prompt_is_ordered_once_and_chosen_by_the_user(world: BotWorld) -> None:
    ann = await world.add_user()
    await asked_for_a_song(ann)
    before = await ann.available()
    await ann.tap(label("improve.button"))
    assert page("improve.by")(ann.screen), "the model and its price are shown first"
    assert len(await world.jobs(ann)) == 0
    screen, data = (
        ann.screen,
        next(button["callback_data"] for button in ann.screen.buttons if "improve_go" in button["callback_data"]),
    )
    await ann.press(screen, data)
    await ann.press(screen, data)
    await world.quiet()
    [job] = await world.jobs(ann)
    assert (job.hold_state, before - await ann.available()) == (HoldState.CAPTURED, job.price)
    assert inputs(job) == {"content": SONG}
    notice = await ann.sees(page("improve.done"))
    assert SONG in notice.text, "the old one beside the new one"

    await ann.tap(label("improve.keep"), on=notice)
    assert page("confirm.price")(ann.screen)
    assert f"{SONG}" in ann.screen.text
    for _ in range(2):
        await ann.tap(label("improve.take"), on=notice)
        assert job.parts[0].value.strip()[:60] in ann.screen.text
    song = await ordered(ann)
    assert inputs(song)["prompt"] == job.parts[0].value.strip().strip('"')
    assert len(await world.jobs(ann)) == 2
    assert await world.store.violations(settled=True) == []


async def test_an_improvement_survives_a_crash_around_the_sale(world: BotWorld) -> None:
    ann = await world.add_user()
    await asked_for_a_song(ann)
    await ann.tap(label("improve.button"))
    die_once(world.store, "save_draft", after=False)
    await ann.tap(label("improve.go"))
    await world.quiet()
    [job] = await world.jobs(ann)
    await ann.tap(label("improve.take"), on=await ann.sees(page("improve.done")))
    assert job.parts[0].value.strip()[:60] in ann.screen.text


async def test_an_improved_prompt_for_a_draft_that_is_gone_waits_for_any_model(world: BotWorld) -> None:
    ann, eve = await world.add_user(), await world.add_user("Eve")
    await asked_for_a_song(ann)
    await ann.tap(label("improve.button"))
    await ann.tap(label("improve.go"))
    await world.quiet()
    notice = await ann.sees(page("improve.done"))
    await ann.write("/start")
    await ann.tap(label("improve.take"), on=notice)
    assert page("list.carried_text")(ann.screen)
    [take] = [button["callback_data"] for button in notice.buttons if button["callback_data"].startswith("improved")]
    await eve.write("/start")
    answer = await eve.press(eve.screen, take)
    assert page("order.not_yours")(answer)
    await ann.write("/gen z-image a fox")
    await world.quiet()
    picture = (await world.jobs(ann))[0]
    await ann.press(ann.screen, f"improved:{world.bot.texts.numbers.order(picture.id)}")
    assert not ann.screen.text.startswith("https://"), "the URL of a picture is no prompt"


async def test_a_text_model_with_an_instruction_improves_the_prompt_of_a_picture(tmp_path: Path) -> None:
    """Here Kie.ai is the only provider; of the package's models, one of fal.ai does it."""
    booster = CATALOG.get("ai-music-api/boost-music-style")
    writer = replace(booster, improves=PromptImprover(field="content", instruction="Rewrite: {prompt}. Only the text."))
    catalog = replace(CATALOG, models={**CATALOG.models, booster.id: writer})
    async with running_bot(sqlite_url(tmp_path), catalog=catalog) as world:
        ann = await world.add_user()
        await ann.write("a red fox")
        await ann.tap(label("improve.button"))
        await ann.tap(label("improve.go"))
        await world.quiet()
        [job] = await world.jobs(ann)
        assert inputs(job) == {"content": "Rewrite: a red fox. Only the text."}
        notice = await ann.sees(page("improve.old", text="a red fox"))
        await ann.tap(label("improve.take"), on=notice)
        assert page("confirm.price")(ann.screen)


async def test_a_failed_improvement_costs_nothing_and_leads_back_to_the_order(world: BotWorld) -> None:
    ann = await world.add_user(language="ru")
    await opened(ann, "Suno")
    await ann.write(SONG)
    await ann.tap(label("button.rest", language="ru"))
    await ann.tap(label("improve.button", language="ru"))
    assert page("improve.by", language="ru")(ann.screen)
    world.kie.faults.order(Fault.TASK_FAIL)
    await ann.tap(label("improve.go", language="ru"))
    failed = await ann.sees(page("failed.head", language="ru"))
    assert await ann.available() == 1_000_000
    assert not any(button["callback_data"].startswith(("repeat", "change")) for button in failed.buttons), (
        "of the improver"
    )
    await ann.tap(label("improve.keep", language="ru"), on=failed)
    assert page("confirm.price", language="ru")(ann.screen)
    assert SONG in ann.screen.text
    await ann.tap(label("button.generate", language="ru"))
    await world.quiet()
    assert inputs((await world.jobs(ann))[0])["prompt"] == SONG


async def test_an_improver_that_is_no_longer_on_sale_is_declined_with_the_prompt_kept(world: BotWorld) -> None:
    ann = await world.add_user()
    await asked_for_a_song(ann)
    await ann.tap(label("improve.button"))
    models = {name: model for name, model in world.catalog.models.items() if model.improves is None}
    world.current.replace(replace(world.catalog, models=models))
    answer = await ann.tap(label("improve.go"))
    assert page("order.model_gone")(answer)
    assert (page("confirm.price")(ann.screen), SONG in ann.screen.text) == (True, True)
    assert not any(label("improve.button").search(text) for text in buttons(ann))
    assert await world.jobs(ann) == []


async def test_an_improved_prompt_can_be_edited_before_it_is_ordered(world: BotWorld) -> None:
    ann = await world.add_user()
    await asked_for_a_song(ann)
    await ann.tap(label("improve.button"))
    await ann.tap(label("improve.go"))
    await world.quiet()
    await ann.tap(label("improve.take"), on=await ann.sees(page("improve.done")))
    await ann.write("my own words after all")
    song = await ordered(ann)
    assert inputs(song)["prompt"] == "my own words after all"


async def test_a_prompt_that_is_too_long_for_the_improver_is_not_offered_to_it(tmp_path: Path) -> None:
    booster = CATALOG.get("ai-music-api/boost-music-style")
    field = booster.field("content")
    assert field is not None
    fields = tuple(replace(other, max_length=10) if other is field else other for other in booster.fields)
    catalog = replace(CATALOG, models={**CATALOG.models, booster.id: replace(booster, fields=fields)})
    async with running_bot(sqlite_url(tmp_path), catalog=catalog) as world:
        ann = await world.add_user()
        await asked_for_a_song(ann)
        assert not any(label("improve.button").search(text) for text in buttons(ann))


async def test_no_improvement_is_offered_where_no_model_on_sale_can(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a red fox")
    assert not any(label("improve.button").search(text) for text in buttons(ann))


def test_the_packaged_text_model_improves_prompts_and_is_in_no_menu() -> None:
    front = Storefront(CATALOG, markup=2.0, credit_usd=0.01)
    writer = CATALOG.get("google/gemini-2.5-flash")

    improved = {category: front.improver(models[0]) for category in Category if (models := front.models(category))}
    assert {category.value for category, found in improved.items() if found is writer} == {
        "text-to-image", "text-to-video", "image-to-video", "sound-effects",
    }  # fmt: skip
    assert writer.category not in front.categories()
    lists = (front.models(), front.search("gemini 2.5 flash"), front.similar(writer.id)[0])
    assert all(writer not in found for found in lists)
    assert front.match_name("Gemini 2.5 Flash a red fox") is None
    assert front.by_id(writer.id) is writer, "orders and their results name it"


# favourites


async def test_a_star_makes_a_favourite_that_the_menu_lists(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    assert not any(label("favourite.button").search(text) for text in buttons(ann))
    await opened(ann, "Z-Image")
    card = ann.screen
    star = next(button["callback_data"] for button in card.buttons if label("favourite.add").search(button["text"]))
    for _ in range(2):
        await ann.press(card, star)
    assert any(label("favourite.remove").search(text) for text in buttons(ann))
    assert await world.store.favourites(ann.number) == ["z-image"]
    await ann.write("/start")
    await ann.tap(label("favourite.button"))
    await ann.tap("Z-Image")
    await ann.tap(label("favourite.remove"))
    assert await world.store.favourites(ann.number) == []
    await ann.write("/favourites")
    assert page("favourite.none")(ann.screen)


# last settings


async def test_the_last_settings_of_a_model_are_remembered_until_they_are_reset(world: BotWorld) -> None:
    ann = await world.add_user()
    await opened(ann, "Z-Image")
    await ann.write("a red fox")
    await ann.tap("16:9")
    first = await ordered(ann)
    assert inputs(first)["aspect_ratio"] == "16:9"
    await opened(ann, "Z-Image")
    assert page("settings.as_last", values="16:9")(ann.screen)
    await ann.write("an old owl")
    assert page("confirm.price")(ann.screen), "the question is answered already"
    assert inputs(await ordered(ann)) == {**inputs(first), "prompt": "an old owl"}

    await ann.write("a blue whale")
    assert "16:9" in ann.screen.text, "a typed wish begins with them, too"
    await ann.tap(label("button.options"))
    await ann.tap(label("settings.reset"))
    assert not any(label("settings.reset").search(text) for text in buttons(ann))
    await opened(ann, "Z-Image")
    assert not page("settings.as_last")(ann.screen)


def test_settings_are_neither_texts_nor_files_nor_seeds() -> None:
    types: set[FieldType] = set()
    for model in CATALOG.offered():
        settings = remembered.settings_of(model, {field.name: 1 for field in model.fields})
        types |= {field.type for field in model.fields if field.name in settings}
        assert settings.keys() <= {field.name for field in model.fields} - {"seed"}, model.id
    assert types == {FieldType.CHOICE, FieldType.BOOLEAN, FieldType.NUMBER, FieldType.INTEGER}


def test_settings_that_the_model_no_longer_has_are_left_out() -> None:
    model = CATALOG.get("z-image")
    draft = wizard.start_order(Draft(text="a fox"), model, "text-to-image")
    strange = {"aspect_ratio": "7:1", "gone": True, "prompt": "another"}
    assert remembered.begin_with(draft, model, strange) == draft
    begun = remembered.begin_with(draft, model, {"aspect_ratio": "9:16"})
    assert (begun.step, begun.values) == (Step.CONFIRM, {"prompt": "a fox", "aspect_ratio": "9:16"})


def test_a_portrait_goes_before_the_remembered_aspect_ratio() -> None:
    model = CATALOG.get("google/nano-banana-edit")
    file = SentFile(kind=FieldType.IMAGE, url="https://example.com/a.jpg")
    draft = Draft(text="winter", sent=(file,), aspects={file.url: 0.56})
    started = wizard.start_order(draft, model, "image-to-image")
    begun = remembered.begin_with(started, model, {"aspect_ratio": "16:9", "image_size": "16:9"})
    assert "16:9" not in begun.values.values()
