import asyncio
import sqlite3

import asyncpg
import pytest

from genlock.domain.errors import KeyReused, NoSuchPerson, NotEnoughMoney
from genlock.domain.money import Account, Kind, Movement, Wallet
from genlock.ports import Store
from tests.stores.lives import HandClock, person_with, queued

NOBODY = 10**9
REFUSED_BY_THE_DATABASE = (sqlite3.IntegrityError, asyncpg.IntegrityConstraintViolationError)


async def test_a_person_is_made_on_first_sight_and_found_again(store: Store) -> None:
    person_id = await store.person("chat", "bot", "7")

    assert await store.person("chat", "bot", "7") == person_id
    assert await store.wallet(person_id) == Wallet(person_id=person_id, available=0, held=0)


async def test_people_differ_by_channel_by_bot_and_by_outside_id(store: Store) -> None:
    names = [("chat", "bot", "7"), ("chat", "bot", "8"), ("chat", "other", "7"), ("mail", "bot", "7")]

    assert len({await store.person(*name) for name in names}) == len(names)


async def test_many_first_sights_at_once_make_one_person(store: Store) -> None:
    found = await asyncio.gather(*(store.person("chat", "bot", "7") for _ in range(20)))

    assert len(set(found)) == 1


async def test_nobody_has_no_wallet(store: Store) -> None:
    with pytest.raises(NoSuchPerson):
        await store.wallet(NOBODY)


@pytest.mark.parametrize(
    ("kind", "after"), [(Kind.TOPUP, 1300), (Kind.GRANT, 1300), (Kind.REFUND, 1300), (Kind.DEBIT, 700)]
)
async def test_a_transfer_changes_what_is_available(store: Store, kind: Kind, after: int) -> None:
    person_id = await person_with(store, 1000)

    assert await store.transfer(person_id, kind, 300, "key", "because")

    assert await store.wallet(person_id) == Wallet(person_id=person_id, available=after, held=0)


@pytest.mark.parametrize("kind", [Kind.TOPUP, Kind.DEBIT])
async def test_a_transfer_happens_once_per_key(store: Store, kind: Kind) -> None:
    person_id = await person_with(store, 1000)
    assert await store.transfer(person_id, kind, 300, "key")
    once = await store.wallet(person_id)

    assert not await store.transfer(person_id, kind, 300, "key")
    with pytest.raises(KeyReused):
        await store.transfer(person_id, kind, 5, "key")

    assert await store.wallet(person_id) == once


async def test_a_key_used_for_one_person_moves_nothing_for_another(store: Store) -> None:
    one, other = await person_with(store, 0), await person_with(store, 0)
    assert await store.transfer(one, Kind.TOPUP, 300, "key")

    with pytest.raises(KeyReused):
        await store.transfer(other, Kind.TOPUP, 300, "key")

    assert (await store.wallet(other)).available == 0


async def test_the_same_transfer_many_times_at_once_happens_once(store: Store) -> None:
    person_id = await person_with(store, 0)

    done = await asyncio.gather(*(store.transfer(person_id, Kind.TOPUP, 300, "key") for _ in range(20)))

    assert sum(done) == 1
    assert (await store.wallet(person_id)).available == 300


async def test_more_than_there_is_cannot_be_debited(store: Store) -> None:
    person_id = await person_with(store, 1000)

    with pytest.raises(NotEnoughMoney) as refusal:
        await store.transfer(person_id, Kind.DEBIT, 1001, "key")

    assert (refusal.value.price, refusal.value.available) == (1001, 1000)
    assert (await store.wallet(person_id)).available == 1000
    assert len(await store.movements(person_id, 10)) == 1
    assert await store.transfer(person_id, Kind.DEBIT, 1000, "key"), "the key is still free"


async def test_held_money_cannot_be_debited(store: Store) -> None:
    person_id = await person_with(store, 1000)
    await queued(store, person_id=person_id, price=600)

    with pytest.raises(NotEnoughMoney):
        await store.transfer(person_id, Kind.DEBIT, 401, "key")


async def test_debits_at_once_never_overdraw(store: Store) -> None:
    person_id = await person_with(store, 100)

    tries = (store.transfer(person_id, Kind.DEBIT, 10, f"debit-{number}") for number in range(25))
    answers = await asyncio.gather(*tries, return_exceptions=True)

    assert [answer for answer in answers if answer is True] == [True] * 10
    assert all(isinstance(answer, NotEnoughMoney) for answer in answers if answer is not True)
    assert (await store.wallet(person_id)).available == 0


async def test_a_transfer_to_nobody_is_refused(store: Store) -> None:
    with pytest.raises(NoSuchPerson):
        await store.transfer(NOBODY, Kind.TOPUP, 1, "key")


@pytest.mark.parametrize("amount", [0, -5])
@pytest.mark.parametrize("kind", [Kind.TOPUP, Kind.DEBIT])
async def test_only_positive_amounts_move(store: Store, kind: Kind, amount: int) -> None:
    person_id = await person_with(store, 1000)

    with pytest.raises(REFUSED_BY_THE_DATABASE):
        await store.transfer(person_id, kind, amount, "key")

    assert (await store.wallet(person_id)).available == 1000


@pytest.mark.parametrize("kind", [Kind.HOLD, Kind.CAPTURE, Kind.RELEASE])
async def test_held_money_moves_only_with_its_job(store: Store, kind: Kind) -> None:
    with pytest.raises(AssertionError):
        await store.transfer(await person_with(store), kind, 1, "key")


async def test_movements_tell_everything_newest_first(store: Store, clock: HandClock) -> None:
    person_id = await store.person("chat", "bot", "7")
    await person_with(store)  # somebody else's are not shown
    topped_up_at = clock.now()
    await store.transfer(person_id, Kind.TOPUP, 500, "stars:1", "100 Stars")
    clock.advance(1)
    job = await queued(store, person_id=person_id, price=200)

    topup = Movement(
        key="stars:1",
        person_id=person_id,
        job_id=None,
        kind=Kind.TOPUP,
        debit=Account.HOUSE,
        credit=Account.AVAILABLE,
        amount=500,
        reason="100 Stars",
        at=topped_up_at,
    )
    hold = Movement(
        key=f"hold:{job.id}",
        person_id=person_id,
        job_id=job.id,
        kind=Kind.HOLD,
        debit=Account.AVAILABLE,
        credit=Account.HELD,
        amount=200,
        reason="",
        at=clock.now(),
    )
    assert await store.movements(person_id, 10) == [hold, topup]
    assert await store.movements(person_id, 1) == [hold]
