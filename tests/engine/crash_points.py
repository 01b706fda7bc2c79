"""Crashes of an instance at a chosen call, and a new world for each of them."""

import asyncio
from itertools import count

from genlock.domain.money import EntryKind
from tests.engine.fake_provider import FakeProvider
from tests.engine.world import FUNDS, World

NUMBERS = count(1)


class CrashPoint:
    """Crashes the instance at the chosen call; every later call crashes too."""

    def __init__(self, call: int | None = None) -> None:
        self._call = call
        self.calls: list[str] = []
        self.dead = False

    def __call__(self, when: str, operation: str) -> None:
        if self._call == len(self.calls):
            self.dead = True
        if self.dead:
            raise asyncio.CancelledError
        self.calls.append(f"{when} {operation}")


async def new_world(world: World) -> World:
    """A new account and a new chat on the same store."""
    account = await world.store.ensure_account("chat", "bot", f"after {next(NUMBERS)}")
    await world.store.transfer(account, EntryKind.TOPUP, FUNDS, f"funds of {account}")
    provider = FakeProvider(f"task of {account}")
    return World(store=world.store, clock=world.clock, recorder=world.recorder, account=account, provider=provider)
