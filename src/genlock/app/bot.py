"""Makes the bot, and its rules from the settings."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from genlock.app.logins import public_url
from genlock.app.telegram import bot_texts
from genlock.bot.bundle import BotBundle
from genlock.bot.handlers.welcome import PACKAGED_PICTURE
from genlock.bot.parts import BotParts, make_router
from genlock.bot.router import BotRouter
from genlock.bot.rules import BotRules, Package, ReportRules
from genlock.channels.telegram.caller import Caller
from genlock.channels.telegram.stars import TelegramStars
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import ChannelError, GenlockError
from genlock.domain.events import Event
from genlock.domain.money import THOUSANDTHS
from genlock.domain.update import Update
from genlock.engine.accounts import AccountActions
from genlock.engine.engine import Engine
from genlock.engine.file_storage import FileStorage
from genlock.engine.full_check import FullMoneyCheck
from genlock.engine.logins import Logins
from genlock.engine.operator_tools import OperatorTools
from genlock.engine.reconciliation import ReconciliationRecord
from genlock.engine.refunds import Refunds
from genlock.engine.tell import send_queued, tell
from genlock.log import Mask
from genlock.media.download import Downloads
from genlock.media.process import MediaProcess
from genlock.media.transfers import Transfers
from genlock.ports import Database, Observer
from genlock.settings import ServiceSettings, Settings

#: what an operator receives for one Telegram Star, in US dollars, and the default sizes of packages
STAR_USD = 0.013
STARS = (50, 100, 250, 500, 1000, 2500)


def make_bot_router(  # noqa: PLR0913 - one argument per part
    *,
    settings: Settings,
    caller: Caller,
    store: Database,
    engine: Engine,
    catalog: CurrentCatalog,
    storage: FileStorage,
    logins: Logins,
    transfers: Transfers,
    closing: AsyncExitStack,
) -> BotRouter:
    bundle = BotBundle(
        caller=caller,
        rules=make_bot_rules(settings),
        dashboard_link=partial(_dashboard_link, settings, logins),
        texts=bot_texts(caller.bot.token),
    )
    media = MediaProcess(transfers)
    closing.push_async_callback(media.close)
    downloads = Downloads(private=settings.media_private_hosts, transfers=transfers)
    closing.push_async_callback(downloads.close)
    return make_router(
        BotParts(
            bundle=bundle,
            store=store,
            engine=engine,
            catalog=catalog,
            storage=storage,
            media=media,
            downloads=downloads,
        )
    )


async def _dashboard_link(settings: Settings, logins: Logins, operator_id: str) -> str | None:
    path = await logins.make_link(operator_id)
    return path and f"{public_url(settings)}{path}"


def make_operator_tools(
    settings: ServiceSettings, caller: Caller, store: Database, engine: Engine, reconcile: Callable[[], Awaitable[int]]
) -> OperatorTools:
    """Return what the dashboard acts with: the same operations as the operators' commands in the chat."""
    texts, bot, send = bot_texts(caller.bot.token), settings.bot_id, partial(send_queued, engine.ctx)
    payments = TelegramStars(caller)
    return OperatorTools(
        accounts=AccountActions(store=store, texts=texts, tell=partial(tell, engine.ctx), send_queued=send),
        refunds=Refunds(bot=bot, store=store, texts=texts, send_queued=send, service=payments),
        reconciliation=ReconciliationRecord(store, bot),
        reconcile=reconcile,
        payments=payments,
        full_check=FullMoneyCheck(store, engine.ctx.observer, engine.ctx.instance),
    )


def make_bot_rules(settings: Settings) -> BotRules:
    packages = settings.star_packages or {stars: round(stars * STAR_USD / settings.credit_usd) for stars in STARS}
    return BotRules(
        markup=settings.markup,
        credit_usd=settings.credit_usd,
        admin_ids=frozenset(settings.admin_ids),
        support=settings.support,
        api_url=settings.public_url or "",
        packages=tuple(
            _package(stars, credits_, settings.star_bonus) for stars, credits_ in packages.items() if credits_
        ),
        invoice_hours=settings.invoice_hours,
        input_days=settings.input_days,
        welcome=round(settings.welcome_credits * THOUSANDTHS),
        welcome_picture=_welcome_picture(settings.welcome_picture),
        free_per_day=settings.free_per_day,
        reward_inviter=round(settings.reward_inviter_credits * THOUSANDTHS),
        reward_invited=round(settings.reward_invited_credits * THOUSANDTHS),
        running_max=settings.running_max,
        per_minute=settings.per_minute,
        per_hour=settings.per_hour,
        uploads_per_hour=settings.uploads_per_hour,
        inline_mode=settings.inline_mode,
        free_transcriptions_per_day=settings.free_transcriptions_per_day,
        late_cancels_per_day=settings.late_cancels_per_day,
        report=_report_rules(settings),
    )


def _report_rules(settings: Settings) -> ReportRules | None:
    if settings.daily_report_hour is None:
        return None
    chat, _, thread = settings.daily_report_chat.partition(":")
    return ReportRules(
        hour=settings.daily_report_hour,
        zone=settings.daily_report_zone,
        chat=int(chat) if chat else None,
        thread=int(thread) if thread else None,
    )


def _package(stars: int, credits_: int, bonus: Mapping[int, int]) -> Package:
    """Return a package with the bonus of the largest size that it reaches."""
    percent = bonus[max(reached)] if (reached := [size for size in bonus if size <= stars]) else 0
    return Package(stars=stars, credits=credits_ + credits_ * percent // 100, bonus=percent)


def _welcome_picture(chosen: str) -> Path | None:
    if chosen == "off":
        return None
    return PACKAGED_PICTURE if chosen == "packaged" else Path(chosen)


async def handle_update(router: BotRouter, mask: Mask, stored: Update) -> None:
    """Hand a stored update to the bot. The text of an error is stored with the update, so secrets are masked."""
    try:
        await router.handle_stored(stored)
    except GenlockError:
        raise
    except Exception as error:
        text = repr(error)
        if mask(text) != text:
            raise RuntimeError(mask(text)) from None
        raise


class CommandRegistration:
    """Registers the bot's commands with Telegram once. The bot also works while this fails; it is tried again."""

    def __init__(self, router: BotRouter, observer: Observer) -> None:
        self._router = router
        self._observer = observer
        self._done = False

    async def run(self) -> None:
        if self._done:
            return
        try:
            await self._router.start()
        except ChannelError as error:
            reason = f"{type(error).__name__}: {error}"
            self._observer.event(Event.CHANNEL_UNREACHABLE, step="register commands", error=reason)
        else:
            self._done = True
