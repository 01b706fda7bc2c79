"""Users of the bot for the dashboard's tests."""

import re

from genlock.domain.money import EntryKind
from tests.dashboard.world import DashboardWorld
from tests.stores.builders import ensure_profile

BOT = "42"
HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)> \u202egnp.exe \u2066\x07\x1b[31m & \'"{}%s'


async def add_user(
    world: DashboardWorld,
    external_id: str = "1001",
    *,
    name: str = "Ann",
    credits_: int = 0,
    invited_by: int | None = None,
) -> int:
    """A user of the bot who can be reached in the chat."""
    store = world.store
    account_id = await store.ensure_account(world.channel.name, BOT, external_id)
    await ensure_profile(
        store, account_id, language="en", name=name, username=f"user{external_id}", referred_by=invited_by
    )
    await store.set_account_address(account_id, f"chat-{external_id}")
    if credits_:
        await store.transfer(account_id, EntryKind.TOPUP, credits_ * 1000, f"funds:{account_id}")
    return account_id


async def add_payment(
    world: DashboardWorld, account_id: int, charge: str, stars: int = 100, credits_: int = 120
) -> None:
    await world.store.transfer(account_id, EntryKind.TOPUP, credits_ * 1000, f"stars:{charge}")
    await world.store.add_payment(charge, account_id, stars, credits_ * 1000)


def field(page: str, name: str) -> str:
    """Return the value of a hidden field."""
    found = re.search(rf'<input type="hidden" name="{name}" value="([^"]*)"', page)
    assert found is not None, name
    return found[1]
