"""Broadcasts of a simulation: operators start and stop them while senders crash, and users block the bot."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from genlock.bot.admin.broadcasts import TAKES_MAX, Broadcasts
from genlock.bot.bundle import BotBundle
from genlock.domain.broadcast import Broadcast, BroadcastOutcome, BroadcastState, Recipient
from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown, RecipientUnreachable
from genlock.engine.context import EngineContext
from genlock.engine.periodic import PeriodicTask
from genlock.ports import Database, Violation
from genlock.ports.call_fence import check_call
from genlock.sandbox.simulation.addition import Addition
from genlock.sandbox.simulation.fleet import Fleet, Instance
from genlock.sandbox.simulation.instances import InstanceLifecycle, transmit
from genlock.sandbox.simulation.world import World

#: a bot of its own, so that no other account is a recipient
BOT = "readers"
USERS = 10
PERIOD_SECONDS = 1.0
#: how many of the broadcasts an operator stops
STOPPED_SHARE = 0.3


class Telegram:
    """What broadcasts use of Telegram's caller, as one instance reaches it."""

    def __init__(self, world: World, lifecycle: InstanceLifecycle, chats: "Chats") -> None:
        self.bot = chats
        self._world = world
        self._lifecycle = lifecycle

    async def take_permit(self, chat: int, _: object) -> None:
        if self._world.happens("send: busy", chat=chat):
            raise ChannelBusy(self.bot.rng.uniform(0.5, 6.0))

    async def call(self, method: Callable[..., Any], *, chat: int, priority: object, text: str, **_: object) -> None:
        check_call()
        await transmit(self._world, self._lifecycle, "broadcast.send", lambda: method(chat, text))


class Chats:
    """The chats of the recipients, and what has really arrived there."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.rng = world.stream("broadcast chats")
        self.blocked: set[int] = set()
        #: how often each chat has got each text
        self.arrived: Counter[tuple[str, int]] = Counter()

    async def send_message(self, chat: int, text: str) -> None:
        await self._world.delay(0)
        kind = self._world.pick(("send: busy", "send: request lost"), chat=chat)
        if kind == "send: busy":
            raise ChannelBusy(self.rng.uniform(0.5, 6.0))
        if kind:
            raise ChannelOutcomeUnknown
        if chat in self.blocked:
            raise RecipientUnreachable("blocked by the user")
        self.arrived[text, chat] += 1
        self._world.note("channel", "BROADCAST", chat=chat, text=text)
        await self._world.delay(0)
        if self._world.happens("send: answer lost", chat=chat):
            raise ChannelOutcomeUnknown


class BroadcastRuns(Addition):
    calls = (
        "broadcast.send", "broadcast.send", "store.begin_broadcast_message", "store.next_recipient",
        "store.count_broadcast_message", "store.return_recipient", "store.end_broadcast",
    )  # fmt: skip

    def __init__(self, world: World, store: Database, fleet: Fleet) -> None:
        self._world = world
        self._store = store
        self._fleet = fleet
        self._rng = world.stream("broadcasts")
        self._chats = Chats(world)
        self._broadcasts: dict[str, Broadcasts] = {}
        #: the chats of the accounts that can be reached when a broadcast begins
        self._chat_of: dict[int, int] = {}
        #: by broadcast and account: calls that were journaled and not given back, and users who were given up
        self._begun: set[tuple[int, int]] = set()
        self._given_up: set[tuple[int, int]] = set()
        #: when each broadcast was stopped
        self._stopped_at: dict[int, float] = {}
        world.truth.watchers.append(self._watch)

    async def prepare(self) -> None:
        for number in range(USERS):
            account_id = await self._store.ensure_account("chat", BOT, f"reader {number}")
            await self._store.ensure_profile_and_draft(
                account_id, chat=None, language="en", name="", username="", referred_by=None
            )
            self._chat_of[account_id] = number + 1
            await self._store.set_account_address(account_id, f"{number + 1}/en")

    def tasks_of(self, lifecycle: InstanceLifecycle, ctx: EngineContext) -> Sequence[PeriodicTask]:
        bundle = SimpleNamespace(id=BOT, caller=Telegram(self._world, lifecycle, self._chats))
        broadcasts = Broadcasts(bundle=cast("BotBundle", bundle), store=cast("Database", ctx.store))
        self._broadcasts[lifecycle.name] = broadcasts
        return [
            PeriodicTask(name="send_broadcasts", period_seconds=PERIOD_SECONDS, run=broadcasts.round, leader_only=True)
        ]

    # what operators and users do

    async def work(self) -> None:
        for number in range(3):
            await asyncio.sleep(self._rng.uniform(0.0, 15.0))
            await self._begin(f"broadcast {number}")
            if self._rng.random() < STOPPED_SHARE:
                await asyncio.sleep(self._rng.uniform(0.0, 5.0))
                await self._fleet.ask_until_answered(self._stop, self._rng)
            if self._rng.random() < 0.5:
                self._chats.blocked.add(self._rng.randint(1, USERS))

    async def _begin(self, text: str) -> None:
        async def begin(instance: Instance) -> Broadcast:
            store = cast("Database", instance.store)
            return await store.begin_broadcast(text, bot=BOT, author="operator", request_key=text)

        for _ in range(self._rng.choice((1, 1, 2))):
            await self._fleet.ask_until_answered(begin, self._rng)

    async def _stop(self, instance: Instance) -> None:
        await self._broadcasts[instance.lifecycle.name].stop()

    # what really happened

    def _watch(self, name: str, args: tuple[Any, ...], answer: Any) -> None:
        if name == "end_broadcast" and answer and args[1] is BroadcastState.STOPPED:
            self._stopped_at[args[0]] = self._world.loop.time()
        if len(args) < 2 or not isinstance(args[1], Recipient):
            return
        message = args[0], args[1].account_id
        if name == "begin_broadcast_message" and answer:
            self._begun.add(message)
            if self._world.loop.time() > self._stopped_at.get(args[0], self._world.loop.time()):
                rule = "A broadcast that was stopped sends no further message."
                self._world.truth.add_violation(rule, 0, f"broadcast {args[0]}")
        if name == "return_recipient":
            self._begun.discard(message)
        if name == "count_broadcast_message" and args[2] is BroadcastOutcome.FAILED and args[1].token > TAKES_MAX:
            self._given_up.add(message)

    # checking

    async def is_settled(self) -> bool:
        return await self._store.running_broadcast(BOT) is None

    async def check(self) -> list[Violation]:
        checks: Sequence[Callable[[Broadcast], str]] = (self._sent_twice, self._left_out, self._miscounted)
        rules = (
            "A user gets a broadcast at most once.",
            "A broadcast leaves out no user who can be reached.",
            "Each message of a broadcast is counted once.",
        )
        return [
            Violation(rule=rule, subject="-", detail=f"{broadcast.text} ({broadcast.state}): {wrong}")
            for broadcast in await self._store.broadcasts(100, BOT)
            for rule, find in zip(rules, checks, strict=True)
            if (wrong := find(broadcast))
        ]

    def _got(self, broadcast: Broadcast) -> dict[int, int]:
        return {account: self._chats.arrived[broadcast.text, chat] for account, chat in self._chat_of.items()}

    def _sent_twice(self, broadcast: Broadcast) -> str:
        twice = [account for account, times in self._got(broadcast).items() if times > 1]
        return f"{twice} got it more than once" if twice else ""

    def _left_out(self, broadcast: Broadcast) -> str:
        """A message whose outcome is unknown is not sent again, so it may be missing."""
        excused = {account for number, account in self._begun | self._given_up if number == broadcast.id}
        left = [
            account for account, times in self._got(broadcast).items()
            if not times and account not in excused and self._chat_of[account] not in self._chats.blocked
        ]  # fmt: skip
        return f"{left} did not get it" if left and broadcast.state is BroadcastState.DONE else ""

    def _miscounted(self, broadcast: Broadcast) -> str:
        """A crashed sender's message is counted minutes later, also of a broadcast that was stopped."""
        arrived = sum(self._got(broadcast).values())
        begun = len({account for number, account in self._begun | self._given_up if number == broadcast.id})
        uncounted = begun - broadcast.sent - broadcast.failed - broadcast.unknown
        late = uncounted if broadcast.state is BroadcastState.STOPPED else 0
        if uncounted == late >= 0 and broadcast.sent <= arrived <= broadcast.sent + broadcast.unknown + late:
            return ""
        return f"of {begun} messages {arrived} arrived, but {broadcast}"
