"""A text that is too long for a model: the limit is named, the text is kept, and models that take it are offered."""

import io
import json

import pytest
from PIL import Image

from genlock.bot.handlers import messages
from genlock.bot.order.draft import Step, load
from genlock.bot.storefront.storefront import code_of
from genlock.domain.field import FieldType
from tests.bot.order_by_chat import sample
from tests.bot.pages import label, page
from tests.bot.steps import drawn, inputs
from tests.bot.world import BotWorld, ChatUser

LONG = "a red fox in the snow, " * 60
TAKES = "google/nano-banana"


async def tap_taker(ann: ChatUser) -> str:
    """Tap the first model that is offered for the text; return its id."""
    offered = [button["callback_data"] for button in ann.screen.buttons if ":take:" in button["callback_data"]]
    assert offered, [button["text"] for button in ann.screen.buttons]
    await ann.press(ann.screen, offered[0])
    return next(model.id for model in ann.world.catalog.offered() if offered[0].endswith(f":take:{code_of(model.id)}"))


@pytest.mark.parametrize("language", ["en", "ru"])
@pytest.mark.parametrize("way", ["menu", "command"])
async def test_a_long_text_names_the_limit_and_another_model_takes_it(world: BotWorld, language: str, way: str) -> None:
    ann = await world.add_user(language=language)
    await ann.write("/start")
    if way == "menu":
        await ann.press(ann.screen, f"model:{code_of('z-image')}:all:usual")
    await ann.write(f"/gen z-image {LONG}" if way == "command" else LONG)
    shown = await ann.sees(page("refused.length_most", language=language, high=1000))

    assert page("refused.text_kept", language=language)(shown)
    assert await world.jobs(ann) == []
    model = await tap_taker(ann)
    await ann.sees(page("confirm.price", language=language))
    await ann.tap(label("button.generate", language=language))
    [job] = await world.jobs(ann)
    assert (job.model, json.loads(job.input)["prompt"]) == (model, LONG.strip())


async def test_a_long_text_without_an_order_is_suggested_to_a_model_that_takes_it(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write(LONG)
    await ann.sees(page("confirm.suggestion"))
    await ann.tap(label("button.generate"))
    [job] = await world.jobs(ann)
    assert json.loads(job.input)["prompt"] == LONG.strip()


async def test_a_shorter_text_goes_on_with_the_same_model(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write(f"/gen z-image {LONG}")
    await ann.sees(page("refused.length_most"))
    await ann.write("a fox")
    shown = await ann.sees(page("confirm.price"))

    assert "Z-Image" in shown.text
    assert "a fox" in shown.text
    assert not page("refused.length_most")(shown)


async def test_a_long_answer_within_an_order_is_kept_for_another_model(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/models z-image")
    await ann.tap("Z-Image")
    await ann.write(LONG)
    await ann.sees(page("refused.length_most"))
    await ann.tap(label("button.other_model"))
    shown = await ann.sees(page("list.carried_text"))

    assert "Z-Image" not in str(shown.buttons)
    await ann.press(ann.screen, f"model:{code_of(TAKES)}:all:usual")
    await ann.sees(page("confirm.price"))


async def test_a_long_caption_asks_for_the_text_and_keeps_the_picture(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/models qwen2 image edit")
    await ann.press(ann.screen, f"model:{code_of('qwen2/image-edit')}:image-to-image")
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "navy").save(file, "PNG")
    await ann.send("photo", file.getvalue(), caption=LONG[:900])
    await ann.sees(page("refused.length_most", high=800))
    await tap_taker(ann)
    await ann.sees(page("confirm.price"))
    saved = await world.store.draft(ann.number, ann.client.id)
    assert saved is not None
    draft = load(saved.body, version=saved.version, message=saved.message)

    assert draft.step is Step.CONFIRM
    assert draft.values["prompt"] == LONG[:900].strip()
    assert any(str(value).startswith("http") or isinstance(value, list) for value in draft.values.values())


async def test_a_long_reply_to_a_result_names_the_limit_and_keeps_the_result(world: BotWorld) -> None:
    ann, text = await world.add_user(), LONG * 4
    first = await drawn(ann)
    picture = next(message for message in ann.from_bot if message.kind == "photo")
    await ann.write(text, reply_to=picture)
    shown = await ann.sees(page("refused.length_most", high=5000))
    assert page("refused.text_kept")(shown)
    model = await tap_taker(ann)
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))
    edited = (await world.jobs(ann))[0]

    assert (edited.model, inputs(edited)["prompt"]) == (model, text.strip())
    assert first.parts[0].value in edited.input


async def test_a_long_text_after_a_photo_names_the_limit_and_keeps_the_photo(world: BotWorld) -> None:
    ann, text = await world.add_user(), LONG * 4
    await ann.send("photo", sample(FieldType.IMAGE))
    await ann.write(text)
    await ann.sees(page("refused.length_most", high=5000))
    await tap_taker(ann)
    await ann.tap(label("button.generate"))
    [job] = await world.jobs(ann)

    assert inputs(job)["prompt"] == text.strip()
    assert "http" in job.input


async def test_a_long_spoken_prompt_names_the_limit_and_another_model_takes_it(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.press(ann.screen, f"model:{code_of('z-image')}:all:usual")
    await ann.send("voice", sample(FieldType.AUDIO))
    monkeypatch.setattr(messages, "transcript", lambda _: LONG.strip())
    async with world.done(2):  # the press, and the update about the end
        await ann.tap(label("voice.agree"))
    await ann.sees(page("refused.length_most", high=1000))
    await tap_taker(ann)
    await ann.tap(label("button.generate"))

    assert inputs((await world.jobs(ann))[0])["prompt"] == LONG.strip()


async def test_a_text_that_no_model_takes_asks_for_a_shorter_one(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/models elevenlabs")
    await ann.press(ann.screen, f"model:{code_of('elevenlabs/text-to-speech-turbo-2-5')}:text-to-speech")
    async with world.done(2):
        await ann.client.say("word " * 800)
        await ann.client.say("word " * 800)
    shown = await ann.sees(page("refused.text_shorten"))

    assert page("refused.length_most", high=5000)(shown)
    assert ":take:" not in str(shown.buttons)
