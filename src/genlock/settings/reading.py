"""Reads the settings from the environment and the `.env` file, and names all that are missing, wrong or unknown."""

import logging
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TypeVar

from pydantic import ValidationError
from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource

from genlock.domain.errors import Refusal
from genlock.entry_points import PREFIX, PluginKind, declared_plugins, setting_prefixes
from genlock.settings.declared import built_in_fields, read_built_in
from genlock.settings.fields import Settings
from genlock.settings.problems import explain

#: our variables that are not settings of the service
_OTHERS = {"GENLOCK_BENCH_DATABASE_URL", "GENLOCK_TEST_API_CASES", "GENLOCK_TEST_CHROMIUM", "GENLOCK_TEST_POSTGRES_URL"}

Kind = TypeVar("Kind", bound=Settings)


class _UnreadableLines(logging.Filter):
    """Says once what is wrong with a line of the `.env` file: each reader of settings reads the whole file."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[object] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if "could not parse" not in record.msg:
            return True
        if record.args in self._told:
            return False
        self._told.add(record.args)
        record.msg = (
            "The .env file has a line near line %s that is not NAME=VALUE: it has no effect, correct it or remove it"
        )
        return True


logging.getLogger("dotenv.main").addFilter(_UnreadableLines())


def read_settings(kind: type[Kind]) -> Kind:
    """Return the settings. Raises one Refusal that names every missing and wrong setting, those of providers too."""
    settings, problems = None, []
    try:
        settings = kind()
    except ValidationError as error:
        problems = [explain(kind, problem, PREFIX) for problem in error.errors(include_url=False)]
    problems += _provider_problems(needed=kind.needs_provider)
    if settings is None or problems:
        lines = "\n".join(f"  {line}" for line in (*problems, *unknown_settings_messages()))
        raise Refusal(f"Some settings are missing or wrong:\n{lines}")
    return settings


def _provider_problems(*, needed: bool) -> list[str]:
    """Return what is wrong in the settings of the providers that this package brings.

    Without any provider, the settings of the first one are reported as missing. An installed plug-in may be the
    provider: it is loaded later.
    """
    read = list(read_built_in().values())
    problems = [sentence for plugin in read for sentence in plugin.wrong]
    is_absent = all(plugin.missing for plugin in read)
    if needed and is_absent and not any(plugin.kind is PluginKind.PROVIDER for plugin in declared_plugins()):
        problems[:0] = read[0].missing.values()
    return problems


def own_variables() -> list[str]:
    """Return the names of all settings of the service and of the providers that this package brings."""
    return [*(f"{PREFIX}{name.upper()}" for name in Settings.model_fields), *(name for name, _ in built_in_fields())]


def unknown_settings() -> Iterator[tuple[str, str | None]]:
    """Yield unknown variables with our prefix, each with the closest known name. Never a value.

    Those of installed plug-ins are left out: only the plug-ins know them.
    """
    known = own_variables()
    unknown = sorted(given_variables() - {*known, *_OTHERS})
    prefixes = setting_prefixes() if unknown else ()
    endings = [name.removeprefix(PREFIX) for name in known]
    for name in unknown:
        if not name.startswith(prefixes):
            nearest = get_close_matches(name.removeprefix(PREFIX), endings, 1)
            yield name, f"{PREFIX}{nearest[0]}" if nearest else None


def given_variables() -> set[str]:
    """Return the names of all variables with our prefix in the environment and the `.env` file."""
    sources = (EnvSettingsSource(Settings), DotEnvSettingsSource(Settings))
    names = {name.upper() for source in sources for name in source.env_vars}
    return {name for name in names if name.startswith(PREFIX)}


def unknown_settings_messages(more: Iterable[tuple[str, str | None]] = ()) -> list[str]:
    """Return a message for each unknown variable, and for `more` of them."""
    return [
        f"Unknown setting {name}: " + (f"did you mean {nearest}?" if nearest else "it has no effect, remove it")
        for name, nearest in (*unknown_settings(), *more)
    ]
