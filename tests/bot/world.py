"""The whole product in one process: the real bot and engine, a real store, both simulators over HTTP."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from genlock.app.databases import open_store
from genlock.app.engine import costs_paid_for, expected_seconds, make_engine
from genlock.bot.bundle import BotBundle
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.job_texts import JobTexts
from genlock.bot.parts import BotParts, make_router
from genlock.bot.router import BotRouter
from genlock.bot.rules import BotRules, Package
from genlock.channels.telegram.caller import Caller, Priority, bot_id, make_bot
from genlock.channels.telegram.channel import TelegramChannel
from genlock.channels.telegram.rate_limiter import TelegramRateLimiter
from genlock.channels.telegram.update_sources import Poller, allowed_updates
from genlock.channels.telegram.updates import acknowledge_repeated_press, read_update
from genlock.domain.catalog import Catalog
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown, RecipientUnreachable
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, Notice
from genlock.domain.money import EntryKind
from genlock.domain.update import NewUpdate, Received, Update
from genlock.engine.engine import Engine
from genlock.engine.file_storage import FileStorage, ProviderStorage
from genlock.engine.offer_order import OfferOrder
from genlock.engine.updates import UpdateWorker
from genlock.i18n.translator import Texts, package_texts
from genlock.media.download import Downloads
from genlock.ports import Channel, Clock, Database, Provider
from genlock.ports.media_reader import MediaReader
from genlock.providers.kie.client import Kie
from genlock.sandbox.kie.simulator import KieSimulator
from genlock.sandbox.telegram.chats import CallbackQuery, Message
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from genlock.stores.sqlite import SqliteStore
from tests.changes import PATIENCE_SECONDS
from tests.databases import new_sqlite
from tests.engine.recorder import Recorder
from tests.engine.world import RULES, idle
from tests.media.thread_reader import ThreadReader
from tests.packaged import CATALOG
from tests.unlimited_kie import unlimited_kie

CREDITS = 1000
QUICK = replace(
    RULES, claim_seconds=0.2, sweep_seconds=0.4, poll_seconds=0.05, grace_seconds=1.0, is_alone=True,
)  # fmt: skip
PACKAGES = (Package(stars=100, credits=120), Package(stars=500, credits=650))
USUAL_RULES = BotRules(
    packages=PACKAGES, per_minute=1000, per_hour=10_000, running_max=1000, api_url="https://genlock.example"
)


class NoLimits(TelegramRateLimiter):
    """Grants every permit at once: tests/channels/telegram/test_rate_limiter.py tests the limits."""

    def __init__(self) -> None:
        """Use no store."""

    async def acquire(self, chat: int, priority: Priority) -> None: ...

    async def stop(self, chat: int | None, seconds: float) -> None: ...


class UpdateRecorder(Recorder):
    """Counts settled updates (handled, dead, or answered as a repeated tap) and ended deliveries."""

    def __init__(self) -> None:
        super().__init__()
        self.settled = 0
        self.deliveries_ended = 0

    def event(self, event: Event, correlation_id: str = "", /, **facts: Any) -> None:
        super().event(event, correlation_id, **facts)
        repeated = event is Event.UPDATE_RECEIVED and facts["arrival"] is Received.REPEATED
        if repeated or event in (Event.UPDATE_DONE, Event.UPDATE_DEAD):
            self.settled += 1
        elif event in (Event.MARK_DELIVERED, Event.ATTENTION):
            self.deliveries_ended += 1

    async def more(self, count: Callable[[], int], than: int) -> None:
        """Wait until a count is larger than it was."""
        await self.changes.until(lambda: count() > than, seconds=60.0)


class Intake:
    """Fetches updates from the simulator into the product's update queue, and handles them with the bot under test."""

    bot: BotRouter
    receive: Callable[[NewUpdate], Awaitable[Any]]

    def __init__(self) -> None:
        #: errors of handlers that the update worker does not treat as transient
        self.failures: list[BaseException] = []
        self._drop = ""
        self.dropped: list[NewUpdate] = []
        self._dropping = asyncio.Event()

    def drop_next(self, kind: str) -> None:
        """Lose the next message that has this member, before it reaches the queue."""
        self._drop = kind
        self._dropping.clear()

    async def next_dropped(self) -> NewUpdate:
        """Wait for the message that was to be lost, and give it."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._dropping.wait()
        return self.dropped[-1]

    async def take_in(self, update: NewUpdate) -> None:
        if self._drop and self._drop in json.loads(update.body).get("message", {}):
            self._drop = ""
            self.dropped.append(update)
            self._dropping.set()
            return
        await self.receive(update)

    async def handle(self, update: Update) -> None:
        try:
            await self.bot.handle_stored(update)
        except (ChannelBusy, ChannelOutcomeUnknown, RecipientUnreachable):
            raise
        except Exception as error:
            self.failures.append(error)
            raise


@dataclass(kw_only=True, repr=False)  # asyncio writes out what a fixture gave, each time it sets a signal handler
class BotWorld:
    telegram: TelegramSimulator
    kie: KieSimulator
    store: Database
    engine: Engine
    bot: BotRouter
    caller: Caller
    catalog: Catalog
    #: what the parts of the bot read
    current: CurrentCatalog
    rules: BotRules
    recorder: UpdateRecorder
    intake: Intake
    make_bot: Callable[[], BotRouter]

    @property
    def bot_id(self) -> str:
        return str(self.caller.bot.id)

    async def add_user(self, name: str = "Ann", *, language: str = "en", having: int = CREDITS) -> "ChatUser":
        client = self.telegram.add_user(name, language=language)
        number = await self.store.ensure_account("telegram", str(self.caller.bot.id), str(client.id))
        if having:
            await self.store.transfer(number, EntryKind.GRANT, having * 1000, f"test:{number}")
        return ChatUser(world=self, client=client, number=number)

    @asynccontextmanager
    async def done(self, updates: int = 1) -> AsyncIterator[None]:
        """Wait until the updates caused inside the block have been handled."""
        wanted = self.recorder.settled + updates
        yield
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.recorder.more(lambda: self.recorder.settled, than=wanted - 1)
        assert self.intake.failures == []

    async def deliver(self, update: Mapping[str, Any]) -> None:
        """Put an update that the simulator's users cannot cause into the update queue; wait until it is handled."""
        async with self.done():
            await self.intake.receive(read_update(self.bot_id, update, json.dumps(update)))

    @asynccontextmanager
    async def another_bot(self) -> AsyncIterator[BotRouter]:
        """Replace the bot by a new one with empty caches, as after a restart."""
        before = self.intake.bot
        self.intake.bot = self.make_bot()
        yield self.intake.bot
        await self.intake.bot.close()
        self.intake.bot = before

    async def age_uploads(self, *, days: float) -> None:
        """Make all uploads older."""
        assert isinstance(self.store, SqliteStore)
        back = round(days * 86_400_000_000)
        await self.store.session.call(lambda connection: connection.execute("UPDATE uploads SET at = at - ?", (back,)))

    @property
    def drafts(self) -> DraftView:
        return self.bot._buttons._drafts

    def set_markup(self, markup: float) -> None:
        """Change the prices, as another version of the settings would."""
        seller = self.bot._buttons._orders._seller
        seller._rules = replace(seller._rules, markup=markup)
        self.bot._buttons._storefront._markup = markup

    async def quiet(self) -> None:
        """Wait until all results and notices have been delivered."""

        async def delivered() -> bool:
            jobs = await self.store.jobs()
            return all(job.delivery is Delivery.DELIVERED and job.notice is not Notice.DUE for job in jobs)

        await self.recorder.changes.until(delivered, PATIENCE_SECONDS)
        await idle(self.engine)  # a notice is marked as sent before it is sent

    async def jobs(self, user: "ChatUser") -> list[Job]:
        return await self.store.jobs(account_id=user.number)


@dataclass(kw_only=True)
class ChatUser:
    """A user of the simulator with an account; finds buttons by their label."""

    world: BotWorld
    client: SimulatedUser
    number: int

    @property
    def screen(self) -> Message:
        """The newest message with buttons."""
        return next(
            message
            for message in reversed(self.client.messages)
            if any("callback_data" in button for button in message.buttons)
        )

    async def write(self, text: str, **more: Any) -> Message:
        """Send a text and wait until the bot has handled it."""
        async with self.world.done():
            return await self.client.say(text, **more)

    async def send(self, kind: str, content: bytes, **more: Any) -> Message:
        async with self.world.done():
            return await self.client.send(kind, content, **more)

    async def sees(self, what: str | Callable[[Message], bool], **more: Any) -> Message:
        """Wait for a message from the bot."""
        ours = self.world.caller.bot.id

        def fits(message: Message) -> bool:
            return message.sender == ours and (what in message.text if isinstance(what, str) else what(message))

        return await self.client.sees(fits, **more)

    @property
    def from_bot(self) -> list[Message]:
        return [message for message in self.client.messages if message.sender == self.world.caller.bot.id]

    async def tap(self, label: str | re.Pattern[str], *, on: Message | None = None) -> CallbackQuery:
        """Tap the first button with this label, and wait until the bot has handled it."""
        message = on or self.screen
        pattern = re.compile(re.escape(label)) if isinstance(label, str) else label
        found = [button for button in message.buttons if pattern.search(button["text"])]
        assert found, f"{pattern.pattern!r} is not among {[button['text'] for button in message.buttons]}"
        return await self.press(message, found[0]["callback_data"])

    async def press(self, message: Message, data: str) -> CallbackQuery:
        """Send a callback query with this data, whether or not the message has such a button."""
        async with self.world.done():
            return self.client._press(message, data)

    async def available(self) -> int:
        return (await self.world.store.wallet(self.number)).available


def _make_engine(
    store: Database,
    recorder: UpdateRecorder,
    intake: Intake,
    caller: Caller,
    providers: Mapping[str, Provider],
    channels: Mapping[str, Channel],
    catalog: CurrentCatalog,
    rules: BotRules,
) -> Engine:
    handlers = {bot_id(caller.bot.token): intake.handle}
    engine = make_engine(
        store,
        recorder,
        providers=providers,
        channels=channels,
        rules=QUICK,
        offers=OfferOrder(catalog),
        expected=expected_seconds(catalog),
        paid_for=costs_paid_for(catalog, markup=rules.markup, credit_usd=rules.credit_usd),
        make_updates=lambda ctx: UpdateWorker(ctx, store, handlers, partial(acknowledge_repeated_press, caller)),
    )
    assert engine.updates is not None
    intake.receive = engine.updates.receive
    return engine


def titled(catalog: Catalog) -> Catalog:
    return replace(catalog, provider_titles={"kie": "Kie.ai"})


@cache
def _sold() -> Catalog:
    """The package's catalog as most tests sell it."""
    return titled(CATALOG.sold_through({Kie.name}))


@asynccontextmanager
async def running_bot(
    database_url: str,
    *,
    rules: BotRules | None = None,
    speed: float = 200.0,
    catalog: Catalog = CATALOG,
    texts: Texts | None = None,
    media: MediaReader | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[BotWorld]:
    """Run the bot, which has not registered its commands and descriptions: `world.bot.start()` does it."""
    catalog = _sold() if catalog is CATALOG else titled(catalog.sold_through({Kie.name}))  # as the service does
    recorder, current, intake = UpdateRecorder(), CurrentCatalog(catalog), Intake()
    rules, media = rules or USUAL_RULES, media or ThreadReader()
    async with AsyncExitStack() as closing:
        store: Any = await open_store(database_url, observer=recorder, clock=clock)
        closing.push_async_callback(store.close)
        telegram = await closing.enter_async_context(running_telegram())
        kie = await closing.enter_async_context(unlimited_kie(speed))
        caller = Caller(make_bot(telegram.token, telegram.url), NoLimits(), recorder)
        provider = Kie(key=kie.key, api_url=kie.url, upload_url=kie.url)
        downloads = Downloads(private=[kie.files_url.removeprefix("http://")])
        for client in (caller, downloads, provider):
            closing.push_async_callback(client.close)
        channel = TelegramChannel(caller, JobTexts(current, texts), downloads, media, local_bot_api=True)
        engine = _make_engine(store, recorder, intake, caller, {"kie": provider}, {"telegram": channel}, current, rules)
        bundle = BotBundle(caller=caller, rules=rules, texts=texts or package_texts())

        def make() -> BotRouter:
            return make_router(
                BotParts(
                    bundle=bundle, store=store, engine=engine, catalog=current, media=media,
                    storage=FileStorage([ProviderStorage(provider="kie", upload=provider.upload)]), downloads=downloads,
                )
            )  # fmt: skip

        bot = intake.bot = make()
        await bundle.introduce()
        closing.push_async_callback(bot.close)
        closing.push_async_callback(engine.stop)
        await engine.start()
        await closing.enter_async_context(_polling(caller, intake, recorder, inline=rules.inline_mode))
        yield BotWorld(
            telegram=telegram, kie=kie, store=store, engine=engine, bot=bot, caller=caller, catalog=catalog,
            current=current, rules=rules, recorder=recorder, intake=intake, make_bot=make,
        )  # fmt: skip
        assert intake.failures == []


@asynccontextmanager
async def _polling(caller: Caller, intake: Intake, recorder: UpdateRecorder, *, inline: bool) -> AsyncIterator[None]:
    """Fetch updates until the block ends."""
    allowed = allowed_updates(inline=inline)
    poller = Poller(caller, receive=intake.take_in, is_active=lambda: True, observer=recorder, allowed=allowed)
    polling = asyncio.get_running_loop().create_task(poller.run())
    try:
        yield
    finally:
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)


def holds(*parts: str | Callable[[Message], bool]) -> Callable[[Message], bool]:
    """Whether a message has all of these texts and pages."""
    return lambda message: all(part in message.text if isinstance(part, str) else part(message) for part in parts)


def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{new_sqlite(tmp_path)}"


def die_once(thing: Any, name: str, *, after: bool) -> None:
    """Make the instance crash before or right after the next call; the update is then handled again."""
    real = getattr(thing, name)

    async def once(*arguments: Any, **named: Any) -> None:
        setattr(thing, name, real)
        if after:
            await real(*arguments, **named)
        raise ChannelOutcomeUnknown("the instance is gone")

    setattr(thing, name, once)
