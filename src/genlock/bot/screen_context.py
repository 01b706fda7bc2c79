"""What every screen is drawn from beside the draft, and how inputs are called and shown."""

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from genlock.bot.order.draft import Draft
from genlock.bot.order.wizard import file_seconds, main_text, measured
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import NOTHING, Category, Model
from genlock.domain.field import FILES, Field, FieldType
from genlock.domain.job import Job
from genlock.domain.money import Wallet
from genlock.domain.promo import FreeRuns
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
    Category.AUDIO_TOOLS: "🎚",
    Category.IMAGE_ANALYSIS: "👁",
}
#: ends of titles that are words, not names
PHRASES = {
    "from an image": "title.image",
    "from references": "title.references",
    "from videos": "title.videos",
    "copy the moves": "title.move",
    "swap the person": "title.replace",
}
LINE_LENGTH = 60
#: a limit that nobody needs to be told
ANY = 1_000_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenContext:
    translator: Translator
    storefront: Storefront
    wallet: Wallet
    free: FreeRuns
    #: whether several people read this chat
    group: bool = False

    def free_now(self, model: Model) -> bool:
        return model.free and self.free.left > 0

    def free_runs(self) -> list[Html]:
        """What is free: nothing is said where no model is."""
        if not self.free.left or not any(model.free for model in self.storefront.models()):
            return []
        key = "menu.free_left" if self.free.gifts else "menu.free_today"
        return [self.translator.html(key, n=self.free.left)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Quote:
    """What an order costs now."""

    price: int
    free: bool
    #: the length of a file is not known, so the longest is assumed: so many seconds
    assumed: float | None


def quote(draft: Draft, model: Model, screen: ScreenContext) -> Quote:
    """The price of exactly this. Raises InvalidInput."""
    values = model.validate(draft.values)
    lengths = file_seconds(draft, model)
    price = screen.storefront.price(model, values, lengths)
    by_length = {row.seconds for row in (*model.prices, *model.extras) if row.seconds and row.matches(values)}
    guessed = [lengths[one.name] for one in model.fields if one.name in by_length and not measured(draft, one)]
    free = screen.free_now(model) and price > 0
    assumed = max(guessed, default=None) if model.own_price is None else None
    return Quote(price=0 if free else price, free=free, assumed=assumed)


def titled(model: Model, translator: Translator) -> str:
    """What a model is called: its name, and in the person's language what sets it apart from its sisters."""
    for phrase, key in PHRASES.items():
        if model.title.endswith(phrase):
            return model.title.removesuffix(phrase) + translator.plain(key)
    return model.title


def called(one: Field, translator: Translator) -> str:
    """What an input is called."""
    return one.about.get(translator.language) or one.about.get("en") or one.name


def shown(one: Field, value: object, translator: Translator) -> str:
    """A value in a line."""
    if value in NOTHING:
        return translator.plain("options.none")
    if one.type in FILES:
        return translator.plain("options.files", n=len(value) if isinstance(value, list) else 1)
    if one.type is FieldType.CHOICE or isinstance(value, bool):
        return shown_choice(one, value, translator)
    if isinstance(value, int | float):
        return translator.number(Decimal(str(value)))
    if isinstance(value, list):
        return shorten(", ".join(_item(item) for item in value))
    # The provider's name for an earlier order says nothing to anybody.
    return "✓" if one.type is FieldType.TASK else shorten(str(value))


def shown_choice(one: Field, value: object, translator: Translator) -> str:
    if isinstance(value, bool):
        return translator.plain("button.yes" if value else "button.no")
    if labels := one.labels.get(str(value)):
        return labels.get(translator.language) or labels["en"]
    key = f"choice.{str(value).lower()}"
    return translator.plain(key) if key in translator else str(value)


def members(one: Field, translator: Translator) -> str:
    """What each line of a list of objects has, between bars."""
    keys = {name: f"member.{name.lower()}" for name in one.members}
    return " | ".join(translator.plain(key) if key in translator else name for name, key in keys.items())


def _item(item: object) -> str:
    return " | ".join(str(part) for part in item.values()) if isinstance(item, dict) else str(item)


def shorten(text: str, length: int = LINE_LENGTH) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def code(job_id: int) -> str:
    """What people call an order."""
    return f"#{job_id}"


def prompt_of(job: Job, model: Model | None) -> str:
    """The text that an order was made of; empty if it had none."""
    main = main_text(model) if model else None
    return text_of(job, main.name) if main else ""


def text_of(job: Job, name: str) -> str:
    """A text that was given for an input."""
    value = _input(job.input).get(name)
    return value if isinstance(value, str) else ""


@lru_cache(maxsize=1000)
def _input(text: str) -> dict[str, object]:
    values = json.loads(text)
    return values if isinstance(values, dict) else {}
