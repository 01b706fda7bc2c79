"""Chats of a simulation: users write and press buttons; the channel repeats each update until it is acknowledged."""

import asyncio
import json
from collections import defaultdict
from functools import partial
from typing import cast

from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown, Refusal, StoreError
from genlock.domain.job import NewJob
from genlock.domain.update import NewUpdate, Received, Update, UpdateState
from genlock.engine.context import EngineContext
from genlock.engine.engine import Engine
from genlock.engine.updates import TRIES, UpdateWorker
from genlock.ports import Database, Violation
from genlock.ports.call_fence import check_call
from genlock.sandbox.simulation.addition import Addition
from genlock.sandbox.simulation.fleet import Fleet, Instance
from genlock.sandbox.simulation.instances import NoAnswer
from genlock.sandbox.simulation.users import Users
from genlock.sandbox.simulation.world import World

BOT = "bot"
UPDATES = 24
#: how an update is handled: most order something, some fail in some or in all attempts
_PLANS = ("order", "order", "order", "look", "fails once", "fails for long", "always fails")


class Chats(Addition):
    """Sends updates and checks that each acknowledged one is handled, in the order of its chat, and orders once."""

    def __init__(self, world: World, store: Database, fleet: Fleet, users: Users) -> None:
        self._world = world
        self._store = store
        self._fleet = fleet
        self._users = users
        self._rng = world.stream("chats")
        self._handling_rng = world.stream("handlers")
        self._acknowledged: dict[int, Received] = {}
        #: the orders that handlers were told are accepted, by update
        self._orders: dict[int, set[int]] = defaultdict(set)
        self._refused: set[int] = set()
        fleet.make_updates = self._updates_of

    # handling

    def _updates_of(self, ctx: EngineContext) -> UpdateWorker:
        """Return the update worker of a new instance."""
        return UpdateWorker(ctx, cast("Database", ctx.store), {BOT: partial(self._handle, ctx)}, self._answer_repeated)

    def _engine(self, ctx: EngineContext) -> Engine:
        return next(each.engine for each in self._fleet.instances if each.lifecycle.name == ctx.instance)

    async def _answer_repeated(self, update: NewUpdate) -> None:
        self._world.note("chat", "REPEATED", update=update.update_id)

    async def _handle(self, ctx: EngineContext, update: Update) -> None:
        self._world.note(ctx.instance, "HANDLE", update=update.update_id, attempt=update.attempts)
        await self._check_turn(update)
        plan = json.loads(update.body)
        await self._call(ctx, update)
        if self._fails(plan["plan"], update):
            raise RuntimeError("a bug in the handler")
        if plan["plan"] != "look":
            await self._order(ctx, update, plan["user"])
        await self._call(ctx, update)
        self._world.note(ctx.instance, "HANDLED", update=update.update_id)

    async def _call(self, ctx: EngineContext, update: Update) -> None:
        """Call the channel, as every handler does: only while no other instance can have taken the update over."""
        await cast("Database", ctx.store).is_update_open(update.id)  # it may be killed or paused here
        check_call()
        await asyncio.sleep(self._handling_rng.random() * 0.5)
        if self._world.happens("call: slow", update=update.update_id):
            await asyncio.sleep(self._handling_rng.uniform(2.0, 20.0))
        if self._world.happens("notify: busy", update=update.update_id):
            raise ChannelBusy(self._handling_rng.uniform(0.5, 6.0))
        if self._world.happens("notify: answer lost", update=update.update_id):
            raise ChannelOutcomeUnknown

    @staticmethod
    def _fails(plan: str, update: Update) -> bool:
        return plan == "always fails" or update.attempts <= {"fails once": 1, "fails for long": TRIES - 1}.get(plan, 0)

    async def _order(self, ctx: EngineContext, update: Update, user: int) -> None:
        order = NewJob(
            account_id=self._users.account_ids[user],
            request_key=f"update:{update.update_id}",
            provider="kie",
            channel="chat",
            address=f"u{user}",
            model="model",
            input="{}",
            price=1000,
            deadline_seconds=20.0,
            correlation_id=f"c{update.update_id}",
        )
        try:
            job = await self._engine(ctx).order(order)
        except Refusal:
            self._refused.add(update.id)
            return
        self._orders[update.id].add(job.id)
        self._world.truth.orders[order.account_id, order.request_key] = job.id

    async def _check_turn(self, update: Update) -> None:
        """Check that what came before in the same chat is settled."""
        user = json.loads(update.body)["user"]
        for other in await self._store.updates(UpdateState.NEW, 1000):
            if other.id < update.id and json.loads(other.body)["user"] == user:
                detail = f"{update.update_id} is handled before {other.update_id}"
                self._world.truth.add_violation("Updates of a chat are handled in order.", 0, detail)

    # sending

    async def work(self) -> None:
        """Send updates of the chats, one after the other, some at the same moment."""
        rng, number = self._rng, 0
        while number < UPDATES and not self._world.faults_over:
            await asyncio.sleep(rng.choice((0.0, 0.3, 3.0)) * rng.random())
            user, plan = rng.randint(1, 3), rng.choice(_PLANS)
            button = f"button-{number}" if rng.random() < 0.5 else None
            for _ in range(rng.choice((1, 1, 1, 2, 3)) if button else 1):
                number += 1
                self._world.spawn(self._send(self._make_update(number, user, plan, button)))

    def _make_update(self, number: int, user: int, plan: str, button: str | None) -> NewUpdate:
        return NewUpdate(
            bot=BOT,
            update_id=number,
            ordering_key=f"user-{user}",
            kind="callback_query" if button else "message",
            urgent=self._rng.random() < 0.2,
            dedup_key=button,
            body=json.dumps({"user": user, "plan": plan}),
        )

    async def _send(self, update: NewUpdate) -> None:
        """Send an update until an instance acknowledges it; sometimes once more."""

        async def receive(instance: Instance) -> Received:
            assert instance.engine.updates is not None
            return await instance.engine.updates.receive(update)

        for _ in range(self._rng.choice((1, 1, 1, 2))):
            while True:
                try:
                    received = await self._fleet.ask(receive)
                except (NoAnswer, StoreError):
                    await asyncio.sleep(self._rng.uniform(0.1, 2.0))
                else:
                    self._acknowledged.setdefault(update.update_id, received)
                    break

    # checking

    async def is_settled(self) -> bool:
        return not await self._store.updates(UpdateState.NEW, 1)

    async def check(self) -> list[Violation]:
        stored = {
            update.update_id: update for state in UpdateState for update in await self._store.updates(state, 1000)
        }
        found = []
        for number in self._acknowledged:
            update = stored.get(number)
            if update is None or update.state is UpdateState.NEW:
                found.append(_violation("No acknowledged update is lost.", f"update {number} is {update}"))
                continue
            found += self._check_end(update)
        return found

    def _check_end(self, update: Update) -> list[Violation]:
        plan, orders = json.loads(update.body)["plan"], self._orders[update.id]
        found = []
        if len(orders) > 1:
            found.append(_violation("An update orders once.", f"update {update.update_id} ordered {sorted(orders)}"))
        gave_up = update.state is UpdateState.DEAD
        if gave_up and plan != "always fails":
            found.append(_violation("An update is given up only for a reason.", f"{update}"))
        ordered = orders or update.id in self._refused
        if update.state is UpdateState.DONE and plan != "look" and not ordered:
            found.append(_violation("An update that was handled has its effect.", f"{update}"))
        return found


def _violation(rule: str, detail: str) -> Violation:
    return Violation(rule=rule, subject="-", detail=detail)
