"""Cards say what must be sent, questions come in the order a user thinks, and results keep the picture's shape."""

import io
import json

import pytest
from PIL import Image

from genlock.bot.order import questions
from genlock.bot.order.aspect import fit_picture
from genlock.bot.order.card import card
from genlock.bot.order.draft import Draft
from genlock.bot.storefront.storefront import code_of
from genlock.domain.catalog import Category
from genlock.domain.field import FILES, FieldType
from genlock.i18n.translator import package_texts
from tests.bot.pages import label, page
from tests.bot.screens import screen_context
from tests.bot.world import BotWorld
from tests.packaged import CATALOG

PICTURE = "https://example.com/a.jpg"


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_an_avatar_asks_for_the_photo_and_then_for_the_speech(world: BotWorld, language: str) -> None:
    t = package_texts().translator(language)
    ann = await world.add_user(language=language)
    await ann.write("/start")
    await ann.press(ann.screen, f"model:{code_of('infinitalk/from-audio')}:avatar")
    shown = await ann.sees(page("card.needed", language=language))

    needed = t.list([t.plain(f"ask.needed_{kind}") for kind in ("image", "audio", "text")])
    assert page("card.needed", language=language, fields=needed)(shown)
    assert page("ask.image", language=language)(shown)
    asked = questions.asked_fields(CATALOG.get("infinitalk/from-audio"), "avatar")
    assert [field.type for field in asked[:3]] == [FieldType.IMAGE, FieldType.AUDIO, FieldType.TEXT]


def test_every_card_of_a_model_with_files_says_what_to_send_and_asks_for_files_first() -> None:
    screen, with_files = screen_context("en"), 0
    for model in CATALOG.offered():
        for category in (model.category, *model.also):
            asked = questions.asked_fields(model, category.value)
            files = [field.type in FILES for field in asked]
            assert files == sorted(files, reverse=True), (model.id, category)
            if any(field.type in FILES and field.required for field in asked):
                text = "\n".join(card(Draft(category=category.value), model, screen))
                assert page("card.needed")(_Shown(text)), (model.id, text)
                with_files += 1
    assert with_files > 50


class _Shown:
    def __init__(self, text: str) -> None:
        self.text: str | None = text


@pytest.mark.parametrize("category", [Category.TEXT_TO_VIDEO, Category.IMAGE_TO_VIDEO])
async def test_a_card_speaks_of_the_category_it_was_opened_from(world: BotWorld, category: Category) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.press(ann.screen, f"model:{code_of('veo3_fast')}:{category}")

    others = [other for other in Category if other is not category and page(f"about.{other}")(ann.screen)]
    assert (page(f"about.{category}")(ann.screen), others) == (True, [])


def photo(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "navy").save(file, "JPEG")
    return file.getvalue()


@pytest.mark.parametrize(("width", "height", "ratio"), [(90, 160, "9:16"), (160, 90, "16:9"), (100, 100, "1:1")])
async def test_a_result_has_the_shape_of_the_photo(world: BotWorld, width: int, height: int, ratio: str) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.send("photo", photo(width, height))
    await ann.press(ann.screen, f"model:{code_of('seedream/4.5-edit')}:image-to-image:usual")
    await ann.write("make it winter")
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))

    [job] = await world.jobs(ann)
    assert json.loads(job.input)["aspect_ratio"] == ratio


async def test_a_photo_with_a_caption_keeps_its_shape(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    await ann.send("photo", photo(90, 160), caption="make it winter")
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))

    [job] = await world.jobs(ann)
    assert json.loads(job.input).get("aspect_ratio", "auto") in ("auto", "9:16")


@pytest.mark.parametrize(
    ("model", "aspect", "chosen"),
    [
        ("flux-2/pro-image-to-image", 0.56, "auto"),
        ("qwen/image-edit", 0.75, "portrait_4_3"),
        ("qwen/image-edit", 1.0, None),
        ("ideogram/v3-remix", 1.6, "landscape_16_9"),
        ("gpt-image/1.5-image-to-image", 0.6, "2:3"),
        ("nano-banana-2", 0.5, None),
        ("recraft/crisp-upscale", 0.5, None),
    ],
)
def test_the_closest_shape_is_chosen_unless_the_provider_decides(model: str, aspect: float, chosen: str | None) -> None:
    found = CATALOG.get(model)
    image = next(field for field in found.fields if field.type is FieldType.IMAGE)
    draft = Draft(values={image.name: [PICTURE] if image.many else PICTURE}, aspects={PICTURE: aspect})
    fitted = fit_picture(draft, found)

    added = {name: value for name, value in fitted.values.items() if name != image.name}
    assert list(added.values()) == ([chosen] if chosen else [])
    assert fit_picture(fitted, found) == fitted
