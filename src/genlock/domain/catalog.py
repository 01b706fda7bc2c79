"""The models on sale: what each takes, makes and costs. Values and rules only; the data lives in `genlock.catalog`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from genlock.domain.errors import InvalidInput, ModelNotFound
from genlock.domain.field import Field, Number
from genlock.domain.tariff import PriceRow, Seconds, our_price, thousandths

__all__ = ["Catalog", "Category", "Family", "Field", "Model", "Output", "Rule", "Status", "price", "price_from"]

NOTHING: tuple[object, ...] = (None, "", [])  #: what counts as not given
ASSUMED_SECONDS = 10  #: of a file whose length nobody told, for a field without a limit


class Category(StrEnum):
    """The menu, in its order."""

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


class Family(StrEnum):
    """Which of the provider's interfaces takes the order."""

    MARKET = "market"  #: createTask, with an `input` object
    VEO = "veo"  #: the older interfaces, with a flat body
    RUNWAY = "runway"
    ALEPH = "aleph"
    GPT4O = "4o"
    FLUX_KONTEXT = "flux-kontext"
    SUNO = "suno"
    LUMA = "luma"
    MIDJOURNEY = "midjourney"


class Status(StrEnum):
    OFFERED = "offered"  #: in the menu
    HIDDEN = "hidden"  #: works, but is not in the menu
    PAUSED = "paused"  #: the provider refuses it for now
    DEAD = "dead"  #: the provider has removed it


class Output(StrEnum):
    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    TEXT = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What holds between fields, when the inputs are as `when` and `given` say; exactly one of the others is set."""

    when: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()  #: at least one of these is given
    require: tuple[str, ...] = ()  #: all of these are given
    forbid: tuple[str, ...] = ()  #: none of these is given
    apart: tuple[tuple[str, ...], ...] = ()  #: fields of one group only
    never: bool = False  #: this combination does not exist
    most: Mapping[str, int] = field(default_factory=dict)  #: tighter limits: characters, files, or a number's value

    def check(self, values: Mapping[str, object]) -> None:
        """Raise InvalidInput if the rule does not hold."""
        given = {name for name, value in values.items() if value not in NOTHING}
        met = all(values.get(name) in allowed for name, allowed in self.when.items())
        if not met or not given.issuperset(self.given):
            return
        condition = _condition(self.when, self.given)
        if self.never:
            raise _refused((*self.when, *self.given)[0], f"not available together: {condition}")
        if self.any_of and not given & set(self.any_of):
            raise _refused(self.any_of[0], f"give at least one of {', '.join(self.any_of)}", problem="missing")
        for name in (name for name in self.require if name not in given):
            raise _refused(name, f"is required when {condition}", problem="missing")
        for name in (name for name in self.forbid if name in given):
            raise _refused(name, f"cannot be used when {condition}")
        for name, limit in self.most.items():
            if _size(values.get(name)) > limit:
                raise _refused(name, f"{_at_most(values.get(name), limit)} when {condition}", problem="range")
        self._check_apart(given)

    def _check_apart(self, given: set[str]) -> None:
        used = [[name for name in group if name in given] for group in self.apart]
        first, *others = [names for names in used if names] or [[]]
        if others:
            raise _refused(others[0][0], f"cannot be combined with {', '.join(first)}")


def _size(value: object) -> Number:
    return value if isinstance(value, int | float) else len(value) if isinstance(value, str | list) else 0


def _at_most(value: object, limit: int) -> str:
    match value:
        case str():
            return f"must have at most {limit} characters"
        case list():
            return f"must be at most {limit}, not {len(value)},"
        case _:
            return f"must be at most {limit}"


def _condition(when: Mapping[str, tuple[object, ...]], given: tuple[str, ...]) -> str:
    said = [f"{name} = {' or '.join(_shown(value) for value in allowed)}" for name, allowed in when.items()]
    return ", ".join([*said, *(f"{name} is given" for name in given)])


def _shown(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _refused(name: str, message: str, *, problem: str = "combination") -> InvalidInput:
    return InvalidInput(name, message, problem=problem)


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    id: str
    title: str
    vendor: str
    category: Category
    provider: str = "kie"  #: the provider that runs it
    also: tuple[Category, ...] = ()  #: other categories that list it
    family: Family = Family.MARKET
    operation: str = "generate"  #: which of an older family's endpoints
    outputs: tuple[Output, ...]
    count: int | str = 1  #: how many results, or the field that says how many
    fields: tuple[Field, ...] = ()
    fixed: Mapping[str, object] = field(default_factory=dict)  #: sent with every order
    rules: tuple[Rule, ...] = ()
    prices: tuple[PriceRow, ...] = ()  #: the first that matches is the price
    extras: tuple[PriceRow, ...] = ()  #: all that match are added
    price_as_of: str = ""  #: when the provider's list said so
    own_price: int | None = None  #: thousandths of our credit, set by the operator for every input
    expected_seconds: int
    deadline_seconds: int
    status: Status = Status.OFFERED
    reason: str = ""  #: why it is not offered
    note: str = ""  #: what an operator should know
    free: bool = False  #: costs a person nothing, as often as the operator allows
    aliases: tuple[str, ...] = ()  #: other ids in the provider's list

    def field(self, name: str) -> Field | None:
        return next((one for one in self.fields if one.name == name), None)

    def validate(self, values: Mapping[str, object]) -> dict[str, object]:
        """What the provider is sent: known fields only, defaults applied, every rule kept. Or InvalidInput."""
        known = {one.name for one in self.fields}
        for name, value in values.items():
            if name not in known and (name not in self.fixed or value != self.fixed[name]):
                raise _refused(str(name), f"is not an input of {self.title}; there are {', '.join(sorted(known))}")
        clean: dict[str, object] = {}
        for one in self.fields:
            value = values.get(one.name)
            if value not in NOTHING:
                value = one.clean(value)
            if value in NOTHING:
                value = one.default
            if value is not None:
                clean[one.name] = value
            elif one.required:
                raise one.refused("is required", "missing", type=one.type.value)
        clean |= self.fixed
        for rule in self.rules:
            rule.check(clean)
        return clean

    def credits(self, values: Mapping[str, object], seconds: Seconds | None = None) -> int:
        """Thousandths of a provider's credit for input as `validate` returns it.

        `seconds` tells how long the files of a field are; unknown lengths are taken as the longest allowed.
        """
        row = next((row for row in self.prices if row.matches(values)), None)
        if row is None:
            raise InvalidInput(self.id, "has no price for these inputs", problem="price")
        lengths = {one.name: one.max_seconds or ASSUMED_SECONDS for one in self.fields} | dict(seconds or {})
        total = row.cost(values, lengths)
        for extra in self.extras:
            if extra.matches(values):
                total += extra.cost(values, lengths)
        return thousandths(total)

    def credits_from(self) -> int:
        """The least that an order may cost the provider's credits: one second, one file, a thousand characters."""
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
        """The values that a field used as a multiplier may have, as far as they are listed."""
        one = self.field(name)
        if one is None:
            return []
        listed = row.when.get(name) or one.choices or (one.min,)
        return [float(str(value)) for value in listed if value is not None and float(str(value)) > 0]

    def results(self, values: Mapping[str, object]) -> int:
        """How many results an order is expected to bring."""
        return self.count if isinstance(self.count, int) else max(int(str(values.get(self.count) or 1)), 1)

    def minimal_input(self) -> dict[str, object]:
        """The least that can be ordered: required fields, and what the rules demand besides."""
        return self._completed({one.name: one.least() for one in self.fields if one.required and one.default is None})

    def _completed(self, values: dict[str, object]) -> dict[str, object]:
        """The values, clean, with whatever is still missing at its least."""
        for _ in self.fields:
            try:
                return self.validate(values)
            except InvalidInput as refused:
                missing = self.field(refused.field)
                if missing is None or refused.problem != "missing":
                    raise
                values = values | {missing.name: missing.least()}
        return self.validate(values)

    def maximal_input(self) -> dict[str, object]:
        """As much as can be ordered at once: every field at its largest, as far as the rules let them meet."""
        values = self.minimal_input()
        for one in (*self.fields, *self.fields):  # what the first round allows may let others grow in the second
            for option in (one.most(), *reversed(one.choices)):
                try:
                    values = self._completed(values | {one.name: option})
                except InvalidInput:
                    continue
                break
        return values


def price(
    model: Model,
    values: Mapping[str, object],
    markup: float | Decimal,
    credit_usd: float | Decimal,
    seconds: Seconds | None = None,
) -> int:
    """What a person pays for this input, in thousandths of our credit."""
    if model.free:
        return 0
    if model.own_price is not None:
        return model.own_price
    return our_price(model.credits(values, seconds), markup, credit_usd)


def price_from(model: Model, markup: float | Decimal, credit_usd: float | Decimal) -> int:
    """The least that a person may pay, for menus."""
    if model.free:
        return 0
    if model.own_price is not None:
        return model.own_price
    return our_price(model.credits_from(), markup, credit_usd)


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalog:
    models: Mapping[str, Model]

    def get(self, model_id: str) -> Model:
        try:
            return self.models[model_id]
        except KeyError:
            raise ModelNotFound(f"there is no model {model_id!r}; see `genlock models ls --all`") from None

    def offered(self, category: Category | None = None) -> list[Model]:
        """What a person can order, in the menu's order."""
        return [
            model
            for model in self.models.values()
            if model.status is Status.OFFERED and category in (None, model.category, *model.also)
        ]

    def categories(self) -> list[Category]:
        """Those that offer anything, in the menu's order."""
        used = {category for model in self.offered() for category in (model.category, *model.also)}
        return [category for category in Category if category in used]
