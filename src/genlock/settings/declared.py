"""The settings that providers and plug-ins declare: all are read in the same way.

A field `key` of what the provider `acme` declares is the variable GENLOCK_ACME_KEY.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel, Secret, SecretBytes, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, DotEnvSettingsSource, EnvSettingsSource, SettingsConfigDict

from genlock.entry_points import setting_prefix
from genlock.providers import built_in_plugins
from genlock.settings.problems import aliases, explain, field_at_fault

ENV_FILE = ".env"
_SECRETS = (SecretStr, SecretBytes, Secret)


@dataclass(frozen=True, kw_only=True)
class DeclaredSettings:
    """What became of the settings that one provider or plug-in declares."""

    kind: type[BaseModel]
    #: None: some are missing or wrong
    values: BaseModel | None = None
    #: the text of each variable that is set, by the name of its field
    texts: Mapping[str, str | SecretStr]
    #: a sentence for each required variable that is not set, by its name
    missing: Mapping[str, str] = field(default_factory=dict)
    #: a sentence for each variable that is wrong
    wrong: tuple[str, ...] = ()

    def secrets(self) -> list[str]:
        """Return every secret that is set, as it was written and as it is used, even if other settings are wrong."""
        return list(dict.fromkeys([*secrets_in(self.texts), *secrets_in(self.values)]))


def read_declared(name: str, kind: type[BaseModel]) -> DeclaredSettings:
    """Read the settings of one provider or plug-in. Raises what the checks of a plug-in raise beside ValueError."""
    texts = read_texts(name, kind)
    problems: list[Any] = _nothing_set(kind) if not texts else []
    if not problems:
        try:
            return DeclaredSettings(kind=kind, values=_reader(name, kind)(), texts=texts)
        except ValidationError as error:
            problems = list(error.errors(include_url=False))
    prefix = setting_prefix(name)
    missing = [problem for problem in problems if problem["type"] == "missing" and field_at_fault(kind, problem)]
    return DeclaredSettings(
        kind=kind,
        texts=texts,
        missing={
            f"{prefix}{field_at_fault(kind, problem)}".upper(): explain(kind, problem, prefix) for problem in missing
        },
        wrong=tuple(explain(kind, problem, prefix) for problem in problems if problem not in missing),
    )


def _nothing_set(kind: type[BaseModel]) -> list[Any]:
    """Return what pydantic would report, without the time that it takes: most providers are not configured."""
    required = [name for name, info in kind.model_fields.items() if info.is_required()]
    return [{"type": "missing", "loc": (name,), "msg": "Field required"} for name in required]


def read_built_in() -> dict[str, DeclaredSettings]:
    """Read the settings of every provider that this package brings."""
    return {name: read_declared(name, plugin.settings) for name, plugin in built_in_plugins().items()}


def built_in_fields() -> Iterator[tuple[str, FieldInfo]]:
    """Yield each variable that the providers of this package declare, with its description."""
    for name, plugin in built_in_plugins().items():
        yield from variables(name, plugin.settings)


def variables(name: str, kind: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield each variable of a provider or plug-in, with its description."""
    for field_name, info in kind.model_fields.items():
        yield f"{setting_prefix(name)}{field_name.upper()}", info


def is_secret(info: FieldInfo) -> bool:
    return _holds_secret(info.annotation, set())


def _holds_secret(kind: Any, seen: set[Any]) -> bool:
    """Whether a type is a secret, or has one in it."""
    origin = get_origin(kind) or kind
    if isinstance(origin, type) and issubclass(origin, _SECRETS):
        return True
    inner = list(get_args(kind))
    if isinstance(origin, type) and issubclass(origin, BaseModel) and origin not in seen:
        seen.add(origin)
        inner += [info.annotation for info in origin.model_fields.values()]
    return any(_holds_secret(argument, seen) for argument in inner)


def secrets_in(setting: Any) -> Iterator[str]:
    """Yield every secret in a setting, or in a model of settings."""
    if isinstance(setting, _SECRETS):
        secret = setting.get_secret_value()
        yield secret.decode(errors="replace") if isinstance(secret, bytes) else str(secret)
    elif isinstance(setting, BaseModel):
        for name in type(setting).model_fields:
            yield from secrets_in(getattr(setting, name))
    elif isinstance(setting, Mapping):
        for item in setting.values():
            yield from secrets_in(item)
    elif isinstance(setting, list | tuple | set | frozenset):
        for item in setting:
            yield from secrets_in(item)


@cache
def _reader(name: str, kind: type[BaseModel]) -> type[BaseSettings]:
    """Return the declared settings as a class that reads itself from the environment and the `.env` file."""
    config = SettingsConfigDict(
        env_prefix=setting_prefix(name),
        env_file=ENV_FILE,
        extra="ignore",
        populate_by_name=True,
        env_ignore_empty=True,
        hide_input_in_errors=True,
    )
    return type(kind.__name__, (kind, BaseSettings), {"__module__": kind.__module__, "model_config": config})


def read_texts(name: str, kind: type[BaseModel]) -> dict[str, str | SecretStr]:
    """Return the text of each variable that is set, by the name of its field; the environment goes before the file."""
    found: dict[str, str | SecretStr] = {}
    sources: tuple[Mapping[str, Any], ...] = (EnvSettingsSource(_Any).env_vars, DotEnvSettingsSource(_Any).env_vars)
    for field_name, info in kind.model_fields.items():
        names = [written.lower() for written in (f"{setting_prefix(name)}{field_name}", *aliases(info))]
        texts = (source[written] for source in sources for written in names if source.get(written))
        if (text := next(texts, None)) is not None:
            found[field_name] = SecretStr(text) if is_secret(info) else text
    return found


class _Any(BaseSettings):
    """Any variables of the environment and the `.env` file."""

    model_config = SettingsConfigDict(env_file=ENV_FILE, env_ignore_empty=True)
