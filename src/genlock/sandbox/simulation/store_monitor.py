"""Watches what the database answers to simulated instances, and records what the checker compares at the end."""

from typing import Any

from genlock.domain.delivery import shown_results
from genlock.domain.job import AttentionCode, Delivery, Job, State, Verdict
from genlock.domain.money import EntryKind
from genlock.ports import Accepted, EndJob, JobEnd
from genlock.sandbox.simulation.world import World

#: calls whose first arguments are the job and the token
_FENCED = (
    "begin_submit",
    "begin_limited_submit",
    "mark_submitted",
    "begin_progress",
    "save_parts",
    "begin_notice",
    "renew_lease",
    "change_address",
    "mark_result_invalid",
)
#: an instance may have decided by the time before the clock was set
DECISION_SECONDS = 30.0


class StoreMonitor:
    """Checks the database's answers: no token may be accepted after a higher one was given out."""

    def __init__(self, world: World, grace_seconds: float) -> None:
        self._world = world
        self._truth = world.truth
        self._grace = grace_seconds

    def stale(self, name: str, args: tuple[Any, ...]) -> bool:
        """Whether this call names a token that has been replaced by a higher one."""
        job_id, token = _fence(name, args)
        return token is not None and token < self._truth.tokens[job_id]

    def check_answer(self, name: str, args: tuple[Any, ...], answer: Any, *, stale: bool, **options: Any) -> None:
        job_id, _ = _fence(name, args)
        if stale and _effective(answer):
            self._truth.add_violation(
                "A write with a stale token changes nothing.", job_id, f"{name} was accepted with a stale token"
            )
        for job in _leased(answer):
            self._truth.tokens[job.id] = max(self._truth.tokens[job.id], job.lease_token)
            self._check_holder(job)
        if name == "heartbeat":
            self._truth.registered.add(args[0])
        if name == "release_leases" and len(args) == 1:
            self._truth.registered.discard(args[0])
        self._record_operator(name, args, answer)
        if name in ("begin_submit", "begin_limited_submit") and answer:
            if args[3]:
                self._truth.placeholders[job_id].add(args[3])
            self._truth.submits[job_id] = self._world.loop.time()
            self._truth.submitted_to[job_id] = options.get("provider") or args[4]
        if _leaves_its_provider(name, args, answer):
            self._truth.submitted_to.pop(job_id or args[0], None)
        if name == "end_job" and isinstance(answer, JobEnd) and answer.verdict is Verdict.WON and answer.job:
            self._check_end(args[0], answer.job)
        self._record_delivery(name, job_id, args, answer)
        for watch in self._truth.watchers:
            watch(name, args, answer)

    def _check_holder(self, job: Job) -> None:
        """Check that a lease is held by the instance that got its token, and by no other."""
        holder = self._truth.holders.setdefault((job.id, job.lease_token), job.lease_owner or "")
        if job.lease_owner and not holder:
            self._truth.holders[job.id, job.lease_token] = job.lease_owner
        elif job.lease_owner and holder != job.lease_owner:
            detail = f"token {job.lease_token} was given to {holder} and {job.lease_owner}"
            self._truth.add_violation("A lease has one holder.", job.id, detail)

    def _record_operator(self, name: str, args: tuple[Any, ...], answer: Any) -> None:
        """Record what operators, and users who press Show again, did to a job."""
        if name in ("resend_job", "resend_paid_job", "retry_job") and answer:
            self._truth.handled.discard(args[0])
        if name in ("resend_job", "resend_paid_job") and answer:
            self._truth.resends[args[0]] += 1
            self._record_new_message(args[0])
        if name == "clear_attention" and answer:
            self._truth.handled.add(args[0])
        if name == "transfer":
            self._record_refund(args)
        if name == "retry_job" and answer:
            self._truth.retries[args[0]] += 1
            self._truth.invalid_ends.discard(args[0])

    def _record_new_message(self, job_id: int) -> None:
        """Record that a job's result is shown on a new message: the end is put on one that was left over, too."""
        if self._truth.deliveries.pop(job_id, None) is not Delivery.DELIVERED:
            known = self._truth.placeholders[job_id]
            self._truth.blocked_puts -= known
            self._truth.left_over[job_id] |= {name for name in known if not self._truth.messages[name].shows}

    def _record_refund(self, args: tuple[Any, ...]) -> None:
        """Record what an account gets back: once for a reason, which names the job, under whatever key."""
        account, kind, amount, _, *reason = args
        if kind is EntryKind.REFUND and (account, *reason) not in self._truth.refunds:
            self._truth.refunds.add((account, *reason))
            self._truth.refunded[account] += amount

    def _record_delivery(self, name: str, job_id: int, args: tuple[Any, ...], answer: Any) -> None:
        if isinstance(answer, JobEnd) and answer.verdict is Verdict.LATE:
            self._truth.late_ends[job_id] += 1
            self._truth.handled.discard(job_id)
            self._record_new_message(job_id)
            if self._truth.left_over[job_id] and answer.job and answer.job.progress_message:
                # It may have been remembered before, for another edit: then no other message is.
                self._truth.left_over[job_id].add(answer.job.progress_message)
            if job_id in self._truth.invalid_ends:
                rule = "A result that was found invalid does not come again."
                self._truth.add_violation(rule, job_id, "it was accepted as a late result")
        if not answer:
            return
        if name == "mark_result_invalid":
            self._truth.invalid_ends.add(job_id)
        if name == "begin_progress":
            self._truth.edited.add(job_id)
        parts = args[2] if name == "save_parts" else getattr(args[0], "parts", None) if args else None
        if name in ("save_parts", "reschedule", "finish_delivery") and parts:
            self._truth.placeholders[job_id].update(part.message for part in parts if part.message)
            self._truth.further_parts.update(part.message for part in parts[1:] if part.message)
            if shown_results(parts) and not self._truth.resends[job_id]:
                self._truth.shown.add(job_id)
        if name == "finish_delivery":
            self._truth.deliveries[job_id] = args[0].delivery
            code = args[0].attention_code if args[0].attention_reason else None
            unknown = args[0].delivery is Delivery.UNKNOWN or code is AttentionCode.UNKNOWN_DELIVERY
            self._truth.unknown_ends[job_id] += unknown

    def _check_end(self, ending: EndJob, job: Job) -> None:
        if ending.state is not State.EXPIRED or self._world.loop.time() < self._world.clock_set_at + DECISION_SECONDS:
            return
        if ending.error_code == "submit_unknown":
            waited = self._world.loop.time() - self._truth.submits[job.id]
            if waited < self._grace - 0.001 and self._world.clock_set_at < self._truth.submits[job.id]:
                rule = "An unknown submit waits for its callback during the grace period."
                self._truth.add_violation(rule, job.id, f"expired after {waited:.3f} of {self._grace} seconds")
        elif job.read_at < job.deadline_at:
            self._truth.add_violation(
                "A job expires at its deadline, not before.", job.id, f"at {job.read_at}, not {job.deadline_at}"
            )


def _fence(name: str, args: tuple[Any, ...]) -> tuple[int, int | None]:
    """Return the job and the token that a call names."""
    if name in _FENCED:
        return args[0], args[1]
    if name in ("reschedule", "finish_delivery", "end_job", "fail_over"):
        return args[0].job_id, args[0].token
    return 0, None


def _leaves_its_provider(name: str, args: tuple[Any, ...], answer: Any) -> bool:
    """Whether a job ended, goes to another provider or back to the queue."""
    if isinstance(answer, JobEnd):
        return answer.verdict is Verdict.WON
    queued = name == "reschedule" and args[0].state is State.QUEUED
    return bool(answer) and (queued or name in ("fail_over", "retry_job"))


def _effective(answer: Any) -> bool:
    if isinstance(answer, JobEnd):
        return answer.verdict in (Verdict.WON, Verdict.LATE)
    return bool(answer)


def _leased(answer: Any) -> list[Job]:
    """Return the jobs that an answer leases to the caller."""
    if isinstance(answer, JobEnd | Accepted):
        answer = answer.job
    if isinstance(answer, Job):
        return [answer]
    return [job for job in answer if isinstance(job, Job)] if isinstance(answer, list) else []
