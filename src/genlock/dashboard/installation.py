"""What the dashboard shows of the installation itself, and how it has the installation checked."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from genlock.domain.doctor_phase import Phase


class SettingSource(StrEnum):
    ENVIRONMENT = "environment"
    ENV_FILE = "env_file"
    DEFAULT = "default"
    PROGRAM = "program"  #: given by the program that started the service, such as the sandbox


@dataclass(frozen=True, kw_only=True)
class EffectiveSetting:
    #: as the operator writes it, with the prefix
    name: str
    #: without any secret; "" if it is not set
    text: str
    source: SettingSource
    is_secret: bool = False
    #: whether a secret has a value
    is_set: bool = True
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class ShownPlugin:
    kind: str
    name: str
    #: the package that brings it, and its version
    package: str
    #: in_use, not_configured or left_out
    state: str
    #: the settings that must be set before it is used
    missing: Sequence[str] = ()
    #: why it is left out, and what to do
    reason: str = ""
    remedy: str = ""


#: runs the doctor once and yields each phase as soon as it has ended
Examine = Callable[[], AsyncIterator[Phase]]


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What the running instance knows of itself."""

    version: str
    instance: str
    settings: Sequence[EffectiveSetting] = ()
    plugins: Sequence[ShownPlugin] = ()
    #: how long rows are kept, in seconds by table
    keep_seconds: Mapping[str, float] = field(default_factory=dict)
