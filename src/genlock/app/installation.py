"""What the dashboard may show of the settings: each with its source, none with a secret."""

import os
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import DotEnvSettingsSource

from genlock.dashboard.installation import EffectiveSetting, SettingSource
from genlock.log import Mask
from genlock.settings import Settings

HIDDEN = "•••"
_PASSWORD_OPTIONS = ("password", "sslpassword")


def effective_settings(settings: Settings) -> list[EffectiveSetting]:
    """Return every setting of the service as it is in effect. Of a secret only whether it is set."""
    mask = Mask(settings.secrets())
    environment = {name.upper() for name, text in os.environ.items() if text}
    env_file = {name.upper() for name, text in DotEnvSettingsSource(Settings).env_vars.items() if text}
    return [
        _effective(name, field, getattr(settings, name), mask, environment, env_file)
        for name, field in type(settings).model_fields.items()
    ]


def _effective(
    name: str, field: FieldInfo, setting: Any, mask: Mask, environment: set[str], env_file: set[str]
) -> EffectiveSetting:
    written = f"GENLOCK_{name.upper()}"
    names = {written, *(str(one) for one in getattr(field.validation_alias, "choices", ()))}
    is_secret = isinstance(setting, SecretStr) or "SecretStr" in str(field.annotation)
    if names & environment:
        source = SettingSource.ENVIRONMENT
    elif names & env_file:
        source = SettingSource.ENV_FILE
    else:
        is_default = not field.is_required() and setting == field.get_default()
        source = SettingSource.DEFAULT if is_default else SettingSource.PROGRAM
    shown = "" if is_secret or setting is None else mask(_shown(name, setting))
    return EffectiveSetting(
        name=written,
        shown=shown,
        source=source,
        is_secret=is_secret,
        is_set=setting is not None,
        description=field.description or "",
    )


def _shown(name: str, setting: Any) -> str:
    if name == "database_url":
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
