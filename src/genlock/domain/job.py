"""A job: one order and everything that happens to it, in one row."""

import hashlib
from datetime import datetime
from enum import StrEnum

from genlock.domain.delivery import Part
from genlock.domain.money import HoldState
from genlock.domain.value import value


class State(StrEnum):
    """The state of the order at the provider."""

    QUEUED = "queued"  #: accepted, money held → submitting by the submit stage, as soon as the provider's limit allows
    SUBMITTING = "submitting"  #: the create call may have been made → running by its answer; after a crash or a lost
    #: answer it waits for its callback, then → expired by the submit stage when the grace period is over
    RUNNING = "running"  #: the task id is known → succeeded or failed by the first terminal report, callback or poll;
    #: → expired by the collect stage at the deadline
    SUCCEEDED = "succeeded"  #: an end; the result is recorded and the deliver stage takes over
    FAILED = "failed"  #: an end; the hold is released and the deliver stage informs the user; a later result is
    #: delivered free of charge
    CANCELLED = "cancelled"  #: an end, by the user or an operator; the hold is released
    EXPIRED = "expired"  #: an end: we stopped waiting, the hold is released; a later result is delivered free of charge


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
    PARKED = "parked"  #: only an operator can tell whether it goes on: the provider may have accepted the task, or the
    #: job was restored from a backup
    OTHER = "other"


OPEN = (State.QUEUED, State.SUBMITTING, State.RUNNING)
#: 128 bits: enough against collisions, and short because every version of a row contains them
_HASH_DIGITS = 32


class Delivery(StrEnum):
    """The state of the delivery to the chat."""

    NONE = "none"  #: the job has not ended → pending or sending by the write that ends it
    PENDING = "pending"  #: waits for a worker → sending by the next claim
    SENDING = "sending"  #: the lease holder delivers it → delivered, undeliverable, unknown, or pending for a retry
    DELIVERED = "delivered"  #: the channel confirmed every part, or some and the rest cannot be shown: then the job is
    #: on the operator's list; the same commit captures the hold
    UNDELIVERABLE = "undeliverable"  #: nothing was shown: unreachable user or unusable result; hold released,
    #: on the operator's list
    UNKNOWN = "unknown"  #: the answer to a send was lost; it is not repeated; the user is told; hold released,
    #: on the operator's list


class Notice(StrEnum):
    """The state of the short message after a result."""

    NONE = "none"  #: this job has none
    WANTED = "wanted"  #: → due by the delivered commit
    DUE = "due"  #: → sent by the deliver stage, just before the call
    SENT = "sent"  #: journaled; the call was made at most once


class Verdict(StrEnum):
    """The outcome of one attempt to end a job."""

    WON = "won"  #: this ended the job
    LATE = "late"  #: a result after the job expired or failed: delivered free of charge
    BUSY = "busy"  #: as late, but the user is being informed at this moment: the callback is processed later
    DUPLICATE = "duplicate"  #: repeats what is known
    CONTRADICTION = "contradiction"  #: contradicts what is known: alarm
    CANCELLED = "cancelled"  #: the job was cancelled; the cost is the operator's loss
    ABANDONED = "abandoned"  #: is about an attempt that the job has given up: recorded with it, nothing else changed
    WRONG_TASK = "wrong_task"  #: names a task that is not the job's own: nothing changed
    STALE = "stale"  #: the writer had lost its lease: nothing changed
    MISSING = "missing"  #: there is no such job


#: what erasure leaves of an input, as JSON; no order has it
ERASED_INPUT = "null"


@value
class NewJob:
    """An order as the caller creates it."""

    account_id: int
    #: the caller's idempotency key, unique per account
    request_key: str
    provider: str
    channel: str
    #: where the channel reaches the user; opaque to the engine
    address: str
    model: str
    #: the values of the model's fields, JSON
    input: str
    price: int
    deadline_seconds: float
    #: the message that will become the result, if there is one already
    placeholder: str | None = None
    notice: bool = True
    #: ties together every log line of this job; "": the engine gives it a new one
    correlation_id: str = ""
    #: the bot that took the order, "" where the channel has none
    bot: str = ""
    #: the API key that the order is made with; its limit of the day is checked in the commit
    api_key_id: int | None = None
    #: how many jobs of API keys the account may have open with this one, checked in the commit; None: any number
    open_max: int | None = None

    def fingerprint(self) -> str:
        """Return a hash of what makes two orders under one key the same order."""
        body = "\0".join((self.provider, self.channel, self.model, str(self.price), self.input))
        return hashlib.sha256(body.encode()).hexdigest()[:_HASH_DIGITS]


@value
class Job:
    """One order as it was stored when its row was read."""

    id: int
    account_id: int
    #: the caller's idempotency key, unique per account
    request_key: str
    #: ties together every log line of this job
    correlation_id: str
    provider: str
    channel: str
    #: the bot that took the order, "" where the channel has none
    bot: str
    #: where the channel reaches the user; opaque to the engine
    address: str
    #: the message that will become the result; None until there is one
    placeholder: str | None
    model: str
    #: the values of the model's fields, JSON
    input: str
    #: in thousandths of a credit
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
    #: the result came after the job had failed or expired
    late: bool
    parts: tuple[Part, ...]
    delivery: Delivery
    notice: Notice
    #: why an operator should look, as a code and as a text; both are None when there is no need
    attention_code: AttentionCode | None
    attention_reason: str | None
    #: failed attempts of the current step
    attempts: int
    #: when a worker must process the row next; None when all is done
    due_at: datetime | None
    deadline_at: datetime
    #: until when an unknown submit waits for its callback
    grace_until: datetime | None
    lease_owner: str | None
    #: the fencing token: grows with every claim, and every write names it
    lease_token: int
    created_at: datetime
    submitted_at: datetime | None
    ended_at: datetime | None
    delivered_at: datetime | None
    #: the store's clock when the row was read
    read_at: datetime
    #: consecutive worker crashes while this job was being processed
    crash_count: int = 0
    #: the message on which the end is put again: a progress edit with an unknown outcome may still overwrite it, or it
    #: is left over without an end
    progress_message: str | None = None
    #: the user removed it from the gallery and the history
    hidden: bool = False
    #: what the provider needs besides the task's id to find the task again
    handle: str = ""
    #: the number of the current attempt; 0 before the first
    attempt: int = 0

    @property
    def ended(self) -> bool:
        return self.state not in OPEN

    @property
    def erased(self) -> bool:
        """Whether the input was erased, at the user's wish or by age; at the user's wish, the result, too."""
        return self.ended and self.input == ERASED_INPUT

    @property
    def has_result(self) -> bool:
        """Whether the provider returned a result, in time or late."""
        return self.state is State.SUCCEEDED or self.late

    @property
    def is_parked_submit(self) -> bool:
        """Whether the provider may have accepted the order, so that submitting it is an operator's decision."""
        if self.state is State.SUBMITTING:
            return self.due_at is None
        return self.state is State.QUEUED and self.attention_code is AttentionCode.PARKED

    @property
    def is_parked_notice(self) -> bool:
        """Whether the notice failed in every attempt, so that no worker tries it any more."""
        return self.notice is Notice.DUE and self.due_at is None

    @property
    def unpaid(self) -> bool:
        """Whether there is a result that could not be delivered, so that its hold was released."""
        return (
            self.state is State.SUCCEEDED
            and self.delivery is Delivery.UNDELIVERABLE
            and self.hold_state is HoldState.RELEASED
            and self.price > 0
        )

    @property
    def is_received(self) -> bool:
        """Whether the user has got the result, paid for or free, so that another order may begin with it.

        A result whose hold was released is given once it is shown, as after an operator's resend.
        """
        if not self.has_result or self.hold_state is HoldState.HELD:
            return False
        shown = self.delivery in (Delivery.DELIVERED, Delivery.UNKNOWN)
        return self.late or self.hold_state is not HoldState.RELEASED or shown

    @property
    def told_reason(self) -> str:
        """The reason for which users are told that there is no result; empty if none is known."""
        was_started = self.attempt > 0 or self.task_id is not None
        return "not_started" if self.error_code == "deadline" and not was_started else self.error_code

    @property
    def just_ended(self) -> bool:
        """Whether this row was returned by the commit that ended the job, before any delivery."""
        return self.ended_at == self.read_at


def hash_secret(secret: str) -> str:
    """Return the hash under which a callback secret is stored: the database must not reveal the secret."""
    return hashlib.sha256(secret.encode()).hexdigest()[:_HASH_DIGITS]
