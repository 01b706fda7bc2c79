"""Deliver: put each part of a result on its message. Puts can be repeated; a send is journaled before it is made."""

import asyncio
from dataclasses import replace

from genlock.domain.delivery import Part, Step, shown_results, without_invalid
from genlock.domain.errors import (
    AddressChanged,
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    InvalidResult,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
    StoreError,
)
from genlock.domain.events import Event
from genlock.domain.job import AttentionCode, Delivery, Job, Notice, State
from genlock.domain.money import HoldState
from genlock.domain.result import PartKind
from genlock.domain.retry import backoff
from genlock.engine.context import EngineContext, LeaseLost
from genlock.engine.put_again import part_to_put_again
from genlock.ports import Channel, Placed

#: the share of a lease during which its holder may call the channel; after that it must renew the lease first
LEASE_TRUSTED_SHARE = 0.8
#: how old an end may be for its notice to be tried again, for as long as the channel asks to wait
NOTICE_SECONDS_MAX = 86_400.0
#: before a notice is tried again that waits for the database
STORE_PAUSE_SECONDS = 1.0


class _SendUnknown(Exception):
    """A send may or may not have reached the chat, so it must not be repeated."""


class _NotShowable(Exception):
    """The channel refuses this part at every level, or the result is invalid."""


async def deliver(ctx: EngineContext, job: Job) -> None:
    """Show an ended job's parts, in order, each once, then send the notice."""
    ctx.event(Event.DELIVER_LOCK_WIN, job, token=job.lease_token, task_id=job.task_id)
    ctx.event(Event.DELIVER_START, job, parts=len(job.parts), attempt=job.attempts)
    started = ctx.loop.time()
    attempt = DeliveryAttempt(ctx, job)
    try:
        await attempt.run()
    except (ChannelBusy, ChannelOutcomeUnknown) as error:
        await _retry_later(ctx, attempt.job, attempt.parts, error)
    except RecipientUnreachable as unreachable:
        attention = AttentionCode.UNDELIVERABLE, unreachable.reason
        await _finish(ctx, attempt.job, attempt.parts, Delivery.UNDELIVERABLE, attention)
    except _NotShowable as refused:
        attention = AttentionCode.UNDELIVERABLE, str(refused)
        await _finish(ctx, attempt.job, attempt.parts, Delivery.UNDELIVERABLE, attention)
    except _SendUnknown:
        attention = AttentionCode.UNKNOWN_DELIVERY, "the channel's answer to a send was lost"
        await _finish(ctx, attempt.job, attempt.parts, Delivery.UNKNOWN, attention)
    else:
        took = round(ctx.loop.time() - started, 3)
        ctx.event(Event.DELIVER_OK, job, levels=",".join(part.level for part in attempt.parts), seconds=took)
        await _finish(ctx, attempt.job, attempt.parts, Delivery.DELIVERED, attempt.attention)


async def abandon_delivery(ctx: EngineContext, job: Job, attention: tuple[AttentionCode, str]) -> None:
    """End a delivery without another attempt and put the job on the operator's list."""
    sent = any(part.step is Step.SEND for part in job.parts)
    await _finish(ctx, job, job.parts, Delivery.UNKNOWN if sent else Delivery.UNDELIVERABLE, attention)


class DeliveryAttempt:
    """One attempt to show a job's parts. `parts` is how far it has come."""

    def __init__(self, ctx: EngineContext, job: Job) -> None:
        self._ctx = ctx
        self.job = job
        self._channel: Channel = ctx.channels[job.channel]
        self._clock = ctx.loop.time
        self._began = self._clock()
        self._trusted_until = self._began + ctx.lease.seconds * LEASE_TRUSTED_SHARE
        self.parts = self._channel.split(job.parts)

    async def run(self) -> None:
        """Show every part that is not shown yet. Raises ChannelError, _NotShowable and _SendUnknown."""
        if not self.parts:
            raise _NotShowable("nothing is left of it: it was erased")
        while (index := self._next()) is not None:
            await self._show(index)
            if self._next() is not None:  # the last part is saved with the end of the delivery
                await self._save()

    def _next(self) -> int | None:
        return next((index for index, part in enumerate(self.parts) if part.step is not Step.DONE), None)

    @property
    def attention(self) -> tuple[AttentionCode, str] | None:
        """Why an operator should look at a delivery in which every part was shown."""
        if self.job.has_result and any(part.kind is PartKind.MESSAGE for part in self.parts):
            return AttentionCode.UNDELIVERABLE, "a part of the result is invalid"
        return None

    async def _show(self, index: int) -> None:
        """Try lower levels, and a send instead of a put, until the part is shown."""
        while index < len(self.parts) and self.parts[index].step is not Step.DONE:
            part = self.parts[index]
            if part.step is Step.SEND:
                raise _SendUnknown
            self._check_lease()
            try:
                placed = await (self._send(index) if part.gone else self._put(index))
            except LevelRefused as refused:
                await self._lower_level(index, refused)
            except AddressChanged as change:
                await self._change_address(change.address)
            except InvalidResult as invalid:
                await self._mark_invalid(index, invalid)
            except PlaceholderGone:
                self._set(index, replace(self.parts[index], gone=True))
                await self._save()  # this also renews the lease: finding out may have taken a whole upload
            else:
                self._set(index, replace(part, step=Step.DONE, message=placed.message, file=placed.file))

    async def _put(self, index: int) -> Placed:
        part = self.parts[index]
        if part.message is None:
            # The first part takes the placeholder. Other parts, or a first one without it, get a message of their own.
            message = self.job.placeholder if index == 0 else None
            if message is None:
                message = await self._channel.create_placeholder(self.job, index)
                self._set(index, replace(part, message=message))
                await self._save()
            else:
                self._set(index, replace(part, message=message))
        return await self._channel.put(self.job, index, self.parts[index])

    async def _send(self, index: int) -> Placed:
        """Send a part whose message was deleted: once, journaled before the call."""
        self._set(index, replace(self.parts[index], step=Step.SEND))
        await self._save()
        try:
            return await self._channel.send(self.job, index, self.parts[index])
        except ChannelOutcomeUnknown as error:
            raise _SendUnknown from error
        except ChannelError as error:
            # The channel did not send it, so the part may be tried again.
            self._set(index, replace(self.parts[index], step=Step.PUT))
            await self._save()
            if isinstance(error, PlaceholderGone):  # a send has none: another one at once would be answered the same
                after = backoff(self.job.attempts, self._ctx.rng.random())
                raise ChannelBusy(after, str(error), failed=True) from error
            raise

    async def _lower_level(self, index: int, refused: LevelRefused) -> None:
        lower = self.parts[index].lower()
        if lower is None:
            raise _NotShowable(f"the channel refused the part at every level: {refused}"[:500])
        self._set(index, lower)
        await self._save()
        self._ctx.event(Event.LEVEL_LOWERED, self.job, index=index, level=lower.level, reason=str(refused))

    async def _change_address(self, address: str) -> None:
        """Continue at the chat's new address. Parts already shown stay in the old chat, which the user still sees."""
        self.parts = tuple(
            part if part.step is Step.DONE else replace(part, message=None, gone=False) for part in self.parts
        )
        self.job = await self._ctx.change_address(self.job, address, self.parts)

    async def _mark_invalid(self, index: int, invalid: InvalidResult) -> None:
        """Show a message in place of an invalid part, after the others. Without any valid part, fail the job."""
        job, part = self.job, self.parts[index]
        unpaid = job.state is State.SUCCEEDED and job.hold_state in (HoldState.HELD, HoldState.FREE)
        if part.kind is PartKind.MESSAGE or not (unpaid or job.late or job.state is State.FAILED):
            raise _NotShowable(f"the result is invalid: {invalid.reason}"[:500])
        self._ctx.event(Event.RESULT_INVALID, job, index=index, reason=invalid.reason)
        self.parts = without_invalid(self.parts, index)
        if any(other.kind is not PartKind.MESSAGE for other in self.parts):
            await self._save()
        else:
            self.job = await self._ctx.mark_result_invalid(job, self.parts, invalid.reason[:500])

    def _set(self, index: int, part: Part) -> None:
        self.parts = (*self.parts[:index], part, *self.parts[index + 1 :])

    async def _save(self) -> None:
        asked = self._clock()  # before the call: this process may be suspended during it
        await self._ctx.save_parts(self.job, self.parts)
        self._trusted_until = asked + self._ctx.lease.seconds * LEASE_TRUSTED_SHARE

    def _check_lease(self) -> None:
        """Raise LeaseLost if the lease may be over: the channel cannot check our token, so this process must."""
        self._ctx.fenced(self._clock() < self._trusted_until, self.job)


async def _retry_later(ctx: EngineContext, job: Job, parts: tuple[Part, ...], error: ChannelError) -> None:
    """Schedule the next attempt with back-off, or give the delivery up after too many."""
    ctx.event(Event.DELIVER_FAIL, job, reason=type(error).__name__, attempt=job.attempts)
    ctx.observer.count("deliveries", 1, outcome=type(error).__name__, level=_level(parts))
    busy = isinstance(error, ChannelBusy) and not error.failed
    if not busy and job.attempts + 1 >= ctx.rules.delivery_attempts:
        attention = AttentionCode.RETRIES_EXHAUSTED, f"gave up after {job.attempts + 1} tries"
        await _finish(ctx, job, parts, Delivery.UNDELIVERABLE, attention)
        return
    if not busy and job.attempts + 1 >= ctx.rules.level_attempts:
        parts = _next_level(ctx, job, parts, error)
    after = error.after if isinstance(error, ChannelBusy) else backoff(job.attempts, ctx.rng.random())
    await ctx.reschedule(job, after=after, delivery=Delivery.PENDING, parts=parts, failed=None if busy else True)
    ctx.event(Event.DELIVERY_RETRY, job, after=round(after, 1))


def _next_level(ctx: EngineContext, job: Job, parts: tuple[Part, ...], error: ChannelError) -> tuple[Part, ...]:
    """Lower the level of the part that could not be shown, if it has a lower one. An upload may fail every time.

    A file that the channel has is not uploaded: it stays, because it may be all that is left of the result.
    """
    index = next((index for index, part in enumerate(parts) if part.step is not Step.DONE), len(parts))
    lower = parts[index].lower() if index < len(parts) and parts[index].file is None else None
    if lower is None:
        return parts
    ctx.event(Event.LEVEL_LOWERED, job, index=index, level=lower.level, reason=str(error))
    return (*parts[:index], lower, *parts[index + 1 :])


def _level(parts: tuple[Part, ...]) -> str:
    """Return the level at which the first part was shown, or is tried next."""
    return parts[0].level if parts else ""


async def _finish(
    ctx: EngineContext,
    job: Job,
    parts: tuple[Part, ...],
    delivery: Delivery,
    attention: tuple[AttentionCode, str] | None,
) -> None:
    """End the delivery. A result of which any part was shown counts as delivered, whatever became of the rest."""
    shown = shown_results(parts)
    if attention and shown and delivery is not Delivery.DELIVERED:
        delivery, attention = Delivery.DELIVERED, (attention[0], f"{shown} of {len(parts)} parts shown: {attention[1]}")
    code, reason = attention or (None, None)
    judged = job if job.attention_code is code else replace(job, attention_code=code)
    overwritable = part_to_put_again(judged, parts) is not None
    end = await ctx.finish_delivery(job, delivery, parts, attention, overwritable=overwritable)
    ctx.observer.count("deliveries", 1, outcome=delivery, level=_level(parts))
    if attention:
        ctx.event(Event.ATTENTION, job, reason=attention[1], delivery=delivery)
    else:
        ctx.event(Event.MARK_DELIVERED, job, hold_state=end.hold_state)
    if end.notice is Notice.DUE:
        ended = replace(
            job,
            parts=parts,
            delivery=delivery,
            attention_code=code,
            attention_reason=reason,
            hold_state=end.hold_state,
            notice=end.notice,
            attempts=0,
        )
        await notify(ctx, ended)


async def notify(ctx: EngineContext, job: Job) -> None:
    """Send the final notice: journaled, then sent at most once. Its bot learns of the end before, at least once."""
    if (handle_end := ctx.end_handlers.get(job.bot)) is not None:
        await handle_end(job)
    await ctx.begin_notice(job)
    try:
        await _send_notice(ctx, job)
    except ChannelBusy as busy:
        await _send_notice_later(ctx, job, busy)
    except Exception as error:  # noqa: BLE001 - whatever failed, the notice may have been sent: never again
        ctx.event(Event.NOTICE_FAIL, job, reason=type(error).__name__)
    else:
        ctx.event(Event.NOTICE_SENT, job)


async def _send_notice(ctx: EngineContext, job: Job) -> None:
    channel = ctx.channels[job.channel]
    try:
        await channel.notify(job)
    except AddressChanged as change:  # nothing was sent to the old address
        await channel.notify(await _moved(ctx, job, change.address))


async def _moved(ctx: EngineContext, job: Job, address: str) -> Job:
    """Return the job at its chat's new address, and record that unless the job is leased again meanwhile."""
    try:
        return await ctx.change_address(job, address, job.parts)
    except LeaseLost:
        return replace(job, address=address, placeholder=None)
    except StoreError as error:
        raise ChannelBusy(STORE_PAUSE_SECONDS, str(error), failed=True) from error


async def _send_notice_later(ctx: EngineContext, job: Job, busy: ChannelBusy) -> None:
    """Make a notice due again that the channel has not sent. The job may be leased again meanwhile."""
    age = (job.read_at - (job.ended_at or job.read_at)).total_seconds()
    if age > NOTICE_SECONDS_MAX or (busy.failed and job.attempts >= ctx.rules.stage_attempts):
        ctx.event(Event.NOTICE_FAIL, job, reason="busy for too long")
        return
    for attempt in range(ctx.rules.stage_attempts):
        try:
            await ctx.store.return_notice(job.id, job.lease_token, busy.after, failed=busy.failed)
        except StoreError as error:
            ctx.event(Event.STAGE_ERROR, job, step="notice", error=str(error))
            await asyncio.sleep(backoff(attempt, ctx.rng.random()))
        else:
            return
