"""Actions of operators on accounts."""

import asyncio
import random
from functools import partial

import pytest
import pytest_asyncio

from genlock.domain.errors import (
    AccountNotFound,
    ActionNotAllowed,
    AllowanceExceeded,
    InsufficientBalance,
    InvalidInput,
)
from genlock.domain.money import EntryKind
from genlock.engine.accounts import AccountActions, Allowance
from genlock.engine.engine import Engine
from genlock.engine.tell import send_queued, tell
from genlock.i18n.translator import package_texts
from tests.engine.world import FUNDS, World
from tests.stores.builders import ensure_profile

HOSTILE = '<script>alert(1)</script> & "quotes" \u202egnp.exe \x07'


@pytest_asyncio.fixture(loop_scope="session")
async def actions(world: World, engine: Engine) -> AccountActions:
    store = world.store
    await store.set_account_address(world.account, "42")
    await ensure_profile(store, world.account, language="en", name="Ann", username="ann", referred_by=None)
    ctx = engine.ctx
    return AccountActions(
        store=store, texts=package_texts(), tell=partial(tell, ctx), send_queued=partial(send_queued, ctx)
    )


async def available(world: World) -> int:
    return (await world.store.wallet(world.account)).available


async def test_two_operators_with_the_same_form_credit_once(world: World, actions: AccountActions) -> None:
    done = await asyncio.gather(
        *(actions.move_credits(world.account, EntryKind.GRANT, 500, key="form", reason="sorry") for _ in range(10))
    )

    assert len(list(filter(None, done))) == 1
    assert await available(world) == FUNDS + 500


async def test_the_user_is_told_the_amount_and_the_balance(world: World, actions: AccountActions) -> None:
    message = await actions.move_credits(world.account, EntryKind.GRANT, 500, key="form", reason="sorry")

    assert message is not None
    assert await actions.send_queued(message)

    [(_, text)] = world.channel.told
    assert "0.5\u00a0credits" in text
    assert "1,000.5\u00a0credits" in text


async def test_an_allowance_is_kept_and_says_its_figures(world: World, actions: AccountActions) -> None:
    allowance = Allowance(name=f"op-{world.account}", most=1000)
    move = partial(actions.move_credits, world.account, reason="because", allowance=allowance)
    assert await move(EntryKind.GRANT, 700, key="one")

    with pytest.raises(AllowanceExceeded) as refused:
        await move(EntryKind.DEBIT, 301, key="two")

    assert (refused.value.amount, refused.value.used, refused.value.most) == (301, 700, 1000)
    assert await available(world) == FUNDS + 700


async def test_a_ban_needs_a_user(world: World, actions: AccountActions) -> None:
    await actions.ban(world.account, "spam")
    assert (await world.store.profile(world.account)).ban_reason == "spam"
    await actions.unban(world.account)
    assert (await world.store.profile(world.account)).banned_at is None
    with pytest.raises(ActionNotAllowed):
        await actions.ban(10**9, "spam")


async def test_free_runs_are_given_once_per_form_and_to_one_user(world: World, actions: AccountActions) -> None:
    give = partial(actions.give_free_runs, world.account, 3, key=f"form-{world.account}", by="op")

    done = await asyncio.gather(*(give() for _ in range(5)))

    assert (await world.store.free_runs(world.account, 0)).gifts == 3
    assert any(done)
    assert not await give()
    assert (await world.store.free_runs(world.account, 0)).gifts == 3
    for runs in (0, -1, 10**6):
        with pytest.raises(InvalidInput):
            await actions.give_free_runs(world.account, runs, key="other", by="op")
    with pytest.raises(AccountNotFound):
        await actions.give_free_runs(10**9, 1, key="other", by="op")


async def test_free_runs_whose_instance_crashed_between_the_steps_are_given_by_the_same_form(
    world: World, actions: AccountActions, monkeypatch: pytest.MonkeyPatch
) -> None:
    give = partial(actions.give_free_runs, world.account, 2, key=f"crash-{world.account}", by="op")
    with monkeypatch.context() as crash:

        async def crashes(*_: object) -> None:
            raise ConnectionError

        crash.setattr(world.store, "use_promo", crashes)
        with pytest.raises(ConnectionError):
            await give()

    assert await give()
    assert (await world.store.free_runs(world.account, 0)).gifts == 2


async def test_a_message_is_escaped_and_bounded(world: World, actions: AccountActions) -> None:
    assert await actions.send(world.account, HOSTILE)

    [(_, text)] = world.channel.told
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    for bad in ("", "  \n", "x" * 100_000):
        with pytest.raises(InvalidInput):
            await actions.send(world.account, bad)
    assert not await actions.send(10**9, "hello")


async def test_a_form_sends_its_message_once(actions: AccountActions, world: World) -> None:
    done = await asyncio.gather(*(actions.claim_message(f"form-{world.account}") for _ in range(10)))

    assert sum(done) == 1
    assert not await actions.claim_message(f"form-{world.account}")
    assert await actions.claim_message(f"other-{world.account}")


async def test_money_adds_up_after_a_random_series_of_actions(
    world: World, actions: AccountActions, first_seed: int
) -> None:
    rng, allowance = random.Random(first_seed + 5), Allowance(name=f"random-{world.account}", most=20_000)
    expected = FUNDS
    for number in range(60):
        kind = rng.choice((EntryKind.GRANT, EntryKind.DEBIT))
        amount, key = rng.randrange(1, 3000), f"form-{number % 40}"
        if await world.store.ledger_entry(key) is not None:
            continue
        try:
            await actions.move_credits(
                world.account, kind, amount, key=key, reason="r", allowance=rng.choice((None, allowance))
            )
        except (AllowanceExceeded, InsufficientBalance):
            continue
        expected += amount if kind is EntryKind.GRANT else -amount

    assert await available(world) == expected
    assert await world.store.violations(settled=False) == []
