"""The doctor's checks over the network: our own public URL, and Telegram."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import aiohttp
from telegram import WebhookInfo

from genlock.app.plugins import Plugins
from genlock.channels.telegram.caller import Caller, Priority, make_bot
from genlock.channels.telegram.rate_limiter import TelegramRateLimiter
from genlock.channels.telegram.update_sources import WEBHOOK_PATH
from genlock.doctor.check_failed import CheckFailed, check_clock, require
from genlock.doctor.telegram_answers import telegram_answers
from genlock.ports import ChannelBundle, Observer, ProviderBundle
from genlock.settings import Settings

ANSWER_SECONDS = 10.0
_PROXY_FAULT = "something in front of genlock answers instead, or another version runs there"


class UnlimitedPermits:
    """A limit store that grants every permit: the doctor makes two calls."""

    async def reserve_permits(self, *_: Any) -> list[float]:
        return [0.0]

    async def take_permits(self, keys: Any, *_: Any) -> list[float]:
        return [0.0 for _ in keys]

    async def take_call_permits(self, keys: Any, *_: Any, **__: Any) -> tuple[list[float | None], list[float]]:
        return [0.0 for _ in keys], [0.0 for _ in keys]

    async def block_limit(self, *_: Any) -> None: ...


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS))


class NetworkChecks:
    def __init__(
        self,
        settings: Settings,
        plugins: Plugins,
        observer: Observer,
        now: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._plugins = plugins
        self._observer = observer
        self._now = now

    # our own public URL

    async def send_callbacks(self, public_url: str, bundle: ProviderBundle, task_id: str) -> int:
        """Post a callback as the provider would and a forged one; return how many of them must be stored."""
        assert bundle.sample_callback is not None
        signed = bundle.verify_callback is not None
        path = f"{public_url}/callbacks/{bundle.name}"
        other_key = (
            f"has another webhook key for {self._title(bundle)} than this machine: set the same key in both places "
            f"({', '.join(self._plugins.secret_setting_names(bundle.name))}), and restart the service"
        )
        async with _session() as session:
            await self._check_is_genlock(session, public_url)
            status = await _post(session, path, *bundle.sample_callback(task_id, False))  # noqa: FBT003
            require(status != HTTPStatus.UNAUTHORIZED, f"the service at {public_url} {other_key}")
            require(status == HTTPStatus.OK, f"a callback to {path} was answered {status}: {_PROXY_FAULT}")
            forged = bundle.sample_callback(task_id, True)  # noqa: FBT003
            status = await _post(session, f"{path}/1.{secrets.token_hex(16)}", *forged)
            require(
                not signed or status != HTTPStatus.OK,
                f"a forged callback was accepted: the service at {public_url} {other_key}",
            )
            wanted = HTTPStatus.UNAUTHORIZED if signed else HTTPStatus.OK
            require(status == wanted, f"a forged callback was answered {status} instead of {wanted}: {_PROXY_FAULT}")
        return 1 if signed else 2

    async def check_unsigned_callback(self, public_url: str, bundle: ProviderBundle) -> str:
        """Post a callback without a signature, which the service must refuse."""
        async with _session() as session:
            await self._check_is_genlock(session, public_url)
            path = f"{public_url}/callbacks/{bundle.name}/1.{secrets.token_hex(16)}"
            status = await _post(session, path, b"{}", {})
        require(
            status != HTTPStatus.NOT_FOUND,
            f"the service at {public_url} does not know {self._title(bundle)}, so its callbacks are lost and results "
            f"are late: set {self._key_setting(bundle)} there, too, and restart it",
        )
        require(
            status == HTTPStatus.UNAUTHORIZED,
            f"a callback of {self._title(bundle)} without a signature was answered {status} instead of "
            f"{HTTPStatus.UNAUTHORIZED}: {_PROXY_FAULT}",
        )
        return f"{self._title(bundle)}: an unsigned callback was refused"

    def _title(self, bundle: ProviderBundle) -> str:
        return self._plugins.title(bundle.name)

    def _key_setting(self, bundle: ProviderBundle) -> str:
        """Return the first setting of a provider, which holds its key."""
        return next(iter(self._plugins.setting_names(bundle.name)), "the same settings")

    async def check_webhook_secret(self, public_url: str) -> None:
        """Post an update without the secret header, which the service must refuse."""
        async with _session() as session:
            status = await _post(session, f"{public_url}{WEBHOOK_PATH}", b"{}", {})
        require(
            status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND),
            f"an update without the secret was answered {status} instead of {HTTPStatus.UNAUTHORIZED}: {_PROXY_FAULT}",
        )

    async def _check_is_genlock(self, session: aiohttp.ClientSession, public_url: str) -> None:
        try:
            async with session.get(f"{public_url}/health") as answer:
                status, date = answer.status, answer.headers.get("Date")
                body = await answer.json(content_type=None) if status == HTTPStatus.OK else {}
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            raise CheckFailed(
                f"no answer from {public_url} ({type(error).__name__}): start `genlock serve`, and check the host "
                "name, the proxy in front of it and GENLOCK_PUBLIC_URL"
            ) from None
        require(
            status == HTTPStatus.OK and "queue_depth" in body,
            f"{public_url}/health was answered {status}: {_PROXY_FAULT}",
        )
        check_clock(date, self._now(), public_url)

    # Telegram

    async def telegram(self) -> str:
        settings = self._settings
        if settings.telegram_token is None:
            raise CheckFailed("GENLOCK_TELEGRAM_TOKEN is not set: get a token from @BotFather")
        bot = make_bot(settings.telegram_token.get_secret_value(), settings.telegram_api_url)
        caller = Caller(bot, TelegramRateLimiter(UnlimitedPermits(), ""), self._observer)
        try:
            async with telegram_answers(settings.telegram_api_url, ANSWER_SECONDS):
                me = await caller.call(bot.get_me, chat=None, priority=Priority.RESULT)
                hook = await caller.call(bot.get_webhook_info, chat=None, priority=Priority.RESULT)
        finally:
            await caller.close()
        async with _session() as session, session.get(settings.telegram_api_url, allow_redirects=False) as answer:
            check_clock(answer.headers.get("Date"), self._now(), "Telegram")
        return f"Telegram knows the bot as @{me.username}, {self._describe_webhook(hook)}"

    def _describe_webhook(self, hook: WebhookInfo) -> str:
        public_url = self._settings.public_url
        require(
            not (hook.url and public_url) or hook.url == f"{public_url}{WEBHOOK_PATH}",
            f"Telegram sends updates to {hook.url}, not to this installation: start `genlock serve` with this "
            "GENLOCK_PUBLIC_URL",
        )
        waiting = f", {hook.pending_update_count} updates are waiting there" if hook.pending_update_count else ""
        trouble = f", its last error: {hook.last_error_message}" if hook.last_error_message else ""
        return f"{'webhook' if hook.url else 'no webhook'}{waiting}{trouble}"

    # channels of plug-ins

    async def channel_problem(self, name: str, bundle: ChannelBundle) -> str | None:
        """Return what is wrong with the channel of a plug-in; None if it works, or there is nothing to ask."""
        if bundle.health is None:
            return None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                health = await bundle.health()
        except Exception as error:  # noqa: BLE001 - the adapter is another package's
            return f"the channel {name} does not answer ({type(error).__name__}: {error})"
        return None if health.ok else f"the channel {name}: {health.text}"


async def _post(session: aiohttp.ClientSession, url: str, body: bytes, headers: Mapping[str, str]) -> int:
    async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
        return answer.status
