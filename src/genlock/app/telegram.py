"""Makes the parts that speak with Telegram."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from genlock.bot.order.job_texts import JobTexts
from genlock.channels.telegram.bot_refusals import BotRefusals
from genlock.channels.telegram.caller import API_URL, Caller, make_bot
from genlock.channels.telegram.channel import TelegramChannel
from genlock.channels.telegram.operators import notify_operators
from genlock.channels.telegram.rate_limiter import TelegramRateLimiter
from genlock.channels.telegram.update_sources import (
    WEBHOOK_PATH,
    Poller,
    UpdateSecrets,
    WebhookRegistrar,
    allowed_updates,
)
from genlock.domain.alarm import AlarmNotice
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.public_number import PublicNumbers
from genlock.engine.engine import Engine
from genlock.i18n.alarms import alarm_text
from genlock.i18n.translator import Texts, package_texts, translator
from genlock.log import Mask
from genlock.media.download import Downloads
from genlock.media.process import MediaProcess
from genlock.media.transfers import Transfers
from genlock.ports import Channel, Database, Observer
from genlock.settings import ServiceSettings, Settings
from genlock.web.requests import BodyMemory
from genlock.web.routes import Endpoint
from genlock.web.telegram import TelegramEndpoint


def make_caller(settings: ServiceSettings, store: Database, observer: Observer, closing: AsyncExitStack) -> Caller:
    bot = make_bot(settings.telegram_token.get_secret_value(), settings.telegram_api_url)
    refusals = BotRefusals(store, observer)
    caller = Caller(bot, TelegramRateLimiter(store, settings.bot_id), observer, refusals.record)
    closing.push_async_callback(caller.close)
    return caller


def bot_texts(token: str) -> Texts:
    """Return all texts with the order and account numbers of the bot with this token."""
    return package_texts().numbered(PublicNumbers.of_bot(token))


def make_channel(
    settings: Settings, caller: Caller, catalog: CurrentCatalog, transfers: Transfers, closing: AsyncExitStack
) -> Channel:
    downloads = Downloads(private=settings.media_private_hosts, transfers=transfers)
    closing.push_async_callback(downloads.close)
    media = MediaProcess(transfers)  # of its own: results do not wait for the files of users
    closing.push_async_callback(media.close)
    # A self-hosted Bot API server may fetch files that Telegram's servers cannot reach.
    local_bot_api = settings.telegram_api_url != API_URL
    texts = JobTexts(catalog, bot_texts(caller.bot.token))
    return TelegramChannel(caller, texts, downloads, media, local_bot_api=local_bot_api)


async def make_update_source(
    settings: ServiceSettings, caller: Caller, store: Database, engine: Engine, mask: Mask, memory: BodyMemory
) -> tuple[Callable[[], Awaitable[None]], list[Endpoint]]:
    """Return the task that receives updates, or registers the webhook for them, and the webhook's endpoint."""
    updates, observer = engine.updates, engine.ctx.observer
    assert updates is not None
    allowed = allowed_updates(inline=settings.inline_mode)
    if settings.public_url is None:
        poller = Poller(
            caller, receive=updates.receive, is_active=lambda: engine.active, observer=observer, allowed=allowed
        )
        return poller.run, []
    update_secrets = UpdateSecrets(store, settings.telegram_token.get_secret_value(), mask.add)
    await update_secrets.read()
    registrar = WebhookRegistrar(
        caller,
        store,
        public_url=settings.public_url,
        secrets=update_secrets,
        is_active=lambda: engine.active,
        observer=observer,
        allowed=allowed,
    )
    endpoint = TelegramEndpoint(
        updates=updates,
        observer=observer,
        path=WEBHOOK_PATH,
        bot_id=settings.bot_id,
        is_secret=update_secrets.accepts,
        memory=memory,
    )
    return registrar.run, [endpoint]


def operator_notifier(settings: Settings, caller: Caller, store: Database) -> Callable[[AlarmNotice], Awaitable[None]]:
    """Return a function that sends an alarm to every operator, in the operator's language."""

    async def notify(notice: AlarmNotice) -> None:
        def text_in(language: str) -> str:
            return alarm_text(notice, translator(language))

        await notify_operators(caller, settings.admin_ids, partial(operator_language, store), text_in)

    return notify


async def operator_language(store: Database, telegram_id: int) -> str:
    """Return the language of an operator by their Telegram id; empty if they have never used the bot."""
    found = await store.find_profiles(str(telegram_id), 2)
    return next((profile.language for profile in found if profile.external_id == str(telegram_id)), "")
