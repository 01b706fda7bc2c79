"""Calling Telegram: every call takes its turn, obeys a 429 for all instances, and fails in words of our own."""

import importlib.util
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import httpx
from telegram import Bot
from telegram.request import HTTPXRequest

from genlock.channels.telegram.errors import Flooded, TokenRefused, known, sort
from genlock.channels.telegram.rate_limiter import Priority
from genlock.domain.errors import ChannelError, LevelRefused, StoreError
from genlock.domain.events import Event
from genlock.ports import Observer

__all__ = ["Caller", "Priority", "make_bot"]

T = TypeVar("T")
API_URL = "https://api.telegram.org"
CONNECTIONS = 64


class RateLimiterPort(Protocol):
    """The limits that all instances keep together."""

    async def take(self, chat: int, priority: Priority) -> None:
        """Wait for leave to make one call to a chat. Raises ChannelBusy if that is too far away."""

    async def stop(self, chat: int | None, seconds: float) -> None:
        """Nobody calls this chat (or, without one, Telegram) for so long."""


def make_bot(token: str, api_url: str = API_URL) -> Bot:
    """python-telegram-bot's Bot. Nothing is sent until the first call; its id is in the token."""
    # Each request would be logged with its address, which holds the token.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    # The library looks for this one several times a request; told that it is not there it need not search the disk.
    if "sniffio" not in sys.modules and importlib.util.find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]
    distant = api_url.startswith("https")
    verify = httpx.create_ssl_context() if distant else False  # once: reading the certificates takes its time
    options: dict[str, Any] = {"httpx_kwargs": {"verify": verify, "trust_env": distant}}
    base = api_url.rstrip("/")
    return Bot(
        token,
        base_url=f"{base}/bot",
        base_file_url=f"{base}/file/bot",
        request=HTTPXRequest(
            connection_pool_size=CONNECTIONS,
            connect_timeout=5.0,
            read_timeout=20.0,
            write_timeout=10.0,
            media_write_timeout=60.0,
            pool_timeout=10.0,
            **options,
        ),
        get_updates_request=HTTPXRequest(connection_pool_size=1, connect_timeout=5.0, read_timeout=10.0, **options),
    )


def bot_id(token: str) -> str:
    """The bot's own number, which a token begins with."""
    return token.partition(":")[0]


class Caller:
    """A Bot behind the shared limits and the error table."""

    def __init__(self, bot: Bot, turns: RateLimiterPort, observer: Observer) -> None:
        self.bot = bot
        self._turns = turns
        self._observer = observer

    async def call(
        self, method: Callable[..., Awaitable[T]], /, *, chat: int | None, priority: Priority, **arguments: Any
    ) -> T:
        """Call a method of the bot when its turn has come; `chat` is passed on as its `chat_id`.

        Without a chat (getMe, answers to presses and payments) nothing is limited. Raises only ChannelErrors.
        """
        if chat is not None:
            await self._turns.take(chat, priority)
            arguments.setdefault("chat_id", chat)
        try:
            return await method(**arguments)
        except Exception as error:
            meaning = sort(error)
            await self._heed(meaning, chat, method)
            raise meaning from error

    async def _heed(self, error: ChannelError, chat: int | None, method: Callable[..., Any]) -> None:
        """What a refusal means beyond the call: for the chat, and for the operator."""
        self._observer.count("channel_errors", 1, reason=type(error).__name__)
        if isinstance(error, Flooded):
            try:
                await self._turns.stop(chat, error.after)
            except StoreError as failure:  # we know; the others will learn it from Telegram
                self._observer.event(Event.STAGE_ERROR, step="stop", error=str(failure))
        elif isinstance(error, TokenRefused) or (isinstance(error, LevelRefused) and not known(error)):
            name = getattr(method, "__name__", "")
            self._observer.event(
                Event.CHANNEL_REFUSAL_UNKNOWN, method=name, error=type(error).__name__, text=str(error)[:200]
            )

    async def close(self) -> None:
        for request in self.bot._request:  # noqa: SLF001 - `shutdown` closes only what `initialize` opened
            await request.shutdown()
