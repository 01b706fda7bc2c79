"""Mutants: the simulation finds an engine that is broken in any of these ways."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest

from genlock.api import webhook_sender
from genlock.api.webhook_sender import WebhookSender
from genlock.domain.attempt import AttemptOutcome
from genlock.domain.delivery import Step
from genlock.domain.errors import ChannelOutcomeUnknown, InvalidResult
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.result import Outcome, Report
from genlock.domain.task import TaskOrder
from genlock.domain.update import UpdateState
from genlock.domain.webhook import DeliveryState, WebhookAttempt, WebhookDelivery, sign
from genlock.engine import collect, deliver, failover, operate, progress, submit, updates, worker
from genlock.engine.context import EngineContext
from genlock.engine.refunds import Refunds
from genlock.ports import Placed, Store
from genlock.sandbox.simulation.simulate import run_seed

#: some need hundreds of seeds, which takes minutes on a busy machine
pytestmark = pytest.mark.timeout(600)
SEEDS_MAX = 400

Mutate = Callable[[Store], None]


# in the statements of the store


@dataclass(frozen=True)
class Sql:
    """Replaces a piece of one statement."""

    name: str
    old: str
    new: str

    def __call__(self, store: Store) -> None:
        statements: dict[str, list[str]] = store.session.statements  # type: ignore[attr-defined]
        assert any(self.old in text for text in statements[self.name]), "the statement has changed: adapt the mutant"
        statements[self.name] = [text.replace(self.old, self.new) for text in statements[self.name]]


@dataclass(frozen=True)
class Trigger:
    """Replaces a piece of a trigger of SQLite."""

    name: str
    old: str
    new: str

    def __call__(self, store: Store) -> None:
        connection = store.session.connection  # type: ignore[attr-defined]
        [(text,)] = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", [self.name])
        assert self.old in text, "the trigger has changed: adapt the mutant"
        connection.execute(f"DROP TRIGGER {self.name}")
        connection.execute(text.replace(self.old, self.new))


TOKEN = "lease_token = i.value ->> 'token'"
ABANDONED = (
    "WHEN i.attempt <> j.attempt OR i.attempt > 0 AND j.state = 'queued' AND j.secret_hash IS NULL THEN 'abandoned'"
)
OPEN = "j.state IN ('queued', 'submitting', 'running')"
CAPTURE_EARLY = """
INSERT INTO ledger (key, account_id, job_id, kind, debit, credit, amount, at)
SELECT 'early:' || job_id, account_id, job_id, 'capture', 'held', 'house', price, :now
FROM end_item WHERE verdict = 'won' AND held AND price > 0 AND state = 'succeeded'
"""


def capture_early(store: Store) -> None:
    statements: dict[str, list[str]] = store.session.statements  # type: ignore[attr-defined]
    statements["end_job"].insert(-1, CAPTURE_EARLY)


#: what each mutant breaks, and how
STORE_MUTANTS: dict[str, list[Mutate]] = {
    "begin_submit ignores the token": [Sql("begin_submit", TOKEN, "1 = 1")],
    "save_parts ignores the token": [Sql("save_parts", TOKEN, "1 = 1")],
    "finish_delivery ignores the token": [Sql("finish_delivery", "j.lease_token = i.token", "1 = 1")],
    "reschedule ignores the token": [Sql("reschedule", "lease_token = i.token", "1 = 1")],
    "the intent to submit is not committed": [
        Sql("begin_submit", "state = 'submitting', secret_hash", "secret_hash"),
        Sql("mark_submitted", "state IN ('submitting', 'running')", "state IN ('queued', 'submitting', 'running')"),
    ],
    "the hold is captured on success and on delivery": [capture_early],
    "the hold of a failed job is not released": [
        Sql("end_job", "WHEN i.held AND i.state <> 'succeeded' THEN 'released'", "WHEN 1 = 0 THEN 'released'"),
        Sql("end_job", "verdict = 'won' AND held", "1 = 0 AND held"),
    ],
    "a hold is released without a ledger entry": [
        Sql(
            "end_job",
            "FROM end_item WHERE verdict = 'won' AND held AND state <> 'succeeded'",
            "FROM end_item WHERE 1 = 0",
        ),
    ],
    "a lease never expires": [
        Sql("claim_jobs", "WHERE due_at <= :now", "WHERE due_at <= :now AND lease_owner IS NULL")
    ],
    "the first end does not win": [Sql("end_job", f"WHEN {OPEN} THEN 'won'", "WHEN 1 = 1 THEN 'won'")],
    "a late result is dropped": [
        Sql("end_job", "THEN CASE WHEN j.lease_owner IS NULL THEN 'late' ELSE 'busy' END", "THEN 'duplicate'")
    ],
    "a result after a failure is dropped": [Sql("end_job", "j.state IN ('expired', 'failed')", "j.state = 'expired'")],
    "a result that was found invalid comes again": [Sql("end_job", "j.error_code <> 'broken_result'", "1 = 1")],
    "a late result comes twice": [Sql("end_job", "NOT j.late", "1 = 1")],
    "an unknown delivery is silent": [
        Sql("finish_delivery", "i.delivery = 'unknown' OR value ->> 'attention_code' = 'unknown_delivery'", "1 = 0")
    ],
    "a progress edit is not journaled": [Sql("begin_progress", "progress_message = placeholder", "due_at = due_at")],
    "a resend drops a progress edit": [Sql("resend_job", "ELSE progress_message END", "ELSE NULL END")],
    "the hold of an invalid result is not released": [
        Sql("mark_result_invalid", "CASE WHEN hold_state = 'held' THEN 'released' ELSE hold_state END", "hold_state"),
        Sql("mark_result_invalid", "AND state = 'succeeded' AND hold_state = 'held'", "AND 1 = 0"),
        Sql("mark_result_invalid", "AND j.hold_state = 'held'", "AND 1 = 0"),
    ],
    "a callback is applied without its secret": [Sql("end_job", "j.secret_hash = value ->> 'secret_hash'", "1 = 1")],
    "a callback that ends its job is not stored": [
        Sql("end_job", "FROM end_item WHERE body IS NOT NULL", "FROM end_item WHERE 1 = 0")
    ],
    "a late result is lost while the user is informed": [
        Sql("end_job", "CASE WHEN verdict = 'busy' THEN 'new' ELSE 'done' END", "'done'"),
        Sql("end_job", "CASE WHEN verdict = 'busy' THEN :now + CAST(:hold_seconds * 1000000 AS INTEGER) END", "NULL"),
    ],
    "a callback about another task ends the job": [Sql("end_job", "WHEN i.task_id <> j.task_id OR", "WHEN 1 = 0 AND")],
    "jobs of a crashed instance are not claimed": [Sql("claim_poison_jobs", "WHERE crash_count > 0", "WHERE 1 = 0")],
    "a dead instance's leases are not released": [
        Sql("release_leases", "due_at IS NOT NULL AND lease_owner = :instance", "1 = 0")
    ],
    "a slot is not released": [
        Sql("begin_limited_submit", "j.state IN ('submitting', 'running')", "j.state <> 'queued'"),
        Sql("slots_used", "j.state IN ('submitting', 'running')", "j.state <> 'queued'"),
    ],
    "a slot is taken twice": [Sql("begin_limited_submit", "NOT EXISTS", "EXISTS (SELECT 1) OR NOT EXISTS")],
    # races that the simulation has found in the engine
    "a late result overwrites the message about the failure": [
        Sql("end_job", "placeholder = CASE WHEN i.verdict = 'late' THEN NULL ELSE placeholder END,", ""),
    ],
    "parts of an older row are resent": [Sql("resend_job", "coalesce(:token, lease_token)", "lease_token")],
    "a late result of an abandoned attempt is accepted": [Sql("end_job", ABANDONED, "WHEN 0 THEN 'abandoned'")],
    "what is sent is not recorded": [
        Sql("begin_submit", "i.value ->> 'sent_input'", "NULL"),
        Sql("begin_limited_submit", ":offer, :sent_input", ":offer, NULL"),
    ],
    "a message is left waiting after a resend": [
        Sql("resend_job", "CASE WHEN delivery = 'undeliverable'", "CASE WHEN 1 = 0"),
        Sql("resend_paid_job", "coalesce(progress_message, placeholder)", "progress_message"),
    ],
    "a result that is paid for again holds nothing": [
        Sql("resend_paid_job", "available - j.price, held = held + j.price", "available, held = held")
    ],
    "an order that waits is taken off the list": [
        Sql("clear_attention", "AND delivery IN ('delivered', 'undeliverable', 'unknown')", "")
    ],
    "the orphan of a submit is not matched": [Sql("mark_submitted", "SET state = 'matched'", "SET state = 'done'")],
    "an update that arrives while another is handled is not counted": [
        Sql("store_updates", "waiting = update_queues.waiting + excluded.waiting", "waiting = update_queues.waiting"),
    ],
    "the newest update of a chat is handled first": [
        Sql("settle_updates", "ORDER BY n.id LIMIT 1", "ORDER BY n.id DESC LIMIT 1"),
        Sql("claim_update_queues", "ORDER BY n.id LIMIT 1", "ORDER BY n.id DESC LIMIT 1"),
    ],
    "an erased order takes a late result": [Sql("erase_jobs", "secret_hash = NULL, ", "")],
    "an erasure does not wait for open orders": [Sql("open_jobs_until", "id <= :until", "1 = 0")],
    "orders from after the request are erased": [Sql("erase_jobs", "AND id <= :until", "")],
    "the input of an open order is erased": [
        Sql("erase_inputs", "AND ended_at IS NOT NULL AND due_at IS NULL AND input <> 'null'", "")
    ],
    "a webhook tells of a result before its delivery": [
        Trigger(
            "jobs_webhook_event", "NEW.state = 'succeeded' AND NEW.delivery = 'delivered'", "NEW.state = 'succeeded'"
        )
    ],
    "the end of an expired job is not told to endpoints": [
        Trigger("jobs_webhook_event", "WHEN NEW.state = 'expired' THEN 'job.expired'", "")
    ],
    "later events of a job do not wait for earlier ones": [
        Sql("due_webhook_deliveries", "e.id < d.id", "1 = 0"),
        Sql("settle_webhook_deliveries", "later.id > s.id", "1 = 0"),
    ],
    "two instances hold a job under the same token": [
        Sql("claim_jobs", "lease_token = lease_token + 1", "lease_token = lease_token"),
    ],
    "a heartbeat from before the clock was set back counts": [
        Sql("heartbeat", "SET seen_at = :now WHERE", "SET seen_at = seen_at WHERE"),
    ],
    "a refund outside leaves the credits": [
        Sql("book_external_refund", "available = available - (p.amount - p.owed), debt = debt + p.owed", "debt = debt"),
    ],
    "a refund is debited by both sides": [
        Sql("book_external_refund", "p.state = 'paid'", "p.state <> 'refunded'"),
        Sql("book_external_refund", "payments.state = 'paid'", "payments.state <> 'refunded'"),
    ],
    "a user gets a promo code twice": [Sql("use_promo", "p.per_account", "9")],
    "free runs are not counted": [
        Sql("take_free_run", "used.today < :per_day", "1 = 1"),
        Sql("free_runs", "AND f.source = 'day'", "AND 1 = 0"),
    ],
    "a key spends more than its limit": [Sql("accept_job", "> k.spend_limit", "> 10 * k.spend_limit")],
    "a message of a broadcast is not journaled": [Sql("begin_broadcast_message", "SET sending = 1,", "SET")],
    "a broadcast ends while a recipient is left": [
        Sql("end_broadcast", "NOT EXISTS", "EXISTS (SELECT 1) OR NOT EXISTS")
    ],
    "a broadcast goes on after its stop": [Sql("begin_broadcast_message", "state = 'running'", "1 = 1")],
    "recipients of a crashed sender are left out": [Sql("retake_recipient", "r.due_at <= :now", "1 = 0")],
    "the end of an erasure is told by each instance that finishes it": [
        Sql("kv_replace_by_message", "WHERE changes() = 1", "")
    ],
    "a second request for an erasure is dropped": [
        Sql("kv_put", "DO UPDATE SET value = excluded.value, at = excluded.at", "DO NOTHING")
    ],
}


# in the stages of the engine

ADVANCE, APPLY_REPORT, EDIT, FINISH = worker.advance, collect.apply_report, progress._edit, deliver._finish
WAIT_FOR_CALLBACK = submit._wait_for_callback
NUMBERS = count()


async def finish_before_showing(ctx: EngineContext, job: Job) -> None:
    parts = tuple(replace(part, step=Step.DONE, message=part.message or job.placeholder) for part in job.parts)
    end = await ctx.finish_delivery(job, Delivery.DELIVERED, parts)
    await deliver.DeliveryAttempt(ctx, job).run()
    if end.notice is Notice.DUE:
        await deliver.notify(ctx, job)


async def submit_again(ctx: EngineContext, job: Job) -> None:
    await ctx.reschedule(job, after=1.0, state=State.QUEUED)


async def drop_orphan(ctx: EngineContext, callback: Callback, report: Report) -> None:
    await ctx.store.settle_callback(callback.id, InboxState.DONE, report.task_id)


async def notify_before_journal(ctx: EngineContext, job: Job) -> None:
    await ctx.channels[job.channel].notify(job)
    await ctx.begin_notice(job)


async def send_without_journal(attempt: Any, index: int) -> Placed:
    placed: Placed = await attempt._channel.send(attempt.job, index, attempt.parts[index])
    return placed


async def send_until_answered(attempt: Any, index: int) -> Placed:
    while True:
        try:
            return await send_without_journal(attempt, index)
        except ChannelOutcomeUnknown:
            continue


async def settle_update_before_handling(self: updates.UpdateWorker, queue: Any, update: Any) -> Any:
    settled = await self._store.settle_update(queue, UpdateState.DONE, "", self._ctx.lease)
    if settled is not None:
        await self._handlers[update.bot](update)
    return settled.queue if settled and settled.waiting else None


async def save_nothing(_: Any) -> None:
    """Nothing is journaled between the calls."""


async def do_nothing(*_: object) -> None:
    """The step is left out."""


async def fail_over_unknown(ctx: EngineContext, job: Job, reason: str, **fields: str) -> None:
    """An order whose outcome is unknown goes to another provider."""
    if await failover.has_other_offer(ctx, job):
        await failover._fail_over(ctx, job, AttemptOutcome.REFUSED, reason)
    else:
        await WAIT_FOR_CALLBACK(ctx, job, reason, **fields)


def fail_over_whatever_it_costs(report: Report) -> bool:
    """A failed task that is billed goes to another provider, which bills it again."""
    return report.outcome is Outcome.FAILURE


async def present_order(ctx: EngineContext, job: Job) -> TaskOrder:
    """A task whose answer was lost is searched for by the present catalog and files."""
    return ctx.order_of(job)


async def settle_before_effect(
    ctx: EngineContext,
    job_id: int,
    provider: str,
    report: Report,
    correlation_id: str,
    *,
    callback_id: int | None = None,
    attempt: int | None = None,
) -> Job | None:
    if callback_id is not None:
        await ctx.store.settle_callback(callback_id, InboxState.DONE)
    return await APPLY_REPORT(ctx, job_id, provider, report, correlation_id, attempt=attempt)


def replace_newer(self: worker.Worker, job: Job) -> bool:
    if running := self._jobs.get(job.id):
        running.task.cancel()
    return True


async def ignore_new_lease(ctx: EngineContext, job: Job, on_new_lease: Any = None) -> None:
    """The lease that the end of a job brings is not renewed."""
    del on_new_lease
    await ADVANCE(ctx, job)


async def put_once(_: EngineContext, __: Job) -> None:
    """The end is not put again, whatever progress edit may still take effect."""


async def drop_unknown_edit(ctx: EngineContext, job: Job, age: float, until: float) -> bool:
    """A progress edit counts as over when its caller stops waiting."""
    await EDIT(ctx, job, age, until)
    return True


async def finish_by_delivery(ctx: EngineContext, job: Job, parts: Any, delivery: Delivery, attention: Any) -> None:
    """A delivery that was broken off is not captured, whatever was shown."""
    unshown = tuple(replace(part, step=Step.PUT) if attention else part for part in parts)
    await FINISH(ctx, job, unshown, delivery, attention)


async def show_progress_without_lease(ctx: EngineContext, job: Job, age: float) -> bool:
    """The lease is not renewed before a progress edit, and the edit has no time limit."""
    if job.placeholder and any(age - 2.0 < point <= age for point in progress._progress_points(ctx, job)):
        await ctx.channels[job.channel].progress(job, 0.5, ctx.loop.time() + 60.0)
    return True


async def show_invalid_result(attempt: Any, index: int, invalid: InvalidResult) -> None:
    del invalid
    attempt._set(index, replace(attempt.parts[index], step=Step.DONE))


async def expire_at_once(ctx: EngineContext, job: Job) -> Job | None:
    return await submit.expire(ctx, job, "submit_unknown", "")


async def expire_silently(ctx: EngineContext, job: Job, code: str, text: str) -> None:
    del code, text
    await ctx.reschedule(job, after=None)


FAILURE, HEADERS = WebhookSender._failure, WebhookSender._headers


def deliver_at_first_attempt(self: WebhookSender, *failure: Any) -> WebhookAttempt:
    """A webhook that failed counts as delivered."""
    return replace(FAILURE(self, *failure), state=DeliveryState.DELIVERED)


def name_each_attempt(self: WebhookSender, delivery: WebhookDelivery, *content: Any) -> dict[str, str]:
    """Each attempt to deliver a webhook has an id of its own."""
    return HEADERS(self, replace(delivery, public_id=f"msg_{next(NUMBERS)}"), *content)


STAGE_MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "a delivery is finished before it is shown": (worker, "deliver", finish_before_showing),
    "an unknown submit is repeated": (worker, "settle_unknown", submit_again),
    "an order goes elsewhere after an unknown submit": (submit, "_wait_for_callback", fail_over_unknown),
    "two attempts of an order are billed": (failover, "may_fail_over", fail_over_whatever_it_costs),
    "a lost task is searched for by what would be sent now": (EngineContext, "sent_order", present_order),
    "an unknown submit expires at once": (worker, "settle_unknown", expire_at_once),
    "an orphan is dropped": (collect, "_note_untrusted", drop_orphan),
    "the notice is sent before it is journaled": (deliver, "notify", notify_before_journal),
    "a send is not journaled": (deliver.DeliveryAttempt, "_send", send_without_journal),
    "a send is repeated until it is answered": (deliver.DeliveryAttempt, "_send", send_until_answered),
    "parts are not journaled": (deliver.DeliveryAttempt, "_save", save_nothing),
    "a callback is settled before its effect": (collect, "apply_report", settle_before_effect),
    "the lease of an end is not renewed": (worker, "advance", ignore_new_lease),
    "a job expires without a message": (submit, "expire", expire_silently),
    "an invalid result is shown": (deliver.DeliveryAttempt, "_mark_invalid", show_invalid_result),
    "progress is shown without a lease": (collect, "show_progress", show_progress_without_lease),
    "an end is not put again after late progress": (worker, "put_again", put_once),
    "a progress edit with an unknown outcome is dropped": (progress, "_edit", drop_unknown_edit),
    "a result shown in part is not paid for": (deliver, "_finish", finish_by_delivery),
    "an older lease replaces the work of a newer one": (worker.Worker, "_replace_older", replace_newer),
    "a result that was not paid for is shown again for nothing": (Job, "unpaid", property(lambda _: False)),
    "a refund is made as often as it is asked for": (operate, "refund_key", lambda job_id: f"{job_id}:{next(NUMBERS)}"),
    "a result is used before its user has got it": (Job, "is_received", property(lambda job: job.has_result)),
    "a poison job is tried without end": (worker, "is_poison", lambda _, __: False),
    "an update is settled before it is handled": (updates.UpdateWorker, "_handle", settle_update_before_handling),
    "a webhook is sent once, whatever becomes of it": (WebhookSender, "_failure", deliver_at_first_attempt),
    "an attempt of a webhook has an id of its own": (WebhookSender, "_headers", name_each_attempt),
    "a refund whose answer was lost is left open": (Refunds, "resume", do_nothing),
    "webhooks are signed with another secret": (webhook_sender, "sign", lambda _, *signed: sign(b"another", *signed)),
}


#: the seed to try first, for mutants that not every seed finds: it only saves time, because all other seeds follow
LIKELY_SEEDS = {
    "a heartbeat from before the clock was set back counts": 21,
    "a refund outside leaves the credits": 21,
    "a refund is debited by both sides": 71,
    "a user gets a promo code twice": 46,
    "a refund whose answer was lost is left open": 196,
    "a webhook tells of a result before its delivery": 21,
    "the end of an expired job is not told to endpoints": 21,
    "later events of a job do not wait for earlier ones": 141,
    "a key spends more than its limit": 45,
    "a webhook is sent once, whatever becomes of it": 261,
    "free runs are not counted": 93,
    "an attempt of a webhook has an id of its own": 45,
    "webhooks are signed with another secret": 21,
    "a message of a broadcast is not journaled": 43,
    "a broadcast ends while a recipient is left": 43,
    "a broadcast goes on after its stop": 241,
    "recipients of a crashed sender are left out": 263,
    "the end of an erasure is told by each instance that finishes it": 36,
    "an erased order takes a late result": 150,
    "an erasure does not wait for open orders": 17,
    "orders from after the request are erased": 340,
    "the input of an open order is erased": 264,
    "a second request for an erasure is dropped": 150,
    "a message is left waiting after a resend": 137,
    "a result that is paid for again holds nothing": 137,
    "an order that waits is taken off the list": 37,
    "a result that was not paid for is shown again for nothing": 137,
    "a refund is made as often as it is asked for": 92,
    "an update that arrives while another is handled is not counted": 26,
    "the newest update of a chat is handled first": 26,
    "an update is settled before it is handled": 26,
    "a poison job is tried without end": 24,
    "a slot is not released": 12,
    "a slot is taken twice": 40,
    "a result is used before its user has got it": 53,
    "an unknown submit is repeated": 3,
    "a callback that ends its job is not stored": 3,
    "an order goes elsewhere after an unknown submit": 25,
    "two attempts of an order are billed": 78,
    "a late result of an abandoned attempt is accepted": 47,
    "an invalid result is shown": 8,
    "begin_submit ignores the token": 33,
    "a lease never expires": 11,
    "finish_delivery ignores the token": 106,
    "the hold of an invalid result is not released": 52,
    "a result that was found invalid comes again": 52,
    "a resend drops a progress edit": 20,
    "a callback is applied without its secret": 11,
    "a late result is lost while the user is informed": 10,
    "a callback about another task ends the job": 167,
    "a late result overwrites the message about the failure": 190,
    "parts of an older row are resent": 105,
    "the orphan of a submit is not matched": 56,
    "a progress edit with an unknown outcome is dropped": 20,
    "an older lease replaces the work of a newer one": 266,
    "save_parts ignores the token": 73,
    "reschedule ignores the token": 11,
    "the first end does not win": 1,
    "a late result is dropped": 3,
    "a result after a failure is dropped": 14,
    "a late result comes twice": 30,
    "an unknown delivery is silent": 10,
    "a progress edit is not journaled": 20,
    "a dead instance's leases are not released": 1,
    "an orphan is dropped": 3,
    "a send is not journaled": 11,
    "a send is repeated until it is answered": 11,
    "a callback is settled before its effect": 23,
    "the lease of an end is not renewed": 13,
    "progress is shown without a lease": 8,
    "an end is not put again after late progress": 20,
    "a result shown in part is not paid for": 29,
}


def test_every_likely_seed_belongs_to_a_mutant_and_saves_time_only() -> None:
    assert LIKELY_SEEDS.keys() <= STORE_MUTANTS.keys() | STAGE_MUTANTS.keys()
    assert max(LIKELY_SEEDS.values()) <= SEEDS_MAX, "it would be found without its likely seed, too"


def find(name: str, mutate: Mutate = lambda _: None) -> str:
    """Return the first violated rule and the seed that found it."""
    for seed in (LIKELY_SEEDS.get(name, 1), *range(1, SEEDS_MAX + 1)):
        run = run_seed(seed, mutate=mutate)
        if run.violations:
            return f"seed {seed}: {run.violations[0].rule}"
    return pytest.fail(f"{SEEDS_MAX} seeds did not find it")


@pytest.mark.parametrize("name", STORE_MUTANTS)
def test_a_broken_statement_is_found(name: str, record_property: Callable[[str, object], None]) -> None:
    changes = STORE_MUTANTS[name]

    def mutate(store: Store) -> None:
        for change in changes:
            change(store)

    record_property("found by", find(name, mutate))


@pytest.mark.parametrize("name", STAGE_MUTANTS)
def test_a_broken_stage_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    where, what, broken = STAGE_MUTANTS[name]
    monkeypatch.setattr(where, what, broken)

    record_property("found by", find(name))
