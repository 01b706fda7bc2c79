"""A job: one order, one row, its whole life."""

import hashlib
from datetime import datetime
from enum import StrEnum

from genlock.domain.delivery import Part
from genlock.domain.money import HoldState
from genlock.domain.value import value


class State(StrEnum):
    """Where the order stands with the provider."""

    QUEUED = "queued"  #: accepted, money held → submitting by the submit stage, as soon as the provider's limit allows
    SUBMITTING = "submitting"  #: the create call may be on the wire → running by its answer; after a crash or a lost
    #: answer it waits for its callback, then → expired by the submit stage when the grace time is over
    RUNNING = "running"  #: the task id is known → succeeded or failed by the first terminal report, callback or poll;
    #: → expired by the collect stage at the deadline
    SUCCEEDED = "succeeded"  #: an end; the result is recorded and the deliver stage takes over
    FAILED = "failed"  #: an end; the money is back and the deliver stage tells the person
    CANCELLED = "cancelled"  #: an end, by the person or an operator; the money is back
    EXPIRED = "expired"  #: an end: we stopped waiting, the money is back; a result that comes later is shown, free


class Actor(StrEnum):
    """Who cancelled a job."""

    USER = "user"
    OPERATOR = "operator"
    SYSTEM = "system"


class AttentionCode(StrEnum):
    """Why a job is on the operator's list."""

    POISON = "poison"  #: the worker processes that handled it crashed again and again
    STAGE_ERROR = "stage_error"  #: a stage failed in every attempt
    RETRIES_EXHAUSTED = "retries_exhausted"  #: the delivery failed in every attempt
    UNDELIVERABLE = "undeliverable"  #: the user cannot be reached, or the result cannot be shown
    UNKNOWN_DELIVERY = "unknown_delivery"  #: a message may or may not have been sent
    PARKED = "parked"  #: whether the provider accepted the task is unknown, and the policy leaves it to the operator
    OTHER = "other"


OPEN = (State.QUEUED, State.SUBMITTING, State.RUNNING)
#: 128 bits: nobody finds a second text for them, and every version of a row carries them
_HASH_DIGITS = 32


class Delivery(StrEnum):
    """Where the end of a job stands with the chat."""

    NONE = "none"  #: the job has not ended → pending or sending by whatever ends it
    PENDING = "pending"  #: waits for somebody to deliver it → sending by the next claim
    SENDING = "sending"  #: a lease holder is at it → delivered, undeliverable, unknown, or pending for another try
    DELIVERED = "delivered"  #: the channel confirmed every part; this commit captures the money
    UNDELIVERABLE = "undeliverable"  #: nobody can be reached there; money back, on the operator's list
    UNKNOWN = "unknown"  #: a send whose answer was lost; not repeated; money back, on the operator's list


class Notice(StrEnum):
    """The short message after a result."""

    NONE = "none"  #: this job wants none
    WANTED = "wanted"  #: → due by the delivered commit
    DUE = "due"  #: → sent by the deliver stage, just before the call
    SENT = "sent"  #: journaled; the call has been made at most once


class Verdict(StrEnum):
    """What became of one attempt to end a job."""

    WON = "won"  #: this ended the job
    LATE = "late"  #: a result after we stopped waiting: delivered, free
    BUSY = "busy"  #: as late, but somebody is telling the person at this moment: the callback comes back later
    DUPLICATE = "duplicate"  #: says what is known already
    CONTRADICTION = "contradiction"  #: says the opposite of what is known: alarm
    CANCELLED = "cancelled"  #: the person had cancelled; the bill is the operator's loss
    WRONG_TASK = "foreign"  #: names a task that is not the job's own, or is another job's: nothing changed
    STALE = "stale"  #: the writer's lease was gone: nothing changed
    MISSING = "missing"  #: there is no such job


@value
class NewJob:
    """An order, as the caller makes it."""

    account_id: int
    #: the caller's idempotency key, unique per person
    request_key: str
    provider: str
    channel: str
    #: where the channel reaches the person; opaque to the engine
    address: str
    model: str
    #: the provider's input, JSON
    input: str
    price: int
    deadline_seconds: float
    #: the message that will become the result, if there is one already
    placeholder: str | None = None
    notice: bool = True
    #: ties together every log line of this job
    correlation_id: str = ""
    #: the bot that took the order, "" where the channel has none
    bot: str = ""

    def fingerprint(self) -> str:
        """What makes two orders under one key the same order."""
        body = "\0".join((self.provider, self.channel, self.model, str(self.price), self.input))
        return hashlib.sha256(body.encode()).hexdigest()[:_HASH_DIGITS]


@value
class Job:
    id: int
    account_id: int
    request_key: str
    correlation_id: str
    provider: str
    channel: str
    bot: str
    address: str
    placeholder: str | None
    model: str
    input: str
    price: int
    hold_state: HoldState
    state: State
    task_id: str | None
    error_code: str
    error_text: str
    #: None unless the job was cancelled
    cancelled_by: Actor | None
    #: what the provider billed, in thousandths of its credit; with a hold_state other than captured it is a loss
    cost: int | None
    late: bool
    parts: tuple[Part, ...]
    delivery: Delivery
    notice: Notice
    #: why an operator should look, as a code and as a text; both are None when there is no need
    attention_code: AttentionCode | None
    attention_reason: str | None
    #: tries of the present step that failed
    attempts: int
    #: when somebody must next look at this row; None when all is done
    due_at: datetime | None
    deadline_at: datetime
    #: until when an unknown submit waits for its callback
    grace_until: datetime | None
    lease_owner: str | None
    #: grows with every claim; every later write names it
    lease_token: int
    created_at: datetime
    submitted_at: datetime | None
    ended_at: datetime | None
    delivered_at: datetime | None
    #: the store's clock when the row was read
    read_at: datetime
    #: so many instances died with it in hand, one after the other
    crash_count: int = 0
    #: somebody else was at it when it ended: a progress edit of theirs may still be on the wire
    interrupted: bool = False

    @property
    def ended(self) -> bool:
        return self.state not in OPEN

    @property
    def unpaid(self) -> bool:
        """Whether there is a result that could not be delivered, so that its money went back."""
        return (
            self.state is State.SUCCEEDED
            and self.delivery is Delivery.UNDELIVERABLE
            and self.hold_state is HoldState.RELEASED
            and self.price > 0
        )

    @property
    def fresh(self) -> bool:
        """Whether this is the row of the commit that ended the job: nobody can have begun to deliver it."""
        return self.ended_at == self.read_at


def hash_secret(secret: str) -> str:
    """How a callback secret is stored: whoever reads the database cannot call back."""
    return hashlib.sha256(secret.encode()).hexdigest()[:_HASH_DIGITS]
