"""Settings of a service for tests: its own are given, those that providers declare are in the environment."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from genlock.settings import ServiceSettings, Settings


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for name, text in variables.items():
            patch.setenv(name, text)
        yield


@contextmanager
def service_settings(**values: Any) -> Iterator[ServiceSettings]:
    """Yield the settings of a service, by the names of variables without the prefix, in lower case."""
    own = {name: value for name, value in values.items() if name in Settings.model_fields}
    with environment({f"GENLOCK_{name.upper()}": str(value) for name, value in values.items() if name not in own}):
        yield ServiceSettings.model_validate(own)
