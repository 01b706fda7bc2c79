"""What the doctor asks of the world outside: our own public address, Telegram, the provider."""

import asyncio
import secrets
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import aiohttp
from telegram import WebhookInfo

from genlock.app import make_kie
from genlock.catalog import load
from genlock.channels.telegram.caller import Caller, Priority, make_bot
from genlock.channels.telegram.errors import TokenRefused
from genlock.channels.telegram.rate_limiter import TelegramRateLimiter
from genlock.channels.telegram.update_sources import WEBHOOK_PATH
from genlock.doctor.finding import Ill, check_clock, need
from genlock.domain.errors import ChannelError, ProviderError
from genlock.ports import Observer
from genlock.providers.kie.signature import SIGNATURE, TIMESTAMP, sign
from genlock.settings import Settings

ANSWER_SECONDS = 10.0
_OTHER_KEY = "has another GENLOCK_KIE_WEBHOOK_KEY than we have here: set it alike, and start the service again"
_BLAME = "something in front of genlock answers instead, or another version runs there"


class NoLimits:
    """Two questions need no turns."""

    async def reserve_permits(self, *_: Any) -> list[float]:
        return [0.0]

    async def take_permits(self, keys: Any, *_: Any) -> list[float]:
        return [0.0 for _ in keys]

    async def block_limit(self, *_: Any) -> None: ...


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS))


class Outside:
    def __init__(self, settings: Settings, observer: Observer, now: Callable[[], float]) -> None:
        self._settings = settings
        self._observer = observer
        self._now = now

    # our own address

    async def knock(self, public: str, mark: str) -> int:
        """Post callbacks that have a mark, as the provider and as a forger would; says how many must be kept."""
        key = self._settings.kie_webhook_key
        body = f'{{"code":200,"data":{{"taskId":"{mark}","state":"success","resultJson":"{{}}"}}}}'.encode()
        now = int(self._now())
        async with _session() as session:
            await self._is_genlock(session, public)
            good = _signed(mark, key.get_secret_value(), now) if key else {}
            status = await _post(session, f"{public}/callbacks/kie", body, good)
            need(status != HTTPStatus.UNAUTHORIZED, f"the service at {public} {_OTHER_KEY}")
            need(status == HTTPStatus.OK, f"a callback to {public}/callbacks/kie was answered {status}: {_BLAME}")
            forged = _signed(mark, "forged", now) if key else {}
            status = await _post(session, f"{public}/callbacks/kie/1.{secrets.token_hex(16)}", body, forged)
            need(
                not key or status != HTTPStatus.OK, f"a forged callback was taken: the service at {public} {_OTHER_KEY}"
            )
            wanted = HTTPStatus.UNAUTHORIZED if key else HTTPStatus.OK
            need(status == wanted, f"a forged callback was answered {status} instead of {wanted}: {_BLAME}")
            status = await _post(session, f"{public}{WEBHOOK_PATH}", b"{}", {})
            need(
                status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND),
                f"an update without the secret was answered {status} instead of {HTTPStatus.UNAUTHORIZED}: {_BLAME}",
            )
        return 1 if key else 2

    async def _is_genlock(self, session: aiohttp.ClientSession, public: str) -> None:
        try:
            async with session.get(f"{public}/health") as answer:
                status, date = answer.status, answer.headers.get("Date")
                said = await answer.json(content_type=None) if status == HTTPStatus.OK else {}
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            raise Ill(
                f"nobody answers at {public} ({type(error).__name__}): start `genlock serve`, and check the name, the "
                "proxy in front and GENLOCK_PUBLIC_URL"
            ) from None
        need(status == HTTPStatus.OK and "queue_depth" in said, f"{public}/health was answered {status}: {_BLAME}")
        check_clock(date, self._now(), public)

    # Telegram

    async def telegram(self) -> str:
        settings = self._settings
        if settings.telegram_token is None:
            raise Ill("GENLOCK_TELEGRAM_TOKEN is not set: @BotFather gives it")
        bot = make_bot(settings.telegram_token.get_secret_value(), settings.telegram_api_url)
        caller = Caller(bot, TelegramRateLimiter(NoLimits(), ""), self._observer)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                me = await caller.call(bot.get_me, chat=None, priority=Priority.RESULT)
                hook = await caller.call(bot.get_webhook_info, chat=None, priority=Priority.RESULT)
        except TokenRefused:
            raise Ill("Telegram does not know GENLOCK_TELEGRAM_TOKEN: copy it from @BotFather again") from None
        except (ChannelError, TimeoutError) as error:
            raise Ill(
                f"Telegram does not answer at {settings.telegram_api_url} ({type(error).__name__}): check the network "
                "and GENLOCK_TELEGRAM_API_URL"
            ) from None
        finally:
            await caller.close()
        async with _session() as session, session.get(settings.telegram_api_url, allow_redirects=False) as answer:
            check_clock(answer.headers.get("Date"), self._now(), "Telegram")
        return f"Telegram knows us as @{me.username}, {self._webhook(hook)}"

    def _webhook(self, hook: WebhookInfo) -> str:
        public = self._settings.public_url
        need(
            not (hook.url and public) or hook.url == f"{public}{WEBHOOK_PATH}",
            f"Telegram brings updates to {hook.url}, not to us: start `genlock serve` with this GENLOCK_PUBLIC_URL",
        )
        waiting = f", {hook.pending_update_count} updates wait there" if hook.pending_update_count else ""
        trouble = f", its last error: {hook.last_error_message}" if hook.last_error_message else ""
        return f"{'webhook' if hook.url else 'no webhook'}{waiting}{trouble}"

    # the provider

    async def kie(self) -> str:
        settings = self._settings
        if settings.kie_api_key is None:
            raise Ill("GENLOCK_KIE_API_KEY is not set: Kie.ai's API key page gives it")
        kie = make_kie(settings, load(settings.catalog_overlay))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                left = await kie.credits()
        except (ProviderError, TimeoutError) as error:
            raise Ill(
                f"Kie.ai at {settings.kie_api_url} does not tell our credit ({type(error).__name__}: {error}): check "
                "GENLOCK_KIE_API_KEY and GENLOCK_KIE_API_URL"
            ) from None
        finally:
            await kie.close()
        need(left > 0, "Kie.ai knows us, and no credit is left there: top up the account")
        return f"Kie.ai has {left / 1000:g} credits of ours"


def _signed(task: str, key: str, now: int) -> dict[str, str]:
    return {TIMESTAMP: str(now), SIGNATURE: sign(task, now, key)}


async def _post(session: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str]) -> int:
    async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
        return answer.status
