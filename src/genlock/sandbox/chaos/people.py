"""People who order at the same time, each one thing after the other, and look into their chats."""

import asyncio
from collections.abc import Callable
from random import Random
from time import time

from genlock.sandbox.records import Order, Records
from genlock.sandbox.telegram.people import Person
from genlock.sandbox.telegram.simulator import TelegramSimulator

MODEL = "z-image"
ORDERS_EACH_MAX = 4
LOOK_SECONDS = 0.05
THINGS = ("cat", "fox", "owl", "lighthouse", "tram", "samovar", "comet", "dragon", "violin", "teapot")


class People:
    def __init__(self, telegram: TelegramSimulator, records: Records, *, rng: Random, deadline: float) -> None:
        self._telegram = telegram
        self._records = records
        self._rng = rng
        self._deadline = deadline
        self._looking: dict[int, asyncio.Event] = {}
        self.orders: list[Order] = []
        self.people: list[Person] = []

    async def order(self, count: int, *, spread_seconds: float) -> None:
        """So many orders; ends when the people know what became of each, or when the time is over."""
        watch = asyncio.get_running_loop().create_task(self._watch())
        each = min(ORDERS_EACH_MAX, 1 + count // 20)
        lives = [self._live(range(first, min(first + each, count)), spread_seconds) for first in range(0, count, each)]
        try:
            await asyncio.gather(*lives)
        finally:
            watch.cancel()

    async def _live(self, numbers: range, spread_seconds: float) -> None:
        person = self._telegram.person(f"Person {len(self.people) + 1}", language=self._rng.choice(("en", "ru")))
        self.people.append(person)
        await asyncio.sleep(self._rng.uniform(0, spread_seconds))
        await person.start()
        await self._until(person, lambda: bool(self._records.said(person)))
        for number in numbers:
            prompt = f"{self._rng.choice(THINGS)} number {number}"
            message = await person.say(f"/gen {MODEL} {prompt}")
            order = Order(person=person, prompt=prompt, message=message.id, asked_at=time())
            self.orders.append(order)
            if await self._until(person, lambda order=order: self._records.has_ended(order)):  # type: ignore[misc]
                order.ended_at = time()

    @property
    def ended(self) -> int:
        return sum(order.ended_at is not None for order in self.orders)

    async def _until(self, person: Person, holds: Callable[[], bool]) -> bool:
        """Look after every change in one's own chat; False if the time is over."""
        changed = self._looking[person.id] = asyncio.Event()
        try:
            async with asyncio.timeout(max(0.0, self._deadline - time())):
                while not holds():
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            return holds()
        return True

    async def _watch(self) -> None:
        """One for all: hundreds of people that each look at everything would be busy with that alone."""
        events = self._telegram.world.events
        seen = events.last
        while True:
            await events.after(seen, 1.0)
            await asyncio.sleep(LOOK_SECONDS)
            new = events.since(seen)
            seen = events.last
            for chat in {event.data.get("chat") for event in new}:
                if chat in self._looking:
                    self._looking[chat].set()
