"""The catalog as a shop: what is on the shelf, cheapest first, found by a word, at what price."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace

from genlock.domain.catalog import Catalog, Category, Model, Status, price, price_from
from genlock.domain.field import FILES, FieldType

_WORD = re.compile(r"[^\w]+")
#: what an order from this shelf begins with, where the model leaves it open
BEGINS_WITH = {
    Category.IMAGE_TO_IMAGE: FieldType.IMAGE,
    Category.IMAGE_TO_VIDEO: FieldType.IMAGE,
    Category.VIDEO_TO_VIDEO: FieldType.VIDEO,
    Category.UPSCALE: FieldType.IMAGE,
    Category.BACKGROUND_REMOVAL: FieldType.IMAGE,
    Category.SPEECH_TO_TEXT: FieldType.AUDIO,
    Category.AUDIO_TOOLS: FieldType.AUDIO,
    Category.IMAGE_ANALYSIS: FieldType.IMAGE,
}


def code_of(model_id: str) -> str:
    """A short name for a button, the same for ever."""
    return hashlib.sha256(model_id.encode()).hexdigest()[:8]


class Shop:
    """Only what is offered can be found here."""

    def __init__(self, catalog: Catalog, *, markup: float, credit_usd: float) -> None:
        self.catalog = catalog
        self._markup, self._credit_usd = markup, credit_usd
        priced = sorted((self.price_from(model), model.title, model) for model in catalog.offered())
        self._shelf = [model for _, _, model in priced]
        self._codes = {code_of(model.id): model for model in self._shelf}

    def price_from(self, model: Model) -> int:
        return price_from(replace(model, free=False), self._markup, self._credit_usd)

    def price(self, model: Model, values: Mapping[str, object], seconds: Mapping[str, float]) -> int:
        """For input as `validate` returns it. Whether this run is free is somebody else's decision."""
        return price(replace(model, free=False), values, self._markup, self._credit_usd, seconds)

    def models(self, category: Category | None = None) -> list[Model]:
        return [model for model in self._shelf if category in (None, model.category, *model.also)]

    def categories(self) -> list[Category]:
        return self.catalog.categories()

    def by_code(self, code: str) -> Model | None:
        return self._codes.get(code)

    def by_id(self, model_id: str) -> Model | None:
        model = self.catalog.models.get(model_id)
        return model if model is not None and model.status is Status.OFFERED else None

    def search(self, text: str, category: Category | None = None) -> list[Model]:
        """Models whose title, maker or id has every word; those of the shelf one stands at come first."""
        words = [word for word in _WORD.split(text.lower()) if word]
        if not words:
            return []
        found = [model for model in self._shelf if all(word in _searched(model) for word in words)]
        return sorted(found, key=lambda model: category not in (None, model.category, *model.also))

    def named(self, text: str) -> tuple[Model, str] | None:
        """The model that a line begins with, and the rest of the line: `/gen nano banana pro a red fox`."""
        line = text.strip()
        first, _, rest = line.partition(" ")
        for model in self.catalog.models.values():
            if model.status is Status.OFFERED and first.lower() in (model.id.lower(), *map(str.lower, model.aliases)):
                return model, rest.strip()
        best: tuple[int, Model] | None = None
        for model in self._shelf:
            length = _begins(line, model.title)
            if length and (best is None or length > best[0]):
                best = length, model
        if best:
            return best[1], line[best[0] :].strip()
        loose = [model for model in self._shelf if _squeezed(first) and _squeezed(first) in _squeezed(model.id)]
        return (loose[0], rest.strip()) if loose else None

    def quick(self, model_id: str = "", category: Category | None = None) -> Model | None:
        """A model that needs a text only: the cheapest of the shelf, the one named, or the cheapest picture."""
        shelf = self.models(category) if category else []
        named = [model] if (model := self.by_id(model_id)) else []
        return next((one for one in (*shelf, *named, *self.models(Category.TEXT_TO_IMAGE)) if text_only(one)), None)

    def for_file(self, kind: FieldType) -> list[Category]:
        """What can be done with a file of this kind."""
        return [
            category
            for category in self.categories()
            if any(one.type is kind and not one.advanced for model in self.models(category) for one in model.fields)
            and category not in (Category.TEXT_TO_IMAGE, Category.TEXT_TO_VIDEO)
        ]


def text_only(model: Model) -> bool:
    """Whether a text is all that must be given."""
    wanted = [one for one in model.fields if one.required and one.default is None]
    return len(wanted) == 1 and wanted[0].type is FieldType.TEXT and not wanted[0].many


def takes_files(model: Model) -> bool:
    return any(one.type in FILES for one in model.fields)


def _searched(model: Model) -> str:
    return " ".join((model.title, model.vendor, model.id, *model.aliases)).lower()


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


def _begins(line: str, title: str) -> int:
    """How much of the line the title takes, if the line begins with it, however it is punctuated."""
    pattern = r"[\W_]*".join(map(re.escape, re.findall(r"[^\W_]+", title)))
    match = re.match(rf"{pattern}(?!\w)", line, re.IGNORECASE)
    return match.end() if match else 0
