"""One instance of the product: composed from the settings, started and stopped as a whole."""

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from time import monotonic
from typing import Any

import telegram
from prometheus_client import CollectorRegistry

from genlock.app import (
    costs_paid_for,
    expected_seconds,
    make_channel,
    make_chat,
    make_engine,
    make_kie,
    make_kie_endpoint,
    make_rules,
    open_store,
)
from genlock.bot.router import ChatBot
from genlock.catalog import load
from genlock.channels.telegram.caller import Caller, Priority, make_bot
from genlock.channels.telegram.errors import TokenRefused
from genlock.channels.telegram.operators import notify_operators
from genlock.channels.telegram.rate_limiter import TelegramRateLimiter
from genlock.channels.telegram.update_sources import WEBHOOK_PATH, Poller, WebhookRegistrar, webhook_secret
from genlock.channels.telegram.updates import acknowledge_repeated_press
from genlock.domain.errors import ChannelError, GenlockError, Refusal
from genlock.domain.events import Event
from genlock.domain.update import Update
from genlock.engine import alarms, retention
from genlock.engine.alarms import Alarms
from genlock.engine.periodic import PeriodicTask
from genlock.engine.retention import Retention
from genlock.engine.stats import Stats
from genlock.engine.updates import Handler, UpdateWorker
from genlock.log import LogObserver, Mask
from genlock.media.download import Downloads
from genlock.metrics import MetricsObserver, Observers
from genlock.ports import Database, UpdateStore
from genlock.settings import LogFormat, ServiceSettings
from genlock.web.health import HealthEndpoints
from genlock.web.routes import Endpoint, make_web
from genlock.web.server import serving
from genlock.web.telegram import TelegramEndpoint

#: how long a start waits for Telegram to say whether the token is right; if it is away we start without
TOKEN_CHECK_SECONDS = 5.0
#: a provider's orders and the chat's updates that are not finished by then are handed over
STOP_SECONDS = 12.0
#: payments that Telegram knows of and we do not
RECONCILE_SECONDS = 180.0
CHORE_SECONDS = 5.0


class Service:
    """Everything an instance consists of. `start` says where it listens; `stop` leaves its work to the others."""

    def __init__(self, settings: ServiceSettings, mask: Mask) -> None:
        self._settings = settings
        self._mask = mask
        self._instance = secrets.token_hex(8)
        self._metrics = MetricsObserver(CollectorRegistry())
        as_json = settings.log_format is LogFormat.JSON
        log = LogObserver(logging.getLogger("genlock"), as_json=as_json, instance=self._instance)
        self.observer = Observers(log, self._metrics)
        self._open = False
        self._introducing: asyncio.Task[None] | None = None
        self._closing = AsyncExitStack()

    async def start(self) -> str:
        try:
            return await self._start()
        except BaseException:
            await self._closing.aclose()
            raise

    async def _start(self) -> str:
        settings, started = self._settings, monotonic()
        catalog = load(settings.catalog_overlay)
        store = await open_store(settings.database_url, observer=self.observer)
        self._closing.push_async_callback(store.close)
        caller = self._make_caller(store)
        kie = make_kie(settings, catalog)
        self._closing.push_async_callback(kie.close)
        downloads = Downloads(private=settings.media_private_hosts)
        self._closing.push_async_callback(downloads.close)
        handlers: dict[str, Handler] = {}
        self.engine = engine = make_engine(
            store,
            self.observer,
            providers={kie.name: kie},
            channels={"telegram": make_channel(settings, caller, catalog, downloads)},
            rules=make_rules(settings, stop_seconds=STOP_SECONDS),
            public_url=settings.public_url,
            instance=self._instance,
            expected=expected_seconds(catalog),
            paid_for=costs_paid_for(catalog, markup=settings.markup, credit_usd=settings.credit_usd),
            make_updates=lambda ctx: UpdateWorker(ctx, store, handlers, partial(acknowledge_repeated_press, caller)),
        )
        assert engine.updates is not None
        chat = make_chat(settings, caller=caller, store=store, engine=engine, catalog=catalog, kie=kie)
        self._closing.push_async_callback(chat.close)
        handlers[settings.bot_id] = partial(_handle, chat, caller.bot, store, self._mask)
        await self._check_token(caller)
        intake, endpoints = await self._make_intake(caller, store, engine.updates)
        stats = Stats(engine.ctx, store)
        health = HealthEndpoints(
            engine=engine,
            stats=stats,
            is_open=lambda: self._open,
            render=lambda counts, active: self._metrics.render(counts, active=active),
            started=started,
        )
        web = make_web([make_kie_endpoint(engine, settings), health, *endpoints])
        address = await self._listen(web)
        receive = PeriodicTask(name="receive_updates", period_seconds=CHORE_SECONDS, run=intake)
        maintenance = self._maintenance_tasks(caller, store, stats)
        await engine.start([receive, *maintenance, *self._bot_tasks(chat)])
        self._closing.push_async_callback(engine.stop)
        self._closing.push_async_callback(self._alarms.stop)  # before the leader resigns: the next one writes here too
        self._introducing = asyncio.create_task(self._introduce(chat))
        self._open = True
        return address

    def _make_caller(self, store: Database) -> Caller:
        settings = self._settings
        bot = make_bot(settings.telegram_token.get_secret_value(), settings.telegram_api_url)
        caller = Caller(bot, TelegramRateLimiter(store, settings.bot_id), self.observer)
        self._closing.push_async_callback(caller.close)
        return caller

    async def _check_token(self, caller: Caller) -> None:
        try:
            async with asyncio.timeout(TOKEN_CHECK_SECONDS):
                await caller.call(caller.bot.get_me, chat=None, priority=Priority.RESULT)
        except TokenRefused:
            raise Refusal(
                "Telegram does not know the token in GENLOCK_TELEGRAM_TOKEN: copy it from @BotFather again "
                "(it changes when it is revoked there)"
            ) from None
        except (ChannelError, TimeoutError) as error:
            self.observer.event(Event.CHANNEL_UNREACHABLE, step="ask Telegram who we are", error=type(error).__name__)

    async def _make_intake(
        self, caller: Caller, store: Database, updates: UpdateWorker
    ) -> tuple[Callable[[], Awaitable[None]], list[Endpoint]]:
        """Who brings the updates, and the door they come through, if they are brought."""
        settings = self._settings
        if settings.public_url is None:
            poller = Poller(
                caller, take_in=updates.receive, is_active=lambda: self.engine.active, observer=self.observer
            )
            return poller.run, []
        secret = await webhook_secret(store, settings.bot_id)
        self._mask.add(secret)
        keeper = WebhookRegistrar(
            caller,
            store,
            public_url=settings.public_url,
            secret=secret,
            is_active=lambda: self.engine.active,
            observer=self.observer,
        )
        endpoint = TelegramEndpoint(
            updates=updates, observer=self.observer, path=WEBHOOK_PATH, bot_id=settings.bot_id, secret=secret
        )
        return keeper.run, [endpoint]

    async def _listen(self, web: Any) -> str:
        settings = self._settings
        try:
            return await self._closing.enter_async_context(serving(web, settings.host, settings.port))
        except OSError as error:
            raise Refusal(
                f"cannot listen on {settings.host}:{settings.port} ({error.strerror}): "
                "stop what uses it, or set GENLOCK_HOST and GENLOCK_PORT to something else"
            ) from None

    def _maintenance_tasks(self, caller: Caller, store: Database, stats: Stats) -> list[PeriodicTask]:
        ctx, leader = self.engine.ctx, self.engine.leader
        tell = partial(notify_operators, caller, self._settings.admin_ids, partial(_language_of, store))
        self._alarms = Alarms(ctx, leader, store, stats, tell)
        return [
            PeriodicTask(
                name="check_alarms", period_seconds=alarms.PERIOD_SECONDS, run=self._alarms.check, leader_only=True
            ),
            PeriodicTask(
                name="check_ledger",
                period_seconds=alarms.PERIOD_SECONDS,
                run=self._alarms.check_ledger,
                leader_only=True,
            ),
            PeriodicTask(
                name="prune_rows",
                period_seconds=retention.PERIOD_SECONDS,
                run=Retention(ctx, leader, store).prune,
                leader_only=True,
            ),
        ]

    def _bot_tasks(self, chat: ChatBot) -> list[PeriodicTask]:
        return [
            PeriodicTask(
                name="reconcile_payments", period_seconds=RECONCILE_SECONDS, run=chat.reconcile, leader_only=True
            ),
            PeriodicTask(name="pay_rewards", period_seconds=CHORE_SECONDS, run=chat.reward, leader_only=True),
            PeriodicTask(name="send_broadcasts", period_seconds=CHORE_SECONDS, run=chat.broadcast, leader_only=True),
        ]

    async def _introduce(self, chat: ChatBot) -> None:
        """Tell Telegram our commands; if it is away, later."""
        while True:
            try:
                await chat.start()
            except ChannelError as error:
                self.observer.event(
                    Event.CHANNEL_UNREACHABLE, step="introduce", error=f"{type(error).__name__}: {error}"
                )
                await asyncio.sleep(CHORE_SECONDS)
            except Exception as error:  # noqa: BLE001 - without commands in the menu the bot still works
                self.observer.event(Event.STAGE_ERROR, step="introduce", error=f"{type(error).__name__}: {error}")
                await asyncio.sleep(CHORE_SECONDS)
            else:
                return

    async def stop(self) -> None:
        """Nothing new; the role goes to another at once; what is left is finished or handed over."""
        self._open = False
        self.observer.event(Event.STOPPING, instance=self._instance)
        if self._introducing:
            self._introducing.cancel()
        await self._closing.aclose()
        self.observer.event(Event.STOPPED, instance=self._instance)


async def _language_of(store: Database, outside: int) -> str:
    """The language that somebody reads, by the channel's number; empty if we have never met them."""
    found = await store.find_profiles(str(outside), 2)
    return next((one.language for one in found if one.external_id == str(outside)), "")


async def _handle(chat: ChatBot, bot: telegram.Bot, store: UpdateStore, mask: Mask, update: Update) -> None:
    def read(body: str) -> telegram.Update:
        return telegram.Update.de_json(json.loads(body), bot)

    async def behind() -> telegram.Update | None:
        following = await store.update_behind(update.id)
        return read(following.body) if following else None

    try:
        await chat.handle(read(update.body), first=update.attempts == 1, behind=behind)
    except GenlockError:
        raise
    except Exception as error:
        said = repr(error)
        if mask(said) != said:  # it would be kept with the update
            raise RuntimeError(mask(said)) from None
        raise
