"""Put the end of a job again, while an earlier progress edit with an unknown outcome may still overwrite it.

No edit can be called back once its answer is lost, and nothing says when it takes effect. So the end is put on its
message again at growing distances, until the connection of such an edit must be over. For a file that is soon: the
channel refuses to edit its text, unless it accepted the edit before it got the file. The job is a row that is due
later, and any instance may continue.

A message that was to show the end and does not, because a resend or a late result got a new one, is treated alike.
"""

from dataclasses import replace

from genlock.domain.delivery import Level, Part, Step, message_instead
from genlock.domain.errors import ChannelBusy, ChannelError, ChannelOutcomeUnknown, InvalidResult, StoreError
from genlock.domain.events import Event
from genlock.domain.job import AttentionCode, Job
from genlock.domain.money import HoldState
from genlock.domain.result import PartKind
from genlock.engine.context import EngineContext

#: before the first put; the statements `finish_delivery` and `begin_notice` have the same number
FIRST_SECONDS = 4.0
#: each distance is this many times the age of the end
GROWTH = 2.0
#: how long after a file was put a text edit that was accepted before may take effect
FILE_SECONDS = 12.0
#: the store's clock has a resolution: the last put may come this much too early
TICK = 0.01
#: between attempts of the last put, when the channel does not answer
RETRY_SECONDS = 20.0


def part_to_put_again(job: Job, parts: tuple[Part, ...]) -> Part | None:
    """Return the part to put on the message that a late progress edit may overwrite, or that shows no end."""
    if job.progress_message is None or not parts:
        return None
    first, resent = parts[0], parts[0].message != job.progress_message
    if job.late and resent:
        first = message_instead(first)  # the late result has a message of its own
    # A result that was not confirmed is not paid for, and one that crashed the workers is not tried again: neither is
    # put again. Our own message always is.
    settled = resent and job.hold_state in (HoldState.CAPTURED, HoldState.FREE)  # by the delivery before
    shown = first.step is Step.DONE or (settled and job.attention_code is not AttentionCode.POISON)
    if shown or first.kind is PartKind.MESSAGE:
        return replace(first, message=job.progress_message, step=Step.PUT)
    return None


async def put_again(ctx: EngineContext, job: Job) -> float | None:
    """Put the end again. Returns the seconds until the next put; None when no late edit is possible any more."""
    part = part_to_put_again(job, job.parts)
    if part is None:
        return None
    age = (job.read_at - (job.ended_at or job.read_at)).total_seconds()
    is_file = part.kind is PartKind.FILE and part.level is not Level.TEXT
    over = FILE_SECONDS if is_file else ctx.rules.late_progress_seconds
    try:
        # The message of a late job is about the end before its result arrived.
        await _put(ctx, replace(job, late=False), part)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - the job has its end, so a bug in the channel must not park it
        return _seconds_after(ctx, job, error, give_up=age >= 2 * over)
    return min(max(FIRST_SECONDS, GROWTH * age), over - age) if age < over - TICK else None


async def _put(ctx: EngineContext, job: Job, part: Part) -> None:
    channel = ctx.channels[job.channel]
    try:
        await channel.put(job, 0, part)
    except InvalidResult:  # otherwise the message would show progress without end
        await channel.put(job, 0, message_instead(part))


def _seconds_after(ctx: EngineContext, job: Job, error: Exception, *, give_up: bool) -> float | None:
    """Return the seconds after which a failed put is tried again; None if it is not."""
    ctx.event(Event.DELIVER_FAIL, job, step="put_again", reason=type(error).__name__)
    if not isinstance(error, ChannelError):
        ctx.event(Event.STAGE_ERROR, job, error=repr(error))
        ctx.observer.count("stage_errors", 1, state=job.state)
    elif not isinstance(error, ChannelBusy | ChannelOutcomeUnknown):
        return None  # the message is gone, or the user: nothing is left to be overwritten
    if give_up:
        return None
    return max(RETRY_SECONDS, error.after if isinstance(error, ChannelBusy) else 0.0)
