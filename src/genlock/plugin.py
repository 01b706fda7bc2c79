"""Everything that a plug-in needs, in one place: `import genlock.plugin as genlock`.

What this module names stays as it is within a version of the ports; other modules may change with every release.
"""

from genlock.domain.attempt import ELSEWHERE
from genlock.domain.delivery import Level, Part
from genlock.domain.errors import (
    AddressChanged,
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    InvalidResult,
    LevelRefused,
    PlaceholderGone,
    ProviderBusy,
    ProviderError,
    RecipientUnreachable,
    SubmitRefused,
    SubmitUnknown,
)
from genlock.domain.job import Job
from genlock.domain.result import Outcome, PartKind, Piece, Report
from genlock.domain.task import CancelOutcome, Handle, TaskOrder
from genlock.ports import (
    PORT_VERSION,
    Channel,
    ChannelBundle,
    ChannelContext,
    ChannelPlugin,
    MessageTexts,
    OrderRefused,
    Orders,
    Placed,
    Provider,
    ProviderBundle,
    ProviderContext,
    ProviderHealth,
    ProviderPlugin,
    PublicLists,
    RateLimit,
)
from genlock.ports.base_url import BaseUrl
from genlock.ports.plugin import PublicSource

__all__ = [
    "ELSEWHERE",
    "PORT_VERSION",
    "AddressChanged",
    "BaseUrl",
    "CancelOutcome",
    "Channel",
    "ChannelBundle",
    "ChannelBusy",
    "ChannelContext",
    "ChannelError",
    "ChannelOutcomeUnknown",
    "ChannelPlugin",
    "Handle",
    "InvalidResult",
    "Job",
    "Level",
    "LevelRefused",
    "MessageTexts",
    "OrderRefused",
    "Orders",
    "Outcome",
    "Part",
    "PartKind",
    "Piece",
    "Placed",
    "PlaceholderGone",
    "Provider",
    "ProviderBundle",
    "ProviderBusy",
    "ProviderContext",
    "ProviderError",
    "ProviderHealth",
    "ProviderPlugin",
    "PublicLists",
    "PublicSource",
    "RateLimit",
    "RecipientUnreachable",
    "Report",
    "SubmitRefused",
    "SubmitUnknown",
    "TaskOrder",
]
