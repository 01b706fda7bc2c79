"""Finds the plug-ins, reads their settings, and leaves out those that cannot be used, each with the reason and remedy.

The adapters of this package are declared in the same form as those of installed packages, and loaded in the same way.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from importlib.metadata import EntryPoint
from pathlib import Path

from pydantic import BaseModel
from pydantic_settings import SettingsError

from genlock.entry_points import Declared, PluginKind, declared_plugins, setting_prefix
from genlock.ports import PORT_VERSION, ChannelPlugin, ProviderPlugin
from genlock.ports.plugin import PublicSource
from genlock.providers import built_in_plugins
from genlock.settings import given_variables
from genlock.settings.declared import DeclaredSettings, is_secret, read_declared, read_texts, variables
from genlock.settings.reading import own_variables

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
    #: None: the plug-in could not be loaded
    read: DeclaredSettings | None = None
    state: PluginState = PluginState.IN_USE
    #: why it is left out, and what to do
    reason: str = ""
    remedy: str = ""

    @property
    def is_built_in(self) -> bool:
        return not self.package

    @property
    def settings(self) -> BaseModel | None:
        """What it reads from the environment; None: some are missing or wrong."""
        return self.read.values if self.read else None

    @property
    def missing(self) -> tuple[str, ...]:
        """The settings that must be set before it can be used."""
        return tuple(self.read.missing) if self.read and self.state is PluginState.NOT_CONFIGURED else ()

    def leave_out(self, reason: str, remedy: str) -> None:
        self.state = PluginState.LEFT_OUT
        self.reason, self.remedy = reason[:_REASON_LENGTH_MAX], remedy

    def fail(self, step: str, error: BaseException) -> None:
        """Leave it out because its code raised an error."""
        self.leave_out(f"{step}: {type(error).__name__}: {error}", _another_version(self))

    def setting_names(self) -> list[str]:
        return [name for name, _ in variables(self.name, self.declared.settings)] if self.declared else []

    def key_settings(self) -> str:
        """Return which settings an operator must set to use it, and where to find them; "": none."""
        if not isinstance(self.declared, ProviderPlugin):
            return ""
        required = [name for name, field in variables(self.name, self.declared.settings) if field.is_required()]
        page = f" ({self.declared.key_page})" if self.declared.key_page else ""
        return f"{' and '.join(required)}{page}" if required else ""


@dataclass
class Plugins:
    """All plug-ins, those of this package first."""

    all: list[Plugin]

    def usable(self, kind: PluginKind) -> list[Plugin]:
        return [plugin for plugin in self.all if plugin.kind is kind and plugin.state is PluginState.IN_USE]

    @property
    def installed(self) -> list[Plugin]:
        """Return those of other packages."""
        return [plugin for plugin in self.all if not plugin.is_built_in]

    @property
    def left_out(self) -> list[Plugin]:
        return [plugin for plugin in self.all if plugin.state is PluginState.LEFT_OUT]

    def key_settings(self, configured: Collection[str] = ()) -> str:
        """Return for messages which settings configure a provider, except those that are configured already."""
        usable = [
            plugin for plugin in self.all if plugin.state is not PluginState.LEFT_OUT and plugin.name not in configured
        ]
        ways = [way for plugin in usable if (way := plugin.key_settings())]
        return " or ".join(filter(None, (", ".join(ways[:-1]), *ways[-1:])))

    def titles(self) -> dict[str, str]:
        """Return the names that operators know providers by."""
        declared = [(plugin.name, plugin.declared) for plugin in self.all]
        return {name: plugin.title or name for name, plugin in declared if isinstance(plugin, ProviderPlugin)}

    def title(self, provider: str) -> str:
        return self.titles().get(provider, provider)

    def setting_names(self, provider: str) -> list[str]:
        return [name for plugin in self._of_provider(provider) for name in plugin.setting_names()]

    def secret_setting_names(self, provider: str) -> list[str]:
        declared = [plugin.declared for plugin in self._of_provider(provider)]
        fields = [field for plugin in declared if plugin for field in variables(provider, plugin.settings)]
        return [name for name, field in fields if is_secret(field)]

    def _of_provider(self, name: str) -> list[Plugin]:
        return [plugin for plugin in self.all if plugin.kind is PluginKind.PROVIDER and plugin.name == name]

    def secrets(self) -> list[str]:
        """Return every secret in the settings of plug-ins, so that the log can mask them."""
        return [secret for plugin in self.all if plugin.read for secret in plugin.read.secrets()]

    def unknown_settings(self) -> Iterator[tuple[str, str | None]]:
        """Yield variables with the prefix of a plug-in that it does not declare, each with the closest known name."""
        declared = [plugin for plugin in self.installed if plugin.declared is not None]
        known = [name for plugin in declared for name in plugin.setting_names()]
        for variable in sorted(given_variables() - set(known)):
            if variable.startswith(tuple(setting_prefix(plugin.name) for plugin in declared)):
                yield variable, next(iter(get_close_matches(variable, known, 1)), None)


def find_plugins() -> Plugins:
    """Load every plug-in and read its settings."""
    installed = declared_plugins()
    plugins = [
        *(
            Plugin(kind=PluginKind.PROVIDER, name=name, declared=declared)
            for name, declared in built_in_plugins().items()
        ),
        *(
            _installed(
                declared, [other for other in installed if (other.kind, other.name) == (declared.kind, declared.name)]
            )
            for declared in installed
        ),
    ]
    for plugin in plugins:
        if plugin.declared is not None:
            _read_settings(plugin, plugin.declared.settings)
    _leave_out_shared_settings([plugin for plugin in plugins if not plugin.is_built_in])
    return Plugins(plugins)


def _leave_out_shared_settings(installed: list[Plugin]) -> None:
    """Leave out plug-ins of which one would get the key of another: `pro_key` of `acme` is `key` of `acme_pro`."""
    owners: dict[str, list[Plugin]] = {}
    for plugin in installed:
        for variable in plugin.setting_names():
            owners.setdefault(variable, []).append(plugin)
    for variable, plugins in owners.items():
        names = sorted({plugin.name for plugin in plugins})
        for plugin in plugins if len(names) > 1 else ():
            reason = f"{variable} is a setting of {' and of '.join(map(repr, names))}, which one is meant is unknown"
            plugin.leave_out(reason, "uninstall all of them but one")


def _installed(declared: Declared, of_this_name: list[Declared]) -> Plugin:
    plugin = Plugin(kind=declared.kind, name=declared.name, package=declared.package, version=declared.version)
    if declared.entry is None:
        plugin.leave_out("the package's list of entry points cannot be read", _another_version(plugin))
    elif not _NAME.fullmatch(declared.name):
        plugin.leave_out(
            f"{declared.name!r} is not a name: it must be 3 to 32 characters of a-z, 0-9 and _", _tell(plugin)
        )
    elif _is_reserved(declared.kind, declared.name):
        plugin.leave_out(f"the name {declared.name!r} belongs to genlock itself", _tell(plugin))
    elif len(of_this_name) > 1:
        packages = " and ".join(other.package for other in of_this_name)
        plugin.leave_out(
            f"{packages} both bring the {declared.kind} {declared.name!r}", "uninstall all of them but one"
        )
    else:
        _load(plugin, declared.entry)
    return plugin


def _is_reserved(kind: PluginKind, name: str) -> bool:
    """Whether the name, or the prefix of its settings, is used by the service."""
    is_channel = kind is PluginKind.CHANNEL and name in OWN_CHANNELS
    return is_channel or any(variable.startswith(setting_prefix(name)) for variable in own_variables())


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
        source: object = declared.public_lists
        texts: list[object] = [declared.title, declared.key_page]
        if catalog is not None and not isinstance(catalog, Path):
            return "its catalog is not a Path"
        if not isinstance(credit_usd, Decimal) or not credit_usd.is_finite() or credit_usd < 0:
            return "its credit_usd is not a Decimal of 0 or more"
        if not all(isinstance(text, str) for text in texts):
            return "its title or key_page is not a text"
        if source is not None and not isinstance(source, PublicSource):
            return "its public_lists are not a PublicSource"
    return None


def _read_settings(plugin: Plugin, kind: type[BaseModel]) -> None:
    """Read what a plug-in declares. Without a required setting it is not used; with a wrong one it is left out."""
    plugin.read = DeclaredSettings(kind=kind, texts=read_texts(plugin.name, kind))  # an error may repeat a secret
    try:
        plugin.read = read = read_declared(plugin.name, kind)
    except SettingsError as error:  # a list or a table that is not JSON
        plugin.leave_out(f"its settings cannot be read: {error}", "correct the settings and restart the service")
    except Exception as error:  # noqa: BLE001 - a plug-in may define its own checks
        plugin.fail("its settings cannot be read", error)
    else:
        if read.wrong:
            reason = "; ".join([*read.missing.values(), *read.wrong])
            plugin.leave_out(reason, "correct the settings and restart the service")
        elif read.missing:
            plugin.state = PluginState.NOT_CONFIGURED


def _tell(plugin: Plugin) -> str:
    return f"tell the author of {plugin.package}, and remove it: `pip uninstall {plugin.package}`"


def _another_version(plugin: Plugin) -> str:
    return f"install another version of {plugin.package}, or remove it: `pip uninstall {plugin.package}`"
