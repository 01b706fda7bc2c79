"""Finds the plug-ins, reads their settings, and leaves out those that cannot be used, each with the reason and remedy.

The adapters of this package are declared in the same form as those of installed packages, and loaded in the same way.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from importlib.metadata import EntryPoint
from pathlib import Path

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_settings import BaseSettings, DotEnvSettingsSource, EnvSettingsSource, SettingsConfigDict, SettingsError

from genlock.entry_points import Declared, PluginKind, declared_plugins, setting_prefix
from genlock.ports import PORT_VERSION, ChannelPlugin, ProviderPlugin
from genlock.providers import BUILT_IN
from genlock.settings import Settings, explain, given_variables

#: channels that the service makes itself
OWN_CHANNELS = ("telegram", "api")
_NAME = re.compile(r"[a-z][a-z0-9_]{1,30}[a-z0-9]")
_TYPES = {PluginKind.PROVIDER: ProviderPlugin, PluginKind.CHANNEL: ChannelPlugin}
_REASON_LENGTH_MAX = 1000


class PluginState(StrEnum):
    IN_USE = "in_use"
    NOT_CONFIGURED = "not_configured"  #: a required setting is not set
    LEFT_OUT = "left_out"


@dataclass(kw_only=True)
class Plugin:
    """One plug-in, and what became of it."""

    kind: PluginKind
    name: str
    #: the package and its version; empty: this package
    package: str = ""
    version: str = ""
    declared: ProviderPlugin | ChannelPlugin | None = None
    settings: BaseModel | None = None
    state: PluginState = PluginState.IN_USE
    #: the settings that must be set before it can be used
    missing: tuple[str, ...] = ()
    #: why it is left out, and what to do
    reason: str = ""
    remedy: str = ""

    @property
    def is_built_in(self) -> bool:
        return not self.package

    def leave_out(self, reason: str, remedy: str) -> None:
        self.state, self.settings = PluginState.LEFT_OUT, None
        self.reason, self.remedy = reason[:_REASON_LENGTH_MAX], remedy

    def fail(self, step: str, error: BaseException) -> None:
        """Leave it out because its code raised an error."""
        self.leave_out(f"{step}: {type(error).__name__}: {error}", _another_version(self))

    def setting_names(self) -> list[str]:
        fields = self.declared.settings.model_fields if self.declared else ()
        return [f"{setting_prefix(self.name)}{name.upper()}" for name in fields]

    def secrets(self) -> Iterator[str]:
        for name in type(self.settings).model_fields if self.settings else ():
            setting = getattr(self.settings, name)
            if isinstance(setting, SecretStr):
                yield setting.get_secret_value()


@dataclass
class Plugins:
    """All plug-ins, those of this package first."""

    all: list[Plugin]

    def usable(self, kind: PluginKind) -> list[Plugin]:
        return [one for one in self.all if one.kind is kind and one.state is PluginState.IN_USE]

    @property
    def installed(self) -> list[Plugin]:
        """Return those of other packages."""
        return [one for one in self.all if not one.is_built_in]

    @property
    def left_out(self) -> list[Plugin]:
        return [one for one in self.all if one.state is PluginState.LEFT_OUT]

    def secrets(self) -> list[str]:
        """Return every secret in the settings of installed plug-ins, so that the log can mask them."""
        return [secret for one in self.installed for secret in one.secrets()]

    def unknown_settings(self) -> Iterator[tuple[str, str | None]]:
        """Yield variables with the prefix of a plug-in that it does not declare, each with the closest known name."""
        declared = [one for one in self.installed if one.declared is not None]
        known = [name for one in declared for name in one.setting_names()]
        for variable in sorted(given_variables() - set(known)):
            if variable.startswith(tuple(setting_prefix(one.name) for one in declared)):
                yield variable, next(iter(get_close_matches(variable, known, 1)), None)


def find_plugins(settings: Settings) -> Plugins:
    """Load every plug-in and read its settings."""
    installed = declared_plugins()
    plugins = [
        *(_own(name, place) for name, place in BUILT_IN.items()),
        *(
            _installed(one, [other for other in installed if (other.kind, other.name) == (one.kind, one.name)])
            for one in installed
        ),
    ]
    for plugin in plugins:
        if plugin.declared is not None:
            _read_settings(plugin, plugin.declared.settings, settings)
    return Plugins(plugins)


def _own(name: str, place: str) -> Plugin:
    declared = EntryPoint(name, place, PluginKind.PROVIDER.group).load()
    return Plugin(kind=PluginKind.PROVIDER, name=name, declared=declared)


def _installed(one: Declared, of_this_name: list[Declared]) -> Plugin:
    plugin = Plugin(kind=one.kind, name=one.name, package=one.package, version=one.version)
    if one.entry is None:
        plugin.leave_out("the package's list of entry points cannot be read", _another_version(plugin))
    elif not _NAME.fullmatch(one.name):
        plugin.leave_out(f"{one.name!r} is not a name: it must be 3 to 32 characters of a-z, 0-9 and _", _tell(plugin))
    elif _is_reserved(one.kind, one.name):
        plugin.leave_out(f"the name {one.name!r} belongs to genlock itself", _tell(plugin))
    elif len(of_this_name) > 1:
        packages = " and ".join(other.package for other in of_this_name)
        plugin.leave_out(f"{packages} both bring the {one.kind} {one.name!r}", "uninstall all of them but one")
    else:
        _load(plugin, one.entry)
    return plugin


def _is_reserved(kind: PluginKind, name: str) -> bool:
    """Whether the name, or the prefix of its settings, is used by the service."""
    taken = BUILT_IN if kind is PluginKind.PROVIDER else OWN_CHANNELS
    return name in taken or any(one.startswith(f"{name}_") for one in Settings.model_fields)


def _load(plugin: Plugin, entry: EntryPoint) -> None:
    """Import the plug-in and check what it is."""
    try:
        declared = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the package does while it is imported
        plugin.fail(f"{entry.value} cannot be imported", error)
        return
    wanted = _TYPES[plugin.kind]
    if not isinstance(declared, ProviderPlugin | ChannelPlugin) or not isinstance(declared, wanted):
        reason = f"{entry.value} is of the type {type(declared).__name__}, not {wanted.__name__}"
        plugin.leave_out(reason, _tell(plugin))
        return
    port: object = declared.port
    if port != PORT_VERSION:
        is_newer = isinstance(port, int) and port > PORT_VERSION
        plugin.leave_out(
            f"it was written for version {port!r} of the {plugin.kind} port; this genlock has {PORT_VERSION}",
            f"{'upgrade genlock, or ' if is_newer else ''}{_another_version(plugin)}",
        )
    elif wrong := _wrong_part(declared):
        plugin.leave_out(wrong, _tell(plugin))
    else:
        plugin.declared = declared


def _wrong_part(declared: ProviderPlugin | ChannelPlugin) -> str | None:
    """Return what a plug-in declares with the wrong type: another package wrote it, maybe without a type checker."""
    settings: object = declared.settings
    if not (isinstance(settings, type) and issubclass(settings, BaseModel)):
        return "its settings are not a pydantic model"
    if isinstance(declared, ProviderPlugin):
        catalog: object = declared.catalog
        credit_usd: object = declared.credit_usd
        if catalog is not None and not isinstance(catalog, Path):
            return "its catalog is not a Path"
        if not isinstance(credit_usd, Decimal) or not credit_usd.is_finite() or credit_usd < 0:
            return "its credit_usd is not a Decimal of 0 or more"
    return None


def _read_settings(plugin: Plugin, kind: type[BaseModel], settings: Settings) -> None:
    """Read the settings of a plug-in: those of this package from the service's own, the others from the environment."""
    if plugin.is_built_in:
        given = {name: getattr(settings, f"{plugin.name}_{name}") for name in kind.model_fields}
        required = [name for name, one in kind.model_fields.items() if one.annotation is SecretStr]
        plugin.missing = tuple(setting_prefix(plugin.name) + name.upper() for name in required if given[name] is None)
        if plugin.missing:
            plugin.state = PluginState.NOT_CONFIGURED
        else:
            plugin.settings = kind.model_validate(given)
        return
    try:
        plugin.settings = _reader(plugin.name, kind)()
    except ValidationError as error:
        _settings_wrong(plugin, _reader(plugin.name, kind), error)
    except SettingsError as error:  # a list or a table that is not JSON
        plugin.leave_out(f"its settings cannot be read: {error}", "correct the settings and restart the service")
    except Exception as error:  # noqa: BLE001 - a plug-in may define its own checks
        plugin.fail("its settings cannot be read", error)


def _reader(name: str, kind: type[BaseModel]) -> type[BaseSettings]:
    """Return the plug-in's settings as a class that reads itself from the environment and the `.env` file."""
    config = SettingsConfigDict(
        env_prefix=setting_prefix(name),
        env_file=Settings.model_config["env_file"],
        extra="ignore",
        env_ignore_empty=True,
        hide_input_in_errors=True,
    )
    return type(kind.__name__, (kind, BaseSettings), {"__module__": kind.__module__, "model_config": config})


def _settings_wrong(plugin: Plugin, reader: type[BaseSettings], error: ValidationError) -> None:
    """Leave the plug-in out, unless the operator has set nothing yet."""
    problems, prefix = error.errors(include_url=False), setting_prefix(plugin.name)
    names = [f"{prefix}{str(one['loc'][0] if one['loc'] else '').upper()}" for one in problems]
    given = EnvSettingsSource(reader)() or DotEnvSettingsSource(reader)()
    if not given and all(one["type"] == "missing" for one in problems):
        plugin.state, plugin.missing = PluginState.NOT_CONFIGURED, tuple(names)
        return
    known = set(plugin.setting_names())
    lines = [
        explain(reader, one, prefix) if name in known else f"{name} {one['msg']}"
        for name, one in zip(names, problems, strict=True)
    ]
    plugin.leave_out("; ".join(lines), "correct the settings and restart the service")


def _tell(plugin: Plugin) -> str:
    return f"tell the author of {plugin.package}, and remove it: `pip uninstall {plugin.package}`"


def _another_version(plugin: Plugin) -> str:
    return f"install another version of {plugin.package}, or remove it: `pip uninstall {plugin.package}`"
