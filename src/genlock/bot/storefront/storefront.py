"""The catalog as a shop: what is on the shelf, cheapest first, found by a word, at what price."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, get_close_matches

from genlock.domain.catalog import Catalog, Category, Model, Status, price, price_from
from genlock.domain.errors import InvalidInput
from genlock.domain.field import FILES, FieldType
from genlock.domain.tariff import PriceRow, our_price, thousandths

_WORD = re.compile(r"[^\w]+")
_AFTER_NAME = ":,; \t\n"
#: a name that is not known is compared, as far as so many characters, with those that are
NAME_LENGTH, WORD_LENGTH = 40, 3
#: how close the first word must be, the first two words, and so on
CLOSE = (0.65, 0.8, 0.8, 0.8)
MEANT_SHOWN = 3
#: how a price by a measure is told: by what, and for how much of it
PER = {"seconds": ("second", 1), "characters": ("characters", 1000)}
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Usual:
    price: int
    #: not exact: it grows with the files or the text that are given
    exact: bool
    #: what it is the price of, where that is all there is to it: a second, or a thousand characters
    per: str = ""


def code_of(model_id: str) -> str:
    """A short name for a button, the same for ever."""
    return hashlib.sha256(model_id.encode()).hexdigest()[:8]


class Storefront:
    """Only what is offered can be found here."""

    def __init__(self, catalog: Catalog, *, markup: float, credit_usd: float) -> None:
        self.catalog = catalog
        self._markup, self._credit_usd = markup, credit_usd
        self._usual = {model.id: self._usual_price(model) for model in catalog.offered()}
        self._shelf = sorted(catalog.offered(), key=lambda model: (self._usual[model.id].price, model.title))
        self._codes = {code_of(model.id): model for model in self._shelf}

    def price_from(self, model: Model) -> int:
        return price_from(replace(model, free=False), self._markup, self._credit_usd)

    def usual(self, model: Model) -> Usual:
        """What an order costs that leaves everything as it is."""
        return self._usual[model.id]

    def _usual_price(self, model: Model) -> Usual:
        least = Usual(price=self.price_from(model), exact=model.own_price is not None)
        if least.exact:
            return least
        try:
            values = model.minimal_input()
            price = self.price(model, values, {})
        except InvalidInput:
            return least
        row = next(row for row in model.prices if row.matches(values))
        measures = {how[0] for one in (row, *model.extras) if one.matches(values) and (how := one.measure())}
        if measures & {"seconds", "characters"}:
            return self._rate(model, row, least) if len(measures) == 1 else least
        return Usual(price=price, exact="count" not in measures)

    def _rate(self, model: Model, row: PriceRow, least: Usual) -> Usual:
        """The price of one second, or of a thousand characters, if that is what the row tells."""
        how = row.measure()
        if how is None or row.free:
            return least
        per, amount = PER[how[0]]
        cost = thousandths(row.credits * amount / row.each)
        price = our_price(cost, self._markup, self._credit_usd, model.provider_credit_usd)
        return Usual(price=price, exact=False, per=per)

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
        """Models called so, else those whose title, maker or id has every word; those of this shelf come first."""
        words = [word for word in _WORD.split(text.lower()) if word]
        if not words:
            return []
        found = [model for model in self._shelf if all(word in _searched(model) for word in words)]
        found = [model for model in found if _squeezed(text) in _squeezed(model.title)] or found
        return sorted(found, key=lambda model: category not in (None, model.category, *model.also))

    def named(self, text: str) -> tuple[Model, str] | None:
        """The model that a line begins with, and the rest of the line: `/gen nano banana pro a red fox`."""
        line = text.strip()
        first, rest = _first_word(line)
        for model in self._shelf:
            if _squeezed(first) in {_squeezed(name) for name in (model.id, *model.aliases)} - {""}:
                return model, rest
        best: tuple[int, Model] | None = None
        for model in self._shelf:
            length = _begins(line, model.title)
            if length and (best is None or length > best[0]):
                best = length, model
        return (best[1], line[best[0] :].lstrip(_AFTER_NAME).strip()) if best else None

    def meant(self, text: str) -> tuple[list[Model], str]:
        """Models whose name is close to what a line begins with, closest first, and the rest of the line."""
        names: dict[str, Model] = {}
        for model in self._shelf:
            for name in (model.title, model.id, model.id.rpartition("/")[2], *model.aliases):
                names.setdefault(_squeezed(name), model)
        best: tuple[float, list[Model], str] = 0.0, [], ""
        rest = text.strip()
        head = ""
        for cutoff in CLOSE:
            word, rest = _first_word(rest)
            head += _squeezed(word)[:NAME_LENGTH]
            close = get_close_matches(head, names, n=2 * MEANT_SHOWN, cutoff=cutoff)
            score = SequenceMatcher(None, close[0], head).ratio() if close else 0.0
            if score > best[0]:
                best = score, list({names[name].id: names[name] for name in close}.values())[:MEANT_SHOWN], rest
        if best[1]:
            return best[1], best[2]
        first, rest = _first_word(text.strip())
        word = _squeezed(first)
        held = [model for model in self._shelf if len(word) >= WORD_LENGTH and word in _squeezed(model.title)]
        return held[:MEANT_SHOWN], rest

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
            and (BEGINS_WITH.get(category) in (None, kind) or any(_begins_with(m, kind) for m in self.models(category)))
        ]


def _begins_with(model: Model, kind: FieldType) -> bool:
    """Whether files of this kind are all that must be given of files."""
    return {one.type for one in model.fields if one.type in FILES and one.required} == {kind}


def text_only(model: Model) -> bool:
    """Whether a text is all that must be given."""
    wanted = [one for one in model.fields if one.required and one.default is None]
    if len(wanted) != 1 or wanted[0].type is not FieldType.TEXT or wanted[0].many:
        return False
    try:
        model.validate({wanted[0].name: wanted[0].least()})
    except InvalidInput:
        return False
    return True


def _searched(model: Model) -> str:
    return " ".join((model.title, model.vendor, model.id, *model.aliases)).lower()


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


def _first_word(line: str) -> tuple[str, str]:
    first, *rest = line.split(maxsplit=1) or [""]
    return first.rstrip(_AFTER_NAME), rest[0].strip() if rest else ""


def _begins(line: str, title: str) -> int:
    """How much of the line the title takes, if the line begins with it, however it is punctuated."""
    pattern = r"[\W_]*".join(map(re.escape, re.findall(r"[^\W_]+", title)))
    match = re.match(rf"{pattern}(?=[:,;]?(?:\s|$))", line, re.IGNORECASE)
    return match.end() if match else 0
