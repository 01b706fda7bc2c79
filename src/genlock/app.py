"""The composition root: the only module that knows every part. `compose` makes one instance of the service."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING

from genlock.domain import tariff
from genlock.domain.catalog import Catalog
from genlock.domain.errors import ChannelError, GenlockError, Refusal, StoreInUse
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.domain.money import THOUSANDTHS
from genlock.domain.update import Update
from genlock.engine.context import EngineContext, EngineRules
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.engine.periodic import PeriodicTask
from genlock.engine.updates import Handler, UpdateWorker
from genlock.ports import (
    Channel,
    Clock,
    Database,
    DatabaseCheck,
    Observer,
    Provider,
    ProviderBundle,
    PublicLists,
    RateLimit,
    Store,
)
from genlock.stores.database import SqlDatabase
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore, must_exist

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from genlock.bot.router import BotRouter
    from genlock.bot.rules import BotRules
    from genlock.channels.telegram.caller import Caller
    from genlock.domain.alarm import AlarmNotice
    from genlock.domain.backup import BackupSummary, RestoreSummary
    from genlock.engine.alarms import Alarms
    from genlock.log import Mask
    from genlock.metrics import MetricsObserver
    from genlock.settings import ServiceSettings, Settings
    from genlock.web.requests import BodyMemory
    from genlock.web.routes import Endpoint

#: what an operator receives for one Telegram Star, in US dollars, and the default sizes of packages
STAR_USD = 0.013
STARS = (50, 100, 250, 500, 1000, 2500)
#: how long a stop waits for running jobs and updates before it hands them to other instances
STOP_SECONDS = 12.0
#: payments that Telegram lists and we missed
RECONCILE_SECONDS = 180.0
BOT_TASK_SECONDS = 5.0
_SQLITE = "sqlite:///"


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


# one instance of the service


@dataclass(frozen=True, kw_only=True)
class App:
    """One composed instance, not started yet."""

    engine: Engine
    caller: "Caller"
    web: "Starlette"
    alarms: "Alarms"
    #: what the instance repeats in addition to `engine.periodic_tasks()`
    periodic_tasks: list[PeriodicTask]


async def compose(
    settings: "ServiceSettings",
    *,
    instance: str,
    observer: Observer,
    metrics: "MetricsObserver",
    mask: "Mask",
    is_open: Callable[[], bool],
    closing: AsyncExitStack,
) -> App:
    """Make every part of an instance from the settings. `closing` closes the parts, in reverse order."""
    from genlock.channels.telegram.updates import acknowledge_repeated_press
    from genlock.engine.alarms import Alarms
    from genlock.engine.stats import Stats
    from genlock.web.health import FigureAccess, HealthEndpoints
    from genlock.web.requests import BodyMemory
    from genlock.web.routes import make_web

    started = monotonic()
    store = await open_store(settings.database_url, observer=observer)
    closing.push_async_callback(store.close)

    catalog, bundles = _make_catalog(settings, closing)
    caller = _make_caller(settings, store, observer, closing)
    handlers: dict[str, Handler] = {}  # filled below: a bot needs the engine, and the engine hands updates to the bots
    engine = make_engine(
        store,
        observer,
        providers={name: bundle.provider for name, bundle in bundles.items()},
        channels={"telegram": _make_channel(settings, caller, catalog, closing)},
        rules=make_rules(settings, limits=rate_limits(bundles), stop_seconds=STOP_SECONDS),
        public_url=settings.public_url,
        instance=instance,
        expected=expected_seconds(catalog),
        paid_for=costs_paid_for(catalog, markup=settings.markup, credit_usd=settings.credit_usd),
        make_updates=lambda ctx: UpdateWorker(ctx, store, handlers, partial(acknowledge_repeated_press, caller)),
        poll_seconds={name: bundle.poll_seconds for name, bundle in bundles.items() if bundle.poll_seconds},
        bots=frozenset({settings.bot_id}),
        mask=mask,
    )
    router = _make_router(settings, caller, store, engine, catalog, bundles, closing)
    closing.push_async_callback(router.close)
    handlers[settings.bot_id] = partial(handle_update, router, mask)

    stats = Stats(engine.ctx, store)
    alarms = Alarms(engine.ctx, engine.leader, store, stats, _operator_notifier(settings, caller, store))
    memory = BodyMemory()
    receive_updates, telegram_endpoints = await _make_update_source(settings, caller, store, engine, mask, memory)
    health = HealthEndpoints(
        engine=engine,
        stats=stats,
        is_open=is_open,
        render=lambda counts, active: metrics.render(counts, active=active),
        started=started,
        access=FigureAccess(
            token=settings.metrics_token.get_secret_value() if settings.metrics_token else None,
            is_public=settings.is_public,
        ),
    )
    return App(
        engine=engine,
        caller=caller,
        web=make_web([*_callback_endpoints(engine, bundles, memory), health, *telegram_endpoints]),
        alarms=alarms,
        periodic_tasks=periodic_tasks(settings, engine, store, alarms, router, receive_updates, observer),
    )


def periodic_tasks(
    settings: "ServiceSettings",
    engine: Engine,
    store: Database,
    alarms: "Alarms",
    router: "BotRouter",
    receive_updates: Callable[[], Awaitable[None]],
    observer: Observer,
) -> list[PeriodicTask]:
    """Return the periodic tasks of the service. Those of the engine are in `Engine.periodic_tasks`."""
    from genlock.engine import alarms as alarm_rules
    from genlock.engine import money_check, retention
    from genlock.engine.money_check import MoneyCheck
    from genlock.engine.retention import Retention

    task = PeriodicTask
    leader_task = partial(PeriodicTask, leader_only=True)
    keep = retention.keep_seconds(
        {
            "ordered_uploads": settings.keep_uploads_days,
            "drafts": settings.keep_drafts_days,
            "audit": settings.keep_audit_days,
            "promo_uses": settings.keep_promo_uses_days,
        }
    )
    prune = Retention(engine.ctx, engine.leader, store, keep).prune
    check_money = MoneyCheck(engine.ctx, engine.leader, store).round
    return [
        task(name="receive_updates", period_seconds=BOT_TASK_SECONDS, run=receive_updates),
        task(name="register_commands", period_seconds=BOT_TASK_SECONDS, run=CommandRegistration(router, observer).run),
        leader_task(name="check_alarms", period_seconds=alarm_rules.PERIOD_SECONDS, run=alarms.check),
        leader_task(name="check_money", period_seconds=money_check.PERIOD_SECONDS, run=check_money),
        leader_task(name="prune_rows", period_seconds=retention.PERIOD_SECONDS, run=prune),
        leader_task(name="reconcile_payments", period_seconds=RECONCILE_SECONDS, run=router.reconcile),
        leader_task(name="pay_rewards", period_seconds=BOT_TASK_SECONDS, run=router.reward),
        leader_task(name="erase_data", period_seconds=BOT_TASK_SECONDS, run=router.erase),
        leader_task(name="send_broadcasts", period_seconds=BOT_TASK_SECONDS, run=router.broadcast),
    ]


class CommandRegistration:
    """Registers the bot's commands with Telegram once. The bot also works while this fails; it is tried again."""

    def __init__(self, router: "BotRouter", observer: Observer) -> None:
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


async def handle_update(router: "BotRouter", mask: "Mask", stored: Update) -> None:
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


def _make_catalog(settings: "ServiceSettings", closing: AsyncExitStack) -> tuple[Catalog, dict[str, ProviderBundle]]:
    """Return the models that can be sold, and the providers that run them."""
    from genlock.catalog import load

    catalog = load(settings.catalog_overlay)
    bundles = make_providers(settings, catalog)
    for bundle in bundles.values():
        closing.push_async_callback(bundle.close)
    return catalog.sold_through(bundles), bundles


def _make_caller(settings: "ServiceSettings", store: Database, observer: Observer, closing: AsyncExitStack) -> "Caller":
    from genlock.channels.telegram.bot_refusals import BotRefusals
    from genlock.channels.telegram.caller import Caller, make_bot
    from genlock.channels.telegram.rate_limiter import TelegramRateLimiter

    bot = make_bot(settings.telegram_token.get_secret_value(), settings.telegram_api_url)
    refusals = BotRefusals(store, observer)
    caller = Caller(bot, TelegramRateLimiter(store, settings.bot_id), observer, refusals.record)
    closing.push_async_callback(caller.close)
    return caller


def _callback_endpoints(
    engine: Engine, bundles: Mapping[str, ProviderBundle], memory: "BodyMemory"
) -> list["Endpoint"]:
    from genlock.web.callbacks import CallbackEndpoint

    return [
        CallbackEndpoint(engine=engine, provider=name, verify=bundle.verify_callback, memory=memory)
        for name, bundle in bundles.items()
    ]


def _make_channel(settings: "Settings", caller: "Caller", catalog: Catalog, closing: AsyncExitStack) -> Channel:
    from genlock.bot.order.job_texts import JobTexts
    from genlock.channels.telegram.caller import API_URL
    from genlock.channels.telegram.channel import TelegramChannel
    from genlock.media.download import Downloads
    from genlock.media.process import MediaProcess

    downloads = Downloads(private=settings.media_private_hosts)
    closing.push_async_callback(downloads.close)
    media = MediaProcess()  # of its own: results do not wait for the files of users
    closing.push_async_callback(media.close)
    # A self-hosted Bot API server may fetch files that Telegram's servers cannot reach.
    local_bot_api = settings.telegram_api_url != API_URL
    return TelegramChannel(caller, JobTexts(catalog.get), downloads, media, local_bot_api=local_bot_api)


def _make_router(
    settings: "Settings",
    caller: "Caller",
    store: Database,
    engine: Engine,
    catalog: Catalog,
    bundles: Mapping[str, ProviderBundle],
    closing: AsyncExitStack,
) -> "BotRouter":
    from genlock.bot.bundle import BotBundle
    from genlock.bot.router import make_router
    from genlock.media.process import MediaProcess

    upload = next((bundle.upload for bundle in bundles.values() if bundle.upload), None)
    if upload is None:
        raise Refusal("No configured provider stores files, so users could not send any: set GENLOCK_KIE_API_KEY")
    bundle = BotBundle(caller=caller, rules=make_bot_rules(settings))
    media = MediaProcess()
    closing.push_async_callback(media.close)
    return make_router(bundle=bundle, store=store, engine=engine, catalog=catalog, upload=upload, media=media)


async def _make_update_source(
    settings: "ServiceSettings", caller: "Caller", store: Database, engine: Engine, mask: "Mask", memory: "BodyMemory"
) -> tuple[Callable[[], Awaitable[None]], list["Endpoint"]]:
    """Return the task that receives updates, or registers the webhook for them, and the webhook's endpoint."""
    from genlock.channels.telegram.update_sources import WEBHOOK_PATH, Poller, WebhookRegistrar, WebhookSecrets
    from genlock.web.telegram import TelegramEndpoint

    updates, observer = engine.updates, engine.ctx.observer
    assert updates is not None
    if settings.public_url is None:
        poller = Poller(caller, receive=updates.receive, is_active=lambda: engine.active, observer=observer)
        return poller.run, []
    webhook_secrets = WebhookSecrets(store, settings.telegram_token.get_secret_value(), mask.add)
    await webhook_secrets.read()
    registrar = WebhookRegistrar(
        caller,
        store,
        public_url=settings.public_url,
        secrets=webhook_secrets,
        is_active=lambda: engine.active,
        observer=observer,
    )
    endpoint = TelegramEndpoint(
        updates=updates,
        observer=observer,
        path=WEBHOOK_PATH,
        bot_id=settings.bot_id,
        is_secret=webhook_secrets.accepts,
        memory=memory,
    )
    return registrar.run, [endpoint]


async def operator_language(store: Database, telegram_id: int) -> str:
    """Return the language of an operator by their Telegram id; empty if they have never used the bot."""
    found = await store.find_profiles(str(telegram_id), 2)
    return next((one.language for one in found if one.external_id == str(telegram_id)), "")


def _operator_notifier(
    settings: "Settings", caller: "Caller", store: Database
) -> "Callable[[AlarmNotice], Awaitable[None]]":
    """Return a function that sends an alarm to every operator, in the operator's language."""
    from genlock.channels.telegram.operators import notify_operators
    from genlock.i18n.alarms import alarm_text
    from genlock.i18n.translator import translator

    async def notify(notice: "AlarmNotice") -> None:
        def text_in(language: str) -> str:
            return alarm_text(notice, translator(language))

        await notify_operators(caller, settings.admin_ids, partial(operator_language, store), text_in)

    return notify


# parts that commands, the doctor and the sandbox also make


async def open_store(
    url: str, *, observer: Observer, clock: Clock | None = None, in_use_ok: bool = False, existing: bool = False
) -> SqlDatabase:
    """Open the database at a URL and bring its schema up to date. `clock` is for simulations.

    With `in_use_ok`, an SQLite file is opened although a service uses it, for a short command of an operator. With
    `existing`, a missing SQLite file is not created. Raises StoreUnavailable.
    """
    if url.startswith(_SQLITE):
        path, clock = url.removeprefix(_SQLITE), clock or SystemClock()
        if existing:
            must_exist(path)
        try:
            return await SqliteStore.open(path, clock=clock, observer=observer)
        except StoreInUse:
            if not in_use_ok:
                raise
            return await SqliteStore.open(path, clock=clock, observer=observer, without_lock=True)
    if url.startswith(("postgresql://", "postgres://")):
        return await PostgresStore.open(url, clock=clock, observer=observer)
    raise Refusal(f"GENLOCK_DATABASE_URL must begin with sqlite:/// or postgresql://, not {url.partition(':')[0]!r}")


async def open_database_check(url: str, *, observer: Observer) -> DatabaseCheck:
    """Open the database at a URL as it is, without migrating it, for the doctor. Raises StoreUnavailable."""
    from genlock.stores.check import PostgresCheck, SqliteCheck

    if url.startswith(_SQLITE):
        path = url.removeprefix(_SQLITE)
        opened = await SqliteStore.open(path, clock=SystemClock(), observer=observer, without_lock=True)
        return SqliteCheck(opened, path)
    return PostgresCheck(await PostgresStore.open(url, observer=observer, migrate=False))


async def back_up(url: str, path: Path, *, overwrite: bool) -> "BackupSummary":
    """Write a backup of the database at a URL, while instances use it. Raises BackupFailed and StoreError."""
    from genlock.stores.backups.backup import write_backup
    from genlock.stores.backups.postgres import postgres_snapshot
    from genlock.stores.backups.sqlite import sqlite_snapshot

    is_sqlite = url.startswith(_SQLITE)
    source = sqlite_snapshot(url.removeprefix(_SQLITE), path.parent) if is_sqlite else postgres_snapshot(url)
    async with source as snapshot:
        return await write_backup(snapshot, path, overwrite=overwrite, now=SystemClock().now())


async def restore(url: str, path: Path, *, observer: Observer, force: bool, resume: bool) -> "RestoreSummary":
    """Replace the database at a URL by a backup of either kind of database, completely or not at all.

    Raises BackupUnusable, Refusal and StoreError.
    """
    from genlock.stores.backups.file import open_backup
    from genlock.stores.backups.postgres import postgres_target
    from genlock.stores.backups.restore import restore_backup
    from genlock.stores.backups.sqlite import sqlite_target

    with open_backup(path) as backup:
        if url.startswith(_SQLITE):
            async with sqlite_target(url.removeprefix(_SQLITE), clock=SystemClock(), observer=observer) as file:
                return await restore_backup(backup, file, force=force, resume=resume)
        async with postgres_target(url, observer=observer) as server:
            return await restore_backup(backup, server, force=force, resume=resume)


def make_engine(  # noqa: PLR0913 - one argument per part
    store: Store,
    observer: Observer,
    *,
    providers: Mapping[str, Provider],
    channels: Mapping[str, Channel],
    rules: EngineRules | None = None,
    public_url: str | None = None,
    instance: str | None = None,
    expected: Callable[[Job], float | None] | None = None,
    paid_for: Callable[[Job], int | None] | None = None,
    make_updates: Callable[[EngineContext], UpdateWorker] | None = None,
    poll_seconds: Mapping[str, float] | None = None,
    bots: frozenset[str] | None = None,
    mask: Callable[[str], str] = str,
) -> Engine:
    """Make an engine over a store, with an instance id that no other start has had."""
    rules = rules or EngineRules()
    ctx = EngineContext(
        store=store,
        providers=providers,
        channels=channels,
        observer=observer,
        instance=instance or secrets.token_hex(8),
        limits=RateLimiter(store, rules.limits),
        rules=rules,
        public_url=public_url,
        expected=expected,
        paid_for=paid_for,
        poll_seconds=poll_seconds or {},
        bots=bots,
        mask=mask,
    )
    return Engine(ctx, make_updates(ctx) if make_updates else None)


def make_providers(
    settings: "Settings", catalog: Catalog, *, now: Callable[[], float] = time
) -> dict[str, ProviderBundle]:
    """Return the bundles of the configured providers by name. A provider without a key is not configured."""
    bundles = []
    if settings.kie_api_key is not None:
        from genlock.providers.kie.bundle import make_bundle

        bundles.append(
            make_bundle(
                catalog,
                key=settings.kie_api_key.get_secret_value(),
                api_url=settings.kie_api_url,
                upload_url=settings.kie_upload_url,
                webhook_key=settings.kie_webhook_key.get_secret_value() if settings.kie_webhook_key else None,
                creates_per_10_seconds=settings.kie_creates_per_10_seconds,
                now=now,
            )
        )
    return {bundle.name: bundle for bundle in bundles}


def configured_providers(settings: "Settings") -> set[str]:
    """Return the names of the providers that have a key; only their models are on sale."""
    return {"kie"} if settings.kie_api_key is not None else set()


async def fetch_public_lists(settings: "Settings") -> dict[str, PublicLists]:
    """Fetch the model and price lists of every provider that publishes them; no account is needed."""
    from genlock.providers.kie import public_lists as kie
    from genlock.providers.kie.client import Kie

    return {Kie.name: await kie.fetch(settings.kie_api_url)}


def rate_limits(bundles: Mapping[str, ProviderBundle]) -> dict[str, RateLimit]:
    """Return the limits of all providers under the keys that the engine uses: `create:NAME` and `status:NAME`."""
    return {f"{call}:{name}": limit for name, bundle in bundles.items() for call, limit in bundle.rate_limits.items()}


def make_bot_rules(settings: "Settings") -> "BotRules":
    from genlock.bot.rules import BotRules, Package

    packages = settings.star_packages or {stars: round(stars * STAR_USD / settings.credit_usd) for stars in STARS}
    return BotRules(
        markup=settings.markup,
        credit_usd=settings.credit_usd,
        admin_ids=frozenset(settings.admin_ids),
        support=settings.support,
        packages=tuple(Package(stars=stars, credits=credits_) for stars, credits_ in packages.items() if credits_),
        invoice_hours=settings.invoice_hours,
        input_days=settings.input_days,
        welcome=round(settings.welcome_credits * THOUSANDTHS),
        free_per_day=settings.free_per_day,
        reward_inviter=round(settings.reward_inviter_credits * THOUSANDTHS),
        reward_invited=round(settings.reward_invited_credits * THOUSANDTHS),
        running_max=settings.running_max,
        per_minute=settings.per_minute,
        per_hour=settings.per_hour,
        uploads_per_hour=settings.uploads_per_hour,
        late_cancels_per_day=settings.late_cancels_per_day,
    )


def costs_paid_for(catalog: Catalog, *, markup: float, credit_usd: float) -> Callable[[Job], int | None]:
    """Return a function for the provider cost that a job's price covers; None for free runs and own prices."""

    def paid_for(job: Job) -> int | None:
        model = catalog.models.get(job.model)
        if model is None or model.own_price is not None or not job.price:
            return None
        return tariff.paid_for(job.price, markup, credit_usd, model.provider_credit_usd)

    return paid_for


def expected_seconds(catalog: Catalog) -> Callable[[Job], float | None]:
    """Return a function for the expected seconds of a job; None if its model is not in the catalog any more."""

    def expected(job: Job) -> float | None:
        model = catalog.models.get(job.model)
        return None if model is None else model.expected_seconds

    return expected


def make_rules(
    settings: "Settings", *, limits: Mapping[str, RateLimit] | None = None, stop_seconds: float = 15.0
) -> EngineRules:
    return EngineRules(
        stop_seconds=stop_seconds,
        lease_seconds=settings.lease_seconds,
        orphan_expire_seconds=settings.orphan_expire_seconds,
        poll_seconds=settings.poll_seconds,
        grace_seconds=settings.grace_seconds,
        limits=limits or {},
    )
