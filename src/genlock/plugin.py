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
from genlock.domain.job import Delivery, Job, State
from genlock.domain.model_schema import InputSchema, ModelSchema
from genlock.domain.money import HoldState
from genlock.domain.result import Outcome, PartKind, Piece, Report
from genlock.domain.tariff import normalise_label
from genlock.domain.task import CancelOutcome, Handle, TaskOrder
from genlock.ports import (
    PORT_VERSION,
    Button,
    Channel,
    ChannelBundle,
    ChannelContext,
    ChannelPlugin,
    FileLabel,
    MessageTexts,
    OrderRefused,
    Orders,
    OutgoingMessage,
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
from genlock.ports.provider import CreateRequest, FetchSchemas, SampleCallback, UploadFile, VerifyCallback

__all__ = [
    "ELSEWHERE",
    "PORT_VERSION",
    "AddressChanged",
    "BaseUrl",
    "Button",
    "CancelOutcome",
    "Channel",
    "ChannelBundle",
    "ChannelBusy",
    "ChannelContext",
    "ChannelError",
    "ChannelOutcomeUnknown",
    "ChannelPlugin",
    "CreateRequest",
    "Delivery",
    "FetchSchemas",
    "FileLabel",
    "Handle",
    "HoldState",
    "InputSchema",
    "InvalidResult",
    "Job",
    "Level",
    "LevelRefused",
    "MessageTexts",
    "ModelSchema",
    "OrderRefused",
    "Orders",
    "Outcome",
    "OutgoingMessage",
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
    "SampleCallback",
    "State",
    "SubmitRefused",
    "SubmitUnknown",
    "TaskOrder",
    "UploadFile",
    "VerifyCallback",
    "normalise_label",
]
