"""The composition root: makes one instance of the service of all its parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

from starlette.types import ASGIApp

from genlock.api.app import PREFIX as API_PREFIX
from genlock.app.channels import channel_routes
from genlock.app.dashboard import dashboard_routes
from genlock.app.databases import open_store
from genlock.app.instance_parts import InstanceParts, Process
from genlock.app.periodic_tasks import periodic_tasks
from genlock.app.plugins import Plugins, find_plugins
from genlock.app.providers import make_catalog
from genlock.app.telegram import make_update_source
from genlock.channels.telegram.caller import Caller
from genlock.domain.events import Event
from genlock.engine.alarms import Alarms
from genlock.engine.engine import Engine
from genlock.engine.periodic import PeriodicTask
from genlock.engine.stats import Stats
from genlock.i18n.translator import package_texts
from genlock.ports import ProviderBundle
from genlock.settings import ServiceSettings
from genlock.web.callbacks import CallbackEndpoint
from genlock.web.front_page import FrontPage
from genlock.web.health import FigureAccess, HealthEndpoints
from genlock.web.requests import BodyMemory
from genlock.web.routes import make_web, with_applications


@dataclass(frozen=True, kw_only=True)
class App:
    """One composed instance, not started yet."""

    engine: Engine
    caller: Caller
    web: ASGIApp
    alarms: Alarms
    #: what the instance repeats in addition to `engine.periodic_tasks()`
    periodic_tasks: list[PeriodicTask]


async def compose(settings: ServiceSettings, process: Process) -> App:
    """Make every part of an instance from the settings."""
    started = monotonic()
    parts = await _open_parts(settings, process)
    engine = parts.engine
    receive_updates, telegram_endpoints = await make_update_source(
        settings, parts.caller, parts.store, engine, process.mask, parts.memory
    )
    health = _make_health(settings, process, engine, parts.stats, started)
    web = make_web(
        [*_callback_endpoints(engine, parts.providers, parts.memory), health, *telegram_endpoints],
        FrontPage(texts=package_texts(), is_public=settings.is_public).route(),
        *dashboard_routes(parts.dashboard),
        *channel_routes(parts.plugins, parts.more_channels, parts.orders),
    )
    report_plugins(parts.plugins, process)  # now: a plug-in may have failed while its part was made
    tasks = periodic_tasks(parts, receive_updates)
    return App(
        engine=engine,
        caller=parts.caller,
        web=with_applications(web, {API_PREFIX: parts.api}),
        alarms=parts.alarms,
        periodic_tasks=tasks,
    )


async def _open_parts(settings: ServiceSettings, process: Process) -> InstanceParts:
    store = await open_store(settings.database_url, observer=process.observer, keep_open=True)
    process.closing.push_async_callback(store.close)
    if process.job_events:
        process.closing.push_async_callback(process.job_events.write_last, store)
    plugins = find_plugins()
    for secret in plugins.secrets():
        process.mask.add(secret)
    editor, providers = await make_catalog(settings, plugins, store, process.observer, process.closing)
    return InstanceParts(
        settings=settings, process=process, store=store, plugins=plugins, editor=editor, providers=providers
    )


def report_plugins(plugins: Plugins, process: Process) -> None:
    """Name every plug-in that is left out, and every setting that no plug-in knows."""
    for name, nearest in plugins.unknown_settings():
        process.observer.event(Event.SETTING_UNKNOWN, name=name, nearest=nearest)
    for plugin in plugins.left_out:
        process.observer.event(
            Event.PLUGIN_LEFT_OUT,
            kind=plugin.kind,
            name=plugin.name,
            package=f"{plugin.package} {plugin.version}",
            reason=plugin.reason,
            remedy=plugin.remedy,
        )
    for plugin in plugins.installed:
        process.metrics.show_plugin(kind=plugin.kind, name=plugin.name, version=plugin.version, state=plugin.state)


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
