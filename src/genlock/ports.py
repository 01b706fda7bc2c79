"""What the engine needs from the outside, on one page."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

from genlock.domain.chat import (
    Activity,
    AuditLine,
    Broadcast,
    BroadcastState,
    Figures,
    FreeRuns,
    Payment,
    PaymentState,
    Profile,
    Promo,
    PromoUse,
    SavedDraft,
    Upload,
)
from genlock.domain.delivery import Part
from genlock.domain.events import Event
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Delivery, Job, NewJob, Notice, State, Verdict
from genlock.domain.money import Kind, Movement, Purse, Wallet
from genlock.domain.result import Report
from genlock.domain.update import Lane, NewUpdate, Received, Update, UpdateState
from genlock.domain.value import value


class Clock(Protocol):
    """Wall time. The store's writes use it only where the database has no clock of its own."""

    def now(self) -> datetime: ...


class Observer(Protocol):
    """Where events and counts go: log lines, metrics, a simulation's history."""

    def event(self, event: Event, correlation: str = "", /, **facts: Any) -> None: ...

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None: ...


class Provider(Protocol):
    """Runs tasks. `create` raises SubmitRefused, ProviderBusy or SubmitUnknown; `status` raises ProviderBusy."""

    name: str

    async def create(self, job: Job, callback_url: str | None) -> str:
        """Start a task for the job and return its id."""

    async def status(self, task_id: str, job: Job) -> Report:
        """Ask what became of a task."""

    def read_callback(self, body: bytes) -> Report:
        """Understand a callback. Raises ValueError if there is nothing to understand."""


@value
class Placed:
    """What the channel says of a part it has shown."""

    message: str
    file: str | None = None


class Channel(Protocol):
    """Shows results. `put` sets a message to a content and may be repeated; `place`, `send` and `notify` may not.

    Raises LevelRefused, PlaceholderGone, ChannelBusy, ChannelUnknown, ChatClosed, ChatMoved and ResultBroken.
    """

    name: str

    def divide(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """The parts as this channel can show them: what is too long for a message becomes several. Pure."""
        return parts

    def moments(self, job: Job) -> Sequence[float]:
        """At which fractions of the expected time progress is shown. Pure."""
        return ()

    async def place(self, job: Job, index: int) -> str:
        """Send an empty message that part `index` will be put on."""

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        """Make `part.message` show the part at its level. Doing it again changes nothing."""

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        """Show the part on a new message, because its own is gone."""

    async def notify(self, job: Job) -> None:
        """Send the short final notice."""

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        """Show on the placeholder how far a running job is, or drop it: at the loop's time `until` it is over."""


@value
class Lease:
    """Who takes a job, and for how long."""

    owner: str
    seconds: float


@value
class Acceptance:
    job: Job
    #: False when the key was known: this is the job of then
    fresh: bool


@value
class Arrival:
    """A callback at the address of a job, to be kept in the commit of what it says."""

    provider: str
    #: proves that it is the job's address
    secret_hash: str
    body: str


@value
class Ending:
    """One attempt to end a job. Whichever comes first wins; `token` makes it the lease holder's alone."""

    job_id: int
    state: State
    parts: tuple[Part, ...]
    token: int | None = None
    task_id: str | None = None
    error_code: str = ""
    error_text: str = ""
    cost: int | None = None
    #: the stored callback it came by, settled in the same commit
    callback_id: int | None = None
    #: or the one that has just come in, kept in the same commit; for the job's own secret only
    arrival: Arrival | None = None


@value
class Ended:
    verdict: Verdict
    #: the row after a verdict of won or late, leased to the caller
    job: Job | None = None
    #: the arrival, as it was kept
    callback: Callback | None = None


@value
class Wait:
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
    attention: str | None = None


@value
class Finish:
    """The end of a delivery. Fenced; moves the job's money in the same commit."""

    job_id: int
    token: int
    delivery: Delivery
    parts: tuple[Part, ...]
    attention: str | None = None


@value
class Finished:
    purse: Purse
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


@value
class Settled:
    """What is left in a lane after one of its updates was dealt with."""

    waiting: int
    #: still ours while something waits, with the next update
    lane: Lane


@value
class Fact:
    key: str
    value: str
    #: seconds since it was set
    age: float


class LimitStore(Protocol):
    """Limits by key that all instances keep together: when the next turn of each is free."""

    async def reserve(self, key: str, count: int, interval: float, burst: int, horizon: float) -> list[float]:
        """Reserve up to `count` turns of a limit; for each, the seconds until it may be used."""

    async def take_turns(self, keys: Sequence[str], interval: float, burst: int, spare: float) -> list[float]:
        """Take a turn of each of these limits, now or not at all; for each, 0 or the seconds until one is free.

        Only turns that have been free for `spare` seconds are taken.
        """

    async def block(self, key: str, seconds: float) -> None:
        """No turn of this limit for so long."""


class Store(LimitStore, Protocol):
    """Rows and money. Every method is one commit; those that name a token change nothing when it is stale."""

    #: grows when a commit's fate was unknown and it was made again: a lease may have been taken unseen
    unsure: int
    #: the migrations that opening it applied
    applied: list[str]

    async def close(self) -> None: ...

    # people and money
    async def person(self, channel: str, bot: str, outside_id: str) -> int:
        """The person known to a bot of a channel by this id, made on first sight."""

    async def wallet(self, person_id: int) -> Wallet: ...

    async def transfer(self, person_id: int, kind: Kind, amount: int, key: str, reason: str = "") -> bool:
        """Move money between a person and the house, once per key. False if the key was used before."""

    async def movements(self, person_id: int, limit: int) -> list[Movement]: ...

    # the life of a job
    async def accept(self, order: NewJob, lease: Lease | None) -> Acceptance:
        """Write job and hold together. Raises NotEnoughMoney, KeyReused, NoSuchPerson."""

    async def begin_submit(self, job_id: int, token: int, secret_hash: str, placeholder: str | None) -> bool:
        """Commit the intent: from here on the create call may be on the wire. False if a rescue has begun."""

    async def submitted(self, job_id: int, token: int, task_id: str, poll_after: float) -> bool:
        """The task is known. Orphans of this task make the job due at once. Raises TaskTaken."""

    async def adopt_task(self, job_id: int, secret_hash: str | None, task_id: str) -> bool:
        """Keep the task of a submit that lost its lease while it was on the wire; None: its callback told us."""

    async def end(self, ending: Ending, lease: Lease | None) -> Ended:
        """End a job: the one door for callbacks, polls, deadlines and cancels. Moves the money back if need be."""

    async def save_parts(self, job_id: int, token: int, parts: tuple[Part, ...], lease: Lease) -> bool:
        """Journal a delivery's progress around its calls, and renew the lease."""

    async def finish(self, finish: Finish, lease: Lease) -> Finished | None:
        """End a delivery. None if the lease was lost; keeps the lease only if a notice is due."""

    async def spoil(self, job_id: int, token: int, parts: tuple[Part, ...], code: str, text: str) -> Job | None:
        """A result that nobody has paid for turns out to be none: the job has failed, its money goes back. Fenced."""

    async def move(self, job_id: int, token: int, address: str, parts: tuple[Part, ...]) -> bool:
        """The job's chat has another address now; its placeholder stayed behind."""

    async def begin_notice(self, job_id: int, token: int) -> bool:
        """Journal the notice before it is sent. The job is done with this."""

    async def wait(self, wait: Wait) -> bool: ...

    async def renew(self, job_id: int, token: int, lease: Lease) -> bool: ...

    async def claim(self, limit: int, lease: Lease) -> list[Job]:
        """Take due jobs, the longest overdue first."""

    # the inbox
    async def store_callback(self, provider: str, job_id: int | None, secret_hash: str, body: bytes) -> Callback:
        """Keep a callback before anybody has understood it; finds its job by the secret."""

    async def strangers(self, seconds: float, limit: int) -> int:
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

    async def hint(self, callback_id: int, provider: str, task_id: str) -> int | None:
        """A callback we may not believe: make its running job due for a status query, or keep it as an orphan."""

    async def match_orphans(self, limit: int) -> list[tuple[int, int]]:
        """Orphans whose job is known by now, as (callback, job); the jobs are made due."""

    async def expire_orphans(self, older_than: float, role: Role) -> list[int]: ...

    async def callbacks(self, state: InboxState, limit: int) -> list[Callback]: ...

    # instances
    async def heartbeat(self, instance: str, silent_seconds: float) -> list[str]:
        """Say that we live; returns the peers that have been silent for too long."""

    async def rescue(self, instance: str, but: Sequence[int] = ()) -> int:
        """Make due what this instance holds (except `but`) and forget the instance if nothing is excepted."""

    async def take_role(self, name: str, instance: str, seconds: float) -> Role:
        """Take or renew a role if it is free, and say who has it."""

    async def leave_role(self, name: str, instance: str) -> None: ...

    async def forget_limits(self, idle_seconds: float, role: Role) -> int:
        """Drop the limits that nobody has used for so long: a fresh one is the same."""

    # looking, and an operator's hands
    async def job(self, job_id: int) -> Job | None: ...

    async def job_ordered(self, person_id: int, request_key: str) -> Job | None:
        """The job that a key of this person stands for."""

    async def jobs(
        self, *, state: State | None = None, person_id: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[Job]: ...

    async def attention(self, limit: int) -> list[Job]: ...

    async def retry(self, job_id: int) -> bool:
        """Make a waiting job due now; queue a parked submit again."""

    async def resend(self, job_id: int, parts: tuple[Part, ...], token: int | None = None) -> bool:
        """Deliver an ended job's parts anew; with a token, only if they are still those of that row."""

    async def resend_paid(self, job_id: int, parts: tuple[Part, ...], token: int) -> bool:
        """As resend, but the money that went back when it was undeliverable is held again. Raises NotEnoughMoney."""

    async def counts(self) -> dict[str, int]:
        """Jobs in progress by state, and how many are due."""

    async def violations(self, *, settled: bool) -> list[Violation]:
        """Look for broken invariants; `settled` adds those that hold only when no work is in progress."""


class ChatStore(Protocol):
    """What the chat product keeps. Every method is one commit."""

    # people
    async def see_profile(
        self, person_id: int, *, language: str, name: str, username: str, referred_by: int | None
    ) -> Profile:
        """The profile of a person who has just written, made on first sight; only then language and inviter count."""

    async def profile(self, person_id: int) -> Profile:
        """Raises NoSuchPerson."""

    async def find_profiles(self, text: str, limit: int) -> list[Profile]:
        """By our number, the channel's, a username or a part of the name, however it is capitalised."""

    async def newest_profiles(self, limit: int) -> list[Profile]:
        """Who came last, the newest first."""

    async def set_language(self, person_id: int, language: str) -> None: ...

    async def set_last_model(self, person_id: int, model: str) -> None: ...

    async def set_ban(self, person_id: int, *, banned: bool, reason: str) -> bool: ...

    async def set_blocked(self, person_id: int, *, blocked: bool) -> None: ...

    # drafts
    async def draft(self, person_id: int, chat: int) -> SavedDraft | None: ...

    async def save_draft(self, person_id: int, chat: int, draft: SavedDraft) -> int | None:
        """Write it over the version it was made from; the new version, or None if somebody else was quicker."""

    async def show_draft(self, person_id: int, chat: int, message: int | None) -> None:
        """Remember which message shows it."""

    async def is_of_order(self, person_id: int, message: str) -> bool:
        """Whether a message shows one of a person's orders, however old, and must not be written over."""

    async def draft_owner(self, chat: int, message: int) -> int | None: ...

    # files and limits
    async def keep_upload(self, upload: Upload) -> None: ...

    async def use_upload(self, address: str) -> None:
        """An order is about to be made of a file: it is not forgotten any more. Not ours: nothing happens."""

    async def upload(self, address: str) -> Upload | None: ...

    async def uploads_wait(self, person_id: int) -> tuple[int, float]:
        """Files sent in an hour, and the seconds until the oldest falls out of it."""

    async def activity(self, person_id: int) -> Activity: ...

    async def late_cancels(self, person_id: int) -> int:
        """How many orders were cancelled within a day after the provider was asked for them."""

    # payments
    async def keep_payment(self, charge: str, person_id: int, stars: int, amount: int) -> bool:
        """Write down a payment that is in the ledger. False if it was known."""

    async def payment(self, charge: str) -> Payment | None: ...

    async def payments(self, person_id: int, limit: int) -> list[Payment]: ...

    async def move_payment(
        self, charge: str, before: PaymentState, state: PaymentState, refunds: int | None = None
    ) -> int | None:
        """The next step of a refund (of this try); how many were begun, or None if it is not in the state before."""

    # gifts
    async def take_free_run(self, person_id: int, request_key: str, per_day: int) -> bool:
        """Take a free run for an order, once per key. One whose job failed, or was cancelled early, counts not."""

    async def free_runs(self, person_id: int, per_day: int, but: str = "") -> FreeRuns:
        """What is left, as if the order with the key `but` had not been made."""

    async def make_promo(self, promo: Promo, *, lasting: float | None, author: str) -> bool: ...

    async def close_promo(self, code: str) -> bool: ...

    async def promos(self, limit: int) -> list[Promo]: ...

    async def use_promo(self, code: str, person_id: int, request_key: str) -> PromoUse: ...

    async def rewards_due(self, limit: int) -> list[tuple[int, int]]:
        """People who have paid real money and bought a first result, with those who invited them."""

    async def set_rewarded(self, person_id: int) -> bool: ...

    # broadcasts
    async def reachable(self) -> int:
        """How many people a broadcast would go to."""

    async def begin_broadcast(self, text: str, *, author: str, request_key: str, content: str = "") -> Broadcast: ...

    async def broadcast(self, broadcast_id: int) -> Broadcast | None: ...

    async def running_broadcast(self) -> Broadcast | None: ...

    async def reach_next(self, broadcast_id: int) -> tuple[int, str, str] | None:
        """The next person (number, language, the channel's id), ours alone. None when there is nobody left."""

    async def count_broadcast(self, broadcast_id: int, *, sent: bool) -> None: ...

    async def end_broadcast(self, broadcast_id: int, state: BroadcastState) -> bool: ...

    # operators
    async def add_audit(self, *, key: str, actor: str, action: str, subject: str, detail: str) -> None: ...

    async def audit(self, limit: int) -> Sequence[AuditLine]: ...

    async def figures(self, seconds: float) -> Figures: ...


class UpdateStore(Protocol):
    """Updates of the chat and the lanes they are worked off in. What names a lane changes nothing when it is lost."""

    async def store_update(self, update: NewUpdate) -> Received:
        """Keep an update; when this returns it may be acknowledged."""

    async def claim_lanes(self, limit: int, lease: Lease, *, urgent: bool) -> list[Lane]:
        """Take due lanes, the longest overdue first."""

    async def next_update(self, lane: Lane) -> Lane | None:
        """The first update of a lane that we hold; None if there is none, or the lane is lost."""

    async def settle_update(self, lane: Lane, state: UpdateState, note: str, lease: Lease) -> Settled | None:
        """An update is dealt with. None if the lane was lost; it is kept only while more is waiting there."""

    async def postpone_update(self, lane: Lane, after: float, note: str) -> bool:
        """A try failed: give the lane back until later."""

    async def renew_lanes(self, lanes: Sequence[Lane], lease: Lease) -> set[int]:
        """Keep lanes for longer; returns those that are still ours."""

    async def rescue_lanes(self, instance: str, but: Sequence[int] = ()) -> int:
        """Make due the lanes that an instance holds, except some."""

    async def updates(self, state: UpdateState, limit: int) -> list[Update]: ...

    async def retry_update(self, update: int) -> bool:
        """Work off an update that was set aside."""


class UpkeepStore(Protocol):
    """Facts that all instances share, how things go, and what is forgotten in the end."""

    async def fact(self, key: str) -> Fact | None: ...

    async def facts(self, beginning: str) -> list[Fact]: ...

    async def keep_fact(self, key: str, value: str) -> str:
        """Know something, unless something is known already; says what is."""

    async def set_fact(self, key: str, value: str) -> None: ...

    async def drop_fact(self, key: str) -> None: ...

    async def clock(self) -> datetime: ...

    async def living(self, silent_seconds: float) -> list[str]:
        """The instances that were heard of lately."""

    async def pulse(self) -> dict[str, float]:
        """Counts and ages of what is open, and how the newest jobs ended."""

    async def money_violations(self) -> list[Violation]:
        """Look for money that does not add up."""

    async def forget(self, what: str, older_than: float, limit: int, role: Role) -> int:
        """Remove some old `updates`, `callbacks`, callbacks of `strangers` or unused `uploads`; says how many."""

    async def last_callback(self) -> int:
        """The newest callback there is."""

    async def marked_callbacks(self, after: int, mark: bytes) -> list[tuple[int | None, str]]:
        """Job and state of the callbacks after this one that have a mark in their body."""

    async def drop_callbacks(self, after: int, mark: bytes) -> int:
        """Remove them; says how many."""


class WholeStore(Store, LimitStore, ChatStore, UpdateStore, UpkeepStore, Protocol):
    """Everything a store does."""


class ExaminedStore(Protocol):
    """A store as the doctor looks at it: compared with what it should be, tried out, and left as it was."""

    dialect: str

    @property
    def store(self) -> WholeStore: ...

    async def missing(self) -> list[str]:
        """The migrations that are not applied. Raises SchemaMismatch if its past is not ours."""

    async def differences(self) -> list[str]:
        """What a fresh schema has and this one has not."""

    def rehearsal(self, clock: Clock) -> AbstractAsyncContextManager[WholeStore]:
        """A store whose every statement really runs, and is undone at the end of the block."""

    def description(self) -> str: ...

    async def close(self) -> None: ...
