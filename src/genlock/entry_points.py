"""The entry points of installed packages that extend genlock. Finding them imports none of the packages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import Distribution, EntryPoint, distributions

#: what the names of all our variables begin with
PREFIX = "GENLOCK_"


class PluginKind(StrEnum):
    PROVIDER = "provider"
    CHANNEL = "channel"

    @property
    def group(self) -> str:
        return f"genlock.{self.value}s"


@dataclass(frozen=True, kw_only=True)
class Declared:
    """One entry point of an installed package."""

    kind: PluginKind
    name: str
    package: str
    version: str
    #: None if the package's list of entry points cannot be read
    entry: EntryPoint | None


def declared_plugins() -> list[Declared]:
    """Return the plug-ins of all installed packages, by kind and name. A package that is there twice counts once."""
    found: dict[tuple[str, str, str], Declared] = {}
    for distribution in distributions():
        for plugin in _declared(distribution):
            found.setdefault((plugin.kind, plugin.name, _normalised(plugin.package)), plugin)
    return sorted(found.values(), key=lambda plugin: (plugin.kind, plugin.name, plugin.package))


def setting_prefixes() -> tuple[str, ...]:
    """Return what the names of the settings of every installed plug-in begin with."""
    return tuple({setting_prefix(plugin.name) for plugin in declared_plugins()})


def setting_prefix(name: str) -> str:
    return f"{PREFIX}{name.upper()}_"


def _declared(distribution: Distribution) -> Iterator[Declared]:
    try:
        entries = [entry for entry in distribution.entry_points if entry.group in _KINDS]
    except Exception:  # noqa: BLE001 - the metadata of an unrelated package must not stop the service
        yield from _unreadable(distribution)
        return
    if entries:
        package, version = _identity(distribution)
        for entry in entries:
            yield Declared(kind=_KINDS[entry.group], name=entry.name, package=package, version=version, entry=entry)


def _unreadable(distribution: Distribution) -> Iterator[Declared]:
    """Yield a plug-in for each of our groups that a list names which cannot be read."""
    try:
        text = distribution.read_text("entry_points.txt") or ""
    except (OSError, ValueError):
        return
    package, version = _identity(distribution)
    for group, kind in _KINDS.items():
        if f"[{group}]" in text:
            yield Declared(kind=kind, name="?", package=package, version=version, entry=None)


def _identity(distribution: Distribution) -> tuple[str, str]:
    try:
        return str(distribution.metadata["Name"] or "?"), str(distribution.metadata["Version"] or "?")
    except Exception:  # noqa: BLE001 - as above
        return "?", "?"


def _normalised(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


_KINDS = {kind.group: kind for kind in PluginKind}
