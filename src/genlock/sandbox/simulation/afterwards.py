"""What users and operators do with orders that have ended: show again, unblock the bot, press old buttons, refund."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from genlock.domain.errors import GenlockError
from genlock.domain.job import Delivery, NewJob, State
from genlock.domain.money import HoldState
from genlock.engine import operate
from genlock.sandbox.simulation.fleet import Fleet, Instance
from genlock.sandbox.simulation.instances import NoAnswer
from genlock.sandbox.simulation.users import Users
from genlock.sandbox.simulation.world import Message, World

#: the part of a message that a menu of the bot has replaced
SCREEN = (0, "a screen")
#: how often an address is unblocked, each time that its user does something
UNBLOCKED_SHARE = 0.1
#: in how many of these seeds all users come back when the faults are over
COME_BACK_SHARE = 0.5
#: how many old messages a user tries, because those that show an order stay as they are
TRIES = 4


class Afterwards:
    """Acts on ended orders from a random stream of its own, so that other seeds stay as they are."""

    def __init__(self, world: World, fleet: Fleet, users: Users) -> None:
        self._world = world
        self._truth = world.truth
        self._fleet = fleet
        self._users = users
        self._rng = world.stream("afterwards")
        self._orders = 0

    async def work(self) -> None:
        """Act again and again until the faults are over, sometimes twice at the same moment."""
        actions: tuple[tuple[float, Callable[[Instance], Awaitable[object]]], ...] = (
            (5, self._show_again),
            (2, self._mark_handled),
            (1, self._refund),
            (8, self._press_old_button),
        )
        weights = [weight for weight, _ in actions]
        while not self._world.faults_over:
            await asyncio.sleep(self._rng.uniform(0.1, 0.9))
            self._unblock()
            (_, action), times = self._rng.choices(actions, weights)[0], self._rng.choice((1, 1, 2))
            await asyncio.gather(*(self._attempt(action) for _ in range(times)))
        if self._rng.random() < COME_BACK_SHARE:
            await self._come_back()

    async def _come_back(self) -> None:
        """Unblock the bot in every chat, and have shown what could not be delivered."""
        self._unblock(share=1.0)
        for job_id in self._users.jobs:
            await self._attempt(partial(self._show_undelivered, job_id))

    async def _show_undelivered(self, job_id: int, instance: Instance) -> None:
        job = await instance.store.job(job_id)
        if job is not None and job.delivery is Delivery.UNDELIVERABLE:
            await self._show(job_id, instance)

    async def _attempt(self, action: Callable[[Instance], Awaitable[object]]) -> None:
        async def act(instance: Instance) -> None:
            await action(instance)

        try:
            await self._fleet.ask(act)
        except (NoAnswer, GenlockError):
            return

    def _unblock(self, share: float = UNBLOCKED_SHARE) -> None:
        for address in list(self._truth.unreachable):
            if self._rng.random() < share:
                del self._truth.unreachable[address]
                self._truth.unblocked.add(address)
                self._world.note("user", "UNBLOCKED", address=address)

    async def _show_again(self, instance: Instance) -> None:
        if job_id := self._any_job():
            await self._show(job_id, instance)

    async def _show(self, job_id: int, instance: Instance) -> None:
        """Press Show again. What was never paid for, because it could not be shown, is paid for now."""
        before = await instance.store.job(job_id)
        assert before is not None
        self._world.note("user", "SHOW_AGAIN", job=job_id)
        after = await operate.resend_for_user(instance.engine.ctx, job_id, "user")
        never_shown = before.delivery is Delivery.UNDELIVERABLE and before.state is State.SUCCEEDED
        next_token = after.lease_token == before.lease_token + 1
        if never_shown and next_token and before.price and after.hold_state is HoldState.RELEASED:
            rule = "A result that could not be shown is not shown for nothing."
            self._truth.add_violation(rule, job_id, f"{before.delivery}, then {after.delivery}, {after.hold_state}")

    async def _refund(self, instance: Instance) -> None:
        paid = [job for job in await instance.store.jobs(limit=20) if job.hold_state is HoldState.CAPTURED]
        if paid:
            await operate.refund(instance.engine.ctx, self._rng.choice(paid).id, "operator")

    async def _mark_handled(self, instance: Instance) -> None:
        if listed := await instance.store.jobs_needing_attention(10):
            job = self._rng.choice(listed)
            await asyncio.sleep(self._rng.uniform(0.0, 1.0))
            await operate.mark_handled(instance.engine.ctx, job.id, "operator", job.lease_token)

    def _any_job(self) -> int | None:
        return self._rng.choice(self._users.jobs) if self._users.jobs else None

    async def _press_old_button(self, instance: Instance) -> None:
        """Press a button of an old message, as the bot handles it: the message becomes a screen, then another order.

        A message that shows an order stays as it is, and so does a file, which no text can replace.
        """
        known = set[str]().union(*self._truth.placeholders.values())
        in_chats = {name: message for name, message in self._truth.messages.items() if message.address[:1] == "u"}
        old = [name for name, message in in_chats.items() if name in known and _is_old_text(message)]
        for name in self._rng.sample(old, min(TRIES, len(old))):
            message = self._truth.messages[name]
            shown, account = message.shows, self._users.account_ids[int(message.address[1])]
            is_free = not await instance.store.is_job_message(account, name)
            # The bot handles the presses of a user one after the other, so nothing else has used the message meanwhile.
            # A put that takes effect so late, over another order, is not expected of a channel.
            if is_free and _is_old_text(message) and message.shows == shown and not self._truth.on_the_wire[name]:
                await self._order_on(name, message, account)
                return

    async def _order_on(self, name: str, message: Message, account: int) -> None:
        """Make a message a screen, and then the next order, unless something else happens to it meanwhile."""
        message.shows, message.progress = SCREEN, False
        self._world.note("user", "SCREEN", message=name)
        await asyncio.sleep(self._rng.uniform(0.2, 2.0))
        if message.deleted or message.shows != SCREEN:
            return
        self._orders += 1
        self._world.spawn(self._users.order(self._order_at(name, message, account)))

    def _order_at(self, name: str, message: Message, account: int) -> NewJob:
        return NewJob(
            account_id=account,
            request_key=f"a{self._orders}",
            provider="kie",
            channel="chat",
            address=message.address,
            model="model",
            input="{}",
            price=self._rng.choice((0, 1000)),
            deadline_seconds=self._rng.uniform(3.0, 60.0),
            placeholder=name,
            notice=self._rng.random() < 0.8,
            correlation_id=f"a{self._orders}",
        )


def _is_old_text(message: Message) -> bool:
    return message.shows is not None and message.shows != SCREEN and not (message.media or message.deleted)
