"""Natural batching: which calls are merged, and that an invalid call does not affect the others."""

import asyncio
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from genlock.domain.errors import StoreUnavailable
from genlock.ports import Accepted, Store
from genlock.stores.batch import Batch
from tests.changes import PATIENCE_SECONDS
from tests.random_examples import examples
from tests.stores.builders import ME, account_with, order, see, until
from tests.stores.conftest import RecordingObserver

pytestmark = pytest.mark.timeout(20, func_only=True)  # a lost call would never be answered


@dataclass
class Statement:
    """A slow statement over many items: records its items and waits until the test releases it."""

    batches: list[list[str]] = field(default_factory=list)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, items: list[str]) -> Sequence[str | Exception]:
        self.batches.append(items)
        if any(item.startswith("bad") for item in items):
            raise ValueError(f"{items} cannot be done")
        await self.go.wait()
        return [f"{item} done" for item in items]

    async def in_flight(self, count: int) -> None:
        """Until this many batches have begun."""
        await until(lambda: len(self.batches) == count)


@pytest_asyncio.fixture(loop_scope="session")
async def statement() -> Statement:
    return Statement()


def first_letter(item: str) -> str:
    return item[0]


async def test_reads_of_the_same_row_become_one_unless_it_has_begun(statement: Statement) -> None:
    batch = Batch(statement, key=str, joins=True)
    begun = batch("a")
    await statement.in_flight(1)
    late, same, other, given_up = batch("a"), batch("a"), batch("b"), batch("a")
    given_up.cancel()  # a client that is gone does not take the answer from the others
    statement.go.set()

    assert list(await asyncio.gather(begun, late, same, other)) == ["a done", "a done", "a done", "b done"]
    assert statement.batches == [["a"], ["a", "b"]]
    assert await batch("a") == "a done"
    assert len(statement.batches) == 3


async def test_a_read_that_fails_fails_for_all_that_joined_it(statement: Statement) -> None:
    batch = Batch(statement, key=str, joins=True)
    answers = await asyncio.gather(batch("bad"), batch("bad"), return_exceptions=True)

    assert [type(answer) for answer in answers] == [ValueError, ValueError]
    statement.go.set()
    assert await batch("a") == "a done"


async def test_a_single_call_runs_at_once(statement: Statement) -> None:
    statement.go.set()
    batch = Batch(statement, key=str)

    answer = batch("a")
    await asyncio.sleep(0)

    assert statement.batches == [["a"]], "no timer, no waiting for company"
    assert await answer == "a done"


async def test_calls_made_while_a_statement_runs_share_the_next(statement: Statement) -> None:
    batch = Batch(statement, key=str)
    first = batch("a")
    await statement.in_flight(1)
    others = [batch(item) for item in "bcd"]
    await asyncio.sleep(0)
    assert statement.batches == [["a"]]

    statement.go.set()

    assert await asyncio.gather(first, *others) == ["a done", "b done", "c done", "d done"]
    assert statement.batches == [["a"], ["b", "c", "d"]]


async def test_calls_made_in_one_iteration_of_the_loop_share_a_statement(statement: Statement) -> None:
    statement.go.set()
    batch = Batch(statement, key=str)

    await asyncio.gather(*(batch(item) for item in "abc"))

    assert statement.batches == [["a", "b", "c"]]


async def test_after_a_pause_later_calls_succeed(statement: Statement) -> None:
    statement.go.set()
    batch = Batch(statement, key=str)

    for item in "abc":
        assert await batch(item) == f"{item} done"

    assert statement.batches == [["a"], ["b"], ["c"]]


async def test_a_call_made_while_an_answer_arrives_is_not_missed(statement: Statement) -> None:
    """The batch must not await between its last look into the queue and its end."""
    statement.go.set()
    batch = Batch(statement, key=str)
    answer = batch("a")
    more: list[asyncio.Future[str]] = []
    answer.add_done_callback(lambda _: more.append(batch("b")))

    await answer
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await more[0] == "b done"


async def test_two_items_with_the_same_key_go_one_after_the_other(statement: Statement) -> None:
    statement.go.set()
    batch = Batch(statement, key=first_letter)

    answers = await asyncio.gather(*(batch(item) for item in ("a1", "a2", "b1", "a3", "c1", "b2")))

    assert answers == ["a1 done", "a2 done", "b1 done", "a3 done", "c1 done", "b2 done"]
    assert statement.batches == [["a1", "b1", "c1"], ["a2", "b2"], ["a3"]]


async def test_calls_that_had_to_wait_run_before_later_ones(statement: Statement) -> None:
    statement.go.set()
    batch = Batch(statement, key=first_letter, limit=2)

    await asyncio.gather(*(batch(item) for item in ("a1", "a2", "b1", "c1", "a3")))

    assert statement.batches == [["a1", "b1"], ["a2", "c1"], ["a3"]]


async def test_only_items_that_are_alike_share_a_batch(statement: Statement) -> None:
    statement.go.set()
    batch = Batch(statement, key=str, group=str.isupper)

    await asyncio.gather(*(batch(item) for item in "aBcDe"))

    assert statement.batches == [["a", "c", "e"], ["B", "D"]]


async def test_a_batch_has_a_limit(statement: Statement) -> None:
    statement.go.set()
    batch = Batch(statement, key=str, limit=3)

    await asyncio.gather(*(batch(item) for item in "abcdefg"))

    assert statement.batches == [["a", "b", "c"], ["d", "e", "f"], ["g"]]


async def test_one_bad_item_fails_alone(statement: Statement) -> None:
    statement.go.set()
    batch = Batch(statement, key=str)

    answers = await asyncio.gather(*(batch(item) for item in ("a", "bad", "c")), return_exceptions=True)

    assert (answers[0], answers[2]) == ("a done", "c done")
    assert isinstance(answers[1], ValueError)
    assert str(answers[1]) == "['bad'] cannot be done"


async def test_an_answer_may_be_an_exception() -> None:
    async def run(items: list[str]) -> Sequence[str | Exception]:
        return [KeyError(item) if item == "b" else item for item in items]

    batch = Batch(run, key=str)

    answers = await asyncio.gather(*(batch(item) for item in "abc"), return_exceptions=True)

    assert (answers[0], answers[2]) == ("a", "c")
    assert isinstance(answers[1], KeyError)


async def test_when_the_database_is_away_every_caller_of_a_batch_fails_at_once() -> None:
    """The error says nothing about the items: trying them one by one would only multiply the wait."""
    tries = []

    async def run(items: list[str]) -> Sequence[str | Exception]:
        tries.append(items)
        raise StoreUnavailable

    batch = Batch(run, key=str)

    answers = await asyncio.gather(*(batch(item) for item in "abc"), return_exceptions=True)

    assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
    assert tries == [["a", "b", "c"]]


async def test_after_a_failure_later_calls_succeed(statement: Statement) -> None:
    statement.go.set()
    batch = Batch(statement, key=str)
    with pytest.raises(ValueError, match="bad"):
        await batch("bad")

    assert await batch("a") == "a done"


async def test_a_cancelled_caller_does_not_affect_the_others(statement: Statement) -> None:
    batch = Batch(statement, key=str)

    async def call(item: str) -> str:
        return await batch(item)

    calls = [asyncio.create_task(call(item)) for item in "abc"]
    await statement.in_flight(1)
    late = asyncio.create_task(call("d"))
    await asyncio.sleep(0)
    calls[1].cancel()
    late.cancel()

    statement.go.set()

    answers = await asyncio.gather(*calls, late, return_exceptions=True)
    assert (answers[0], answers[2]) == ("a done", "c done")
    assert isinstance(answers[1], asyncio.CancelledError)
    assert isinstance(answers[3], asyncio.CancelledError)
    assert await batch("e") == "e done"


async def test_when_the_loop_ends_no_caller_is_left_waiting(statement: Statement) -> None:
    batch = Batch(statement, key=str)
    calls = [batch(item) for item in "ab"]
    await statement.in_flight(1)
    calls.append(batch("c"))
    assert batch._drain is not None

    batch._drain.cancel()

    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [asyncio.CancelledError] * 3


class RandomCallers:
    """Callers with random pauses, keys and failures, some of them cancelled."""

    def __init__(self, seed: int, limit: int) -> None:
        self._rng = random.Random(seed)
        self.batch: Batch[tuple[int, int], int] = Batch(self._run, key=lambda item: item[1], limit=limit)
        self.seen: list[list[tuple[int, int]]] = []

    async def _pause(self) -> None:
        for _ in range(self._rng.randrange(4)):
            await asyncio.sleep(0)

    async def _run(self, items: list[tuple[int, int]]) -> list[int]:
        self.seen.append(items)
        await self._pause()
        if any(self._bad(number) for number, _ in items):
            raise ValueError(items)
        return [number for number, _ in items]

    def _bad(self, number: int) -> bool:
        return number % 7 == 3

    async def _caller(self, number: int) -> None:
        for _ in range(3):
            await self._pause()
            item = (number, self._rng.randrange(6))
            if self._bad(number):
                with pytest.raises(ValueError, match=re.escape(str([item]))):
                    await self.batch(item)
            else:
                assert await self.batch(item) == number

    async def run_all(self, callers: int) -> list[BaseException]:
        """Returns what went wrong."""
        tasks = [asyncio.create_task(self._caller(number)) for number in range(callers)]
        for task in tasks:
            if self._rng.random() < 0.1:
                await self._pause()
                task.cancel()
        async with asyncio.timeout(PATIENCE_SECONDS):
            answers = await asyncio.gather(*tasks, return_exceptions=True)
        await until(lambda: self.batch._drain is None)  # cancelled callers may have left calls in the queue
        return [answer for answer in answers if answer and not isinstance(answer, asyncio.CancelledError)]


@given(seed=st.integers(0, 2**32), callers=st.integers(1, 40), limit=st.integers(1, 8))
@settings(max_examples=examples(150))
def test_every_call_gets_its_own_answer_whatever_the_interleaving(seed: int, callers: int, limit: int) -> None:
    """A lost wake-up would hang, and run into the time limit."""
    storm = RandomCallers(seed, limit)

    assert asyncio.run(storm.run_all(callers)) == []

    assert not storm.batch._queue
    for items in storm.seen:
        assert len(items) <= limit
        assert len({key for _, key in items}) == len(items)


# on the stores


async def test_concurrent_orders_share_a_statement(store: Store, observer: RecordingObserver) -> None:
    accounts = [await account_with(store) for _ in range(50)]

    await asyncio.gather(*(store.accept_job(order(account_id), ME) for account_id in accounts))

    assert observer.total("store_batch_items", operation="accept_job") == 50
    assert observer.total("store_batches", operation="accept_job") <= 3


async def test_a_bad_order_does_not_hide_that_others_were_written(store: Store) -> None:
    """Leased and unleased orders are different statements: when the second fails, the first must not be repeated."""
    accounts = [await account_with(store) for _ in range(6)]
    orders = [order(account_id) for account_id in accounts]
    orders[5] = order(accounts[5], input="nu\0l")
    leases = [ME, None, ME, None, ME, None]

    answers = await asyncio.gather(
        *(store.accept_job(new_order, lease) for new_order, lease in zip(orders, leases, strict=True)),
        return_exceptions=True,
    )

    for answer, lease in zip(answers[:5], leases, strict=False):
        assert isinstance(answer, Accepted)
        assert answer.created, "a leased job that is reported as known would not be processed"
        assert (await see(store, answer.job)).lease_owner == (lease.owner if lease else None)
    assert isinstance(answers[5], Exception)
