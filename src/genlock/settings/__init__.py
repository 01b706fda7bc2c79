"""Settings, read from the environment and a `.env` file.

No other module knows the names of the variables, except that each provider and plug-in declares its own.
"""

from genlock.settings.fields import LogFormat, Settings
from genlock.settings.reading import given_variables, read_settings, unknown_settings, unknown_settings_messages
from genlock.settings.service import ServiceSettings

__all__ = [
    "LogFormat",
    "ServiceSettings",
    "Settings",
    "given_variables",
    "read_settings",
    "unknown_settings",
    "unknown_settings_messages",
]
