"""Checks what a plug-in has made before the service uses it, and closes it."""

from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

from genlock.domain.events import Event
from genlock.ports import Channel, ChannelBundle, Observer, Provider, ProviderBundle, RateLimit

#: what an adapter must define itself; the ports define the rest
_OF_PROVIDERS = ("create", "status", "read_callback")
_OF_CHANNELS = ("create_placeholder", "put", "send", "notify", "progress")


def check_provider(bundle: Any, name: str) -> None:
    """Raise TypeError or ValueError unless the bundle can be used as the provider `name`."""
    _check_type(bundle, ProviderBundle)
    _check_adapter(bundle.provider, Provider, name, _OF_PROVIDERS)
    for kind, limit in bundle.rate_limits.items():
        if not isinstance(limit, RateLimit) or limit.interval <= 0 or limit.burst < 1:
            raise ValueError(f"rate_limits[{kind!r}] must be a RateLimit with an interval and a burst above 0")
    if bundle.concurrency is not None and bundle.concurrency < 1:
        raise ValueError("concurrency must be 1 or more")
    if not bundle.upload_seconds > 0:
        raise ValueError("upload_seconds must be above 0")
    if not isinstance(bundle.credit_usd, Decimal) or bundle.credit_usd < 0:
        raise ValueError("credit_usd must be a Decimal of 0 or more")


def check_channel(bundle: Any, name: str) -> None:
    """Raise TypeError or ValueError unless the bundle can be used as the channel `name`."""
    _check_type(bundle, ChannelBundle)
    _check_adapter(bundle.channel, Channel, name, _OF_CHANNELS)


def _check_type(returned: Any, expected: type) -> None:
    if not isinstance(returned, expected):
        raise TypeError(f"`make` returned a {type(returned).__name__}, not a {expected.__name__}")


def _check_adapter(adapter: Any, port: type, name: str, required: tuple[str, ...]) -> None:
    called = getattr(adapter, "name", None)
    if called != name:
        raise ValueError(f"the adapter is called {called!r}, and the entry point {name!r}: they must agree")
    methods = [method for method, found in vars(port).items() if not method.startswith("_") and callable(found)]
    lacking = [method for method in methods if not callable(getattr(adapter, method, None))]
    lacking += [method for method in required if getattr(type(adapter), method, None) is vars(port)[method]]
    if lacking:
        raise TypeError(f"{type(adapter).__name__} must define {', '.join(lacking)}, and inherit from {port.__name__}")


async def close_plugin(name: str, close: Callable[[], Awaitable[None]], observer: Observer) -> None:
    """Close what a plug-in has made. An error does not keep the other parts from being closed."""
    try:
        await close()
    except Exception as error:  # noqa: BLE001 - it is the plug-in's, and the process ends
        observer.event(Event.STAGE_ERROR, step=f"close {name}", error=repr(error))
