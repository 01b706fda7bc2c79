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
from genlock.log import Mask
from genlock.settings import Settings

PREFIX = "GENLOCK_"
HIDDEN = "•••"
_PASSWORD_OPTIONS = ("password", "sslpassword")


def effective_settings(settings: Settings, plugins: Plugins | None = None) -> list[EffectiveSetting]:
    """Return every setting of the service and the plug-ins as it is in effect. Of a secret only whether it is set."""
    installed = plugins.installed if plugins else []
    mask = Mask([*settings.secrets(), *(secret for one in installed for secret in one.secrets())])
    sources = _Sources(
        environment={name.upper() for name, text in os.environ.items() if text},
        env_file={name.upper() for name, text in DotEnvSettingsSource(Settings).env_vars.items() if text},
    )
    own = [
        _effective(f"{PREFIX}{name.upper()}", field, getattr(settings, name), mask, sources)
        for name, field in type(settings).model_fields.items()
    ]
    return [*own, *(shown for one in installed for shown in _of_plugin(one, mask, sources))]


def _of_plugin(plugin: Plugin, mask: Mask, sources: "_Sources") -> list[EffectiveSetting]:
    """Return the settings of a plug-in. Of one that could not read them, none has a value."""
    fields = plugin.declared.settings.model_fields if plugin.declared else {}
    return [
        _effective(written, field, getattr(plugin.settings, name, None), mask, sources)
        for written, (name, field) in zip(plugin.setting_names(), fields.items(), strict=True)
    ]


def shown_plugins(plugins: Plugins, mask: Callable[[str], str]) -> list[ShownPlugin]:
    return [
        ShownPlugin(
            kind=one.kind,
            name=one.name,
            package=f"{one.package} {one.version}",
            state=one.state,
            missing=one.missing,
            reason=mask(one.reason),
            remedy=one.remedy,
        )
        for one in plugins.installed
    ]


@dataclass(frozen=True, kw_only=True)
class _Sources:
    """The names that are set, by where."""

    environment: set[str]
    env_file: set[str]


def _effective(written: str, field: FieldInfo, setting: Any, mask: Mask, sources: _Sources) -> EffectiveSetting:
    names = {written, *(str(one) for one in getattr(field.validation_alias, "choices", ()))}
    is_secret = isinstance(setting, SecretStr) or "SecretStr" in str(field.annotation)
    if names & sources.environment:
        source = SettingSource.ENVIRONMENT
    elif names & sources.env_file:
        source = SettingSource.ENV_FILE
    else:
        is_default = not field.is_required() and setting == field.get_default()
        source = SettingSource.DEFAULT if is_default else SettingSource.PROGRAM
    shown = "" if is_secret or setting is None else mask(_shown(written, setting))
    return EffectiveSetting(
        name=written,
        shown=shown,
        source=source,
        is_secret=is_secret,
        is_set=setting is not None,
        description=field.description or "",
    )


def _shown(written: str, setting: Any) -> str:
    if written == f"{PREFIX}DATABASE_URL":
        return without_password(setting)
    if isinstance(setting, dict):
        return ", ".join(f"{key}:{one}" for key, one in setting.items())
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
    kept = [f"{name}={HIDDEN if name.lower() in _PASSWORD_OPTIONS else one}" for name, one in options]
    query = f"?{'&'.join(kept)}" if kept else ""
    return f"{scheme}://{login}{parts.netloc.rpartition('@')[2]}{parts.path}{query}"
