"""Deliver: put each part on its message. Puts may be repeated; what may not be is journaled first."""

import asyncio
from dataclasses import replace

from genlock.domain.delivery import Level, Part, Step, message_instead
from genlock.domain.errors import (
    AddressChanged,
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    InvalidResult,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
)
from genlock.domain.events import Event
from genlock.domain.job import AttentionCode, Delivery, Job, Notice, State
from genlock.domain.money import HoldState
from genlock.domain.result import PartKind
from genlock.domain.retry import backoff
from genlock.engine.context import EngineContext
from genlock.ports import Channel, FinishDelivery, Placed, Reschedule

#: the part of a lease after which its holder no longer acts on it without a renewal
TRUST = 0.8


class _SendUnknown(Exception):
    """A send may have been made, and nobody knows: it must not be made again."""


class _NotShowable(Exception):
    """The channel refuses this part at every level, or there is nothing to show."""


async def deliver(ctx: EngineContext, job: Job) -> None:
    """Show an ended job's parts, in order, each once, then the notice."""
    ctx.event(Event.DELIVER_LOCK_WIN, job, token=job.lease_token, task_id=job.task_id)
    ctx.event(Event.DELIVER_START, job, parts=len(job.parts), attempt=job.attempts)
    started = ctx.loop.time()
    showing = _Showing(ctx, job)
    try:
        await showing.all()
    except (ChannelBusy, ChannelOutcomeUnknown) as error:
        await _later(ctx, showing.job, showing.journal, error)
    except RecipientUnreachable as closed:
        await _finish(
            ctx, showing.job, showing.parts, Delivery.UNDELIVERABLE, closed.reason, AttentionCode.UNDELIVERABLE
        )
    except _NotShowable as why:
        await _finish(ctx, showing.job, showing.parts, Delivery.UNDELIVERABLE, str(why), AttentionCode.UNDELIVERABLE)
    except _SendUnknown:
        await _finish(
            ctx,
            showing.job,
            showing.parts,
            Delivery.UNKNOWN,
            "a send's answer was lost",
            AttentionCode.UNKNOWN_DELIVERY,
        )
    else:
        took = round(ctx.loop.time() - started, 3)
        ctx.event(Event.DELIVER_OK, job, levels=",".join(part.level for part in showing.parts), seconds=took)
        await _finish(ctx, showing.job, showing.parts, Delivery.DELIVERED, None)


async def abandon(ctx: EngineContext, job: Job, reason: str, code: AttentionCode) -> None:
    """Do not try to show a job's parts any more: money back, on the operator's list."""
    sent = any(part.step is Step.SEND for part in job.parts)
    await _finish(ctx, job, job.parts, Delivery.UNKNOWN if sent else Delivery.UNDELIVERABLE, reason, code)


class _Showing:
    """One attempt at one job's parts. `parts` is what has been reached so far."""

    def __init__(self, ctx: EngineContext, job: Job) -> None:
        self._ctx = ctx
        self.job = job
        self._channel: Channel = ctx.channels[job.channel]
        self._clock = ctx.loop.time
        self._began = self._clock()
        self._trusted_until = self._began + ctx.lease.seconds * TRUST
        self.parts = self._channel.split(job.parts)
        #: how old a delivery must be before no progress edit of the time before can come in any more
        self._settle = ctx.rules.settle_seconds if ctx.shows_progress else 0.0

    async def all(self) -> None:
        while (index := self._next()) is not None:
            await self._one(index)
            if self._next() is not None:  # the last one is written with the end of the delivery
                await self._save()
        await self._assert_again()

    def _next(self) -> int | None:
        return next((index for index, part in enumerate(self.parts) if part.step is not Step.DONE), None)

    @property
    def journal(self) -> tuple[Part, ...]:
        """What whoever takes over must know: a first part that may be overwritten is to be put again."""
        first = self.parts[0]
        if first.step is Step.DONE and self._overwritable:
            return (replace(first, step=Step.PUT), *self.parts[1:])
        return self.parts

    @property
    def _overwritable(self) -> bool:
        """Whether a progress edit may still be on its way to the first part's message.

        So it is if somebody was at the job when it ended. Of another's delivery we cannot know, while it is young; but
        a file cannot be overwritten by a text.
        """
        first, job = self.parts[0], self.job
        if first.gone or first.message is None or first.message != job.placeholder:
            return False
        if job.fresh:
            return job.interrupted and self._settle > 0.0
        return self._age(0.0) < self._settle and (first.kind is not PartKind.FILE or first.level is Level.TEXT)

    def _age(self, since: float) -> float:
        """Seconds since the job ended, when `since` seconds have passed in this delivery."""
        return (self.job.read_at - (self.job.ended_at or self.job.read_at)).total_seconds() + since

    async def _assert_again(self) -> None:
        """A progress edit that was on the wire when the job ended may have come after the result: put it once more."""
        if not self._overwritable:
            return
        first, job = self.parts[0], self.job
        await asyncio.sleep(max(0.0, self._settle - self._age(self._clock() - self._began)))
        self._still_ours()
        try:
            await self._channel.put(job, 0, replace(first, step=Step.PUT))
        except (PlaceholderGone, LevelRefused, RecipientUnreachable, InvalidResult) as error:
            # It has been shown, and whatever happened since is not ours to undo.
            self._ctx.event(Event.DELIVER_FAIL, job, step="assert", reason=type(error).__name__)

    async def _one(self, index: int) -> None:
        """Go down the levels, and from putting to sending, until the part is shown."""
        while index < len(self.parts) and self.parts[index].step is not Step.DONE:
            part = self.parts[index]
            if part.step is Step.SEND:
                raise _SendUnknown
            self._still_ours()
            try:
                placed = await (self._send(index) if part.gone else self._put(index))
            except LevelRefused as refused:
                await self._lower(index, refused)
            except AddressChanged as moved:
                await self._move(moved.address)
            except InvalidResult as broken:
                await self._spoil(index, broken)
            except PlaceholderGone:
                self._set(index, replace(self.parts[index], gone=True))
                await self._save()  # also a renewal: finding it gone may have taken a whole upload
            else:
                self._set(index, replace(part, step=Step.DONE, message=placed.message, file=placed.file))

    async def _put(self, index: int) -> Placed:
        part = self.parts[index]
        if part.message is None:
            # The first part takes the placeholder; the others, and a first without one, get a message of their own.
            message = self.job.placeholder if index == 0 else None
            if message is None:
                message = await self._channel.create_placeholder(self.job, index)
                self._set(index, replace(part, message=message))
                await self._save()
            else:
                self._set(index, replace(part, message=message))
        return await self._channel.put(self.job, index, self.parts[index])

    async def _send(self, index: int) -> Placed:
        """The message is gone: one send, journaled before it is made."""
        self._set(index, replace(self.parts[index], step=Step.SEND))
        await self._save()
        try:
            return await self._channel.send(self.job, index, self.parts[index])
        except ChannelOutcomeUnknown as error:
            raise _SendUnknown from error
        except ChannelError:
            # Provably not sent: the part is free again.
            self._set(index, replace(self.parts[index], step=Step.PUT))
            await self._save()
            raise

    async def _lower(self, index: int, refused: LevelRefused) -> None:
        lower = self.parts[index].lower()
        if lower is None:
            raise _NotShowable(f"the channel refused every way of showing it: {refused}"[:500])
        self._set(index, lower)
        await self._save()

    async def _move(self, address: str) -> None:
        """Go on in the chat's new place. What has been shown stayed in the old one, and is seen from both."""
        self.parts = tuple(
            part if part.step is Step.DONE else replace(part, message=None, gone=False) for part in self.parts
        )
        self.job = await move(self._ctx, self.job, address, self.parts)

    async def _spoil(self, index: int, broken: InvalidResult) -> None:
        """What was called a result is none: money back, words in its place. Other parts are shown, free."""
        job, part = self.job, self.parts[index]
        unpaid = job.state is State.SUCCEEDED and job.hold_state in (HoldState.HELD, HoldState.FREE)
        if part.kind is PartKind.MESSAGE or not (unpaid or job.state is State.FAILED):
            raise _NotShowable(f"the result is broken: {broken.reason}"[:500])
        self._ctx.event(Event.RESULT_BROKEN, job, index=index, reason=broken.reason)
        if any(other.kind is PartKind.MESSAGE for other in self.parts):  # once is enough
            self.parts = (*self.parts[:index], *self.parts[index + 1 :])
        else:
            self._set(index, message_instead(part))
        spoilt = await self._ctx.store.mark_result_invalid(
            job.id, job.lease_token, self.parts, "broken_result", broken.reason[:500]
        )
        self._ctx.fenced(spoilt, job)
        assert spoilt is not None
        self.job = replace(
            job,
            state=spoilt.state,
            hold_state=spoilt.hold_state,
            error_code=spoilt.error_code,
            error_text=spoilt.error_text,
        )

    def _set(self, index: int, part: Part) -> None:
        self.parts = (*self.parts[:index], part, *self.parts[index + 1 :])

    async def _save(self) -> None:
        job, store = self.job, self._ctx.store
        asked = self._clock()  # not when it is answered: we may sleep in between
        self._ctx.fenced(await store.save_parts(job.id, job.lease_token, self.journal, self._ctx.lease), job)
        self._trusted_until = asked + self._ctx.lease.seconds * TRUST

    def _still_ours(self) -> None:
        """The channel cannot check our token. A process that slept through its lease must not touch the chat."""
        self._ctx.fenced(self._clock() < self._trusted_until, self.job)


async def move(ctx: EngineContext, job: Job, address: str, parts: tuple[Part, ...]) -> Job:
    """Write down that a job's chat has another address; its placeholder stayed behind."""
    ctx.fenced(await ctx.store.change_address(job.id, job.lease_token, address, parts), job)
    ctx.event(Event.CHAT_MOVED, job, address=address)
    return replace(job, address=address, placeholder=None, parts=parts)


async def _later(ctx: EngineContext, job: Job, parts: tuple[Part, ...], error: ChannelError) -> None:
    """Free the job for another try: at once after a lost answer, later each time; on the list when hope is gone."""
    ctx.event(Event.DELIVER_FAIL, job, reason=type(error).__name__, attempt=job.attempts)
    ctx.observer.count("deliveries", 1, outcome=type(error).__name__, level=_level(parts))
    busy = isinstance(error, ChannelBusy) and not error.failed
    if not busy and job.attempts + 1 >= ctx.rules.delivery_attempts:
        reason = f"gave up after {job.attempts + 1} tries"
        await _finish(ctx, job, parts, Delivery.UNDELIVERABLE, reason, AttentionCode.RETRIES_EXHAUSTED)
        return
    after = error.after if isinstance(error, ChannelBusy) else backoff(job.attempts, ctx.rng.random())
    wait = Reschedule(
        job_id=job.id,
        token=job.lease_token,
        after=after,
        delivery=Delivery.PENDING,
        parts=parts,
        failed=None if busy else True,
    )
    ctx.fenced(await ctx.store.reschedule(wait), job)
    ctx.event(Event.DELIVERY_RETRY, job, after=round(after, 1))


def _level(parts: tuple[Part, ...]) -> str:
    """How the first part was shown, or would be next."""
    return parts[0].level if parts else ""


async def _finish(
    ctx: EngineContext,
    job: Job,
    parts: tuple[Part, ...],
    delivery: Delivery,
    attention_reason: str | None,
    attention_code: AttentionCode = AttentionCode.OTHER,
) -> None:
    finish = FinishDelivery(
        job_id=job.id,
        token=job.lease_token,
        delivery=delivery,
        parts=parts,
        attention_reason=attention_reason,
        attention_code=attention_code,
    )
    done = await ctx.store.finish_delivery(finish, ctx.lease)
    ctx.observer.count("deliveries", 1, outcome=delivery, level=_level(parts))
    ctx.fenced(done, job)
    assert done is not None
    if attention_reason:
        ctx.event(Event.ATTENTION, job, reason=attention_reason, delivery=delivery)
    else:
        ctx.event(Event.MARK_DELIVERED, job, hold_state=done.hold_state)
    if done.notice is Notice.DUE:
        await notify(ctx, replace(job, parts=parts, hold_state=done.hold_state, notice=done.notice, attempts=0))


async def notify(ctx: EngineContext, job: Job) -> None:
    """The final notice: journaled, then sent at most once."""
    ctx.fenced(await ctx.store.begin_notice(job.id, job.lease_token), job)
    try:
        await _say(ctx, job)
    except ChannelBusy as busy:
        if job.attempts >= ctx.rules.stage_attempts:
            ctx.event(Event.NOTICE_FAIL, job, reason="busy for too long")
            return
        # Provably not sent: it may be tried again.
        wait = Reschedule(job_id=job.id, token=job.lease_token, after=busy.after, notice=Notice.DUE, failed=True)
        ctx.fenced(await ctx.store.reschedule(wait), job)
    except Exception as error:  # noqa: BLE001 - whatever it was, the notice may have been sent: never again
        ctx.event(Event.NOTICE_FAIL, job, reason=type(error).__name__)
    else:
        ctx.event(Event.NOTICE_SENT, job)


async def _say(ctx: EngineContext, job: Job) -> None:
    channel = ctx.channels[job.channel]
    try:
        await channel.notify(job)
    except AddressChanged as moved:  # provably not sent there
        await channel.notify(await move(ctx, job, moved.address, job.parts))
