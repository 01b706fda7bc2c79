"""From the files to a Catalog. Every mistake is reported as FILE: MODEL: PLACE: what is wrong."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genlock.catalog import overlay as overlays
from genlock.catalog.coverage import check_model
from genlock.catalog.reader import Table, parse, plain
from genlock.domain.catalog import Catalog, Category, Family, Field, Model, Output, Rule, Status
from genlock.domain.errors import InvalidCatalog, InvalidInput
from genlock.domain.field import FieldType
from genlock.domain.tariff import PriceRow

DATA = Path(__file__).parent / "data"
WORDS = "words.toml"


def load(overlay: Path | None = None, *, data: Path = DATA) -> Catalog:
    """All models of the package, changed as the operator's overlay says."""
    words = _words(data / WORDS)
    models: dict[str, Model] = {}
    for path in sorted(data.glob("*.toml")):
        if path.name == WORDS:
            continue
        for model in read(parse(path), path.name, words):
            if model.id in models:
                raise InvalidCatalog(f"{path.name}: {model.id}: is already described in another file")
            models[model.id] = model
    if overlay is not None:
        models = overlays.apply(models, parse(overlay), overlay.name)
    order = {category: number for number, category in enumerate(Category)}
    return Catalog(models=dict(sorted(models.items(), key=lambda item: order[item[1].category])))


@dataclass(frozen=True, kw_only=True)
class _Word:
    """What is known of a field by its name alone."""

    about: Mapping[str, str] = field(default_factory=dict)
    advanced: bool = False
    internal: bool = False


def _words(path: Path) -> dict[str, _Word]:
    if not path.exists():
        return {}
    words = {}
    for name, data in parse(path).items():
        table = Table(data, f"{path.name}: {name}")
        about = {language: table.take(language, str) for language in ("en", "ru") if language in table}
        words[name] = _Word(
            about=about,
            advanced=table.take("advanced", bool, default=False),
            internal=table.take("internal", bool, default=False),
        )
        table.end()
    return words


@dataclass(frozen=True, kw_only=True)
class _Context:
    """What the models of one file share."""

    vendor: str
    choices: Mapping[str, Any]
    words: Mapping[str, _Word]
    price_as_of: str


def read(data: dict[str, Any], name: str, words: Mapping[str, _Word]) -> Iterator[Model]:
    """The models of one file."""
    top = Table(data, name)
    context = _Context(
        vendor=top.take("vendor", str),
        choices=top.take("choices", dict, {}),
        words=words,
        price_as_of=top.take("price_as_of", str, ""),
    )
    models = top.take("models", dict, {})
    top.end()
    for model_id, described in models.items():
        where = f"{name}: {model_id}"
        model = _model(model_id, Table(described, where), context)
        check_model(model, where)
        yield model


def _model(model_id: str, table: Table, context: _Context) -> Model:
    fields = tuple(_field(Table(data, table.where), context) for data in table.take("fields", list, []))
    known = {one.name: one for one in fields}
    model = Model(
        id=model_id,
        title=table.take("title", str),
        vendor=table.take("vendor", str, context.vendor),
        category=table.member("category", Category),
        also=table.members("also", Category),
        family=table.member("family", Family, Family.MARKET),
        operation=table.take("operation", str, "generate"),
        outputs=table.members("outputs", Output),
        count=_count(table),
        fields=fields,
        fixed={name: plain(value) for name, value in table.take("fixed", dict, {}).items()},
        rules=tuple(_rule(row, known) for row in table.tables("rules", "rule")),
        prices=tuple(_price(row, known) for row in table.tables("prices", "price")),
        extras=tuple(_price(row, known) for row in table.tables("extras", "extra")),
        price_as_of=table.take("price_as_of", str, context.price_as_of),
        expected_seconds=table.take("expected_seconds", int),
        deadline_seconds=table.take("deadline_seconds", int),
        status=table.member("status", Status, Status.OFFERED),
        reason=table.take("reason", str, ""),
        note=table.take("note", str, ""),
        free=table.take("free", bool, default=False),
        aliases=table.words("aliases"),
    )
    table.end()
    return model


def _count(table: Table) -> int | str:
    count = table.raw("count", 1)
    if isinstance(count, bool) or not isinstance(count, int | str) or count in (0, ""):
        raise table.wrong(f"count must be a number of 1 or more, or a field's name, not {count!r}")
    return count


def _field(table: Table, context: _Context) -> Field:
    name = table.take("name", str)
    table.where += f": {name}"
    word = context.words.get(name, _Word())
    kind = table.member("type", FieldType)
    choices, labels = _choices(table, context.choices)
    one = Field(
        name=name,
        type=kind,
        many=table.take("many", bool, default=kind is FieldType.OBJECTS),
        required=table.take("required", bool, default=False),
        choices=choices,
        labels=labels,
        default=plain(table.raw("default")),
        min=table.number("min"),
        max=table.number("max"),
        step=table.number("step"),
        min_length=table.take("min_length", int, 0),
        max_length=_optional_int(table, "max_length"),
        min_count=table.take("min_count", int, 0),
        max_count=_optional_int(table, "max_count"),
        max_mb=table.number("max_mb"),
        max_seconds=table.number("max_seconds"),
        members=table.words("members"),
        sample=plain(table.raw("sample")),
        advanced=table.take("advanced", bool, default=word.advanced),
        internal=word.internal,
        about={**word.about, **table.texts("about")},
    )
    table.end()
    _check_field(one, table)
    return one


def _optional_int(table: Table, key: str) -> int | None:
    return table.take(key, int) if key in table else None


def _choices(table: Table, shared: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, dict[str, str]]]:
    """Values as a list, or as a table from value to label; a name stands for a list that several fields share."""
    value = table.raw("choices", [])
    if isinstance(value, str):
        if value not in shared:
            raise table.wrong(f"choices names {value!r}, which this file does not define under [choices]")
        value = shared[value]
    if isinstance(value, dict) and all(isinstance(label, str | dict) for label in value.values()):
        return tuple(value), {
            choice: {"en": label} if isinstance(label, str) else Table(label, table.where).all_texts()
            for choice, label in value.items()
        }
    if not isinstance(value, list) or any(isinstance(item, list | dict) for item in value):
        raise table.wrong("choices must be a list of values, or a table of value = label")
    return tuple(plain(item) for item in value), {}


def _check_field(one: Field, table: Table) -> None:
    if (one.type is FieldType.CHOICE) != bool(one.choices):
        raise table.wrong("a choice needs choices" if not one.choices else f"{one.type} takes no choices")
    if len(set(one.choices)) != len(one.choices):
        raise table.wrong("choices has a value twice")
    for low, high, name in (
        (one.min, one.max, "max"),
        (one.min_length, one.max_length, "max_length"),
        (one.min_count, one.max_count, "max_count"),
    ):
        if low is not None and high is not None and low > high:
            raise table.wrong(f"{name} is less than min{name[3:]}")
    for key, value in (("default", one.default), ("sample", one.sample)):
        if value in (None, "", []):
            continue
        try:
            clean = one.clean(value)
        except InvalidInput as refused:
            raise table.wrong(f"{key} {value!r} {refused.message}") from None
        if clean != value or type(clean) is not type(value):
            raise table.wrong(f"{key} {value!r} must be written as {clean!r}")


def _when(table: Table, known: Mapping[str, Field]) -> dict[str, tuple[object, ...]]:
    """Conditions: a value, or a list of values of which one holds."""
    when = {}
    for name, value in table.take("when", dict, {}).items():
        allowed = tuple(plain(item) for item in (value if isinstance(value, list) else [value]))
        one = _known(table, "when", name, known)
        for item in allowed:
            if one.choices and item not in one.choices:
                raise table.wrong(f"when.{name}: {item!r} is not one of the field's choices")
            if one.type is FieldType.BOOLEAN and not isinstance(item, bool):
                raise table.wrong(f"when.{name}: must be true or false, not {item!r}")
        when[name] = allowed
    return when


def _known(table: Table, key: str, name: object, known: Mapping[str, Field]) -> Field:
    if not isinstance(name, str) or name not in known:
        raise table.wrong(f"{key} names {name!r}, which is not a field of this model")
    return known[name]


def _names(table: Table, key: str, known: Mapping[str, Field]) -> tuple[str, ...]:
    return tuple(_known(table, key, name, known).name for name in table.words(key))


def _price(table: Table, known: Mapping[str, Field]) -> PriceRow:
    measures = {
        key: _known(table, key, table.raw(key), known).name
        for key in ("times", "count", "seconds", "characters")
        if key in table
    }
    if len(measures) > 1:
        raise table.wrong(f"has both {' and '.join(measures)}; a row is multiplied by one thing")
    row = PriceRow(
        credits=table.amount("credits"),
        when=_when(table, known),
        given=_names(table, "given", known),
        each=table.take("each", int, 1),
        free=table.take("free", int, 0),
        label=table.take("label", str) if "label" in table else None,
        **measures,
    )
    table.end()
    if row.each < 1:
        raise table.wrong("each must be 1 or more")
    return row


def _rule(table: Table, known: Mapping[str, Field]) -> Rule:
    rule = Rule(
        when=_when(table, known),
        given=_names(table, "given", known),
        any_of=_names(table, "any_of", known),
        require=_names(table, "require", known),
        forbid=_names(table, "forbid", known),
        apart=_groups(table, known),
        never=table.take("never", bool, default=False),
        most=_most(table, known),
    )
    table.end()
    said = [rule.any_of, rule.require, rule.forbid, rule.apart, rule.never, rule.most]
    if sum(map(bool, said)) != 1:
        raise table.wrong("needs exactly one of any_of, require, forbid, apart, never, most")
    if not (rule.any_of or rule.apart or rule.when or rule.given):
        raise table.wrong("needs a condition: when or given")
    return rule


def _groups(table: Table, known: Mapping[str, Field]) -> tuple[tuple[str, ...], ...]:
    groups = table.take("apart", list, [])
    if not all(isinstance(group, list) for group in groups):
        raise table.wrong("apart must be a list of lists of fields")
    return tuple(tuple(_known(table, "apart", name, known).name for name in group) for group in groups)


def _most(table: Table, known: Mapping[str, Field]) -> dict[str, int]:
    limits = Table(table.take("most", dict, {}), f"{table.where}: most")
    most = {name: limits.take(name, int) for name in known if name in limits}
    limits.end()
    return most
