"""Call the Bot API: every call waits for a permit, a 429 stops all instances, and errors are ChannelErrors."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from telegram import Bot

from genlock.channels.telegram.direct_calls import DirectCalls
from genlock.channels.telegram.errors import BotFrozen, RateLimited, TokenRefused, classify_error, is_bug_or_unknown
from genlock.channels.telegram.http import HttpRequest
from genlock.channels.telegram.rate_limiter import Priority, TelegramRateLimiter
from genlock.domain.errors import ChannelError, LevelRefused, RecipientUnreachable, StoreError
from genlock.domain.events import Event
from genlock.ports import Observer

__all__ = ["Caller", "Priority", "make_bot"]

T = TypeVar("T")
API_URL = "https://api.telegram.org"
CONNECTIONS = 64
#: a deletion is refused if the user was faster or the message is too old: nothing that an operator should see
EXPECTED_REFUSALS = ("delete_message",)


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

    def __init__(
        self,
        bot: Bot,
        limiter: TelegramRateLimiter,
        observer: Observer,
        on_bot_refused: Callable[[ChannelError], Awaitable[None]] | None = None,
    ) -> None:
        self.bot = bot
        #: the methods that every order uses, without an object for each field of the answer
        self.direct = DirectCalls(bot)
        self._limiter = limiter
        self.observer = observer
        #: called when Telegram refuses the token or has frozen the bot
        self._on_bot_refused = on_bot_refused

    async def take_permit(self, chat: int, priority: Priority) -> None:
        """Take the permit of a call that is journaled in between. Raises ChannelBusy if there is none in time."""
        await self._limiter.acquire(chat, priority)

    async def call(
        self, method: Callable[..., Awaitable[T]], /, *, chat: int | None, priority: Priority | None, **arguments: Any
    ) -> T:
        """Call a method of the bot when the limiter permits it; `chat` becomes the argument `chat_id`.

        Calls without a chat (getMe, answers to queries) are not limited, nor are those without a priority, for which
        the caller has taken the permit. Raises only ChannelErrors.
        """
        if chat is not None:
            if priority is not None:
                await self._limiter.acquire(chat, priority)
            arguments.setdefault("chat_id", chat)
        try:
            return await method(**arguments)
        except Exception as error:
            classified = classify_error(error)
            await self._handle_error(classified, arguments.get("chat_id"), method)
            raise classified from error

    async def _handle_error(self, error: ChannelError, chat: int | None, method: Callable[..., Any]) -> None:
        """Count the error, stop the chat after a 429, and report errors that an operator should see.

        A 429 for a call without a chat stops nothing: Telegram limits each such method apart from messages.
        """
        self.observer.count("channel_errors", 1, reason=type(error).__name__)
        name = getattr(method, "__name__", "")
        if isinstance(error, BotFrozen) or (isinstance(error, RateLimited) and chat is not None):
            try:
                await self._limiter.stop(chat if isinstance(error, RateLimited) else None, error.after)
            except StoreError as failure:  # this instance stops; the others will get the same answer
                self.observer.event(Event.STAGE_ERROR, step="stop", error=str(failure))
        if isinstance(error, LevelRefused) and name in EXPECTED_REFUSALS:
            return
        whole_bot = isinstance(error, TokenRefused | BotFrozen)
        if whole_bot or (isinstance(error, LevelRefused | RecipientUnreachable) and is_bug_or_unknown(error)):
            self.observer.event(
                Event.CHANNEL_REFUSAL_UNKNOWN, method=name, error=type(error).__name__, text=str(error)[:200]
            )
        await self.report_bot_refusal(error)

    async def report_bot_refusal(self, error: Exception) -> None:
        """Report that Telegram refuses the whole bot, if the error says so."""
        if isinstance(error, TokenRefused | BotFrozen) and self._on_bot_refused is not None:
            await self._on_bot_refused(error)

    async def close(self) -> None:
        for request in self.bot._request:  # noqa: SLF001 - `shutdown` closes only what `initialize` opened
            await request.shutdown()
