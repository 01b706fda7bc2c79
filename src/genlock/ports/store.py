"""Jobs, money, the inbox and the instances: what the engine stands on."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.account import Account
from genlock.domain.delivery import Part
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Actor, AttentionCode, Delivery, Job, NewJob, Notice, State, Verdict
from genlock.domain.money import EntryKind, HoldState, LedgerEntry, Wallet
from genlock.domain.value import value
from genlock.ports.limits import LimitStore


@value
class Lease:
    """Who takes a job, and for how long."""

    owner: str
    seconds: float


@value
class Accepted:
    job: Job
    #: False when the key was known: this is the job of then
    fresh: bool


@value
class NewCallback:
    """A callback at the address of a job, to be kept in the commit of what it says."""

    provider: str
    #: proves that it is the job's address
    secret_hash: str
    body: str


@value
class EndJob:
    """One attempt to end a job. Whichever comes first wins; `token` makes it the lease holder's alone."""

    job_id: int
    state: State
    parts: tuple[Part, ...]
    token: int | None = None
    task_id: str | None = None
    error_code: str = ""
    error_text: str = ""
    #: who cancels it, where the state is cancelled
    cancelled_by: Actor | None = None
    cost: int | None = None
    #: the stored callback it came by, settled in the same commit
    callback_id: int | None = None
    #: or the one that has just come in, kept in the same commit; for the job's own secret only
    arrival: NewCallback | None = None


@value
class JobEnd:
    verdict: Verdict
    #: the row after a verdict of won or late, leased to the caller
    job: Job | None = None
    #: the arrival, as it was kept
    callback: Callback | None = None


@value
class Reschedule:
    """Give the job back and look at it again `after` seconds (None: when an operator says so). Fenced."""

    job_id: int
    token: int
    after: float | None
    #: fields to set, where not None
    state: State | None = None
    delivery: Delivery | None = None
    notice: Notice | None = None
    parts: tuple[Part, ...] | None = None
    #: the wait is the grace time of an unknown submit
    grace: bool = False
    #: True counts a failed try, False starts the count anew, None leaves it
    failed: bool | None = False
    #: puts the job on the operator's list; the code says what for
    attention_reason: str | None = None
    attention_code: AttentionCode = AttentionCode.OTHER


@value
class FinishDelivery:
    """The end of a delivery. Fenced; moves the job's money in the same commit."""

    job_id: int
    token: int
    delivery: Delivery
    parts: tuple[Part, ...]
    #: puts the job on the operator's list; the code says what for
    attention_reason: str | None = None
    attention_code: AttentionCode = AttentionCode.OTHER


@value
class DeliveryEnd:
    hold_state: HoldState
    notice: Notice


@value
class Role:
    """Who may do what only one may do. The epoch grows with every change of holder."""

    holder: str
    epoch: int


@value
class Violation:
    """A broken promise, found by looking."""

    rule: str
    subject: str
    detail: str


class Store(LimitStore, Protocol):
    """Rows and money. Every method is one commit; those that name a token change nothing when it is stale."""

    #: grows when a commit's fate was unknown and it was made again: a lease may have been taken unseen
    uncertain_commits: int
    #: the migrations that opening it applied
    applied: list[str]

    async def close(self) -> None: ...

    # people and money
    async def ensure_account(self, channel: str, bot: str, external_id: str) -> int:
        """The person known to a bot of a channel by this id, made on first sight."""

    async def account(self, account_id: int) -> Account:
        """Raises AccountNotFound."""

    async def set_account_address(self, account_id: int, address: str) -> None:
        """Remember where the channel reaches the user of an account."""

    async def wallet(self, account_id: int) -> Wallet: ...

    async def transfer(self, account_id: int, kind: EntryKind, amount: int, key: str, reason: str = "") -> bool:
        """Move money between a person and the house, once per key. False if the key was used before."""

    async def ledger_entries(self, account_id: int, limit: int) -> list[LedgerEntry]: ...

    # the life of a job
    async def accept(self, order: NewJob, lease: Lease | None) -> Accepted:
        """Write job and hold together. Raises InsufficientBalance, IdempotencyKeyReused, AccountNotFound."""

    async def begin_submit(self, job_id: int, token: int, secret_hash: str, placeholder: str | None) -> bool:
        """Commit the intent: from here on the create call may be on the wire. False if a rescue has begun."""

    async def mark_submitted(self, job_id: int, token: int, task_id: str, poll_after: float) -> bool:
        """The task is known. Orphans of this task make the job due at once. Raises TaskIdConflict."""

    async def adopt_task(self, job_id: int, secret_hash: str | None, task_id: str) -> bool:
        """Keep the task of a submit that lost its lease while it was on the wire; None: its callback told us."""

    async def end_job(self, ending: EndJob, lease: Lease | None) -> JobEnd:
        """End a job: the one door for callbacks, polls, deadlines and cancels. Moves the money back if need be."""

    async def save_parts(self, job_id: int, token: int, parts: tuple[Part, ...], lease: Lease) -> bool:
        """Journal a delivery's progress around its calls, and renew the lease."""

    async def finish_delivery(self, finish: FinishDelivery, lease: Lease) -> DeliveryEnd | None:
        """End a delivery. None if the lease was lost; keeps the lease only if a notice is due."""

    async def mark_result_invalid(
        self, job_id: int, token: int, parts: tuple[Part, ...], code: str, text: str
    ) -> Job | None:
        """A result that nobody has paid for turns out to be none: the job has failed, its money goes back. Fenced."""

    async def change_address(self, job_id: int, token: int, address: str, parts: tuple[Part, ...]) -> bool:
        """The job's chat has another address now; its placeholder stayed behind."""

    async def begin_notice(self, job_id: int, token: int) -> bool:
        """Journal the notice before it is sent. The job is done with this."""

    async def reschedule(self, wait: Reschedule) -> bool: ...

    async def renew(self, job_id: int, token: int, lease: Lease) -> bool: ...

    async def claim(self, limit: int, lease: Lease) -> list[Job]:
        """Take due jobs, the longest overdue first; not those that were in hand when an instance died."""

    async def claim_poison_jobs(self, slots: Sequence[int], lease: Lease) -> list[Job]:
        """Take due jobs that were: so many of one death, of two, and so on; the last room is for more, too."""

    # the inbox
    async def store_callback(self, provider: str, job_id: int | None, secret_hash: str, body: bytes) -> Callback:
        """Keep a callback before anybody has understood it; finds its job by the secret."""

    async def count_unauthenticated_callbacks(self, seconds: float, limit: int) -> int:
        """How many callbacks of the last so many seconds no job vouches for; counted up to a limit."""

    async def is_secret(self, job_id: int, provider: str, secret_hash: str) -> bool:
        """Whether this is the secret of a job's callback address."""

    async def claim_callbacks(self, limit: int, hold_seconds: float) -> list[Callback]:
        """Stored callbacks that nobody has dealt with in time."""

    async def settle_callback(
        self, callback_id: int, state: InboxState, task_id: str | None = None, note: str = ""
    ) -> None: ...

    async def expire_callback(self, callback_id: int, older_than: float, note: str) -> bool:
        """Keep a callback that nobody can read for the operator, if it has waited for so long."""

    async def note_untrusted_callback(self, callback_id: int, provider: str, task_id: str) -> int | None:
        """A callback we may not believe: make its running job due for a status query, or keep it as an orphan."""

    async def match_orphans(self, limit: int) -> list[tuple[int, int]]:
        """Orphans whose job is known by now, as (callback, job); the jobs are made due."""

    async def expire_orphans(self, older_than: float, role: Role) -> list[int]: ...

    async def callbacks(self, state: InboxState, limit: int) -> list[Callback]: ...

    # instances
    async def heartbeat(self, instance: str, silent_seconds: float) -> list[str]:
        """Say that we live; returns the peers that have been silent for too long."""

    async def orphaned_instances(self) -> Sequence[str]:
        """Instances of which it is certain that they are dead: nobody else can have this database."""

    async def release_leases(self, instance: str, but: Sequence[int] = (), *, died: bool = False) -> int:
        """Make due what this instance holds (except `but`) and forget the instance if nothing is excepted.

        If it died, each of its jobs counts that: it may be what it died of.
        """

    async def take_role(self, name: str, instance: str, seconds: float) -> Role:
        """Take or renew a role if it is free, and say who has it."""

    async def leave_role(self, name: str, instance: str) -> None: ...

    async def prune_limits(self, idle_seconds: float, role: Role) -> int:
        """Drop the limits that nobody has used for so long: a fresh one is the same."""

    # looking, and an operator's hands
    async def job(self, job_id: int) -> Job | None: ...

    async def job_ordered(self, account_id: int, request_key: str) -> Job | None:
        """The job that a key of this person stands for."""

    async def jobs(
        self, *, state: State | None = None, account_id: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[Job]: ...

    async def jobs_needing_attention(self, limit: int) -> list[Job]: ...

    async def retry(self, job_id: int) -> bool:
        """Make a waiting job due now; queue a parked submit again."""

    async def resend(self, job_id: int, parts: tuple[Part, ...], token: int | None = None) -> bool:
        """Deliver an ended job's parts anew; with a token, only if they are still those of that row."""

    async def resend_paid(self, job_id: int, parts: tuple[Part, ...], token: int) -> bool:
        """As resend, but the money that went back when it was undeliverable is held again. Raises InsufficientBalance."""

    async def counts(self) -> dict[str, int]:
        """Jobs in progress by state, and how many are due."""

    async def violations(self, *, settled: bool) -> list[Violation]:
        """Look for broken invariants; `settled` adds those that hold only when no work is in progress."""
