"""Models: their inputs, outputs and prices. Values and rules only; the data is in `genlock.catalog`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum

from genlock.domain.errors import InvalidInput, ModelNotFound
from genlock.domain.field import FILES, Field, FieldType, Number
from genlock.domain.next_step import NextStep
from genlock.domain.offer import NOTHING, Offer, Preference
from genlock.domain.presets import Idea, PromptImprover, SampleFiles, Style
from genlock.domain.rule import Rule
from genlock.domain.tariff import PriceRow, Seconds, our_price, thousandths
from genlock.domain.wish import Vocabulary, Wish

__all__ = ["NOTHING", "Catalog", "Category", "Field", "Model", "Output", "Status", "price", "price_from"]

ASSUMED_SECONDS = 10  #: the assumed length of a file of unknown length, for a field without `max_seconds`


class Category(StrEnum):
    """The categories of the menu, in its order."""

    TEXT_TO_IMAGE = "text-to-image"
    IMAGE_TO_IMAGE = "image-to-image"
    TEXT_TO_VIDEO = "text-to-video"
    IMAGE_TO_VIDEO = "image-to-video"
    VIDEO_TO_VIDEO = "video-to-video"
    AVATAR = "avatar"
    UPSCALE = "upscale"
    BACKGROUND_REMOVAL = "background-removal"
    MUSIC = "music"
    TEXT_TO_SPEECH = "text-to-speech"
    SOUND_EFFECTS = "sound-effects"
    SPEECH_TO_TEXT = "speech-to-text"
    AUDIO_TOOLS = "audio-tools"
    IMAGE_ANALYSIS = "image-analysis"
    TEXT = "text"


class Status(StrEnum):
    OFFERED = "offered"  #: users can order it
    HIDDEN = "hidden"  #: it works, but users cannot order it
    PAUSED = "paused"  #: the provider refuses it at present
    DEAD = "dead"  #: the provider has removed it


class Output(StrEnum):
    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    TEXT = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    id: str
    title: str
    vendor: str
    category: Category
    provider: str  #: the provider that runs it, by name
    provider_credit_usd: Decimal  #: US dollars per credit of the provider
    provider_model: str = ""  #: the provider's own id of the model, where it is not `id`
    also: tuple[Category, ...] = ()  #: other categories that list it
    family: str = ""  #: which of the provider's interfaces takes the order; empty: its usual one
    operation: str = "generate"  #: which endpoint of that interface
    outputs: tuple[Output, ...]
    count: int | str = 1  #: the number of results, or the name of the field that holds it
    fields: tuple[Field, ...] = ()
    fixed: Mapping[str, object] = field(default_factory=dict)  #: values sent with every order
    rules: tuple[Rule, ...] = ()
    prices: tuple[PriceRow, ...] = ()  #: the first matching row is the price
    extras: tuple[PriceRow, ...] = ()  #: every matching row is added
    price_as_of: str = ""  #: the date of the provider's price list
    own_price: int | None = None  #: thousandths of our credit, set by the operator for every input
    expected_seconds: int
    deadline_seconds: int
    status: Status = Status.OFFERED
    reason: str = ""  #: why users cannot order it
    note: str = ""  #: a remark for operators
    free: bool = False  #: a user's free runs apply to it
    aliases: tuple[str, ...] = ()  #: other ids in the provider's list
    exact: bool = False  #: its images must reach the user unchanged, not as photos that the channel compresses
    order: int | None = None  #: position in menus, before the models without one
    featured: bool = False  #: first in menus, with a mark
    improves: PromptImprover | None = None  #: whether it rewrites prompts for other models
    listed: bool = True  #: False: menus and searches leave it out; abilities such as `improves` and the API use it
    good_at: Mapping[str, str] = field(default_factory=dict)  #: one sentence for users, by language
    styles: bool = True  #: whether its prompt says how the result looks, so that a style may be added to it
    more_offers: tuple[Offer, ...] = ()  #: the ways to have it made besides `provider`
    #: which offer is tried first: the providers in the operator's order, or a rule; empty: as the catalog lists them
    preference: tuple[str, ...] | Preference = ()

    @property
    def offers(self) -> tuple[Offer, ...]:
        """All ways to have it made, its own provider first."""
        own = Offer(
            provider=self.provider,
            model=self.provider_model or self.id,
            family=self.family,
            operation=self.operation,
            prices=self.prices,
            extras=self.extras,
            credit_usd=self.provider_credit_usd,
        )
        return (own, *self.more_offers)

    def used_offers(self) -> list[Offer]:
        """Return the offers that orders may use: those the operator lists, in that order, or all that are verified."""
        known = {offer.provider: offer for offer in self.offers}
        if isinstance(self.preference, tuple) and self.preference:
            return [known[name] for name in self.preference if name in known]
        return [offer for offer in known.values() if offer.verified]

    def made_by(self, providers: Collection[str]) -> bool:
        """Return whether one of these providers can make it."""
        return any(offer.provider in providers for offer in self.used_offers())

    @property
    def needs_file(self) -> bool:
        """Whether every order has a file of the user."""
        given = self.minimal_input()
        return any(
            input_field.type in FILES and given.get(input_field.name) not in NOTHING for input_field in self.fields
        )

    def field(self, name: str) -> Field | None:
        return next((input_field for input_field in self.fields if input_field.name == name), None)

    def validate(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return the input for the provider: known fields only, cleaned, with defaults. Raises InvalidInput."""
        known = {input_field.name for input_field in self.fields}
        for name, value in values.items():
            if name not in known and (name not in self.fixed or value != self.fixed[name]):
                message = f"is not an input of {self.title}; there are {', '.join(sorted(known))}"
                raise InvalidInput(str(name), message, problem="combination")
        clean: dict[str, object] = {}
        for input_field in self.fields:
            value = values.get(input_field.name)
            if value not in NOTHING:
                value = input_field.clean(value)
            if value in NOTHING:
                value = input_field.default
            if value is not None:
                clean[input_field.name] = value
            elif input_field.required:
                raise input_field.refused("is required", "missing", type=input_field.type.value)
        clean |= self.fixed
        for rule in self.rules:
            rule.check(clean)
        return clean

    def credits(self, values: Mapping[str, object], seconds: Seconds | None = None) -> int:
        """Return the cost in thousandths of the provider's credit for an input that `validate` returned.

        `seconds` holds measured lengths by field; a file of unknown length counts as the longest allowed.
        """
        return self.offers[0].credits(values, self.lengths(seconds))

    def lengths(self, seconds: Seconds | None = None) -> Seconds:
        """Return the length of every field's files; a file of unknown length counts as the longest allowed."""
        return {input_field.name: input_field.max_seconds or ASSUMED_SECONDS for input_field in self.fields} | dict(
            seconds or {}
        )

    def credits_from(self) -> int:
        """Return the lowest cost of an order, in thousandths of the provider's credit."""
        return thousandths(min((row.credits * self._least(row) / row.each for row in self.prices), default=Decimal(0)))

    def _least(self, row: PriceRow) -> Decimal:
        match row.measure():
            case "times", name:
                return Decimal(str(min(self._numbers(name, row), default=1)))
            case "characters", _:
                return Decimal(row.each)
            case _:
                return Decimal(1)

    def _numbers(self, name: str, row: PriceRow) -> list[Number]:
        """Return the listed values of a field that multiplies a price row."""
        input_field = self.field(name)
        if input_field is None:
            return []
        listed = row.when.get(name) or input_field.choices or (input_field.min,)
        return [float(str(value)) for value in listed if value is not None and float(str(value)) > 0]

    def results(self, values: Mapping[str, object]) -> int:
        """Return the expected number of results of an order."""
        return self.count if isinstance(self.count, int) else max(int(str(values.get(self.count) or 1)), 1)

    def minimal_input(self) -> dict[str, object]:
        """Return the smallest valid input: the required fields and those that the rules require."""
        return self._completed(
            {
                input_field.name: input_field.least()
                for input_field in self.fields
                if input_field.required and input_field.default is None
            }
        )

    def _completed(self, values: dict[str, object]) -> dict[str, object]:
        """Return the validated values, with missing required fields set to their smallest value."""
        for _ in self.fields:
            try:
                return self.validate(values)
            except InvalidInput as refused:
                missing = self.field(refused.field)
                if missing is None or refused.problem != "missing":
                    raise
                values = values | {missing.name: missing.least()}
        return self.validate(values)

    def maximal_input(self, accepts: Callable[[Mapping[str, object]], bool] = bool) -> dict[str, object]:
        """Return the largest valid input: every field at its largest value that the rules and `accepts` allow."""
        values = self.minimal_input()
        for input_field in (
            *self.fields,
            *self.fields,
        ):  # a value set in the first round may allow larger values of other fields in the second
            for option in (input_field.most(), *reversed(input_field.choices)):
                try:
                    larger = self._completed(values | {input_field.name: option})
                except InvalidInput:
                    continue
                if accepts(larger):
                    values = larger
                    break
        return values


def price(
    model: Model,
    values: Mapping[str, object],
    markup: float | Decimal,
    credit_usd: float | Decimal,
    seconds: Seconds | None = None,
) -> int:
    """Return what a user pays for this input, in thousandths of our credit."""
    if model.free:
        return 0
    if model.own_price is not None:
        return model.own_price
    return our_price(model.credits(values, seconds), markup, credit_usd, model.provider_credit_usd)


def price_from(model: Model, markup: float | Decimal, credit_usd: float | Decimal) -> int:
    """Return the lowest price of the model, for menus."""
    if model.free:
        return 0
    if model.own_price is not None:
        return model.own_price
    return our_price(model.credits_from(), markup, credit_usd, model.provider_credit_usd)


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalog:
    models: Mapping[str, Model]
    #: US dollars per credit, for every provider that the data knows
    provider_credit_usd: Mapping[str, Decimal] = field(default_factory=dict)
    #: the names that operators know providers by
    provider_titles: Mapping[str, str] = field(default_factory=dict)
    #: in the order of their buttons
    next_steps: tuple[NextStep, ...] = ()
    styles: tuple[Style, ...] = ()
    ideas: tuple[Idea, ...] = ()
    samples: SampleFiles = field(default_factory=SampleFiles)
    #: in the order of the menu
    wishes: tuple[Wish, ...] = ()
    vocabulary: Vocabulary = field(default_factory=Vocabulary)

    def steps_for(self, kind: FieldType, category: Category | None = None) -> list[NextStep]:
        """Return the next steps of a file, or of a result of this category, that a model on sale can do."""
        return [
            step
            for step in self.next_steps
            if step.kind is kind and (category is None or not step.of or category in step.of) and self.step_models(step)
        ]

    def step_models(self, step: NextStep) -> list[Model]:
        """Return the models on sale that do a step: those the operator features, then in the order of the catalog."""
        known = [self.models[model_id] for model_id in step.models if model_id in self.models]
        return sorted(
            (model for model in known if model.status is Status.OFFERED), key=lambda model: not model.featured
        )

    def step(self, key: str) -> NextStep | None:
        return next((step for step in self.next_steps if step.key == key), None)

    def wish(self, name: str) -> Wish | None:
        return next((wish for wish in self.wishes if wish.name == name), None)

    def wish_of(self, category: str) -> Wish | None:
        """Return the wish that a category belongs to first of all."""
        with_it = [wish for wish in self.wishes if category in wish.categories]
        return min(with_it, key=lambda wish: wish.categories.index(category), default=None)

    def provider_title(self, name: str) -> str:
        return self.provider_titles.get(name, name)

    def get(self, model_id: str) -> Model:
        try:
            return self.models[model_id]
        except KeyError:
            raise ModelNotFound(
                f"There is no model {model_id!r}. `genlock models ls --all` lists every model."
            ) from None

    def offered(self, category: Category | None = None) -> list[Model]:
        """Return the models that users can order, in the order of the menu."""
        return [
            model
            for model in self.models.values()
            if model.status is Status.OFFERED and category in (None, model.category, *model.also)
        ]

    def categories(self) -> list[Category]:
        """Return the categories with an offered model, in the order of the menu."""
        used = {category for model in self.offered() for category in (model.category, *model.also)}
        return [category for category in Category if category in used]

    def ids_at(self, provider: str) -> list[str]:
        """Return the provider's own ids of all models that it has an offer of."""
        offers = (offer for model in self.models.values() for offer in model.offers if offer.provider == provider)
        return list(dict.fromkeys(offer.model for offer in offers))

    def sold_through(self, providers: Collection[str], without_files: Collection[str] = ()) -> "Catalog":
        """Return the catalog with the models hidden that none of these providers makes: no adapter could run them.

        A model that needs a file is also hidden if only providers in `without_files` make it: they cannot read it.
        """
        with_files = [name for name in providers if name not in without_files]

        def sold(model: Model) -> Model:
            if model.status is not Status.OFFERED:
                return model
            if not model.made_by(providers):
                return replace(model, status=Status.HIDDEN, reason=f"the provider {model.provider} is not configured")
            if model.made_by(with_files) or not model.needs_file:
                return model
            reason = "it needs a file, and no configured provider stores files that the one that makes it can read"
            return replace(model, status=Status.HIDDEN, reason=reason)

        return replace(self, models={model_id: sold(model) for model_id, model in self.models.items()})
