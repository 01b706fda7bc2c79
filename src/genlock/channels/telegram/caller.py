"""Call the Bot API: every call waits for a permit, a 429 stops all instances, and errors are ChannelErrors."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from telegram import Bot

from genlock.channels.telegram.errors import RateLimited, TokenRefused, classify_error, is_known_error
from genlock.channels.telegram.http import HttpRequest
from genlock.channels.telegram.rate_limiter import Priority, TelegramRateLimiter
from genlock.domain.errors import ChannelError, LevelRefused, StoreError
from genlock.domain.events import Event
from genlock.ports import Observer

__all__ = ["Caller", "Priority", "make_bot"]

T = TypeVar("T")
API_URL = "https://api.telegram.org"
CONNECTIONS = 64


def make_bot(token: str, api_url: str = API_URL) -> Bot:
    """Return python-telegram-bot's Bot. It sends nothing before the first call."""
    base = api_url.rstrip("/")
    trust_env = api_url.startswith("https")
    return Bot(
        token,
        base_url=f"{base}/bot",
        base_file_url=f"{base}/file/bot",
        request=HttpRequest(connections=CONNECTIONS, read_seconds=20.0, trust_env=trust_env),
        get_updates_request=HttpRequest(connections=1, read_seconds=10.0, trust_env=trust_env),
    )


def bot_id(token: str) -> str:
    """Return the bot's id, which is the first part of its token."""
    return token.partition(":")[0]


class Caller:
    """Calls the Bot API behind the shared rate limiter and the error table."""

    def __init__(self, bot: Bot, limiter: TelegramRateLimiter, observer: Observer) -> None:
        self.bot = bot
        self._limiter = limiter
        self.observer = observer

    async def call(
        self, method: Callable[..., Awaitable[T]], /, *, chat: int | None, priority: Priority, **arguments: Any
    ) -> T:
        """Call a method of the bot when the limiter permits it; `chat` becomes the argument `chat_id`.

        Calls without a chat (getMe, answers to queries) are not limited. Raises only ChannelErrors.
        """
        if chat is not None:
            await self._limiter.acquire(chat, priority)
            arguments.setdefault("chat_id", chat)
        try:
            return await method(**arguments)
        except Exception as error:
            classified = classify_error(error)
            await self._handle_error(classified, chat, method)
            raise classified from error

    async def _handle_error(self, error: ChannelError, chat: int | None, method: Callable[..., Any]) -> None:
        """Count the error, stop the chat after a 429, and report errors that an operator should see."""
        self.observer.count("channel_errors", 1, reason=type(error).__name__)
        if isinstance(error, RateLimited):
            try:
                await self._limiter.stop(chat, error.after)
            except StoreError as failure:  # this instance stops; the others will get a 429 of their own
                self.observer.event(Event.STAGE_ERROR, step="stop", error=str(failure))
        elif isinstance(error, TokenRefused) or (isinstance(error, LevelRefused) and not is_known_error(error)):
            name = getattr(method, "__name__", "")
            self.observer.event(
                Event.CHANNEL_REFUSAL_UNKNOWN, method=name, error=type(error).__name__, text=str(error)[:200]
            )

    async def close(self) -> None:
        for request in self.bot._request:  # noqa: SLF001 - `shutdown` closes only what `initialize` opened
            await request.shutdown()
