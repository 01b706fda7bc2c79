"""The files of an order go to the provider that makes the attempt, and the order outlives the outage of a storage."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from genlock.domain.errors import ProviderBusy, ProviderError, SubmitRefused, SubmitUnknown
from genlock.domain.job import Job, State
from genlock.domain.money import HoldState
from genlock.domain.offer import Offer
from genlock.domain.task import TaskOrder
from genlock.engine.input_files import FILES_AT_ONCE
from tests.changes import PATIENCE_SECONDS
from tests.engine.provider_files import ADDRESS, DAY, Files, sent
from tests.engine.two_providers import TwoProviders
from tests.engine.world import World, idle


async def test_a_provider_that_has_the_file_is_not_sent_it_again(world: World) -> None:
    files = Files(world)
    await files.send()
    jobs = [await files.order() for _ in range(2)]

    assert [job.state for job in jobs] == [State.RUNNING] * 2
    assert [sent(order) for order in files.two.first.orders] == [[ADDRESS]] * 2
    assert files.first.stored == files.second.stored == []


@pytest.mark.parametrize("error", [SubmitRefused("no_provider_credits"), ProviderBusy(5.0, "no connection", down=True)])
async def test_on_fail_over_the_file_goes_to_the_next_provider(world: World, error: Exception) -> None:
    """The user's order arrives although the provider that was sent the file is down."""
    files = Files(world)
    await files.send()
    files.two.first.faults.add("create", error)
    job = await files.order()
    [order] = files.two.second.orders
    again = await files.order()

    assert (job.state, job.provider) == (State.RUNNING, "other")
    assert len(files.second.stored) == 1, "uploaded once"
    assert sent(order) == files.second.stored
    assert files.second.stored[0].endswith(".png")
    assert json.loads(job.input)["image_urls"] == [ADDRESS], "the order itself names the file by its address"
    assert again.state is State.RUNNING


async def test_a_copy_that_may_expire_before_it_is_read_is_made_again(world: World) -> None:
    files = Files(world)
    await files.send(left=DAY - 60.0)
    await files.order()
    await files.order()

    assert len(files.first.stored) == 1
    assert [sent(order) for order in files.two.first.orders] == [files.first.stored] * 2


async def test_a_provider_whose_storage_is_down_reads_the_copy_of_another(world: World) -> None:
    files = Files(world)
    await files.send()
    files.two.offers.reverse()
    files.second.fault = ProviderError("status 503")
    job = await files.order()

    assert (job.state, job.provider) == (State.RUNNING, "other")
    assert [sent(order) for order in files.two.second.orders] == [[ADDRESS]]


async def test_a_provider_that_cannot_get_the_file_is_passed_over(world: World) -> None:
    """The only other copy is one that it cannot read."""
    files = Files(world, second_is_public=False)
    await files.send(left=0.0)
    files.first.fault = ProviderError("status 503")
    job = await files.order()

    assert (job.state, job.provider, job.attempt) == (State.RUNNING, "other", 1)
    assert files.two.first.orders == []
    assert [sent(order) for order in files.two.second.orders] == [files.second.stored]


async def test_a_file_that_no_provider_gets_ends_the_order_after_a_bounded_number_of_uploads(world: World) -> None:
    files = Files(world)
    await files.send(left=0.0)
    files.first.fault = files.second.fault = ProviderError("status 503")
    job = await files.order(deadline_seconds=3600)
    assert job.state is State.QUEUED
    for _ in range(20):
        await files.retry()
    job = await world.see(job)

    assert (job.state, job.error_code) == (State.FAILED, "file_unreachable")
    assert await world.spent() == 0
    assert files.two.first.orders == files.two.second.orders == []
    assert len(files.first.stored) == len(files.second.stored) == files.two.engine.ctx.rules.stage_attempts


async def test_an_order_waits_while_the_file_cannot_be_read_for_now(world: World) -> None:
    files = Files(world)
    await files.send(left=0.0)
    files.lost = True
    job = await files.order()
    assert (await world.see(job)).state is State.QUEUED
    files.lost = False
    await files.retry()

    assert (await world.see(job)).state is State.RUNNING
    assert len(files.first.stored) == 1


@pytest.mark.parametrize("after_the_record", [False, True])
async def test_a_crash_between_the_upload_and_the_submit_orders_once(world: World, *, after_the_record: bool) -> None:
    files = Files(world)
    await files.send(left=0.0)
    crashed = asyncio.Event()

    async def crash(*_: object) -> None:
        crashed.set()
        raise asyncio.CancelledError

    engine = files.two.engine
    if after_the_record:
        object.__setattr__(engine.ctx, "begin_submit", crash)
    else:
        files.first.fault = asyncio.CancelledError()
    job = await files.order()
    assert job.state is State.QUEUED
    files.first.fault = None
    files.two = TwoProviders(world, files.input)
    files.two.offers = [Offer(provider="fake", model="flux")]
    world.clock.advance(engine.ctx.rules.lease_seconds + 1)
    await files.two.work()

    assert (await world.see(job)).state is State.RUNNING
    assert len(files.two.first.orders) == 1
    assert len(files.first.stored) == (1 if after_the_record else 2)


async def test_a_file_of_another_account_is_left_where_its_url_says(world: World) -> None:
    files = Files(world)
    await files.send(account=world.account + 1, left=0.0)
    await files.order()

    assert [sent(order) for order in files.two.first.orders] == [[ADDRESS]]
    assert files.first.stored == []


async def test_a_picture_made_by_another_order_is_read_at_its_link_while_that_is_new(world: World) -> None:
    """The channel's copy of it is compressed."""
    files = Files(world)
    await files.take_result("image")
    await files.order()
    world.clock.advance(3600.0)
    await files.order()

    assert [sent(order) for order in files.two.first.orders] == [[ADDRESS], files.first.stored]


async def test_a_sound_made_by_another_order_is_uploaded(world: World) -> None:
    """Some models read sounds only from their provider's own storage."""
    files = Files(world)
    await files.take_result("audio")
    await files.order(model="elevenlabs/speech-to-text", input=json.dumps({"audio_url": ADDRESS}))

    assert [order.input()["audio_url"] for order in files.two.first.orders] == files.first.stored
    assert len(files.first.stored) == 1


async def lose_answer(files: Files) -> tuple[Job, list[TaskOrder]]:
    """Submit an order whose answer is lost; return it, and the list of what the provider will be searched for."""
    searched: list[TaskOrder] = []

    async def find(order: TaskOrder, _: object) -> list[object]:
        searched.append(order)
        return []

    files.two.first.faults.add("create", SubmitUnknown("the answer was lost"))
    files.two.first.find = find  # type: ignore[method-assign, assignment]
    return await files.order(), searched


async def search(files: Files) -> None:
    files.world.clock.advance(files.two.engine.ctx.rules.grace_seconds + 1)
    await files.two.work()
    await idle(files.two.engine)


async def test_a_lost_task_is_looked_for_with_the_urls_that_were_sent_though_the_copy_was_renewed(world: World) -> None:
    files = Files(world)
    await files.send(left=0.0)
    job, searched = await lose_answer(files)
    await files.keep("fake", "https://fake/renewed.png", 3 * DAY)
    await search(files)

    [order] = files.two.first.orders
    assert [sent(lookup) for lookup in searched] == [sent(order)] == [files.first.stored]
    assert (await world.see(job)).state is State.EXPIRED


async def test_a_lost_task_is_looked_for_with_the_copy_of_another_provider_that_was_sent(world: World) -> None:
    files = Files(world)
    await files.send(left=0.0)
    await files.keep("other", "https://other/0.png", DAY / 3 + 5.0)
    files.first.fault = ProviderError("status 503")
    _, searched = await lose_answer(files)
    await search(files)

    assert [sent(order) for order in [*files.two.first.orders, *searched]] == [["https://other/0.png"]] * 2


async def test_a_lost_task_is_looked_for_as_it_was_ordered_though_the_catalog_changed(world: World) -> None:
    files = Files(world)
    await files.send()
    files.two.offers = [Offer(provider="fake", model="flux", fixed={"steps": 4})]
    _, searched = await lose_answer(files)
    files.two.offers = [Offer(provider="fake", model="flux-2", fixed={"steps": 8})]
    await search(files)

    [order] = files.two.first.orders
    assert [(lookup.model, lookup.input()) for lookup in searched] == [("flux", order.input())]


async def test_orders_with_one_file_at_once_upload_it_once(world: World) -> None:
    files = Files(world)
    await files.send(left=0.0)
    job = await files.waiting()
    files.first.open.clear()
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        prepared = [group.create_task(files.input.prepare(job, "fake")) for _ in range(2)]
        for _ in range(20):  # enough for both to read the store as often as they do
            await world.store.upload_copies(ADDRESS)
            await asyncio.sleep(0)
        files.first.open.set()

    assert len(files.first.stored) == 1
    assert {task.result() for task in prepared} == {((ADDRESS, files.first.stored[0]),)}


async def test_two_instances_that_upload_one_file_at_once_send_the_same_url(world: World) -> None:
    files = Files(world)
    await files.send(left=0.0)
    job = await files.waiting()
    files.first.together = asyncio.Barrier(2)
    async with asyncio.timeout(PATIENCE_SECONDS):
        one, two = await asyncio.gather(*[each.prepare(job, "fake") for each in (files.input, files.instance())])

    assert len(files.first.stored) == 2
    assert one == two


async def test_a_storage_that_does_not_answer_does_not_stop_the_files_for_others(world: World) -> None:
    files = Files(world)
    addresses = [f"https://fake/{number}.png" for number in range(FILES_AT_ONCE)]
    for address in (ADDRESS, *addresses):
        await files.send(left=0.0, address=address)
    job = await files.waiting()
    files.first.open.clear()
    jobs = [replace(job, input=json.dumps({"image_urls": [address]})) for address in addresses]
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        for other in jobs:
            group.create_task(files.input.prepare(other, "fake"))
        for _ in jobs:
            await files.first.begun.acquire()
        [(_, url)] = await files.input.prepare(job, "other")
        files.first.open.set()

    assert [url] == files.second.stored


async def test_a_provider_whose_storage_takes_too_long_is_passed_over(world: World) -> None:
    files = Files(world, pass_on_seconds=0.01, second_is_public=False)
    await files.send(left=0.0)
    await files.keep("other", "https://other/0.png", DAY)
    files.first.open.clear()
    job = await files.order()

    assert (job.state, job.provider) == (State.RUNNING, "other")
    assert [sent(order) for order in files.two.second.orders] == [["https://other/0.png"]]


async def test_a_provider_that_can_read_no_stored_file_is_passed_over_and_never_sent_a_link(world: World) -> None:
    """The other one stores files that only its own models can read."""
    files = Files(world, first_stores=False, second_is_public=False)
    await files.send(left=0.0)
    job = await files.order()

    assert (job.state, job.provider) == (State.RUNNING, "other")
    assert files.two.first.orders == []
    assert [sent(order) for order in files.two.second.orders] == [files.second.stored]


async def test_an_order_whose_only_provider_can_read_no_stored_file_fails_at_once(world: World) -> None:
    files = Files(world, first_stores=False, second_is_public=False)
    await files.send(left=0.0)
    files.two.offers = files.two.offers[:1]
    job = await files.order()

    assert (job.state, job.error_code) == (State.FAILED, "file_unreachable")
    assert files.two.first.orders == []
    assert files.second.stored == []
    assert await world.spent() == 0


async def test_the_uploads_of_one_order_share_one_time_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of three files takes most of the limit. What was uploaded in time is not sent again."""
    files = Files(world, pass_on_seconds=100.0)
    addresses = [f"https://fake/{number}.png" for number in range(3)]
    for address in (ADDRESS, *addresses):
        await files.send(left=0.0, address=address)
    job = replace(await files.waiting(), input=json.dumps({"image_urls": addresses}))
    loop = asyncio.get_running_loop()
    real = loop.time
    with monkeypatch.context() as slow:
        slow.setattr(loop, "time", lambda: real() + 60.0 * len(files.first.stored))
        with pytest.raises(ProviderError, match="took too long"):
            await files.input.prepare(job, "fake")

    assert len(files.first.stored) == 2, "no third upload begins"
    urls = await files.input.prepare(job, "fake")
    assert [url for _, url in urls] == files.first.stored


async def test_an_order_whose_deadline_passes_during_the_upload_is_not_submitted(world: World) -> None:
    files = Files(world)
    await files.send(left=0.0)
    ctx, loop = files.two.engine.ctx, asyncio.get_running_loop()

    class LaterLoop:
        """The event loop after the upload took eleven minutes."""

        def time(self) -> float:
            return loop.time() + 660.0 * len(files.first.stored)

        def __getattr__(self, name: str) -> Any:
            return getattr(loop, name)

    ctx.__dict__["loop"] = LaterLoop()
    job = await files.order(deadline_seconds=600)

    assert len(files.first.stored) == 1
    assert (job.state, job.error_code) == (State.EXPIRED, "deadline")
    assert files.two.first.orders == files.two.second.orders == []
    assert await world.spent() == 0


@pytest.mark.parametrize(("left", "provider"), [(600.0 + 3600.0 + 60.0, "fake"), (600.0 + 3600.0 - 60.0, "other")])
async def test_a_copy_that_cannot_be_made_again_is_used_if_it_outlives_the_order(
    world: World, left: float, provider: str
) -> None:
    files = Files(world)
    await files.send(left=left)
    files.first.fault = ProviderError("status 503")
    job = await files.order(deadline_seconds=600)

    assert (job.state, job.provider) == (State.RUNNING, provider)
    assert [sent(order) for order in files.two.first.orders] == ([[ADDRESS]] if provider == "fake" else [])


async def test_a_provider_that_refused_the_order_is_not_asked_again_because_the_next_gets_no_file(world: World) -> None:
    files = Files(world, second_is_public=False)
    await files.send(left=0.0)
    files.two.offers.reverse()
    files.first.fault = ProviderError("status 503")
    files.two.second.faults.add("create", SubmitRefused("no_provider_credits"))
    job = await files.order(deadline_seconds=3600)
    for _ in range(20):
        await files.retry()
    job = await world.see(job)

    assert len(files.two.second.orders) == 1
    assert (job.state, job.error_code) == (State.FAILED, "file_unreachable")
    assert job.hold_state is HoldState.RELEASED
