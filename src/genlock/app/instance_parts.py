"""The parts of one instance, each made when it is first used, and closed before what it was made of."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from genlock.api.app import Api
from genlock.api.job_watch import JobWatch
from genlock.api.uploads import read_upload
from genlock.api.webhook_sender import WebhookSender
from genlock.app.api import make_api, make_api_channel, make_webhook_sender
from genlock.app.bot import handle_update, make_bot_router, make_operator_tools
from genlock.app.channels import make_orders, open_channels
from genlock.app.dashboard_parts import DashboardParts
from genlock.app.engine import costs_paid_for, expected_seconds, make_engine, make_rules
from genlock.app.logins import make_logins
from genlock.app.media import make_media_store
from genlock.app.plugins import Plugins
from genlock.app.providers import fetch_public_lists, file_storage, rate_limits
from genlock.app.telegram import bot_texts, make_caller, make_channel, operator_notifier
from genlock.bot.order.job_texts import JobTexts
from genlock.bot.router import BotRouter
from genlock.catalog.editor import CatalogEditor
from genlock.channels.api.channel import NAME as API_CHANNEL
from genlock.channels.telegram.caller import Caller
from genlock.channels.telegram.channel import TelegramChannel
from genlock.channels.telegram.updates import acknowledge_repeated_press
from genlock.domain.current_catalog import CurrentCatalog
from genlock.engine.alarms import Alarms
from genlock.engine.attention import AttentionCounts
from genlock.engine.engine import Engine
from genlock.engine.file_storage import FileStorage
from genlock.engine.input_files import InputFiles
from genlock.engine.job_events import JobEventRecorder
from genlock.engine.logins import Logins
from genlock.engine.offer_order import OfferOrder
from genlock.engine.operator_tools import OperatorTools
from genlock.engine.sell import Seller
from genlock.engine.stats import Stats
from genlock.engine.updates import Handler, UpdateWorker
from genlock.log import Mask
from genlock.media.download import Downloads
from genlock.media.transfers import Transfers
from genlock.metrics import MetricsObserver
from genlock.ports import Channel, ChannelBundle, Database, MediaStore, Observer, Orders, ProviderBundle
from genlock.settings import ServiceSettings
from genlock.web.requests import BodyMemory

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
    #: transfers of files, which a stop interrupts
    transfers: Transfers = field(default_factory=Transfers)
    #: runs the doctor and yields its phases
    examine: "Examine | None" = None


@dataclass(kw_only=True)
class InstanceParts:
    settings: ServiceSettings
    process: Process
    store: Database
    plugins: Plugins
    editor: CatalogEditor
    providers: dict[str, ProviderBundle]
    #: by the id of their bot; filled when the bot is made, because a bot needs the engine that hands updates to it
    handlers: dict[str, Handler] = field(default_factory=dict)

    @property
    def catalog(self) -> CurrentCatalog:
        return self.editor.current

    # channels

    @cached_property
    def caller(self) -> Caller:
        return make_caller(self.settings, self.store, self.process.observer, self.process.closing)

    @cached_property
    def watch(self) -> JobWatch:
        watch = JobWatch(self.store, self.process.observer, self.process.is_open)
        self.process.closing.push_async_callback(watch.close)
        return watch

    @cached_property
    def media(self) -> MediaStore:
        return make_media_store(self.settings, self.process.closing)

    @cached_property
    def more_channels(self) -> dict[str, ChannelBundle]:
        """The channels of plug-ins."""
        texts = JobTexts(self.catalog, bot_texts(self.caller.bot.token))
        return open_channels(self.settings, self.plugins, texts, self.process.observer, self.process.closing)

    @cached_property
    def channels(self) -> dict[str, Channel]:
        telegram = make_channel(self.settings, self.caller, self.catalog, self.process.transfers, self.process.closing)
        return {
            telegram.name: telegram,
            API_CHANNEL: make_api_channel(
                self.settings, self.media, self.watch, self.process.transfers, self.process.closing
            ),
            **{name: bundle.channel for name, bundle in self.more_channels.items()},
        }

    # the engine

    @cached_property
    def offers(self) -> OfferOrder:
        return OfferOrder(self.catalog)

    @cached_property
    def input_files(self) -> InputFiles:
        files = InputFiles(store=self.store, storage=self.storage, catalog=self.catalog)
        files.sources[API_CHANNEL] = partial(read_upload, self.media)
        return files

    @cached_property
    def engine(self) -> Engine:
        settings, bundles = self.settings, self.providers
        acknowledge = partial(acknowledge_repeated_press, self.caller)
        return make_engine(
            self.store,
            self.process.observer,
            providers={name: bundle.provider for name, bundle in bundles.items()},
            channels=self.channels,
            rules=make_rules(settings, limits=rate_limits(bundles), stop_seconds=STOP_SECONDS),
            public_url=settings.public_url,
            instance=self.process.instance,
            offers=self.offers,
            all_offers=self.offers.all,
            concurrency={name: bundle.concurrency for name, bundle in bundles.items() if bundle.concurrency},
            expected=expected_seconds(self.catalog),
            paid_for=costs_paid_for(self.catalog, markup=settings.markup, credit_usd=settings.credit_usd),
            make_updates=lambda ctx: UpdateWorker(ctx, self.store, self.handlers, acknowledge),
            poll_seconds={name: bundle.poll_seconds for name, bundle in bundles.items() if bundle.poll_seconds},
            bots=frozenset({settings.bot_id}),
            input_files=self.input_files,
            mask=self.process.mask,
        )

    @cached_property
    def stats(self) -> Stats:
        return Stats(self.engine.ctx, self.store)

    @cached_property
    def alarms(self) -> Alarms:
        notify = operator_notifier(self.settings, self.caller, self.store)
        return Alarms(self.engine.ctx, self.engine.leader, self.store, self.stats, notify)

    # what users and operators see

    @cached_property
    def storage(self) -> FileStorage:
        return file_storage(self.providers, self.plugins)

    @cached_property
    def logins(self) -> Logins:
        return make_logins(self.settings, self.store)

    @cached_property
    def router(self) -> BotRouter:
        closing = self.process.closing
        router = make_bot_router(
            settings=self.settings,
            caller=self.caller,
            store=self.store,
            engine=self.engine,
            catalog=self.catalog,
            storage=self.storage,
            logins=self.logins,
            transfers=self.process.transfers,
            closing=closing,
        )
        closing.push_async_callback(router.close)
        self.input_files.sources[TelegramChannel.name] = router.read_upload
        self.handlers[self.settings.bot_id] = partial(handle_update, router, self.process.mask)
        return router

    @cached_property
    def orders(self) -> dict[str, Orders]:
        """The orders of the channels of plug-ins."""
        seller = partial(Seller, engine=self.engine, store=self.store, catalog=self.catalog)
        return make_orders(self.settings, self.more_channels, lambda rules: seller(rules=rules), self.store)

    @cached_property
    def memory(self) -> BodyMemory:
        return BodyMemory()

    @cached_property
    def api(self) -> Api:
        return make_api(
            settings=self.settings,
            store=self.store,
            engine=self.engine,
            catalog=self.catalog,
            storage=self.storage,
            media=self.media,
            watch=self.watch,
            memory=self.memory,
            transfers=self.process.transfers,
            closing=self.process.closing,
        )

    @cached_property
    def webhook_sender(self) -> WebhookSender:
        return make_webhook_sender(self.settings, self.store, self.engine, self.catalog, self.process.closing)

    @cached_property
    def operator_tools(self) -> OperatorTools:
        tools = make_operator_tools(self.settings, self.caller, self.store, self.engine, self.router.reconcile)
        self.process.closing.push_async_callback(tools.full_check.close)
        return tools

    @cached_property
    def dashboard(self) -> DashboardParts:
        downloads = Downloads(private=self.settings.media_private_hosts)
        self.process.closing.push_async_callback(downloads.close)
        return DashboardParts(
            settings=self.settings,
            store=self.store,
            engine=self.engine,
            logins=self.logins,
            memory=self.memory,
            stats=self.stats,
            attention=AttentionCounts(self.engine.ctx, self.store),
            editor=self.editor,
            fetch_lists=fetch_public_lists,
            providers=self.providers,
            downloads=downloads,
            media=self.media,
            tools=self.operator_tools,
            texts=self.router.texts,
            is_open=self.process.is_open,
            examine=self.process.examine,
            plugins=self.plugins,
        )
