"""Loads the catalog: reads the files, checks what the schema cannot check, and makes the domain's values."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from genlock.catalog import overlay as overlays
from genlock.catalog.coverage import check_model
from genlock.catalog.extensions import CatalogExtension
from genlock.catalog.next_steps import STEPS, load_next_steps
from genlock.catalog.offers import OFFERS, add_offers
from genlock.catalog.presets import PRESETS, load_presets, load_samples
from genlock.catalog.reader import check, parse
from genlock.catalog.schema import (
    FieldTable,
    ImproverTable,
    ModelFile,
    ModelTable,
    ProvidersFile,
    RuleTable,
    SharedFieldsFile,
    SharedFieldTable,
    plain,
)
from genlock.catalog.scope import Scope, price_row
from genlock.catalog.wishes import VOCABULARY, WISHES, load_vocabulary, load_wishes
from genlock.domain.catalog import Catalog, Category, Field, Model
from genlock.domain.errors import InvalidCatalog, InvalidInput
from genlock.domain.field import FieldType
from genlock.domain.presets import PromptImprover, SampleFiles
from genlock.domain.rule import Rule
from genlock.domain.wish import Wish

DATA = Path(__file__).parent / "data"
PROVIDERS = "providers.toml"
SHARED_FIELDS = "shared_fields.toml"
NOT_MODELS = (PROVIDERS, SHARED_FIELDS, STEPS, WISHES, VOCABULARY, PRESETS)
_NOT_SHARED = SharedFieldTable()
#: keys of a choice beside its labels by language
TRAITS = ("sex", "language")
_DEMANDS = ("any_of", "require", "forbid", "apart", "never", "most")


@dataclass(frozen=True, kw_only=True)
class Providers:
    """The providers that models may name."""

    default: str
    credit_usd: Mapping[str, Decimal]


@dataclass(frozen=True, kw_only=True)
class _Files:
    """What the files of a folder say, before extensions and the operator's overlay."""

    providers: Providers
    shared_fields: Mapping[str, SharedFieldTable]
    models: Mapping[str, Model]
    wishes: tuple[Wish, ...]


#: called with the provider of an extension that cannot be used, and what is wrong with its files
LeaveOut = Callable[[str, Exception], None]


def load(
    overlay: Path | None = None,
    *,
    data: Path = DATA,
    extensions: Sequence[CatalogExtension] = (),
    leave_out: LeaveOut | None = None,
    absent: Collection[str] = (),
) -> Catalog:
    """Load all models of the package and its extensions, with the changes of the operator's overlay.

    An extension whose files are wrong is passed to `leave_out`. The overlay may name models and offers of providers
    that are `absent`, or left out here: that has no effect. Raises InvalidCatalog.
    """
    files = _packaged() if data == DATA else _read_files(data)
    wishes = files.wishes
    models, extended = _extend_by_all(dict(files.models), extensions, files.shared_fields, leave_out)
    samples = SampleFiles()
    if overlay is not None:
        missing = {*absent, *(extension.provider for extension in extensions if extension not in extended)}
        changes = overlays.without_absent(parse(overlay), missing, models)
        models = overlays.apply(models, changes, overlay.name)
        wishes = overlays.apply_to_wishes(wishes, changes, overlay.name, models)
        samples = load_samples(overlays.samples_of(changes, overlay.name), overlay, models)
    styles, ideas = load_presets(data / PRESETS, samples)
    order = {category: number for number, category in enumerate(Category)}
    return Catalog(
        models=dict(sorted(models.items(), key=lambda item: order[item[1].category])),
        provider_credit_usd={
            **files.providers.credit_usd,
            **{extension.provider: extension.credit_usd for extension in extended},
        },
        next_steps=load_next_steps(data / STEPS, models),
        styles=styles,
        ideas=ideas,
        samples=samples,
        wishes=wishes,
        vocabulary=load_vocabulary(data / VOCABULARY, models),
    )


def _read_files(data: Path) -> _Files:
    providers, shared_fields = load_providers(), _load_shared_fields(data / SHARED_FIELDS)
    models = _load_models(data, shared_fields, providers)
    return _Files(
        providers=providers,
        shared_fields=shared_fields,
        wishes=load_wishes(data / WISHES, models),
        models=add_offers(models, data / OFFERS, providers.credit_usd),
    )


@cache
def _packaged() -> _Files:
    """Read the files of this package once: they do not change while the process runs."""
    return _read_files(DATA)


def _extend_by_all(
    models: dict[str, Model],
    extensions: Sequence[CatalogExtension],
    shared_fields: Mapping[str, SharedFieldTable],
    leave_out: LeaveOut | None,
) -> tuple[dict[str, Model], list[CatalogExtension]]:
    """Return the models with those of the extensions, and the extensions whose files are right."""
    extended = []
    for extension in extensions:
        try:
            models = _extend(models, extension, shared_fields)
            extended.append(extension)
        except Exception as error:
            if leave_out is None:
                raise
            leave_out(extension.provider, error)
    return models, extended


def _load_models(data: Path, shared_fields: Mapping[str, SharedFieldTable], providers: Providers) -> dict[str, Model]:
    models: dict[str, Model] = {}
    for path in sorted(data.glob("*.toml")):
        if path.name in NOT_MODELS:
            continue
        for model in read(parse(path), path.name, shared_fields, providers):
            if model.id in models:
                raise InvalidCatalog(f"{path.name}: {model.id}: is already described in another file")
            models[model.id] = model
    return models


def _extend(
    models: Mapping[str, Model], extension: CatalogExtension, shared_fields: Mapping[str, SharedFieldTable]
) -> dict[str, Model]:
    """Return the models with those and the offers of a plug-in. Raises InvalidCatalog."""
    known = dict(models)
    own = Providers(default=extension.provider, credit_usd={extension.provider: extension.credit_usd})
    for path in extension.paths():
        for model in read(parse(path), path.name, shared_fields, own):
            extension.check_id(model, known, path.name)
            known[model.id] = model
    return add_offers(known, extension.folder / OFFERS, own.credit_usd) if extension.folder else known


def load_providers(path: Path = DATA / PROVIDERS) -> Providers:
    file = check(ProvidersFile, parse(path), path.name)
    return Providers(
        default=file.default, credit_usd={name: provider.credit_usd for name, provider in file.providers.items()}
    )


def _load_shared_fields(path: Path) -> dict[str, SharedFieldTable]:
    if not path.exists():
        return {}
    return check(SharedFieldsFile, parse(path), path.name).root


def read(
    data: dict[str, Any], name: str, shared_fields: Mapping[str, SharedFieldTable], providers: Providers
) -> Iterator[Model]:
    """Yield the models of one file. Raises InvalidCatalog."""
    file = check(ModelFile, data, name)
    for model_id, table in file.models.items():
        where = f"{name}: {model_id}"
        model = _Reader(where, file, shared_fields, providers).model(model_id, table)
        check_model(model, where)
        yield model


@dataclass(frozen=True)
class _Reader:
    """Makes one model from its table."""

    where: str
    file: ModelFile
    shared_fields: Mapping[str, SharedFieldTable]
    providers: Providers

    def model(self, model_id: str, table: ModelTable) -> Model:
        fields = tuple(self._field(field) for field in table.fields)
        scope = Scope(where=self.where, fields={field.name: field for field in fields})
        provider = table.provider or self.file.provider or self.providers.default
        if provider not in self.providers.credit_usd:
            known = ", ".join(self.providers.credit_usd)
            raise scope.wrong(f"provider must be one of {known}, not {provider!r}; {PROVIDERS} lists them")
        return Model(
            id=model_id,
            title=table.title,
            vendor=table.vendor or self.file.vendor,
            provider=provider,
            provider_model=table.provider_model,
            provider_credit_usd=self.providers.credit_usd[provider],
            category=table.category,
            also=tuple(table.also),
            family=table.family,
            operation=table.operation,
            outputs=tuple(table.outputs),
            count=table.count,
            fields=fields,
            fixed=table.fixed,
            rules=tuple(_rule(row, scope.inner(f"rule {n}")) for n, row in enumerate(table.rules, 1)),
            prices=tuple(price_row(row, scope.inner(f"price {n}")) for n, row in enumerate(table.prices, 1)),
            extras=tuple(price_row(row, scope.inner(f"extra {n}")) for n, row in enumerate(table.extras, 1)),
            price_as_of=self.file.price_as_of if table.price_as_of is None else table.price_as_of,
            expected_seconds=table.expected_seconds,
            deadline_seconds=table.deadline_seconds,
            status=table.status,
            reason=table.reason,
            note=table.note,
            free=table.free,
            aliases=tuple(table.aliases),
            exact=table.exact,
            improves=_improver(table.improves, scope),
            listed=table.listed,
            good_at=table.good_at,
            styles=table.styles,
        )

    def _field(self, table: FieldTable) -> Field:
        scope = Scope(where=f"{self.where}: {table.name}", fields={})
        shared = self.shared_fields.get(table.name, _NOT_SHARED)
        choices, labels, traits = _choices(table.choices, self.file.choices, scope)
        field = Field(
            name=table.name,
            type=table.type,
            many=(table.type is FieldType.OBJECTS) if table.many is None else table.many,
            required=table.required,
            choices=choices,
            labels=labels,
            traits=traits,
            default=table.default,
            min=table.min,
            max=table.max,
            step=table.step,
            min_length=table.min_length,
            max_length=table.max_length,
            min_count=table.min_count,
            max_count=table.max_count,
            max_mb=table.max_mb,
            max_seconds=table.max_seconds,
            members=tuple(table.members),
            sample=table.sample,
            advanced=shared.advanced if table.advanced is None else table.advanced,
            internal=shared.internal,
            unit=shared.unit,
            about={**shared.texts(), **table.about},
        )
        _check_limits(field, scope)
        _check_values(field, scope)
        return field


def _improver(table: ImproverTable | None, scope: Scope) -> PromptImprover | None:
    if table is None:
        return None
    if scope.field("improves", table.field).type is not FieldType.TEXT:
        raise scope.wrong(f"improves: {table.field} is not a text")
    of = tuple(category.value for category in table.of)
    return PromptImprover(field=table.field, of=of, instruction=table.instruction)


def _choices(
    value: Any, shared: Mapping[str, Any], scope: Scope
) -> tuple[tuple[Any, ...], dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """Return values, labels and traits. In the file: a list, a table of value = label, or the name of a shared one."""
    if isinstance(value, str):
        if value not in shared:
            raise scope.wrong(f"choices names {value!r}, which this file does not define under [choices]")
        value = shared[value]
    if isinstance(value, dict) and all(isinstance(label, str | dict) for label in value.values()):
        texts = {choice: _label(label, scope) for choice, label in value.items()}
        traits = {
            choice: {name: text[name] for name in TRAITS if name in text}
            for choice, text in texts.items()
            if set(TRAITS) & set(text)
        }
        labels = {choice: {k: v for k, v in text.items() if k not in TRAITS} for choice, text in texts.items()}
        return tuple(value), labels, traits
    if not isinstance(value, list) or any(isinstance(item, list | dict) for item in value):
        raise scope.wrong("choices must be a list of values, or a table of value = label")
    return tuple(plain(item) for item in value), {}, {}


def _label(label: str | dict[str, Any], scope: Scope) -> dict[str, str]:
    texts = {"en": label} if isinstance(label, str) else label
    if not all(isinstance(text, str) for text in texts.values()):
        raise scope.wrong("a label must be a text, or a table of language = text")
    return texts


def _check_limits(field: Field, scope: Scope) -> None:
    if (field.type is FieldType.CHOICE) != bool(field.choices):
        raise scope.wrong("a choice needs choices" if not field.choices else f"{field.type} takes no choices")
    if len(set(field.choices)) != len(field.choices):
        raise scope.wrong("choices has a value twice")
    for low, high, name in (
        (field.min, field.max, "max"),
        (field.min_length, field.max_length, "max_length"),
        (field.min_count, field.max_count, "max_count"),
    ):
        if low is not None and high is not None and low > high:
            raise scope.wrong(f"{name} is less than min{name[3:]}")


def _check_values(field: Field, scope: Scope) -> None:
    for key, value in (("default", field.default), ("sample", field.sample)):
        if value in (None, "", []):
            continue
        try:
            clean = field.clean(value)
        except InvalidInput as refused:
            raise scope.wrong(f"{key} {value!r} {refused.message}") from None
        if clean != value or type(clean) is not type(value):
            raise scope.wrong(f"{key} {value!r} must be written as {clean!r}")


def _rule(table: RuleTable, scope: Scope) -> Rule:
    for name in table.most:
        scope.field("most", name)
    rule = Rule(
        when=scope.when(table.when),
        given=scope.names("given", table.given),
        any_of=scope.names("any_of", table.any_of),
        require=scope.names("require", table.require),
        forbid=scope.names("forbid", table.forbid),
        apart=tuple(scope.names("apart", group) for group in table.apart),
        never=table.never,
        most=table.most,
    )
    if sum(bool(getattr(rule, demand)) for demand in _DEMANDS) != 1:
        raise scope.wrong(f"needs exactly one of {', '.join(_DEMANDS)}")
    if not (rule.any_of or rule.apart or rule.when or rule.given):
        raise scope.wrong("needs a condition: when or given")
    return rule
