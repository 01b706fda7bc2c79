"""The screen context: what screens need besides the draft; and labels of models, fields, values and orders."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from genlock.bot.order.draft import Draft
from genlock.bot.order.questions import main_text
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import NOTHING, Catalog, Category, Model
from genlock.domain.field import FILES, Field, FieldType
from genlock.domain.job import Job
from genlock.domain.money import Wallet
from genlock.domain.presets import Style
from genlock.domain.promo import FreeRuns
from genlock.engine.sell import Quote
from genlock.i18n.catalog_texts import choice_name, field_name, model_title
from genlock.i18n.translator import Html, Translator

ICONS = {
    Category.TEXT_TO_IMAGE: "🖼",
    Category.IMAGE_TO_IMAGE: "🎨",
    Category.TEXT_TO_VIDEO: "🎬",
    Category.IMAGE_TO_VIDEO: "🎞",
    Category.VIDEO_TO_VIDEO: "✂️",
    Category.AVATAR: "🗣",
    Category.UPSCALE: "🔎",
    Category.BACKGROUND_REMOVAL: "🧼",
    Category.MUSIC: "🎵",
    Category.TEXT_TO_SPEECH: "🎙",
    Category.SOUND_EFFECTS: "🔊",
    Category.SPEECH_TO_TEXT: "📝",
    Category.AUDIO_TOOLS: "🧹",
    Category.IMAGE_ANALYSIS: "👁",
    Category.TEXT: "✍️",
}
LINE_LENGTH = 60
#: longest input, in characters, that is cached after parsing: orders of the API may have hundreds of kilobytes
INPUT_KEPT_MAX = 5_000
#: limits from here on mean "no limit" and are not shown
ANY = 1_000_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenContext:
    translator: Translator
    storefront: Storefront
    wallet: Wallet
    free: FreeRuns
    #: whether the chat is a group, where balances are not shown
    group: bool = False
    #: ids of the user's favourite models; known where a screen shows them
    favourites: tuple[str, ...] = ()
    #: voices that can be played; known where a voice is chosen
    voices_with_sample: frozenset[str] = frozenset()
    #: whether the user has not ordered anything yet
    first_order: bool = False

    def free_now(self, model: Model) -> bool:
        return model.free and self.free.left > 0

    def free_runs(self) -> list[Html]:
        """Return the line about free runs; none if no model on sale is free."""
        if not self.free.left or not any(model.free for model in self.storefront.models()):
            return []
        key = "menu.free_left" if self.free.gifts else "menu.free_today"
        return [self.translator.html(key, n=self.free.left)]


def quote_each(orders: Sequence[Draft], model: Model, screen: ScreenContext) -> list[Quote]:
    """Price orders that are made together. Raises InvalidInput."""
    return screen.storefront.quotes(model, orders, free_left=screen.free.left)


def model_label(model: Model, translator: Translator) -> str:
    """Return the title of a model in the user's language."""
    return model_title(model.title, translator)


def field_label(field: Field, translator: Translator) -> str:
    """Return the name of a field in the user's language, as it stands before a value."""
    return field_name(field, translator).removesuffix("?")


def field_question(field: Field, translator: Translator) -> str:
    """Return the name of a field in the user's language, as the wizard asks for it."""
    return field_name(field, translator)


def value_label(field: Field, value: object, translator: Translator) -> str:
    """Return a value on one line."""
    if value in NOTHING:
        return translator.plain("options.none")
    if field.type in FILES:
        return translator.plain("options.files", n=len(value) if isinstance(value, list) else 1)
    if field.type is FieldType.CHOICE or isinstance(value, bool):
        return choice_label(field, value, translator)
    if isinstance(value, int | float):
        return with_unit(field, translator.number(Decimal(str(value))), translator)
    if isinstance(value, list):
        return shorten(", ".join(_item(item) for item in value))
    # The provider's task id means nothing to the user.
    return "✓" if field.type is FieldType.TASK else with_unit(field, shorten(str(value)), translator)


def choice_label(field: Field, value: object, translator: Translator) -> str:
    if isinstance(value, bool):
        return translator.plain("button.yes" if value else "button.no")
    return choice_name(field, value, translator) or with_unit(field, str(value), translator)


def with_unit(field: Field, number: str, translator: Translator) -> str:
    """Return a number with the unit of its field, `6 s`; other texts as they are. No seconds leave it to the model."""
    if field.unit is None or not number.replace(".", "").replace(",", "").isdigit():
        return number
    if number == "0":
        return translator.plain("options.usual")
    return translator.plain(f"unit.short_{field.unit}", number=number)


def members(field: Field, translator: Translator) -> str:
    """Return the names of an object's members, separated by bars, in the order they are typed."""
    keys = {name: f"member.{name.lower()}" for name in field.members}
    return " | ".join(translator.plain(key) if key in translator else name for name, key in keys.items())


def _item(item: object) -> str:
    return " | ".join(str(part) for part in item.values()) if isinstance(item, dict) else str(item)


def shorten(text: str, length: int = LINE_LENGTH) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def shorten_lines(text: str, length: int) -> str:
    """Return a text that fits, with its lines kept."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def public_code(job_id: int, translator: Translator) -> str:
    """Return the number of an order as users see it. It does not tell how many orders there are."""
    return f"#{translator.numbers.order(job_id)}"


def code(job_id: int) -> str:
    """Return the number of an order as operators see it: its id."""
    return f"#{job_id}"


def prompt_of(job: Job, model: Model | None) -> str:
    """Return the prompt of an order; empty if it had none."""
    main = main_text(model) if model else None
    return text_of(job, main.name) if main else ""


def own_prompt(job: Job, catalog: Catalog) -> str:
    """Return the prompt of an order in the user's own words: without the text of its style."""
    prompt = prompt_of(job, catalog.models.get(job.model))
    style = _style_of(prompt, catalog)
    return (style.taken_from(prompt) or "") if style else prompt


def style_of_job(job: Job, catalog: Catalog) -> Style | None:
    """Return the style that was added to the prompt of an order."""
    return _style_of(prompt_of(job, catalog.models.get(job.model)), catalog)


def _style_of(prompt: str, catalog: Catalog) -> Style | None:
    return next((style for style in catalog.styles if style.taken_from(prompt) is not None), None)


def text_of(job: Job, name: str) -> str:
    """Return the text given for a field of an order; empty if there is none."""
    is_kept = len(job.input) <= INPUT_KEPT_MAX
    value = (_input(job.input) if is_kept else _input.__wrapped__(job.input)).get(name)
    return value if isinstance(value, str) else ""


@lru_cache(maxsize=1000)
def _input(text: str) -> dict[str, object]:
    values = json.loads(text)
    return values if isinstance(values, dict) else {}
