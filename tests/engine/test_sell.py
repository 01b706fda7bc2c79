"""Selling without a chat: quotes, quotas, free runs, idempotency, and every reason why an order is not sold."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from genlock.domain.catalog import Catalog, Category, Model, Output, Status
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.field import Field, FieldType
from genlock.domain.job import Job, NewJob, State
from genlock.domain.money import EntryKind
from genlock.domain.promo import Promo
from genlock.domain.tariff import PriceRow
from genlock.engine.engine import Engine
from genlock.engine.sell import NotSold, NotSoldReason, Order, Quote, SaleRules, Seller
from genlock.ports import EndJob
from tests.engine.faults import FaultProxy
from tests.engine.world import FUNDS, World
from tests.stores.builders import new_key

FILE = "https://files.example/one.mp4"
RULES = SaleRules(markup=1.0, credit_usd=0.005, running_max=100, per_minute=100, per_hour=100)
MODEL = Model(
    id="fake/flux",
    title="Flux",
    vendor="Fake",
    category=Category.TEXT_TO_IMAGE,
    provider="fake",
    provider_credit_usd=Decimal("0.005"),
    outputs=(Output.IMAGE,),
    fields=(
        Field(name="prompt", type=FieldType.TEXT, required=True),
        Field(name="video", type=FieldType.VIDEO, max_seconds=30),
    ),
    prices=(PriceRow(credits=Decimal(2)),),
    expected_seconds=10,
    deadline_seconds=600,
)
FREE = replace(MODEL, id="fake/free", free=True)
BY_SECOND = replace(MODEL, id="fake/video", prices=(PriceRow(credits=Decimal(1), seconds="video"),))
CLIPS = replace(
    BY_SECOND,
    id="fake/clips",
    fields=(MODEL.fields[0], Field(name="video", type=FieldType.VIDEO, many=True, max_count=5, max_seconds=30)),
)
PAUSED = replace(MODEL, id="fake/paused", status=Status.PAUSED)
OTHER_PROVIDER = replace(MODEL, id="other/flux", provider="other")
CATALOG = Catalog(models={model.id: model for model in (MODEL, FREE, BY_SECOND, CLIPS, PAUSED, OTHER_PROVIDER)})
PRICE = 2000


class Crash(Exception):
    """The process ends here."""


@pytest.fixture
def seller(world: World, engine: Engine) -> Seller:
    return make_seller(world, engine)


def make_seller(world: World, engine: Engine, rules: SaleRules = RULES, store: Any = None) -> Seller:
    return Seller(engine=engine, store=store or world.store, catalog=CurrentCatalog(CATALOG), rules=rules)


def order(world: World, **changes: Any) -> Order:
    plain = Order(
        account_id=world.account,
        model=MODEL.id,
        values={"prompt": "a fox"},
        key="key",
        channel="chat",
        address="42",
        bot="bot",
        correlation_id="c-1",
    )
    return replace(plain, **changes)


def reason(sold: Job | NotSold) -> NotSoldReason:
    assert isinstance(sold, NotSold)
    return sold.reason


async def count_jobs(world: World) -> int:
    return len(await world.store.jobs(account_id=world.account))


async def test_an_order_becomes_a_job_with_its_hold(world: World, seller: Seller) -> None:
    job = await seller.sell(order(world, placeholder="7"))

    assert isinstance(job, Job)
    assert (job.model, job.provider, job.channel, job.bot, job.address) == (MODEL.id, "fake", "chat", "bot", "42")
    assert (job.price, job.input, job.placeholder) == (PRICE, '{"prompt": "a fox"}', "7")
    assert (await world.wallet()).held == PRICE


async def test_the_same_key_gives_the_same_job_and_holds_once(world: World, seller: Seller) -> None:
    first = await seller.sell(order(world))
    second = await seller.sell(order(world))

    assert isinstance(first, Job)
    assert isinstance(second, Job)
    assert second.id == first.id
    assert (await world.wallet()).held == PRICE


async def test_a_repeated_key_is_answered_before_any_quota(world: World, engine: Engine) -> None:
    seller = make_seller(world, engine, replace(RULES, running_max=1, per_minute=1, per_hour=1))
    first = await seller.sell(order(world))
    assert isinstance(await seller.sell(order(world)), Job)
    assert isinstance(first, Job)


async def test_two_sells_of_one_key_at_the_same_time_make_one_job(world: World, seller: Seller) -> None:
    sold = await asyncio.gather(*(seller.sell(order(world)) for _ in range(5)))

    assert len({job.id for job in sold if isinstance(job, Job)}) == 1
    assert not [outcome for outcome in sold if isinstance(outcome, NotSold)]
    assert (await world.wallet()).held == PRICE


async def test_a_key_that_is_accepted_with_another_input_meanwhile_gives_the_accepted_job(
    world: World, seller: Seller
) -> None:
    made: list[Job | NotSold] = []

    async def meanwhile() -> None:
        made.append(await seller.sell(order(world, values={"prompt": "a dog"})))

    sold = await seller.sell(order(world), before_accept=meanwhile)

    assert isinstance(sold, Job)
    assert isinstance(made[0], Job)
    assert sold.id == made[0].id


async def test_two_orders_race_for_the_last_credits_and_one_gets_them(world: World, seller: Seller) -> None:
    await world.store.transfer(world.account, EntryKind.DEBIT, FUNDS - PRICE, "spent")
    both = asyncio.Barrier(2)

    async def meet() -> None:
        await both.wait()

    sold = await asyncio.gather(
        *(seller.sell(order(world, key=f"key-{number}"), before_accept=meet) for number in range(2))
    )

    assert sorted(type(outcome).__name__ for outcome in sold) == ["Job", "NotSold"]
    [refused] = [outcome for outcome in sold if isinstance(outcome, NotSold)]
    assert refused.reason is NotSoldReason.INSUFFICIENT_BALANCE
    assert (refused.price, refused.available) == (PRICE, 0)
    assert await count_jobs(world) == 1


async def test_too_small_a_balance_says_what_is_missing(world: World, seller: Seller) -> None:
    await world.store.transfer(world.account, EntryKind.DEBIT, FUNDS - PRICE + 1, "spent")
    called: list[str] = []

    async def before() -> None:
        called.append("before_accept")

    sold = await seller.sell(order(world), before_accept=before)

    assert sold == NotSold(reason=NotSoldReason.INSUFFICIENT_BALANCE, price=PRICE, available=PRICE - 1)
    assert called == []
    assert await count_jobs(world) == 0


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ({"running_max": 1}, NotSoldReason.TOO_MANY_RUNNING),
        ({"per_minute": 1}, NotSoldReason.TOO_MANY_PER_MINUTE),
        ({"per_hour": 1}, NotSoldReason.TOO_MANY_PER_HOUR),
    ],
)
async def test_each_quota_refuses_the_next_order(
    world: World, engine: Engine, limit: dict[str, int], expected: NotSoldReason
) -> None:
    seller = make_seller(world, engine, replace(RULES, **limit))
    assert isinstance(await seller.sell(order(world)), Job)

    refused = await seller.sell(order(world, key="another"))

    assert isinstance(refused, NotSold)
    assert refused.reason is expected
    if expected is NotSoldReason.TOO_MANY_RUNNING:
        assert refused.count == 1
    else:
        assert 0 < refused.wait_seconds <= (60 if expected is NotSoldReason.TOO_MANY_PER_MINUTE else 3600)
    assert await count_jobs(world) == 1


async def test_a_model_of_a_provider_that_is_not_configured_is_not_sold(world: World, seller: Seller) -> None:
    assert reason(await seller.sell(order(world, model=OTHER_PROVIDER.id))) is NotSoldReason.PROVIDER_NOT_CONFIGURED
    assert await count_jobs(world) == 0


@pytest.mark.parametrize("model", [PAUSED.id, "fake/none"])
async def test_a_model_that_is_not_offered_is_not_sold(world: World, seller: Seller, model: str) -> None:
    assert reason(await seller.sell(order(world, model=model))) is NotSoldReason.UNKNOWN_MODEL


async def test_invalid_input_is_named(world: World, seller: Seller) -> None:
    refused = await seller.sell(order(world, values={}))

    assert isinstance(refused, NotSold)
    assert refused.reason is NotSoldReason.INVALID_INPUT
    assert refused.error is not None
    assert (refused.error.field, refused.error.problem) == ("prompt", "missing")


async def test_a_price_above_the_agreed_one_is_not_sold(world: World, seller: Seller) -> None:
    assert await seller.sell(order(world, agreed_price=PRICE - 1)) == NotSold(reason=NotSoldReason.DEARER, price=PRICE)
    assert await count_jobs(world) == 0
    assert isinstance(await seller.sell(order(world, agreed_price=PRICE)), Job)


async def test_a_price_below_the_agreed_one_is_sold_at_the_lower_price(world: World, seller: Seller) -> None:
    job = await seller.sell(order(world, agreed_price=PRICE + 1))
    assert isinstance(job, Job)
    assert job.price == PRICE


async def test_a_file_of_unknown_length_is_priced_as_the_longest_allowed(world: World, seller: Seller) -> None:
    values = {"prompt": "a fox", "video": FILE}
    measured = await seller.quote(world.account, BY_SECOND.id, values, {FILE: 4.0})
    assumed = await seller.quote(world.account, BY_SECOND.id, values, {})

    assert measured == Quote(price=4000)
    assert assumed == Quote(price=30_000, assumed_seconds=30)


async def test_files_that_are_given_in_one_text_are_priced_one_by_one(world: World, seller: Seller) -> None:
    """A client may send a list of files as one text; the provider bills each of them."""
    urls = [f"https://files.example/{number}.mp4" for number in range(4)]
    listed = await seller.quote(world.account, CLIPS.id, {"prompt": "a fox", "video": urls}, {})
    for text in (" ".join(urls), "\n".join(urls), f"  {'  '.join(urls)} "):
        quote = await seller.quote(world.account, CLIPS.id, {"prompt": "a fox", "video": text}, {})
        assert quote == listed == Quote(price=120_000, assumed_seconds=120)


async def test_an_order_marks_its_uploads_as_used(world: World, engine: Engine) -> None:
    store = FaultProxy(world.store)
    await make_seller(world, engine, store=store).sell(order(world, values={"prompt": "a fox", "video": FILE}))
    assert store.answered["mark_upload_used"] == 1


# free runs


def free_order(world: World, key: str = "key") -> Order:
    return order(world, model=FREE.id, key=key)


async def test_a_free_run_pays_for_an_order_once(world: World, engine: Engine) -> None:
    seller = make_seller(world, engine, replace(RULES, free_per_day=1))
    first = await seller.sell(free_order(world, "one"))
    second = await seller.sell(free_order(world, "two"))

    assert isinstance(first, Job)
    assert isinstance(second, Job)
    assert (first.price, second.price) == (0, PRICE)


async def test_a_model_that_is_not_free_takes_no_free_run(world: World, engine: Engine) -> None:
    seller = make_seller(world, engine, replace(RULES, free_per_day=1))
    job = await seller.sell(order(world))
    assert isinstance(job, Job)
    assert job.price == PRICE
    assert (await world.store.free_runs(world.account, 1)).left == 1


async def test_a_free_run_from_a_promo_code_pays_when_the_daily_ones_are_used(world: World, engine: Engine) -> None:
    await world.store.create_promo(
        Promo(code="GIFT01", amount=0, runs=1, uses_max=None, per_account=1, until=None), lasting=None, author="op"
    )
    await world.store.use_promo("GIFT01", world.account, "use")
    seller = make_seller(world, engine)
    sold = [await seller.sell(free_order(world, key)) for key in ("one", "two")]
    assert [job.price for job in sold if isinstance(job, Job)] == [0, PRICE]


async def test_two_orders_race_for_the_last_free_run_and_one_gets_it(world: World, engine: Engine) -> None:
    seller = make_seller(world, engine, replace(RULES, free_per_day=1))
    both = asyncio.Barrier(2)

    async def meet() -> None:
        await both.wait()

    sold = await asyncio.gather(
        *(seller.sell(replace(free_order(world, key), agreed_price=0), before_accept=meet) for key in ("one", "two"))
    )

    assert [outcome.price for outcome in sold if isinstance(outcome, Job)] == [0]
    [refused] = [outcome for outcome in sold if isinstance(outcome, NotSold)]
    assert refused.reason is NotSoldReason.FREE_RUN_GONE
    assert await count_jobs(world) == 1
    assert (await world.wallet()).held == 0


API_RULES = replace(RULES, free_per_day=5, per_minute=None, per_hour=None, running_max=1)


async def test_an_order_refused_in_a_race_for_the_last_running_place_returns_its_free_run(
    world: World, engine: Engine
) -> None:
    key = (await world.store.add_api_key(new_key(world.account, 1)))[0].id
    seller = make_seller(world, engine, API_RULES)
    both = asyncio.Barrier(2)

    async def meet() -> None:
        await both.wait()

    sold = await asyncio.gather(
        *(seller.sell(replace(free_order(world, name), api_key_id=key), before_accept=meet) for name in ("one", "two"))
    )

    assert [outcome.price for outcome in sold if isinstance(outcome, Job)] == [0]
    assert [reason(outcome) for outcome in sold if isinstance(outcome, NotSold)] == [NotSoldReason.TOO_MANY_RUNNING]
    assert (await world.store.free_runs(world.account, 5)).left == 4


async def test_an_order_keeps_its_free_run_although_a_request_with_the_same_key_was_refused(
    world: World, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = (await world.store.add_api_key(new_key(world.account, 1)))[0].id
    accept = engine.order

    async def refuse_another(job: NewJob) -> Job:
        await world.store.return_free_run(world.account, job.request_key)
        return await accept(job)

    monkeypatch.setattr(engine, "order", refuse_another)
    sold = await make_seller(world, engine, API_RULES).sell(replace(free_order(world), api_key_id=key))

    assert isinstance(sold, Job)
    assert (await world.store.free_runs(world.account, 5)).left == 4


async def test_an_order_that_lost_its_free_run_asks_for_the_price_first(world: World, engine: Engine) -> None:
    seller = make_seller(world, engine, replace(RULES, free_per_day=1))
    await seller.sell(free_order(world, "one"))
    assert reason(await seller.sell(replace(free_order(world, "two"), agreed_price=0))) is NotSoldReason.DEARER


async def test_a_free_run_of_a_failed_order_is_available_again(world: World, engine: Engine) -> None:
    seller = make_seller(world, engine, replace(RULES, free_per_day=1))
    job = await seller.sell(free_order(world, "one"))
    assert isinstance(job, Job)
    await world.store.end_job(EndJob(job_id=job.id, state=State.FAILED, parts=(), error_code="other"), None)
    again = await seller.sell(free_order(world, "two"))
    assert isinstance(again, Job)
    assert again.price == 0


class CrashingStore:
    """A store after whose nth call the process ends; it counts the calls of one sell."""

    def __init__(self, store: Any, crash_after: int | None = None) -> None:
        self._store = store
        self._crash_after = crash_after
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        target: Callable[..., Awaitable[Any]] = getattr(self._store, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            answer = await target(*arguments, **named)
            self.calls += 1
            if self.calls == self._crash_after:
                raise Crash
            return answer

        return call


async def test_a_crash_between_any_two_lines_neither_loses_nor_doubles_a_free_run(world: World, engine: Engine) -> None:
    """After a crash the order is sold again with its key: one job, its free run, no credits held."""
    values = {"prompt": "a fox", "video": FILE}
    counting = CrashingStore(world.store)
    seller = make_seller(world, engine, replace(RULES, free_per_day=1), counting)
    assert isinstance(await seller.sell(replace(free_order(world, "count"), values=values)), Job)
    assert counting.calls >= 4  # key, wallet and quotas; free runs; the free run; the upload

    for crash_after in range(1, counting.calls + 1):
        rules = replace(RULES, free_per_day=crash_after + 1)  # one free run is left
        wanted = replace(free_order(world, f"key-{crash_after}"), values=values)
        crashing = CrashingStore(world.store, crash_after)
        with pytest.raises(Crash):
            await make_seller(world, engine, rules, crashing).sell(wanted)
        job = await make_seller(world, engine, rules).sell(wanted)
        assert isinstance(job, Job)
        assert job.price == 0
        assert (await world.store.free_runs(world.account, crash_after + 1)).left == 0
    assert await count_jobs(world) == counting.calls + 1
    assert (await world.wallet()).held == 0


async def test_a_crash_after_the_job_was_accepted_gives_that_job(
    world: World, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seller = make_seller(world, engine, replace(RULES, free_per_day=1))
    real = engine.order

    async def crash(order: NewJob) -> Job:
        await real(order)
        raise Crash

    monkeypatch.setattr(engine, "order", crash)
    with pytest.raises(Crash):
        await seller.sell(free_order(world))
    monkeypatch.undo()

    job = await seller.sell(free_order(world))
    assert isinstance(job, Job)
    assert await count_jobs(world) == 1
