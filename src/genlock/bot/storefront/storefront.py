"""The models on sale, with their prices: by wish, by category, by what a user types."""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from typing import Any, Protocol

from genlock.bot.storefront.intents import intent_reader
from genlock.bot.storefront.popularity import Experience, most_popular
from genlock.bot.storefront.search import ModelSearch
from genlock.bot.storefront.spelling import sound, words
from genlock.bot.storefront.usual_price import UsualPrice, paid, usual_price
from genlock.domain.catalog import Catalog, Category, Model, Output, price, price_from
from genlock.domain.errors import InvalidInput
from genlock.domain.field import FILES, FieldType
from genlock.domain.wish import Wish
from genlock.engine.sell import Quote, make_quote

_AFTER_NAME = ":,; \t\n"
#: an unknown name is compared with known ones up to this many characters; shorter words are not searched for
NAME_LENGTH, WORD_LENGTH = 40, 3
#: similarity that the first word must have, the first two words, and so on
CLOSE = (0.65, 0.8, 0.8, 0.8)
SIMILAR_SHOWN = 3
#: names of models that are kept with what is made of them; a catalog has some hundred
NAMES_KEPT = 2048
#: position in menus of models without one
POSITION_LAST = 1_000_000
#: the kind of file that an order from this category starts with, if the model does not require one
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


class Priced(Protocol):
    """What a price depends on: the values, and the measured lengths of files by URL."""

    @property
    def values(self) -> Mapping[str, Any]: ...

    @property
    def seconds(self) -> Mapping[str, float]: ...


@lru_cache(NAMES_KEPT)
def code_of(model_id: str) -> str:
    """Return a short, stable code of a model for buttons."""
    return hashlib.sha256(model_id.encode()).hexdigest()[:8]


class Storefront:
    """The models on sale: offered by the operator, of a provider that is configured."""

    def __init__(
        self, catalog: Catalog, *, markup: float, credit_usd: float, providers: Collection[str] | None = None
    ) -> None:
        self._markup, self._credit_usd, self._providers = markup, credit_usd, providers
        self._experience = Experience()
        self.use_catalog(catalog)

    def use_catalog(self, catalog: Catalog) -> None:
        """Sell the models of this catalog from now on."""
        self.catalog = catalog
        providers = self._providers
        on_sale = [model for model in catalog.offered() if providers is None or model.made_by(providers)]
        self._on_sale = {model.id: model for model in on_sale}
        #: cheapest first
        self._models = sorted(on_sale, key=lambda model: (self.usual_price(model).price, model.title))
        listed = self._listed = [model for model in self._models if model.listed]
        #: as menus show them
        self._menu = sorted(listed, key=_menu_position)
        self._codes = {code_of(model.id): model for model in self._models}
        #: the cheapest model of each id and alias, without spaces and signs
        self._by_name = {
            _normalized_name(name): model for model in reversed(listed) for name in (model.id, *model.aliases)
        }
        recommended = [model_id for wish in catalog.wishes for model_id in wish.popular]
        self.index = ModelSearch(self._menu, catalog.vocabulary, recommended=recommended)
        self.intents = intent_reader(catalog.vocabulary)
        #: whether a model on sale can be paid for with a free run
        self.has_free_models = any(model.free for model in self._models)

    def price_from(self, model: Model) -> int:
        return price_from(paid(model), self._markup, self._credit_usd)

    def usual_price(self, model: Model) -> UsualPrice:
        """Return the price of an order with the model's defaults."""
        return usual_price(model, self._markup, self._credit_usd)

    def price(self, model: Model, values: Mapping[str, object], seconds: Mapping[str, float]) -> int:
        """Return the price without free runs, for input as `Model.validate` returns it."""
        return price(paid(model), values, self._markup, self._credit_usd, seconds)

    def quote(
        self, model: Model, values: Mapping[str, object], seconds: Mapping[str, float], *, free_left: int
    ) -> Quote:
        """Price an order; `seconds` are measured lengths of files by URL. Raises InvalidInput."""
        return make_quote(model, values, seconds, markup=self._markup, credit_usd=self._credit_usd, free_left=free_left)

    def quotes(self, model: Model, orders: Sequence[Priced], *, free_left: int) -> list[Quote]:
        """Price orders that are made together: each free run pays for one of them. Raises InvalidInput."""
        quotes: list[Quote] = []
        for order in orders:
            used = sum(quote.free for quote in quotes)
            quotes.append(self.quote(model, order.values, order.seconds, free_left=free_left - used))
        return quotes

    def models(self, category: Category | None = None) -> list[Model]:
        """Return models in the order of menus: featured ones, those with a position, then the cheapest."""
        return [model for model in self._menu if category in (None, model.category, *model.also)]

    def categories(self) -> list[Category]:
        """Return categories with a model on sale, in the order of the menu."""
        used = {category for model in self._menu for category in (model.category, *model.also)}
        return [category for category in Category if category in used]

    # the menu by wish

    def wishes(self) -> list[Wish]:
        """Return the entries of the menu that have a model on sale."""
        used = set(self.categories())
        return [wish for wish in self.catalog.wishes if used.intersection(wish.categories)]

    def wish_models(self, wish: Wish, category: str = "") -> list[Model]:
        """Return the models of a wish, or of one category of it, in the order of menus."""
        wanted = {category} if category else set(wish.categories)
        return [model for model in self._menu if wanted.intersection((model.category, *model.also))]

    def recommended(self, wish: Wish, category: str = "") -> list[Model]:
        """Return the models to suggest for a wish: those the operator features, the catalog's choice, all others."""
        models = self.wish_models(wish, category)
        places = {model_id: number for number, model_id in enumerate(wish.popular)}
        return sorted(models, key=lambda model: (not model.featured, places.get(model.id, len(places))))

    def popular(self, wish: Wish, category: str = "") -> list[Model]:
        """Return the short list of a wish, or of one category of it."""
        return most_popular(self.wish_models(wish, category), wish.popular, self._experience)

    def learn(self, experience: Experience) -> None:
        """Use what users of this installation have finished from now on."""
        self._experience = experience

    def expected_seconds(self, model: Model) -> float:
        """Return how long a result usually takes: as measured here, else as the catalog says."""
        return self._experience.median_seconds.get(model.id, model.expected_seconds)

    def by_code(self, code: str) -> Model | None:
        return self._codes.get(code)

    def by_id(self, model_id: str) -> Model | None:
        return self._on_sale.get(model_id)

    def search(self, text: str, category: Category | None = None) -> list[Model]:
        """Return the models that a text names or describes; those of this category first, then what it asks for."""
        request = self.intents.read(text)
        asked = request.intent.category if request else ""
        return sorted(
            self.index.find(text),
            key=lambda model: (
                category not in (None, model.category, *model.also),
                asked not in ("", model.category, *model.also),
            ),
        )

    def match_name(self, text: str) -> tuple[Model, str] | None:
        """Return the model whose name the line starts with, and the rest: `nano banana pro a red fox`."""
        line = text.strip()
        first, rest = _first_word(line)
        name = _normalized(first)
        if name and name in self._by_name:
            return self._by_name[name], rest
        best: tuple[int, Model] | None = None
        for model in self._listed:
            length = _begins(line, model.title)
            if length and (best is None or length > best[0]):
                best = length, model
        return (best[1], line[best[0] :].lstrip(_AFTER_NAME).strip()) if best else None

    def similar(self, text: str) -> tuple[list[Model], str]:
        """Return models with a name similar to the start of the line, most similar first, and the rest of the line."""
        names: dict[str, Model] = {}
        for model in self._listed:
            for name in (model.title, model.id, model.id.rpartition("/")[2], *model.aliases):
                names.setdefault(_spoken(name), model)
        best: tuple[float, list[Model], str] = 0.0, [], ""
        rest = text.strip()
        head = ""
        for cutoff in CLOSE:
            word, rest = _first_word(rest)
            head += _spoken(word)[:NAME_LENGTH]
            close = get_close_matches(head, names, n=2 * SIMILAR_SHOWN, cutoff=cutoff)
            score = SequenceMatcher(None, close[0], head).ratio() if close else 0.0
            if score and score >= best[0]:
                best = score, list({names[name].id: names[name] for name in close}.values())[:SIMILAR_SHOWN], rest
        if best[1]:
            return best[1], best[2]
        first, rest = _first_word(text.strip())
        word = _spoken(first)
        held = [model for model in self._listed if len(word) >= WORD_LENGTH and word in _spoken(model.title)]
        return held[:SIMILAR_SHOWN], rest

    def improver(self, model: Model) -> Model | None:
        """Return the cheapest model on sale that improves prompts for this one; None if there is none."""
        if model.outputs[0] is Output.TEXT:
            return None
        return next(
            (
                candidate
                for candidate in self._models
                if candidate.improves is not None
                and (not candidate.improves.of or model.category.value in candidate.improves.of)
            ),
            None,
        )

    def for_file(self, kind: FieldType) -> list[Category]:
        """Return categories with a model that takes this kind of file."""
        return [
            category
            for category in self.categories()
            if any(
                field.type is kind and not field.advanced for model in self.models(category) for field in model.fields
            )
            and category not in (Category.TEXT_TO_IMAGE, Category.TEXT_TO_VIDEO)
            and (BEGINS_WITH.get(category) in (None, kind) or any(_begins_with(m, kind) for m in self.models(category)))
        ]


def _menu_position(model: Model) -> tuple[bool, int]:
    """Return the sort key of menus; models with the same key stay sorted by price."""
    return not model.featured, POSITION_LAST if model.order is None else model.order


def _begins_with(model: Model, kind: FieldType) -> bool:
    """Whether this is the only kind of file that the model requires."""
    return {field.type for field in model.fields if field.type in FILES and field.required} == {kind}


def text_only(model: Model) -> bool:
    """Whether the model requires one text and nothing else."""
    wanted = [field for field in model.fields if field.required and field.default is None]
    if len(wanted) != 1 or wanted[0].type is not FieldType.TEXT or wanted[0].many:
        return False
    try:
        model.validate({wanted[0].name: wanted[0].least()})
    except InvalidInput:
        return False
    return True


def _normalized(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


@lru_cache(NAMES_KEPT)
def _normalized_name(name: str) -> str:
    """Return an id or an alias of a model without spaces and signs."""
    return _normalized(name)


def _spoken(text: str) -> str:
    return "".join(map(sound, words(text)))


def _first_word(line: str) -> tuple[str, str]:
    first, *rest = line.split(maxsplit=1) or [""]
    return first.rstrip(_AFTER_NAME), rest[0].strip() if rest else ""


def _begins(line: str, title: str) -> int:
    """Return the length of the title at the start of the line, whatever its punctuation; 0 if it is not there."""
    match = _title_pattern(title).match(line)
    return match.end() if match else 0


@lru_cache(NAMES_KEPT)
def _title_pattern(title: str) -> re.Pattern[str]:
    pattern = r"[\W_]*".join(map(re.escape, re.findall(r"[^\W_]+", title)))
    return re.compile(rf"{pattern}(?=[:,;]?(?:\s|$))", re.IGNORECASE)
