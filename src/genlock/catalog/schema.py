"""The form of the catalog's files, checked by pydantic: which keys there are and what type each value has."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from babel import localedata
from pydantic import BaseModel, BeforeValidator, ConfigDict, RootModel, model_validator
from pydantic import Field as Key

from genlock.domain.catalog import Category, Output, Status
from genlock.domain.field import FieldType
from genlock.domain.next_step import PromptSource
from genlock.domain.offer import Preference
from genlock.domain.presets import PROMPT_MARK

#: a price that is larger is a typing error, and one with more digits could not be stored exactly
AMOUNT_MAX, AMOUNT_DIGITS = 10**9, 6
#: what fits on a button of a chat, with the price
TITLE_LENGTH = 60
REASON_LENGTH = 300
#: several sentences share one message of the menu
SENTENCE_LENGTH = 120
POSITION_MAX = 9999
#: where a table keeps texts of languages that its schema does not declare
OTHER_LANGUAGES = "other_languages"


def plain(value: object) -> object:
    """Return a TOML value as a provider expects it: decimal fractions become floats, in tables and lists too."""
    match value:
        case Decimal():
            return float(value)
        case list():
            return [plain(item) for item in value]
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case _:
            return value


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError(f"must be a number, not {value!r}")  # noqa: TRY004 - pydantic reports a ValueError
    return value if isinstance(value, int) else float(value)


def _amount(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError(f"must be a number of 0 or more, not {value!r}")  # noqa: TRY004 - pydantic reports a ValueError
    amount = Decimal(value)
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"must be a number of 0 or more, not {value!r}")
    if amount > AMOUNT_MAX:
        raise ValueError(f"must be at most {AMOUNT_MAX}, not {value!r}")
    if amount != round(amount, AMOUNT_DIGITS):
        raise ValueError(f"must have at most {AMOUNT_DIGITS} digits after the point, not {value!r}")
    return amount


def _title(value: object) -> object:
    if isinstance(value, str) and (not value.strip() or len(value) > TITLE_LENGTH or not value.isprintable()):
        raise ValueError(f"must be 1 to {TITLE_LENGTH} printable characters, not {value!r}")
    return value


def _count(value: object) -> int | str:
    too_small = value == "" or (isinstance(value, int) and value < 1)
    if isinstance(value, bool) or not isinstance(value, int | str) or too_small:
        raise ValueError(f"must be a number of 1 or more, or the name of a field, not {value!r}")
    return value


def _fields_groups(value: object) -> object:
    if not isinstance(value, list) or not all(isinstance(group, list) for group in value):
        raise ValueError("must be a list of lists of fields")
    return value


def _reason(value: object) -> object:
    if isinstance(value, str) and (len(value) > REASON_LENGTH or not value.isprintable()):
        raise ValueError(f"must be up to {REASON_LENGTH} printable characters, not {value!r}")
    return value


def _instruction(value: object) -> object:
    if isinstance(value, str) and value.count(PROMPT_MARK) != 1:
        raise ValueError(f"must have {PROMPT_MARK} once, where the prompt stands, not {value!r}")
    return value


def _sentences(value: object) -> object:
    for text in value.values() if isinstance(value, Mapping) else ():
        if isinstance(text, str) and (not text.strip() or len(text) > SENTENCE_LENGTH or not text.isprintable()):
            raise ValueError(f"must be 1 to {SENTENCE_LENGTH} printable characters, not {text!r}")
    return value


#: pydantic's strict mode accepts only members of an enum; files contain their values
Menu = Annotated[Category, Key(strict=False)]
Made = Annotated[Output, Key(strict=False)]
Plain = Annotated[Any, BeforeValidator(plain)]
Number = Annotated[int | float | None, BeforeValidator(_number)]
Amount = Annotated[Decimal, BeforeValidator(_amount)]
#: a sentence for users, by language
Texts = Annotated[dict[str, str], BeforeValidator(_sentences)]
Groups = Annotated[list[list[str]], BeforeValidator(_fields_groups)]


class Table(BaseModel):
    """A table of a file: a wrong or unknown key is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class TranslatedTable(Table):
    """A table with a text under the code of each language. English and Russian are declared; any other may be added."""

    #: the texts of all languages but English and Russian, by the code that was their key
    other_languages: dict[str, str] = Key(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _gather_languages(cls, table: object) -> object:
        if not isinstance(table, dict):
            return table
        codes = [key for key in table if key not in cls.model_fields and localedata.exists(key.replace("-", "_"))]
        rest = {key: value for key, value in table.items() if key not in codes}
        return {**rest, OTHER_LANGUAGES: {code: table[code] for code in codes}} if codes else rest

    def texts(self) -> dict[str, str]:
        """Return the text of each language that has one."""
        declared = {code: getattr(self, code) for code in ("en", "ru")}
        return {code: text for code, text in declared.items() if text is not None} | self.other_languages


class ProviderTable(Table):
    credit_usd: Amount


class ProvidersFile(Table):
    default: str
    providers: dict[str, ProviderTable]


class SharedFieldTable(TranslatedTable):
    """The description of a field, its unit, and whether the wizard asks for it, unless its model says otherwise."""

    en: str | None = None
    ru: str | None = None
    unit: Literal["seconds"] | None = None
    advanced: bool = False
    internal: bool = False


class SharedFieldsFile(RootModel[dict[str, SharedFieldTable]]):
    """What is known of fields, by name."""


class FieldTable(Table):
    name: str
    type: Annotated[FieldType, Key(strict=False)]
    many: bool | None = None
    required: bool = False
    choices: Any = Key(default_factory=list)
    default: Plain = None
    min: Number = None
    max: Number = None
    step: Number = None
    min_length: int = 0
    max_length: int | None = None
    min_count: int = 0
    max_count: int | None = None
    max_mb: Number = None
    max_seconds: Number = None
    members: list[str] = Key(default_factory=list)
    sample: Plain = None
    advanced: bool | None = None
    about: dict[str, str] = Key(default_factory=dict)


class PriceTable(Table):
    credits: Amount
    when: dict[str, Plain] = Key(default_factory=dict)
    given: list[str] = Key(default_factory=list)
    times: str | None = None
    count: str | None = None
    seconds: str | None = None
    characters: str | None = None
    each: Annotated[int, Key(ge=1)] = 1
    free: int = 0
    label: str | None = None


class RuleTable(Table):
    when: dict[str, Plain] = Key(default_factory=dict)
    given: list[str] = Key(default_factory=list)
    any_of: list[str] = Key(default_factory=list)
    require: list[str] = Key(default_factory=list)
    forbid: list[str] = Key(default_factory=list)
    apart: Groups = Key(default_factory=list)
    never: bool = False
    most: dict[str, int] = Key(default_factory=dict)


class ImproverTable(Table):
    field: str
    of: list[Menu] = Key(default_factory=list)
    instruction: Annotated[str, BeforeValidator(_instruction)] = PROMPT_MARK


class ModelTable(Table):
    title: str
    vendor: str | None = None
    provider: str | None = None
    provider_model: str = ""
    category: Menu
    also: list[Menu] = Key(default_factory=list)
    family: str = ""
    operation: str = "generate"
    outputs: list[Made]
    count: Annotated[int | str, BeforeValidator(_count)] = 1
    fields: list[FieldTable] = Key(default_factory=list)
    fixed: dict[str, Plain] = Key(default_factory=dict)
    rules: list[RuleTable] = Key(default_factory=list)
    prices: list[PriceTable] = Key(default_factory=list)
    extras: list[PriceTable] = Key(default_factory=list)
    price_as_of: str | None = None
    expected_seconds: int
    deadline_seconds: int
    status: Annotated[Status, Key(strict=False)] = Status.OFFERED
    reason: str = ""
    note: str = ""
    free: bool = False
    aliases: list[str] = Key(default_factory=list)
    exact: bool = False
    styles: bool = True
    improves: ImproverTable | None = None
    listed: bool = True
    good_at: Texts = Key(default_factory=dict)


class StepTable(Table):
    category: Menu
    prompt: Annotated[PromptSource | None, Key(strict=False)] = None
    reply: bool = False
    of: list[Menu] = Key(default_factory=list)
    values: dict[str, Plain] = Key(default_factory=dict)
    models: Annotated[dict[str, str], Key(min_length=1)]


class StepsFile(Table):
    """The next steps by what they are done with and by name, in the order of their buttons."""

    image: dict[str, StepTable] = Key(default_factory=dict)
    video: dict[str, StepTable] = Key(default_factory=dict)
    audio: dict[str, StepTable] = Key(default_factory=dict)
    text: dict[str, StepTable] = Key(default_factory=dict)


class StyleTable(TranslatedTable):
    en: str
    ru: str
    text: Annotated[str, Key(min_length=1, max_length=400)]
    of: Annotated[list[Made], Key(min_length=1)]
    picture: str


class IdeaTable(TranslatedTable):
    of: Annotated[list[Menu], Key(min_length=1)]
    en: str
    ru: str


class PresetsFile(Table):
    """Styles by key, in the order of their buttons, and ideas for prompts."""

    styles: dict[str, StyleTable] = Key(default_factory=dict)
    ideas: list[IdeaTable] = Key(default_factory=list)


class SamplesTable(Table):
    """Files that show what a model makes, how a voice sounds and what a style looks like."""

    models: dict[str, str] = Key(default_factory=dict)
    voices: dict[str, str] = Key(default_factory=dict)
    styles: dict[str, str] = Key(default_factory=dict)


class WishTable(Table):
    icon: str
    categories: Annotated[list[Menu], Key(min_length=1)]
    popular: list[str] = Key(default_factory=list)
    from_text: bool = False
    example: bool = False
    asks_settings: bool = False


class WishesFile(RootModel[dict[str, WishTable]]):
    """The entries of the menu by name, in its order."""


class IntentTable(Table):
    category: Menu
    models: list[str] = Key(default_factory=list)
    spoken: bool = False
    words: Annotated[dict[str, list[str]], Key(min_length=1)]


class VocabularyFile(Table):
    intents: list[IntentTable] = Key(default_factory=list)
    fillers: dict[str, list[str]] = Key(default_factory=dict)
    stops: dict[str, list[str]] = Key(default_factory=dict)
    spellings: dict[str, str] = Key(default_factory=dict)
    inputs: dict[Annotated[FieldType, Key(strict=False)], dict[str, list[str]]] = Key(default_factory=dict)


class WishChangeTable(Table):
    """What an overlay changes in one entry of the menu."""

    hidden: bool = False
    popular: list[str] | None = None


class ModelFile(Table):
    vendor: str
    provider: str | None = None
    choices: dict[str, Any] = Key(default_factory=dict)
    price_as_of: str = ""
    models: dict[str, ModelTable] = Key(default_factory=dict)


class OfferTable(Table):
    """How one provider makes a model: its own id, names of inputs, values and cost."""

    model: Annotated[str, Key(min_length=1)]
    family: str = ""
    operation: str = "generate"
    inputs: dict[str, str]
    values: dict[str, dict[str, Plain]] = Key(default_factory=dict)
    single: list[str] = Key(default_factory=list)
    listed: list[str] = Key(default_factory=list)
    ignored: list[str] = Key(default_factory=list)
    most: dict[str, Annotated[int, Key(ge=1)]] = Key(default_factory=dict)
    fixed: dict[str, Plain] = Key(default_factory=dict)
    prices: list[PriceTable] = Key(default_factory=list)
    extras: list[PriceTable] = Key(default_factory=list)
    verified: bool = False
    note: str = ""


class OfferFile(Table):
    provider: str
    price_as_of: str = ""
    offers: dict[str, OfferTable] = Key(default_factory=dict)


def _preference(value: object) -> object:
    if isinstance(value, str):
        if value not in set(Preference):
            raise ValueError(f"must be a list of providers, or one of {', '.join(Preference)}, not {value!r}")
        return Preference(value)
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise ValueError(f"must be a list of providers, or one of {', '.join(Preference)}, not {value!r}")
    if len(set(value)) != len(value):
        raise ValueError("names a provider twice")
    return tuple(value)


class ChangeTable(Table):
    """What an overlay changes in one model."""

    model_config = ConfigDict(defer_build=True)

    title: Annotated[str | None, BeforeValidator(_title)] = None
    hidden: bool = False
    status: Annotated[Status, Key(strict=False)] | None = None
    reason: Annotated[str, BeforeValidator(_reason)] = ""
    price: Annotated[Decimal | None, BeforeValidator(_amount)] = None
    free: bool | None = None
    credits: dict[str, Amount] = Key(default_factory=dict)
    expected_seconds: int | None = None
    deadline_seconds: int | None = None
    order: Annotated[int | None, Key(ge=1, le=POSITION_MAX)] = None
    featured: bool | None = None
    good_at: Texts | None = None
    offers: Annotated[Preference | tuple[str, ...] | None, BeforeValidator(_preference)] = None


class OverlayFile(Table):
    model_config = ConfigDict(defer_build=True)

    synced: dict[str, ChangeTable] = Key(default_factory=dict)
    models: dict[str, ChangeTable] = Key(default_factory=dict)
    samples: SamplesTable = SamplesTable()
    wishes: dict[str, WishChangeTable] = Key(default_factory=dict)
