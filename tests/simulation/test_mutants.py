"""The checker can fail: an engine broken in any of these ways is found out by the simulation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from genlock.domain.delivery import Step
from genlock.domain.errors import ChannelOutcomeUnknown, InvalidResult
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.result import Report
from genlock.engine import collect, deliver, progress, submit, worker
from genlock.engine.context import EngineContext
from genlock.ports import FinishDelivery, Placed, Reschedule, Store
from genlock.sandbox.simulation.simulate import run_seed

#: some are found by hundreds of seeds only, which takes its time on a busy machine
pytestmark = pytest.mark.timeout(600)
SEEDS_MAX = 300

Tamper = Callable[[Store], None]


# in the statements of the store


@dataclass(frozen=True)
class Sql:
    """A statement with one piece replaced by another."""

    name: str
    old: str
    new: str

    def __call__(self, store: Store) -> None:
        statements: dict[str, list[str]] = store.session.statements  # type: ignore[attr-defined]
        assert any(self.old in text for text in statements[self.name]), "the statement has changed: so must the mutant"
        statements[self.name] = [text.replace(self.old, self.new) for text in statements[self.name]]


TOKEN = "lease_token = i.value ->> 'token'"
OPEN = "j.state IN ('queued', 'submitting', 'running')"
CAPTURE_EARLY = """
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'early:' || job_id, account_id, job_id, 'capture', 'held', 'house', price, :now
FROM end_item WHERE verdict = 'won' AND held AND price > 0 AND state = 'succeeded'
"""


def capture_early(store: Store) -> None:
    statements: dict[str, list[str]] = store.session.statements  # type: ignore[attr-defined]
    statements["end"].insert(-1, CAPTURE_EARLY)


#: what each mutant breaks, and how
STORE_MUTANTS: dict[str, list[Tamper]] = {
    "no fence before the submit": [Sql("begin_submit", TOKEN, "1 = 1")],
    "no fence around a part": [Sql("save_parts", TOKEN, "1 = 1")],
    "no fence at the end of a delivery": [Sql("finish", "j.lease_token = i.token", "1 = 1")],
    "no fence when a job is given back": [Sql("wait", "lease_token = i.token", "1 = 1")],
    "no intent before the submit": [
        Sql("begin_submit", "state = 'submitting', secret_hash", "secret_hash"),
        Sql("submitted", "state IN ('submitting', 'running')", "state IN ('queued', 'submitting', 'running')"),
    ],
    "captured on success and on delivery": [capture_early],
    "a failure's money stays held": [
        Sql("end", "WHEN i.held AND i.state <> 'succeeded' THEN 'released'", "WHEN 1 = 0 THEN 'released'"),
        Sql("end", "verdict = 'won' AND held", "1 = 0 AND held"),
    ],
    "a failure's money is given back without a line in the ledger": [
        Sql(
            "end", "FROM end_item WHERE verdict = 'won' AND held AND state <> 'succeeded'", "FROM end_item WHERE 1 = 0"
        ),
    ],
    "a lease never expires": [Sql("claim", "WHERE due_at <= :now", "WHERE due_at <= :now AND lease_owner IS NULL")],
    "the first end does not win": [Sql("end", f"WHEN {OPEN} THEN 'won'", "WHEN 1 = 1 THEN 'won'")],
    "a late result is dropped": [
        Sql("end", "THEN CASE WHEN j.lease_owner IS NULL THEN 'late' ELSE 'busy' END", "THEN 'duplicate'")
    ],
    "a page's money stays held": [
        Sql("spoil", "CASE WHEN hold_state = 'held' THEN 'released' ELSE hold_state END", "hold_state"),
        Sql("spoil", "AND state = 'succeeded' AND hold_state = 'held'", "AND 1 = 0"),
        Sql("spoil", "AND j.hold_state = 'held'", "AND 1 = 0"),
    ],
    "a callback is believed without its secret": [Sql("end", "j.secret_hash = value ->> 'secret_hash'", "1 = 1")],
    "a callback that ends its job is not kept": [
        Sql("end", "FROM end_item WHERE body IS NOT NULL", "FROM end_item WHERE 1 = 0")
    ],
    "a late result is forgotten while the person is told": [
        Sql("end", "CASE WHEN verdict = 'busy' THEN 'new' ELSE 'done' END", "'done'"),
        Sql("end", "CASE WHEN verdict = 'busy' THEN :now + CAST(:hold_seconds * 1000000 AS INTEGER) END", "NULL"),
    ],
    "a callback about another task ends the job": [Sql("end", "WHEN i.task_id <> j.task_id OR", "WHEN 1 = 0 AND")],
    "what an instance died with is not taken up": [Sql("claim_poison_jobs", "WHERE crash_count > 0", "WHERE 1 = 0")],
    "a rescue forgets the jobs": [Sql("rescue", "due_at IS NOT NULL AND lease_owner = :instance", "1 = 0")],
    # races of two in a narrow window, which the simulation found in the engine
    "a late result on the message of the words": [
        Sql("end", "placeholder = CASE WHEN i.verdict = 'late' THEN NULL ELSE placeholder END,", ""),
    ],
    "a resend of parts that are over": [Sql("resend", "coalesce(:token, lease_token)", "lease_token")],
    "a submit's orphan is not looked at": [Sql("submitted", "SET state = 'matched'", "SET state = 'done'")],
}


# in the stages of the engine

ADVANCE, CONCLUDE = worker.advance, collect.conclude


async def delivered_before_sent(ctx: EngineContext, job: Job) -> None:
    parts = tuple(replace(part, step=Step.DONE, message=part.message or job.placeholder) for part in job.parts)
    finish = FinishDelivery(job_id=job.id, token=job.lease_token, delivery=Delivery.DELIVERED, parts=parts)
    done = await ctx.store.finish_delivery(finish, ctx.lease)
    ctx.fenced(done, job)
    await deliver._Showing(ctx, job).all()
    if done and done.notice is Notice.DUE:
        await deliver.notify(ctx, job)


async def blindly_again(ctx: EngineContext, job: Job) -> None:
    wait = Reschedule(job_id=job.id, token=job.lease_token, after=1.0, state=State.QUEUED)
    ctx.fenced(await ctx.store.reschedule(wait), job)


async def drop_orphan(ctx: EngineContext, callback: Callback, report: Report) -> None:
    await ctx.store.settle_callback(callback.id, InboxState.DONE, report.task_id)


async def notice_before_journal(ctx: EngineContext, job: Job) -> None:
    await ctx.channels[job.channel].notify(job)
    ctx.fenced(await ctx.store.begin_notice(job.id, job.lease_token), job)


async def send_without_journal(showing: Any, index: int) -> Placed:
    placed: Placed = await showing._channel.send(showing.job, index, showing.parts[index])
    return placed


async def send_until_answered(showing: Any, index: int) -> Placed:
    while True:
        try:
            return await send_without_journal(showing, index)
        except ChannelOutcomeUnknown:
            continue


async def forget_parts(_: Any) -> None:
    """Nothing is journaled between the calls."""


async def settle_first(
    ctx: EngineContext,
    job_id: int,
    report: Report,
    correlation_id: str,
    *,
    callback_id: int | None = None,
    holder: Job | None = None,
) -> Job | None:
    if callback_id is not None:
        await ctx.store.settle_callback(callback_id, InboxState.DONE)
    return await CONCLUDE(ctx, job_id, report, correlation_id, holder=holder)


def take_any(self: worker.Worker, job: Job) -> bool:
    if entry := self._jobs.get(job.id):
        entry[2].cancel()
    return True


async def never_hold(ctx: EngineContext, job: Job, hold: Any = None) -> None:
    """The lease that the end of a job brings is nobody's to renew."""
    del hold
    await ADVANCE(ctx, job)


async def never_again(_: Any) -> None:
    """What was put once stays as it is, whatever is still on the wire."""


async def unfenced_progress(ctx: EngineContext, job: Job, age: float) -> None:
    """Nobody looks whether the job is still theirs, or how long that look was ago."""
    if job.placeholder and any(age - 2.0 < moment <= age for moment in progress._progress_points(ctx, job)):
        await ctx.channels[job.channel].progress(job, 0.5, ctx.loop.time() + 60.0)


async def page_is_shown(showing: Any, index: int, broken: InvalidResult) -> None:
    del broken
    showing._set(index, replace(showing.parts[index], step=Step.DONE))


async def hurry(ctx: EngineContext, job: Job) -> Job | None:
    return await submit.give_up(ctx, job, "submit_unknown", "")


async def give_up_in_silence(ctx: EngineContext, job: Job, code: str, text: str) -> None:
    del code, text
    wait = Reschedule(job_id=job.id, token=job.lease_token, after=None)
    ctx.fenced(await ctx.store.reschedule(wait), job)


STAGE_MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "delivered before sent": (worker, "deliver", delivered_before_sent),
    "an unknown submit is made again": (worker, "settle_unknown", blindly_again),
    "an unknown submit is given up at once": (worker, "settle_unknown", hurry),
    "an orphan is dropped": (collect, "_hint", drop_orphan),
    "the notice before its journal": (deliver, "notify", notice_before_journal),
    "a send without a journal": (deliver._Showing, "_send", send_without_journal),
    "a send repeated until it is answered": (deliver._Showing, "_send", send_until_answered),
    "parts that are not journaled": (deliver._Showing, "_save", forget_parts),
    "a callback settled before its effect": (collect, "conclude", settle_first),
    "the lease of an end is not held": (worker, "advance", never_hold),
    "given up in silence": (submit, "give_up", give_up_in_silence),
    "a page taken for a result": (deliver._Showing, "_spoil", page_is_shown),
    "progress without a lease": (collect, "show", unfenced_progress),
    "a result is not put again over late progress": (deliver._Showing, "_assert_again", never_again),
    "an overtaken answer replaces newer work": (worker.Worker, "_replace", take_any),
}


def find(tamper: Tamper = lambda _: None) -> str:
    """The first rule found broken, and the seed that showed it."""
    for seed in range(1, SEEDS_MAX + 1):
        run = run_seed(seed, tamper=tamper)
        if run.violations:
            return f"seed {seed}: {run.violations[0].rule}"
    return pytest.fail(f"{SEEDS_MAX} seeds have not found it")


@pytest.mark.parametrize("name", STORE_MUTANTS)
def test_a_broken_statement_is_found_out(name: str, record_property: Callable[[str, object], None]) -> None:
    changes = STORE_MUTANTS[name]

    def tamper(store: Store) -> None:
        for change in changes:
            change(store)

    record_property("found by", find(tamper))


@pytest.mark.parametrize("name", STAGE_MUTANTS)
def test_a_broken_stage_is_found_out(
    name: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    where, what, broken = STAGE_MUTANTS[name]
    monkeypatch.setattr(where, what, broken)

    record_property("found by", find())
