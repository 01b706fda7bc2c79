"""The composition root: makes one instance of the service of all its parts."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from starlette.applications import Starlette

from genlock.api import webhook_secret_check, webhook_sender
from genlock.api.job_watch import JobWatch
from genlock.app.api import make_api, make_api_channel, make_webhook_sender
from genlock.app.bot import handle_update, make_bot_router, make_operator_tools
from genlock.app.channels import channel_routes, make_orders, open_channels, receive_tasks
from genlock.app.dashboard import dashboard_routes
from genlock.app.dashboard_parts import DashboardParts
from genlock.app.databases import open_store
from genlock.app.engine import costs_paid_for, expected_seconds, make_engine, make_rules
from genlock.app.logins import make_logins
from genlock.app.media import make_media_store
from genlock.app.periodic_tasks import periodic_tasks
from genlock.app.plugins import Plugins, find_plugins
from genlock.app.providers import fetch_public_lists, make_catalog, rate_limits
from genlock.app.telegram import bot_texts, make_caller, make_channel, make_update_source, operator_notifier
from genlock.app.webhook_secrets import make_webhook_secret_check
from genlock.bot.order.job_texts import JobTexts
from genlock.channels.api.channel import NAME as CHANNEL
from genlock.channels.telegram.caller import Caller
from genlock.channels.telegram.updates import acknowledge_repeated_press
from genlock.domain.events import Event
from genlock.engine.alarms import Alarms
from genlock.engine.attention import AttentionCounts
from genlock.engine.context import EngineContext
from genlock.engine.engine import Engine
from genlock.engine.job_events import PERIOD_SECONDS, JobEventRecorder
from genlock.engine.offer_order import OfferOrder
from genlock.engine.periodic import PeriodicTask
from genlock.engine.sell import Seller
from genlock.engine.stats import Stats
from genlock.engine.updates import Handler, UpdateWorker
from genlock.log import Mask
from genlock.media.download import Downloads
from genlock.metrics import MetricsObserver
from genlock.ports import Channel, Database, Observer, ProviderBundle
from genlock.settings import ServiceSettings
from genlock.web.callbacks import CallbackEndpoint
from genlock.web.health import FigureAccess, HealthEndpoints
from genlock.web.requests import BodyMemory
from genlock.web.routes import make_web

if TYPE_CHECKING:
    from genlock.dashboard.installation import Examine

#: how long a stop waits for running jobs and updates before it hands them to other instances
STOP_SECONDS = 12.0


@dataclass(frozen=True, kw_only=True)
class Process:
    """What the process gives to the parts of the instance that it runs."""

    instance: str
    observer: Observer
    metrics: MetricsObserver
    mask: Mask
    #: keeps the events of jobs; None: they are not kept
    job_events: JobEventRecorder | None
    #: whether the instance accepts traffic: started, and not stopping
    is_open: Callable[[], bool]
    #: closes the parts, in reverse order
    closing: AsyncExitStack
    #: runs the doctor and yields its phases
    examine: "Examine | None" = None


@dataclass(frozen=True, kw_only=True)
class App:
    """One composed instance, not started yet."""

    engine: Engine
    caller: Caller
    web: Starlette
    alarms: Alarms
    #: what the instance repeats in addition to `engine.periodic_tasks()`
    periodic_tasks: list[PeriodicTask]


async def compose(settings: ServiceSettings, process: Process) -> App:
    """Make every part of an instance from the settings."""
    started, closing, observer, mask = monotonic(), process.closing, process.observer, process.mask
    store = await open_store(settings.database_url, observer=observer)
    closing.push_async_callback(store.close)
    if process.job_events:
        closing.push_async_callback(process.job_events.write_last, store)

    plugins = find_plugins(settings)
    for secret in plugins.secrets():
        mask.add(secret)
    editor, bundles = await make_catalog(settings, plugins, store, observer, closing)
    catalog = editor.current
    caller = make_caller(settings, store, observer, closing)
    channel = make_channel(settings, caller, catalog, closing)
    watch = JobWatch(store, observer, process.is_open)
    closing.push_async_callback(watch.close)
    media = make_media_store(settings, closing)
    more_channels = open_channels(settings, plugins, JobTexts(catalog, bot_texts(caller.bot.token)), observer, closing)
    channels: dict[str, Channel] = {
        channel.name: channel,
        CHANNEL: make_api_channel(settings, media, watch, closing),
        **{name: bundle.channel for name, bundle in more_channels.items()},
    }
    handlers: dict[str, Handler] = {}  # filled below: a bot needs the engine, and the engine hands updates to the bots
    acknowledge = partial(acknowledge_repeated_press, caller)
    offers = OfferOrder(catalog)
    engine = _make_engine(
        settings,
        process,
        store,
        channels,
        offers,
        bundles,
        lambda ctx: UpdateWorker(ctx, store, handlers, acknowledge),
    )
    logins = make_logins(settings, store)
    router = make_bot_router(settings, caller, store, engine, catalog, bundles, logins, closing)
    closing.push_async_callback(router.close)
    handlers[settings.bot_id] = partial(handle_update, router, mask)
    tools = make_operator_tools(settings, caller, store, engine, router.reconcile)
    closing.push_async_callback(tools.full_check.close)

    make_seller = partial(Seller, engine=engine, store=store, catalog=catalog)
    orders = make_orders(settings, more_channels, lambda rules: make_seller(rules=rules), store)
    more_routes = channel_routes(plugins, more_channels, orders)
    report_plugins(plugins, process)

    stats = Stats(engine.ctx, store)
    alarms = Alarms(engine.ctx, engine.leader, store, stats, operator_notifier(settings, caller, store))
    memory = BodyMemory()
    receive_updates, telegram_endpoints = await make_update_source(settings, caller, store, engine, mask, memory)
    health = _make_health(settings, process, engine, stats, started)
    send_webhooks = make_webhook_sender(settings, store, engine, catalog, closing).round
    return App(
        engine=engine,
        caller=caller,
        web=make_web(
            [*_callback_endpoints(engine, bundles, memory), health, *telegram_endpoints],
            *make_api(
                settings=settings,
                store=store,
                engine=engine,
                catalog=catalog,
                bundles=bundles,
                media=media,
                watch=watch,
                memory=memory,
                closing=closing,
            ).routes(),
            *dashboard_routes(
                DashboardParts(
                    settings=settings,
                    store=store,
                    engine=engine,
                    logins=logins,
                    memory=memory,
                    stats=stats,
                    attention=AttentionCounts(engine.ctx, store),
                    editor=editor,
                    fetch_lists=partial(fetch_public_lists, settings),
                    providers=bundles,
                    downloads=_make_downloads(settings, closing),
                    tools=tools,
                    texts=router.texts,
                    is_open=process.is_open,
                    examine=process.examine,
                    plugins=plugins,
                )
            ),
            *more_routes,
        ),
        alarms=alarms,
        periodic_tasks=[
            *periodic_tasks(settings, engine, store, alarms, router, editor, receive_updates, bundles, media, offers),
            PeriodicTask(name="send_webhooks", period_seconds=webhook_sender.PERIOD_SECONDS, run=send_webhooks),
            PeriodicTask(
                name="check_webhook_secrets",
                period_seconds=webhook_secret_check.PERIOD_SECONDS,
                run=make_webhook_secret_check(settings, store, engine).round,
                leader_only=True,
            ),
            *_job_event_tasks(process.job_events, store),
            *receive_tasks(more_channels, orders),
        ],
    )


def report_plugins(plugins: Plugins, process: Process) -> None:
    """Name every plug-in that is left out, and every setting that no plug-in knows."""
    for name, nearest in plugins.unknown_settings():
        process.observer.event(Event.SETTING_UNKNOWN, name=name, nearest=nearest)
    for one in plugins.left_out:
        process.observer.event(
            Event.PLUGIN_LEFT_OUT,
            kind=one.kind,
            name=one.name,
            package=f"{one.package} {one.version}",
            reason=one.reason,
            remedy=one.remedy,
        )
    for one in plugins.installed:
        process.metrics.show_plugin(kind=one.kind, name=one.name, version=one.version, state=one.state)


def _make_downloads(settings: ServiceSettings, closing: AsyncExitStack) -> Downloads:
    downloads = Downloads(private=settings.media_private_hosts)
    closing.push_async_callback(downloads.close)
    return downloads


def _job_event_tasks(recorder: JobEventRecorder | None, store: Database) -> list[PeriodicTask]:
    if recorder is None:
        return []
    return [PeriodicTask(name="write_job_events", period_seconds=PERIOD_SECONDS, run=partial(recorder.write, store))]


def _make_engine(
    settings: ServiceSettings,
    process: Process,
    store: Database,
    channels: Mapping[str, Channel],
    offers: OfferOrder,
    bundles: Mapping[str, ProviderBundle],
    make_updates: Callable[[EngineContext], UpdateWorker],
) -> Engine:
    catalog = offers.catalog
    return make_engine(
        store,
        process.observer,
        providers={name: bundle.provider for name, bundle in bundles.items()},
        channels=channels,
        rules=make_rules(settings, limits=rate_limits(bundles), stop_seconds=STOP_SECONDS),
        public_url=settings.public_url,
        instance=process.instance,
        offers=offers,
        all_offers=offers.all,
        concurrency={name: bundle.concurrency for name, bundle in bundles.items() if bundle.concurrency},
        expected=expected_seconds(catalog),
        paid_for=costs_paid_for(catalog, markup=settings.markup, credit_usd=settings.credit_usd),
        make_updates=make_updates,
        poll_seconds={name: bundle.poll_seconds for name, bundle in bundles.items() if bundle.poll_seconds},
        bots=frozenset({settings.bot_id}),
        mask=process.mask,
    )


def _make_health(
    settings: ServiceSettings, process: Process, engine: Engine, stats: Stats, started: float
) -> HealthEndpoints:
    return HealthEndpoints(
        engine=engine,
        stats=stats,
        is_open=process.is_open,
        render=lambda counts, active: process.metrics.render(counts, active=active),
        started=started,
        access=FigureAccess(
            token=settings.metrics_token.get_secret_value() if settings.metrics_token else None,
            is_public=settings.is_public,
        ),
    )


def _callback_endpoints(
    engine: Engine, bundles: Mapping[str, ProviderBundle], memory: BodyMemory
) -> list[CallbackEndpoint]:
    return [
        CallbackEndpoint(
            engine=engine,
            provider=name,
            verify=bundle.verify_callback,
            shared_signature=bundle.shared_signature,
            memory=memory,
        )
        for name, bundle in bundles.items()
    ]
