"""Plug-ins: what a package declares under the entry points `genlock.providers` and `genlock.channels`.

The name of the entry point is the name of the provider or the channel. The settings are a pydantic model: its field
`key` is the variable GENLOCK_NAME_KEY, and a field of the type SecretStr is shown nowhere. A plug-in with a required
setting is not used until the setting is set.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from genlock.domain.errors import Refusal
from genlock.domain.job import Job
from genlock.ports.channel import Channel
from genlock.ports.message_texts import MessageTexts
from genlock.ports.provider import ProviderBundle, ProviderHealth, PublicLists

#: The version of the ports; a plug-in states the one that it was written for.
PORT_VERSION = 1


class NoSettings(BaseModel):
    """The settings of a plug-in that has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderContext:
    """What the service gives to the maker of a provider."""

    #: US dollars per credit of the provider, as the plug-in declares
    credit_usd: Decimal
    #: returns the time in seconds since 1970
    now: Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class PublicSource:
    """Where a provider publishes its models and prices; no account is needed to read them."""

    #: returns the lists; it is given the settings below. Raises ProviderError
    fetch: Callable[[Any], Awaitable[PublicLists]]
    #: those of the plug-in's settings that do not belong to an account, such as the base URL
    settings: type[BaseModel] = NoSettings


@dataclass(frozen=True, kw_only=True)
class ProviderPlugin:
    """What an entry point in the group `genlock.providers` refers to."""

    #: the version of the port that the adapter was written for, as a number
    port: int
    #: returns the bundle. Called once for every start and check, so it must not call the provider
    make: Callable[[Any, ProviderContext], ProviderBundle]
    #: read from variables; as long as a required field has no value, the plug-in is not used
    settings: type[BaseModel] = NoSettings
    #: the name that operators know the provider by; empty: the name of the entry point
    title: str = ""
    #: for operators: where the key of an account is found, such as `acme.example/keys`
    key_page: str = ""
    #: None: what the provider publishes is read with its key, by `ProviderBundle.fetch_schemas`, or not at all
    public_lists: PublicSource | None = None
    #: US dollars per credit of the provider; costs are in thousandths of that credit
    credit_usd: Decimal = Decimal(1)
    #: a folder: `*.toml` describe models of the provider, whose ids begin with its name and a slash, and
    #: `offers/*.toml` describe how it makes models of the catalog
    catalog: Path | None = None


class OrderRefused(Refusal):
    """An order was not accepted. Nothing was charged."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        #: why, as a word, such as `insufficient_balance`, `too_many_running` or `invalid_input`
        self.reason = reason


class Orders(Protocol):
    """How the users of one channel order."""

    async def account(self, external_id: str) -> int:
        """Return the account of a user of the channel, by the channel's own id of the user. May be repeated."""

    async def order(
        self,
        account_id: int,
        *,
        key: str,
        address: str,
        model: str,
        values: Mapping[str, Any],
        placeholder: str | None = None,
    ) -> Job:
        """Order a model. The same key of an account always gives the same job. Raises OrderRefused.

        `address` is handed back with the job; `placeholder` is the message that becomes the result, if there is one.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelContext:
    """What the service gives to the maker of a channel."""

    #: the texts that users read
    texts: MessageTexts
    #: returns the time in seconds since 1970
    now: Callable[[], float]
    #: the public base URL of the service; None: it cannot be reached from outside
    public_url: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelBundle:
    """One configured channel: the adapter, and how its users reach the service."""

    channel: Channel
    close: Callable[[], Awaitable[None]]
    #: receives orders until it is cancelled, on every instance. It is called again when it returns or fails
    receive: Callable[[Orders], Awaitable[None]] | None = None
    #: returns the ASGI application that is served under `/channels/NAME`
    web: Callable[[Orders], Any] | None = None
    #: asks whether the channel works; None: there is nothing to ask
    health: Callable[[], Awaitable[ProviderHealth]] | None = None

    @property
    def name(self) -> str:
        return self.channel.name


@dataclass(frozen=True, kw_only=True)
class ChannelPlugin:
    """What an entry point in the group `genlock.channels` refers to."""

    #: the version of the port that the adapter was written for, as a number
    port: int
    #: returns the bundle. Called once for every start and check, so it must not call the channel
    make: Callable[[Any, ChannelContext], ChannelBundle]
    #: read from variables; as long as a required field has no value, the plug-in is not used
    settings: type[BaseModel] = NoSettings
