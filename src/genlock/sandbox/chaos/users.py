"""Simulated users that order at the same time, each one order after the other, and watch their chats."""

import asyncio
import re
from collections.abc import Callable
from random import Random
from time import time

from genlock.sandbox.records import Order, Records, is_notice
from genlock.sandbox.telegram.chats import Message
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator

MODEL = "z-image"
ORDERS_EACH_MAX = 4
WATCH_SECONDS = 0.05
#: while orders end, users wait on: how long a run takes depends on the machine, on kills and on chains
STALL_SECONDS = 180.0
#: Telegram drops a press that no instance answers for minutes; a user who still sees the button presses it again
PRESS_AGAIN_SECONDS = 20.0
SUBJECTS = ("cat", "fox", "owl", "lighthouse", "tram", "samovar", "comet", "dragon", "violin", "teapot")


#: orders that change the result of the user's previous one
CHAINED_SHARE = 0.4
_GENERATE = re.compile(r"w:[0-9a-z]+:go")


def _generate_button(message: Message) -> str | None:
    """Return the data of the button that confirms an order."""
    found = [
        button["callback_data"] for button in message.buttons if _GENERATE.fullmatch(button.get("callback_data") or "")
    ]
    return str(found[0]) if found else None


class ChaosUsers:
    def __init__(self, telegram: TelegramSimulator, records: Records, *, rng: Random, deadline: float) -> None:
        self._telegram = telegram
        self._records = records
        self._rng = rng
        self._deadline = deadline
        self._changed: dict[int, asyncio.Event] = {}
        self.orders: list[Order] = []
        self.users: list[SimulatedUser] = []

    async def order(self, count: int, *, spread_seconds: float) -> None:
        """Place `count` orders; return when every chat shows how its orders ended, or at the deadline."""
        watch = asyncio.get_running_loop().create_task(self._watch())
        each = min(ORDERS_EACH_MAX, 1 + count // 20)
        users = [
            self._simulate_user(range(first, min(first + each, count)), spread_seconds)
            for first in range(0, count, each)
        ]
        try:
            await asyncio.gather(*users)
        finally:
            watch.cancel()

    async def _simulate_user(self, numbers: range, spread_seconds: float) -> None:
        user = self._telegram.add_user(f"User {len(self.users) + 1}", language=self._rng.choice(("en", "ru")))
        self.users.append(user)
        await asyncio.sleep(self._rng.uniform(0, spread_seconds))
        await user.start()
        await self._until(user, lambda: bool(self._records.bot_messages(user)))
        previous: Order | None = None
        for number in numbers:
            prompt = f"{self._rng.choice(SUBJECTS)} number {number}"
            chained = previous is not None and self._rng.random() < CHAINED_SHARE
            order = await self._next_step(user, prompt, previous) if chained and previous else None
            if order is None:
                message = await user.say(f"/gen {MODEL} {prompt}")
                order = Order(user=user, prompt=prompt, message=message.id, asked_at=time())
                self.orders.append(order)
            previous = order
            if not await self._until_ended(order):
                return  # a further order would overtake the presses of this one
            order.ended_at = time()
            self._deadline = max(self._deadline, order.ended_at + STALL_SECONDS)

    async def _next_step(self, user: SimulatedUser, prompt: str, previous: Order) -> Order | None:
        """Change the previous result by a reply, and confirm the order twice; None if there is nothing to change."""
        results = [message for message in self._records.results(previous) if message.kind == "photo"]
        if not results:
            return None
        reply = await user.say(prompt, reply_to=results[0])

        def answers() -> list[Message]:
            new = [message for message in self._records.bot_messages(user) if message.id > reply.id]
            return [message for message in new if not is_notice(message)]  # that of the previous order may come late

        await self._until(user, lambda: bool(answers()))
        if not any(_generate_button(message) for message in answers()):
            return None
        order = Order(user=user, prompt=prompt, message=reply.id, asked_at=time(), previous=previous)
        self.orders.append(order)
        for _ in range(2):
            await self._confirm(order)
        return order

    async def _confirm(self, order: Order) -> None:
        """Press the button that confirms the order, if the chat still shows it."""
        newer = [message for message in self._records.bot_messages(order.user) if message.id > order.message]
        for message in reversed(newer):
            if data := _generate_button(message):
                await order.user.press(message, data)
                return

    async def _until_ended(self, order: Order) -> bool:
        """Wait until the chat shows how the order ended; False at the deadline."""
        while not self._records.has_ended(order):
            give_up = time() + PRESS_AGAIN_SECONDS
            if await self._until(order.user, lambda: self._records.has_ended(order), give_up):
                return True
            if time() >= self._deadline:
                return False
            await self._confirm(order)
        return True

    @property
    def placed(self) -> int:
        return len(self.orders)

    @property
    def ended(self) -> int:
        return sum(order.ended_at is not None for order in self.orders)

    async def _until(self, user: SimulatedUser, holds: Callable[[], bool], give_up: float | None = None) -> bool:
        """Wait until `holds()`, checked after every change in the user's chat; False at the deadline or `give_up`."""
        changed = self._changed[user.id] = asyncio.Event()
        while not holds():
            until = self._deadline if give_up is None else min(give_up, self._deadline)
            left = until - time()  # other users' orders that end move the deadline
            if left <= 0:
                return False
            try:
                await asyncio.wait_for(changed.wait(), left)
            except TimeoutError:
                continue
            changed.clear()
        return True

    async def _watch(self) -> None:
        """Wake the users whose chat changed. One watcher for all: hundreds reading every event would be too slow."""
        events = self._telegram.state.events
        seen = events.last
        while True:
            await events.wait_after(seen, 1.0)
            await asyncio.sleep(WATCH_SECONDS)
            new = events.since(seen)
            seen = events.last
            for chat in {event.data.get("chat") for event in new}:
                if chat in self._changed:
                    self._changed[chat].set()
