"""Figures by hour on both databases: buckets, marks of later changes, what may still be committed, instances."""

from datetime import timedelta

from genlock.domain.attempt import AttemptOutcome
from genlock.domain.delivery import again
from genlock.domain.figures import DURATION_BOUNDS, hour_number, hour_start
from genlock.domain.job import Job, State, Verdict
from genlock.domain.money import EntryKind
from genlock.ports import FailedAttempt, Role, SetKey
from genlock.stores.database import SqlDatabase
from genlock.stores.hourly_figures import BLOCK_JOBS, COMMIT_SECONDS, RECHECK_SECONDS, SETTLED_SECONDS
from tests.stores.builders import RESULT, ManualClock, account_with, claimed, delivered, end, finish, queued, running
from tests.stores.conftest import Raw

EVER = (0, 10**6)


async def the_role(store: SqlDatabase) -> Role:
    return await store.take_role("active", "me", 60.0)


async def fold(store: SqlDatabase, job: Job) -> None:
    assert await store.fold_jobs((job.id - 1) // BLOCK_JOBS, await the_role(store))


async def sold(store: SqlDatabase, *, cost: int) -> Job:
    """A job that was delivered, paid for and needs no more work."""
    job = (await end(store, await running(store, notice=False), State.SUCCEEDED, cost=cost)).job
    assert job
    assert await finish(store, job)
    return job


async def test_a_duration_is_in_the_bucket_that_begins_with_it(store: SqlDatabase, clock: ManualClock) -> None:
    wanted = {0.01: 0, DURATION_BOUNDS[0]: 1, 1.0: 7, 44.9: 16, 45.0: 17, 1e6: len(DURATION_BOUNDS)}
    job = None
    for seconds in wanted:
        job = await running(store, model=f"after {seconds}")
        clock.advance(seconds)
        ended = (await end(store, job, State.SUCCEEDED)).job
        assert ended
        await finish(store, ended)
    assert job
    await fold(store, job)

    found = await store.model_durations(*EVER)

    assert found == {("kie", f"after {seconds}"): {bucket: 1} for seconds, bucket in wanted.items()}
    assert await store.delivery_durations(*EVER) == {0: len(wanted)}


async def test_a_result_that_is_sent_again_days_later_was_not_days_on_its_way(
    store: SqlDatabase, clock: ManualClock
) -> None:
    _fast, resent = await delivered(store), await delivered(store)
    await fold(store, resent)
    assert await store.delivery_durations(*EVER) == {0: 2}
    clock.advance(3 * 86_400)

    assert await store.resend_job(resent.id, again(RESULT))
    assert await finish(store, await claimed(store, resent), parts=again(RESULT))
    await fold(store, resent)

    assert await store.delivery_durations(*EVER) == {0: 1}
    assert [found.figures.delivered for found in await store.model_figures(*EVER)] == [2]


async def test_a_job_that_was_done_leaves_a_mark_when_it_changes(store: SqlDatabase, clock: ManualClock) -> None:
    done, waiting = await delivered(store, notice=False), await queued(store)
    clock.advance(SETTLED_SECONDS + 1)
    await fold(store, waiting)
    assert await store.due_job_blocks(10) == []

    assert await store.resend_job(done.id, again(RESULT))

    assert await store.due_job_blocks(10) == [(done.id - 1) // BLOCK_JOBS]
    await fold(store, done)
    assert await store.due_job_blocks(10) == []


async def test_orders_that_have_ended_are_counted_once_more_and_open_ones_again_and_again(
    store: SqlDatabase, clock: ManualClock
) -> None:
    done = await delivered(store, notice=False)
    await fold(store, done)
    clock.advance(RECHECK_SECONDS + 1)
    assert await store.due_job_blocks(10) == []
    clock.advance(SETTLED_SECONDS)
    due = await store.due_job_blocks(10)
    assert due == [(done.id - 1) // BLOCK_JOBS], "an order with a lower number may have been committed since"
    await fold(store, done)
    clock.advance(100 * SETTLED_SECONDS)
    assert await store.due_job_blocks(10) == []

    waiting = await queued(store)
    await fold(store, waiting)
    clock.advance(RECHECK_SECONDS + 1)

    assert await store.due_job_blocks(10) == [(waiting.id - 1) // BLOCK_JOBS]


async def test_a_cost_that_is_reported_after_the_deadline_leaves_a_mark(store: SqlDatabase, clock: ManualClock) -> None:
    job = await running(store, deadline_seconds=1.0, notice=False)
    cancelled = (await end(store, job, State.CANCELLED)).job
    assert cancelled
    clock.advance(5.0)
    assert await finish(store, cancelled)
    clock.advance(SETTLED_SECONDS + 1)
    await fold(store, job)
    assert await store.due_job_blocks(10) == []

    await end(store, job, State.SUCCEEDED, task_id=job.task_id, cost=70)

    assert await store.due_job_blocks(10) == [(job.id - 1) // BLOCK_JOBS]
    await fold(store, job)
    assert [
        (model_figures.figures.cost, model_figures.figures.loss) for model_figures in await store.model_figures(*EVER)
    ] == [(70, 70)]


async def test_a_refund_by_an_operator_is_subtracted_from_the_revenue_of_its_order(
    store: SqlDatabase, clock: ManualClock
) -> None:
    refunded, kept = await sold(store, cost=40), await sold(store, cost=40)
    clock.advance(SETTLED_SECONDS + 1)
    await fold(store, kept)
    assert await store.due_job_blocks(10) == []
    before = [model_figures.figures for model_figures in await store.model_figures(*EVER)]
    assert [(figures.revenue, figures.refunded, figures.loss) for figures in before] == [(2 * kept.price, 0, 0)]

    for _ in range(2):
        await store.transfer(refunded.account_id, EntryKind.REFUND, refunded.price, f"refund:{refunded.id}")
    await store.transfer(kept.account_id, EntryKind.REFUND, 5, "refund:charge:0:done")

    assert await store.due_job_blocks(10) == [(refunded.id - 1) // BLOCK_JOBS]
    await fold(store, refunded)
    assert await store.due_job_blocks(10) == []
    after = [model_figures.figures for model_figures in await store.model_figures(*EVER)]
    assert [(figures.revenue, figures.refunded, figures.loss) for figures in after] == [(kept.price, 1, 40)]

    await store.clear_figures()
    await fold(store, kept)
    assert [model_figures.figures for model_figures in await store.model_figures(*EVER)] == after


async def test_a_refund_counts_once_in_parts_beside_each_other(store: SqlDatabase) -> None:
    """The ranges of ids in which their jobs are searched overlap."""
    job = await sold(store, cost=40)
    await store.transfer(job.account_id, EntryKind.REFUND, job.price, f"refund:{job.id}")
    since, edge = job.created_at - timedelta(seconds=20), job.created_at + timedelta(seconds=10)

    first, second = await store.part_models([(since, edge), (edge, edge + timedelta(seconds=20))])

    assert [(model_figures.figures.revenue, model_figures.figures.refunded) for model_figures in first] == [(0, 1)]
    assert second == []


async def test_a_block_that_an_older_version_counted_is_counted_again_by_quarters(
    store: SqlDatabase, clock: ManualClock, raw: Raw
) -> None:
    clock.advance(1000)  # into the second quarter of an hour
    job = await sold(store, cost=40)
    clock.advance(SETTLED_SECONDS + 1)
    await fold(store, job)
    hour = hour_start(hour_number(job.created_at))
    quarters = [
        (hour + timedelta(minutes=15 * quarter), hour + timedelta(minutes=15 * quarter + 15)) for quarter in range(4)
    ]
    parts = await store.part_orders(quarters)
    assert [sum(model_figures.figures.orders for model_figures in part.providers) for part in parts] == [0, 1, 0, 0]
    assert await store.due_job_blocks(10) == []

    await raw("DELETE FROM quarter_figures")
    await raw("UPDATE figure_blocks SET quarters_at = NULL")
    assert await store.due_job_blocks(10) == [(job.id - 1) // BLOCK_JOBS]
    await fold(store, job)

    assert await store.part_orders(quarters) == parts
    assert await store.due_job_blocks(10) == []


async def test_a_block_with_open_jobs_is_counted_again_less_and_less_often(
    store: SqlDatabase, clock: ManualClock
) -> None:
    job = await queued(store)
    await fold(store, job)
    pauses = []
    for _ in range(4):
        pause = 0
        while not await store.due_job_blocks(10):
            clock.advance(1.0)
            pause += 1
        pauses.append(pause)
        clock.advance(1000.0)
        await fold(store, job)

    assert pauses[0] <= 10
    assert pauses == sorted(pauses)
    assert pauses[-1] > 300


async def test_a_payment_whose_state_changes_has_its_hour_counted_again(store: SqlDatabase, clock: ManualClock) -> None:
    hour, role = hour_number(clock.now()), await the_role(store)
    account_id = await account_with(store, 0)
    for charge in ("one", "two"):
        assert await store.transfer(account_id, EntryKind.TOPUP, 500, charge)
        assert await store.add_payment(charge, account_id, 50, 500)
        clock.advance(1.0)
    await store.fold_topups(hour, role)
    assert (await store.topup_figures(*EVER))[hour].repeated == 1
    assert await store.changed_topup_hours(10) == []

    assert await store.begin_refund("two", "asked")

    assert await store.changed_topup_hours(10) == [hour]
    await store.fold_topups(hour, role)
    assert await store.changed_topup_hours(10) == []
    found = (await store.topup_figures(*EVER))[hour]
    assert (found.topups, found.paid_amount, found.refunds, found.refunded_amount) == (1, 50, 1, 50)


async def test_rows_before_which_others_may_still_be_committed_are_not_returned(
    store: SqlDatabase, clock: ManualClock
) -> None:
    account_id = await account_with(store)
    first = await queued(store, account_id=account_id)
    clock.advance(COMMIT_SECONDS / 2)
    second = await queued(store, account_id=account_id)
    assert await store.orders_after(0, 10) == []
    assert await store.accounts_after(0, 10) == []

    clock.advance(COMMIT_SECONDS / 2 + 0.1)
    assert [(order.job_id, order.first) for order in await store.orders_after(0, 10)] == [(first.id, True)]
    assert [row.account_id for row in await store.accounts_after(0, 10)] == [account_id]

    clock.advance(COMMIT_SECONDS)
    orders = await store.orders_after(0, 10)
    assert [(order.job_id, order.first) for order in orders] == [(first.id, True), (second.id, False)]
    assert await store.orders_after(second.id, 10) == []


async def test_a_set_of_accounts_is_written_with_its_position_or_not_at_all(store: SqlDatabase) -> None:
    role = await the_role(store)
    key = SetKey(kind="active", span="day", start=3, bot="бот", piece=1)
    assert await store.save_account_sets("orders", "", "7", {key: 0b101}, role)
    assert await store.account_sets([key]) == {key: 0b101}

    assert not await store.save_account_sets("orders", "6", "9", {key: 0b111}, role)

    assert await store.account_sets([key]) == {key: 0b101}
    assert await store.figure_position("orders") == "7"
    assert len(await store.account_set("active", 72, 96)) == 2
    assert len(await store.account_set("active", 73, 96)) == 0


async def test_instances_tell_their_version_and_who_is_active(store: SqlDatabase, clock: ManualClock) -> None:
    for name in ("one", "me"):
        await store.heartbeat(name, 10.0)
        await store.describe_instance(name, "1.2.3")
        clock.advance(1.0)
    await the_role(store)

    found = [
        (instance.id, instance.version, instance.active, round(instance.silent_seconds, 3))
        for instance in await store.instances()
    ]

    assert found == [("one", "1.2.3", False, 2.0), ("me", "1.2.3", True, 1.0)]


async def test_the_late_cost_of_an_attempt_that_was_given_up_is_a_loss_at_its_own_provider(
    store: SqlDatabase, clock: ManualClock
) -> None:
    job = await running(store, "first task", notice=False)
    failed = FailedAttempt(
        job_id=job.id,
        attempt=1,
        outcome=AttemptOutcome.FAILED,
        error_code="provider_failed",
        task_id="first task",
        cost=0,
    )
    await fold(store, job)
    assert await store.fail_over(failed)
    claim = await claimed(store, job)
    assert await store.begin_submit(job.id, claim.lease_token, "second", None, "other", "other/model")
    await fold(store, job)
    hour = hour_start(hour_number(job.created_at))
    [part] = await store.part_orders([(hour, hour + timedelta(hours=1))])
    assert [(model_figures.provider, model_figures.figures.orders) for model_figures in part.providers] == [
        ("other", 1)
    ]
    assert await store.mark_submitted(job.id, claim.lease_token, "second task", 5.0)
    won = (await end(store, job, State.SUCCEEDED, task_id="second task", attempt=2, cost=70)).job
    assert won
    assert await finish(store, won)
    clock.advance(SETTLED_SECONDS + 1)
    await fold(store, job)
    assert await store.due_job_blocks(10) == []

    for _ in range(2):
        late = await end(store, job, State.SUCCEEDED, task_id="first task", attempt=1, cost=30)
        assert late.verdict is Verdict.ABANDONED
    assert await store.due_job_blocks(10) == [(job.id - 1) // BLOCK_JOBS]
    await fold(store, job)
    await fold(store, job)

    found = {model_figures.provider: model_figures.figures for model_figures in await store.model_figures(*EVER)}
    assert (found["kie"].orders, found["kie"].cost, found["kie"].loss) == (0, 30, 30)
    assert (found["other"].orders, found["other"].cost, found["other"].loss) == (1, 70, 0)
    assert found["other"].revenue == job.price, "the user pays the price once"
    assert (await store.wallet(job.account_id)).held == 0
    assert await store.violations(settled=False) == []
