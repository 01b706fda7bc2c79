"""Circuit breakers: counted in the store for all instances, opened, tried again by one order, reset."""

from genlock.domain.breaker import OPEN_SECONDS, OPEN_SECONDS_MAX, BreakerState
from genlock.ports import Store
from tests.stores.builders import ManualClock


async def fail(store: Store, times: int = 1, threshold: int = 3, model: str = "") -> None:
    for _ in range(times):
        await store.count_failure("kie", model, threshold, "provider_down")


async def test_a_breaker_opens_after_failures_in_a_row_and_for_twice_as_long_each_time(
    store: Store, clock: ManualClock
) -> None:
    await fail(store, 2)
    [breaker] = await store.breakers()
    assert (breaker.failures, breaker.state(clock.now())) == (2, BreakerState.CLOSED)
    assert not await store.take_probe("kie", "")

    await fail(store)
    seconds = OPEN_SECONDS
    for _ in range(8):
        [breaker] = await store.breakers()
        assert breaker.open_until is not None
        assert (breaker.open_until - clock.now()).total_seconds() == seconds
        assert breaker.state(clock.now()) is BreakerState.OPEN
        assert not await store.take_probe("kie", ""), "too early"
        await fail(store)
        assert (await store.breakers())[0].open_until == breaker.open_until, "a straggler does not prolong the pause"
        clock.advance(seconds)
        assert breaker.state(clock.now()) is BreakerState.HALF_OPEN
        assert [await store.take_probe("kie", ""), await store.take_probe("kie", "")] == [True, False]
        await fail(store)
        seconds = min(seconds * 2, OPEN_SECONDS_MAX)


async def test_a_trial_that_never_ended_is_made_again(store: Store, clock: ManualClock) -> None:
    await fail(store, threshold=1)
    clock.advance(OPEN_SECONDS)
    assert await store.take_probe("kie", "")
    clock.advance(121)
    assert await store.take_probe("kie", "")


async def test_a_closed_breaker_without_failures_for_a_while_begins_to_count_again(
    store: Store, clock: ManualClock
) -> None:
    await fail(store, 2)
    clock.advance(601)
    await fail(store)
    [breaker] = await store.breakers()
    assert (breaker.failures, breaker.open_until) == (1, None)


async def test_a_reset_is_for_one_model_or_the_whole_provider(store: Store) -> None:
    await fail(store)
    await fail(store, model="one")
    await fail(store, model="two")

    assert await store.reset_breakers("kie", "one") == 1
    assert [breaker.model for breaker in await store.breakers()] == ["", "two"]
    assert await store.reset_breakers("other") == 0
    assert await store.reset_breakers("kie") == 2
    assert await store.breakers() == []
