"""What the dashboard may show of the settings: each with its source, none with a secret."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import DotEnvSettingsSource

from genlock.app.plugins import Plugin, Plugins
from genlock.dashboard.installation import EffectiveSetting, SettingSource, ShownPlugin
from genlock.entry_points import PREFIX
from genlock.log import Mask
from genlock.settings import Settings
from genlock.settings.declared import is_secret
from genlock.settings.problems import aliases

HIDDEN = "•••"
_PASSWORD_OPTIONS = ("password", "sslpassword")


def effective_settings(settings: Settings, plugins: Plugins) -> list[EffectiveSetting]:
    """Return every setting of the service and the plug-ins as it is in effect. Of a secret only whether it is set."""
    mask = Mask([*settings.secrets(), *plugins.secrets()])
    sources = _Sources(
        environment={name.upper() for name, text in os.environ.items() if text},
        env_file={name.upper() for name, text in DotEnvSettingsSource(Settings).env_vars.items() if text},
    )
    own = [
        _effective(f"{PREFIX}{name.upper()}", field, getattr(settings, name), mask, sources)
        for name, field in type(settings).model_fields.items()
    ]
    return [*own, *(shown for plugin in plugins.all for shown in _of_plugin(plugin, mask, sources))]


def _of_plugin(plugin: Plugin, mask: Mask, sources: "_Sources") -> list[EffectiveSetting]:
    fields = plugin.declared.settings.model_fields if plugin.declared else {}
    return [
        _effective(written, field, _setting(plugin, name, field), mask, sources)
        for written, (name, field) in zip(plugin.setting_names(), fields.items(), strict=True)
    ]


def _setting(plugin: Plugin, name: str, field: FieldInfo) -> Any:
    """Return a setting of a plug-in. Of one that is not configured or left out it is as the operator wrote it."""
    if plugin.settings is not None:
        return getattr(plugin.settings, name)
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    return plugin.read.texts.get(name, default) if plugin.read else None


def shown_plugins(plugins: Plugins, mask: Callable[[str], str]) -> list[ShownPlugin]:
    return [
        ShownPlugin(
            kind=plugin.kind,
            name=plugin.name,
            package=f"{plugin.package} {plugin.version}",
            state=plugin.state,
            missing=plugin.missing,
            reason=mask(plugin.reason),
            remedy=plugin.remedy,
        )
        for plugin in plugins.installed
    ]


@dataclass(frozen=True, kw_only=True)
class _Sources:
    """The names that are set, by where."""

    environment: set[str]
    env_file: set[str]


def _effective(written: str, field: FieldInfo, setting: Any, mask: Mask, sources: _Sources) -> EffectiveSetting:
    names, hidden = {written, *aliases(field)}, isinstance(setting, SecretStr) or is_secret(field)
    if names & sources.environment:
        source = SettingSource.ENVIRONMENT
    elif names & sources.env_file:
        source = SettingSource.ENV_FILE
    else:
        is_default = setting is None or (not field.is_required() and setting == field.get_default())
        source = SettingSource.DEFAULT if is_default else SettingSource.PROGRAM
    shown = "" if hidden or setting is None else mask(_shown(written, setting))
    return EffectiveSetting(
        name=written,
        text=shown,
        source=source,
        is_secret=hidden,
        is_set=setting is not None,
        description=field.description or "",
    )


def _shown(written: str, setting: Any) -> str:
    if written == f"{PREFIX}DATABASE_URL":
        return without_password(setting)
    if isinstance(setting, dict):
        return ", ".join(f"{key}:{value}" for key, value in setting.items())
    if isinstance(setting, tuple | list):
        return ", ".join(map(str, setting))
    if isinstance(setting, bool):
        return str(setting).lower()
    return str(setting)


def without_password(url: str) -> str:
    """Return a database URL without its password. One that cannot be read shows its scheme only."""
    scheme, _, _ = url.partition("://")
    if scheme == "sqlite":
        return url
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
        user, has_password = parts.username or "", parts.password is not None
    except ValueError:
        return f"{scheme}://…"
    login = "" if "@" not in parts.netloc else f"{user}{f':{HIDDEN}' if has_password else ''}@"
    kept = [f"{name}={HIDDEN if name.lower() in _PASSWORD_OPTIONS else value}" for name, value in options]
    query = f"?{'&'.join(kept)}" if kept else ""
    return f"{scheme}://{login}{parts.netloc.rpartition('@')[2]}{parts.path}{query}"
