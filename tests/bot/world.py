"""The whole product in one process: the real bot and engine, a real store, both simulators over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from telegram import Update

from genlock.app import costs_paid_for, expected_seconds, make_engine, open_store
from genlock.bot.order.job_texts import JobTexts
from genlock.bot.router import ChatBot
from genlock.bot.rules import BotRules, Package
from genlock.channels.telegram.caller import Caller, Priority, make_bot
from genlock.channels.telegram.channel import TelegramChannel
from genlock.channels.telegram.rate_limiter import TelegramRateLimiter
from genlock.domain.catalog import Catalog
from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown, RecipientUnreachable
from genlock.domain.job import Delivery, Job, Notice
from genlock.domain.money import EntryKind
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.media.download import Downloads
from genlock.ports import Database
from genlock.providers.kie.client import Kie
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from genlock.sandbox.telegram.state import CallbackQuery, Message
from genlock.stores.sqlite import SqliteStore
from tests.engine.world import Recorder
from tests.packaged import CATALOG

CREDITS = 1000
PATIENCE_SECONDS = 20.0
QUICK = EngineRules(claim_seconds=0.05, sweep_seconds=0.1, poll_seconds=0.05, grace_seconds=1.0)
PACKAGES = (Package(stars=100, credits=120), Package(stars=500, credits=650))


class NoLimits(TelegramRateLimiter):
    """Grants every permit at once: tests/channels/telegram/test_limits.py tests the limits."""

    def __init__(self) -> None:
        """Use no store."""

    async def acquire(self, chat: int, priority: Priority) -> None: ...

    async def stop(self, chat: int | None, seconds: float) -> None: ...


class Postman:
    """Brings updates from the simulator to the bot, in order for each person, as the inbox does."""

    def __init__(self, bot: ChatBot, caller: Caller) -> None:
        self.bot = bot
        self._caller = caller
        self._queues: dict[int, asyncio.Queue[Update]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.failures: list[BaseException] = []
        #: whether what may pass is tried again, as the inbox does
        self.patient = False
        self.handled = 0
        self._lost = ""
        self.lost: list[Update] = []
        self.moved = asyncio.Event()

    async def run(self) -> None:
        offset = 0
        while True:
            for update in await self._caller.bot.get_updates(offset=offset, timeout=1):
                offset = update.update_id + 1
                self._put(update)

    def lose(self, what: str) -> None:
        """The next message with this in it never arrives."""
        self._lost = what

    def _put(self, update: Update) -> None:
        if self._lost and update.message is not None and getattr(update.message, self._lost):
            self._lost = ""
            self.lost.append(update)
            return
        user = update.effective_user
        lane = user.id if user else 0
        if lane not in self._queues:
            self._queues[lane] = asyncio.Queue()
            self._start(self._work(self._queues[lane]))
        self._queues[lane].put_nowait(update)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)

    async def _work(self, queue: "asyncio.Queue[Update]") -> None:
        while True:
            update = await queue.get()

            async def behind() -> Update | None:
                return queue._queue[0] if queue.qsize() else None  # type: ignore[attr-defined]

            for attempt in range(5):
                try:
                    await self.bot.handle(update, first=attempt == 0, behind=behind)
                except Exception as error:  # noqa: BLE001 - the test looks at it in the end
                    if self.patient and isinstance(error, ChannelBusy | ChannelOutcomeUnknown):
                        continue
                    if not isinstance(error, RecipientUnreachable):
                        self.failures.append(error)
                break
            self.handled += 1
            self.moved.set()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass(kw_only=True, repr=False)  # asyncio writes out what a fixture gave, each time it sets a signal handler
class Town:
    telegram: TelegramSimulator
    kie: KieSimulator
    store: Database
    engine: Engine
    bot: ChatBot
    caller: Caller
    catalog: Catalog
    rules: BotRules
    recorder: Recorder
    postman: Postman
    make_bot: Callable[[], ChatBot]

    async def person(self, name: str = "Ann", *, language: str = "en", having: int = CREDITS) -> "Customer":
        person = self.telegram.add_user(name, language=language)
        number = await self.store.ensure_account("telegram", str(self.caller.bot.id), str(person.id))
        if having:
            await self.store.transfer(number, EntryKind.GRANT, having * 1000, f"test:{number}")
        return Customer(town=self, hands=person, number=number)

    @asynccontextmanager
    async def done(self, updates: int = 1) -> AsyncIterator[None]:
        """Wait until what is done here has been handled."""
        wanted = self.postman.handled + updates
        yield
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.postman.handled < wanted:
                self.postman.moved.clear()
                await self.postman.moved.wait()
        assert self.postman.failures == []

    @asynccontextmanager
    async def another_bot(self) -> AsyncIterator[ChatBot]:
        """As after a restart: a bot that remembers nothing takes over."""
        before = self.postman.bot
        self.postman.bot = self.make_bot()
        yield self.postman.bot
        await self.postman.bot.close()
        self.postman.bot = before

    async def age_uploads(self, *, days: float) -> None:
        """As if the files had been sent some days ago."""
        assert isinstance(self.store, SqliteStore)
        back = round(days * 86_400_000_000)
        await self.store.session.call(lambda connection: connection.execute("UPDATE uploads SET at = at - ?", (back,)))

    async def quiet(self) -> None:
        """Wait until everybody has been told of everything."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                jobs = await self.store.jobs()
                if all(job.delivery is Delivery.DELIVERED and job.notice is not Notice.DUE for job in jobs):
                    return
                await asyncio.sleep(0.02)

    async def jobs(self, customer: "Customer") -> list[Job]:
        return await self.store.jobs(account_id=customer.number)


@dataclass(kw_only=True)
class Customer:
    """A person with our number, and hands that find buttons by their words."""

    town: Town
    hands: SimulatedUser
    number: int

    @property
    def screen(self) -> Message:
        """The newest message with something to press."""
        return next(
            message
            for message in reversed(self.hands.messages)
            if any("callback_data" in one for one in message.buttons)
        )

    async def say(self, text: str, **more: Any) -> Message:
        """Write, and wait until the bot is done with it."""
        async with self.town.done():
            return await self.hands.say(text, **more)

    async def send(self, kind: str, content: bytes, **more: Any) -> Message:
        async with self.town.done():
            return await self.hands.send(kind, content, **more)

    async def sees(self, what: str | Callable[[Message], bool], **more: Any) -> Message:
        """Wait for a message of the bot's."""
        ours = self.town.caller.bot.id

        def fits(message: Message) -> bool:
            return message.sender == ours and (what in message.text if isinstance(what, str) else what(message))

        return await self.hands.sees(fits, **more)

    @property
    def from_bot(self) -> list[Message]:
        return [message for message in self.hands.messages if message.sender == self.town.caller.bot.id]

    async def tap(self, words: str, *, on: Message | None = None) -> CallbackQuery:
        """CallbackQuery the first button whose words hold these, and wait until the bot is done with it."""
        message = on or self.screen
        found = [one for one in message.buttons if words in one["text"]]
        assert found, f"{words!r} is not among {[one['text'] for one in message.buttons]}"
        return await self.press(message, found[0]["callback_data"])

    async def press(self, message: Message, data: str) -> CallbackQuery:
        """Bring this data back, whether or not the message still has such a button."""
        async with self.town.done():
            return self.hands._press(message, data)

    async def available(self) -> int:
        return (await self.town.store.wallet(self.number)).available


@asynccontextmanager
async def town(
    database_url: str,
    *,
    rules: BotRules | None = None,
    speed: float = 200.0,
    catalog: Catalog = CATALOG,
) -> AsyncIterator[Town]:
    recorder = Recorder()
    rules = rules or BotRules(packages=PACKAGES, per_minute=1000, per_hour=10_000, running_max=1000)
    store: Any = await open_store(database_url, observer=recorder)
    async with (
        running_telegram() as telegram,
        running_kie(catalog=CATALOG, speed=speed, create_limit=(10_000, 1.0), status_limit=(10_000, 1.0)) as kie,
    ):
        caller = Caller(make_bot(telegram.token, telegram.url), NoLimits(), recorder)
        provider = Kie(key=kie.key, find_model=catalog.get, api_url=kie.url, upload_url=kie.url)
        downloads = Downloads(private=[kie.files_url.removeprefix("http://")])
        channel = TelegramChannel(caller, JobTexts(catalog.get), downloads, local_bot_api=True)
        engine = make_engine(
            store,
            recorder,
            providers={"kie": provider},
            channels={"telegram": channel},
            rules=QUICK,
            expected=expected_seconds(catalog),
            paid_for=costs_paid_for(catalog, markup=rules.markup, credit_usd=rules.credit_usd),
        )

        def make() -> ChatBot:
            return ChatBot.made_of(
                caller=caller, store=store, engine=engine, catalog=catalog, rules=rules, upload=provider.upload
            )

        bot = make()
        await bot.start()
        postman = Postman(bot, caller)
        await engine.start()
        polling = asyncio.get_running_loop().create_task(postman.run())
        try:
            yield Town(
                telegram=telegram, kie=kie, store=store, engine=engine, bot=bot, caller=caller, catalog=catalog,
                rules=rules, recorder=recorder, postman=postman, make_bot=make,
            )  # fmt: skip
            assert postman.failures == []
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
            await postman.stop()
            await engine.stop()
            await bot.close()
            await provider.close()
            await downloads.close()
            await caller.close()
            await store.close()


def holds(*words: str) -> Callable[[Message], bool]:
    """Whether a message has all these words."""
    return lambda message: all(word in message.text for word in words)


def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'genlock.db'}"


def die_once(thing: Any, name: str, *, after: bool) -> None:
    """The instance dies before, or just after, this call; another one handles the update again."""
    real = getattr(thing, name)

    async def once(*arguments: Any, **named: Any) -> None:
        setattr(thing, name, real)
        if after:
            await real(*arguments, **named)
        raise ChannelOutcomeUnknown("the instance is gone")

    setattr(thing, name, once)
