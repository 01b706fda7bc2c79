"""Texts come from users and providers: each is stored unchanged, or refused without affecting others."""

import asyncio

import asyncpg
import pytest

from genlock.domain.delivery import Part
from genlock.domain.job import Job, State
from genlock.domain.result import PartKind
from genlock.ports import Accepted, Reschedule, Store
from tests.stores.builders import ME, account_with, delivered, end, order, queued, running, see, submitting, unchanged

STRANGE = [
    "",
    " \t\n",
    "\x01\x1f\x7f\u2028\ufeff",
    "кот 🐈 \U0010ffff",
    "\"quoted\" 'twice' `thrice` \\",
    r"\u0000 \ud800 \x00 {} [] $1 :name ? %s",
    "null",
    "true",
    "007",
    "1e5",
    "9" * 40,
    "'; DROP TABLE jobs; --",
]
IMPOSSIBLE = ["nu\0l", "half \ud83d of a pair"]
REFUSED = (ValueError, asyncpg.DataError)


@pytest.mark.parametrize("text", STRANGE, ids=ascii)
async def test_an_unusual_text_is_stored_unchanged(store: Store, text: str) -> None:
    account_id = await store.ensure_account(text, text, text)
    wanted = order(
        account_id,
        request_key=text,
        correlation_id=text,
        provider=text,
        channel=text,
        address=text,
        model=text,
        input=text,
        price=0,
        placeholder=text,
    )
    job = (await store.accept_job(wanted, ME)).job
    assert await store.begin_submit(job.id, job.lease_token, text, text)
    assert (await store.store_callback(text, job.id, text, text.encode())).job_id == job.id
    assert await store.mark_submitted(job.id, job.lease_token, text, 5.0)
    parts = (Part(kind=PartKind.TEXT, value=text, message=text, file=text),)
    await end(store, job, State.FAILED, error_code=text, error_text=text, parts=parts)

    now = await see(store, job)

    values = (now.request_key, now.correlation_id, now.provider, now.channel, now.address, now.model, now.input)
    assert set(values) == {text}
    assert (now.placeholder, now.task_id, now.error_code, now.error_text) == (text, text, text, text)
    assert now.parts == parts
    assert not (await store.accept_job(wanted, ME)).created


async def test_a_long_text_is_stored_whole(store: Store) -> None:
    text = "длинный " * 50_000
    job = await queued(store, input=text)
    await end(store, job, State.SUCCEEDED, parts=(Part(kind=PartKind.TEXT, value=text),))

    now = await see(store, job)

    assert now.input == text
    assert now.parts[0].value == text


@pytest.mark.parametrize("text", IMPOSSIBLE, ids=ascii)
@pytest.mark.parametrize("field", ["request_key", "correlation_id", "provider", "address", "model", "input"])
async def test_an_order_with_an_impossible_text_is_refused_and_nothing_held(
    store: Store, field: str, text: str
) -> None:
    account_id = await account_with(store, 1000)

    with pytest.raises(REFUSED):
        await store.accept_job(order(account_id, **{field: text}), ME)

    assert (await store.wallet(account_id)).held == 0
    assert await store.jobs() == []


@pytest.mark.parametrize("text", IMPOSSIBLE, ids=ascii)
async def test_a_write_with_an_impossible_text_changes_nothing(store: Store, text: str) -> None:
    def wait(job: Job) -> Reschedule:
        return Reschedule(job_id=job.id, token=job.lease_token, after=0.0, attention_reason=text)

    new, begun, waiting, shown = (
        await queued(store),
        await submitting(store),
        await running(store),
        await delivered(store),
    )
    for job, write in [
        (new, store.begin_submit(new.id, new.lease_token, "hash", text)),
        (begun, store.mark_submitted(begun.id, begun.lease_token, text, 5.0)),
        (waiting, end(store, waiting, State.FAILED, error_text=text)),
        (shown, store.reschedule(wait(shown))),
    ]:
        with pytest.raises(REFUSED):
            await write
        assert await unchanged(store, job)


@pytest.mark.parametrize("text", IMPOSSIBLE, ids=ascii)
async def test_an_impossible_order_among_fifty_is_refused_alone(store: Store, text: str) -> None:
    accounts = [await account_with(store, 1000) for _ in range(50)]
    orders = [order(account_id, input=text if place == 17 else "{}") for place, account_id in enumerate(accounts)]

    answers = await asyncio.gather(*(store.accept_job(new_order, ME) for new_order in orders), return_exceptions=True)

    assert isinstance(answers.pop(17), REFUSED)
    assert all(isinstance(answer, Accepted) and answer.created for answer in answers)
    assert len(await store.jobs(limit=100)) == 49


@pytest.mark.parametrize("price", [2**63, 10**30])
async def test_an_order_above_the_balance_is_refused_alone(store: Store, price: int) -> None:
    accounts = [await account_with(store, 1000) for _ in range(10)]
    orders = [order(account_id, price=price if place == 3 else 100) for place, account_id in enumerate(accounts)]

    answers = await asyncio.gather(*(store.accept_job(new_order, ME) for new_order in orders), return_exceptions=True)

    assert isinstance(answers.pop(3), Exception)
    assert all(isinstance(answer, Accepted) and answer.created for answer in answers)
    assert (await store.wallet(accounts[3])).held == 0
