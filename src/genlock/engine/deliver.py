"""Deliver: put each part on its message. Puts may be repeated; what may not be is journaled first."""

import asyncio
from dataclasses import replace

from genlock.domain.delivery import Level, Part, Step, words_instead
from genlock.domain.errors import (
    ChannelBusy,
    ChannelError,
    ChannelUnknown,
    ChatClosed,
    ChatMoved,
    LevelRefused,
    PlaceholderGone,
    ResultBroken,
)
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.money import Purse
from genlock.domain.result import PartKind
from genlock.domain.retry import backoff
from genlock.engine.kit import Kit
from genlock.ports import Channel, Finish, Placed, Wait

#: the part of a lease after which its holder no longer acts on it without a renewal
TRUST = 0.8


class _SendUnknown(Exception):
    """A send may have been made, and nobody knows: it must not be made again."""


class _NotShowable(Exception):
    """The channel refuses this part at every level, or there is nothing to show."""


async def deliver(kit: Kit, job: Job) -> None:
    """Show an ended job's parts, in order, each once, then the notice."""
    kit.event(Event.DELIVER_LOCK_WIN, job, token=job.lease_token, task_id=job.task_id)
    kit.event(Event.DELIVER_START, job, parts=len(job.parts), attempt=job.attempts)
    started = kit.loop.time()
    showing = _Showing(kit, job)
    try:
        await showing.all()
    except (ChannelBusy, ChannelUnknown) as error:
        await _later(kit, showing.job, showing.journal, error)
    except ChatClosed as closed:
        await _finish(kit, showing.job, showing.parts, Delivery.UNDELIVERABLE, closed.reason)
    except _NotShowable as why:
        await _finish(kit, showing.job, showing.parts, Delivery.UNDELIVERABLE, str(why))
    except _SendUnknown:
        await _finish(kit, showing.job, showing.parts, Delivery.UNKNOWN, "a send's answer was lost")
    else:
        took = round(kit.loop.time() - started, 3)
        kit.event(Event.DELIVER_OK, job, levels=",".join(part.level for part in showing.parts), seconds=took)
        await _finish(kit, showing.job, showing.parts, Delivery.DELIVERED, None)


async def abandon(kit: Kit, job: Job, reason: str) -> None:
    """Do not try to show a job's parts any more: money back, on the operator's list."""
    sent = any(part.step is Step.SEND for part in job.parts)
    await _finish(kit, job, job.parts, Delivery.UNKNOWN if sent else Delivery.UNDELIVERABLE, reason)


class _Showing:
    """One attempt at one job's parts. `parts` is what has been reached so far."""

    def __init__(self, kit: Kit, job: Job) -> None:
        self._kit = kit
        self.job = job
        self._channel: Channel = kit.channels[job.channel]
        self._clock = kit.loop.time
        self._began = self._clock()
        self._trusted_until = self._began + kit.lease.seconds * TRUST
        self.parts = self._channel.divide(job.parts)
        #: how old a delivery must be before no progress edit of the time before can come in any more
        self._settle = kit.rules.settle_seconds if kit.shows_progress else 0.0

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
        except (PlaceholderGone, LevelRefused, ChatClosed, ResultBroken) as error:
            # It has been shown, and whatever happened since is not ours to undo.
            self._kit.event(Event.DELIVER_FAIL, job, step="assert", reason=type(error).__name__)

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
            except ChatMoved as moved:
                await self._move(moved.address)
            except ResultBroken as broken:
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
                message = await self._channel.place(self.job, index)
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
        except ChannelUnknown as error:
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
        self.job = await move(self._kit, self.job, address, self.parts)

    async def _spoil(self, index: int, broken: ResultBroken) -> None:
        """What was called a result is none: money back, words in its place. Other parts are shown, free."""
        job, part = self.job, self.parts[index]
        unpaid = job.state is State.SUCCEEDED and job.purse in (Purse.HELD, Purse.FREE)
        if part.kind is PartKind.WORDS or not (unpaid or job.state is State.FAILED):
            raise _NotShowable(f"the result is broken: {broken.reason}"[:500])
        self._kit.event(Event.RESULT_BROKEN, job, index=index, reason=broken.reason)
        if any(other.kind is PartKind.WORDS for other in self.parts):  # once is enough
            self.parts = (*self.parts[:index], *self.parts[index + 1 :])
        else:
            self._set(index, words_instead(part))
        spoilt = await self._kit.store.spoil(job.id, job.lease_token, self.parts, "broken_result", broken.reason[:500])
        self._kit.fenced(spoilt, job)
        assert spoilt is not None
        self.job = replace(
            job, state=spoilt.state, purse=spoilt.purse, error_code=spoilt.error_code, error_text=spoilt.error_text
        )

    def _set(self, index: int, part: Part) -> None:
        self.parts = (*self.parts[:index], part, *self.parts[index + 1 :])

    async def _save(self) -> None:
        job, store = self.job, self._kit.store
        asked = self._clock()  # not when it is answered: we may sleep in between
        self._kit.fenced(await store.save_parts(job.id, job.lease_token, self.journal, self._kit.lease), job)
        self._trusted_until = asked + self._kit.lease.seconds * TRUST

    def _still_ours(self) -> None:
        """The channel cannot check our token. A process that slept through its lease must not touch the chat."""
        self._kit.fenced(self._clock() < self._trusted_until, self.job)


async def move(kit: Kit, job: Job, address: str, parts: tuple[Part, ...]) -> Job:
    """Write down that a job's chat has another address; its placeholder stayed behind."""
    kit.fenced(await kit.store.move(job.id, job.lease_token, address, parts), job)
    kit.event(Event.CHAT_MOVED, job, address=address)
    return replace(job, address=address, placeholder=None, parts=parts)


async def _later(kit: Kit, job: Job, parts: tuple[Part, ...], error: ChannelError) -> None:
    """Free the job for another try: at once after a lost answer, later each time; on the list when hope is gone."""
    kit.event(Event.DELIVER_FAIL, job, reason=type(error).__name__, attempt=job.attempts)
    kit.observer.count("deliveries", 1, outcome=type(error).__name__, level=_level(parts))
    busy = isinstance(error, ChannelBusy) and not error.failed
    if not busy and job.attempts + 1 >= kit.rules.delivery_attempts:
        await _finish(kit, job, parts, Delivery.UNDELIVERABLE, f"gave up after {job.attempts + 1} tries")
        return
    after = error.after if isinstance(error, ChannelBusy) else backoff(job.attempts, kit.chance.random())
    wait = Wait(
        job_id=job.id,
        token=job.lease_token,
        after=after,
        delivery=Delivery.PENDING,
        parts=parts,
        failed=None if busy else True,
    )
    kit.fenced(await kit.store.wait(wait), job)
    kit.event(Event.DELIVERY_RETRY, job, after=round(after, 1))


def _level(parts: tuple[Part, ...]) -> str:
    """How the first part was shown, or would be next."""
    return parts[0].level if parts else ""


async def _finish(kit: Kit, job: Job, parts: tuple[Part, ...], delivery: Delivery, attention: str | None) -> None:
    finish = Finish(job_id=job.id, token=job.lease_token, delivery=delivery, parts=parts, attention=attention)
    done = await kit.store.finish(finish, kit.lease)
    kit.observer.count("deliveries", 1, outcome=delivery, level=_level(parts))
    kit.fenced(done, job)
    assert done is not None
    if attention:
        kit.event(Event.ATTENTION, job, reason=attention, delivery=delivery)
    else:
        kit.event(Event.MARK_DELIVERED, job, purse=done.purse)
    if done.notice is Notice.DUE:
        await notify(kit, replace(job, parts=parts, purse=done.purse, notice=done.notice, attempts=0))


async def notify(kit: Kit, job: Job) -> None:
    """The final notice: journaled, then sent at most once."""
    kit.fenced(await kit.store.begin_notice(job.id, job.lease_token), job)
    try:
        await _say(kit, job)
    except ChannelBusy as busy:
        if job.attempts >= kit.rules.stage_attempts:
            kit.event(Event.NOTICE_FAIL, job, reason="busy for too long")
            return
        # Provably not sent: it may be tried again.
        wait = Wait(job_id=job.id, token=job.lease_token, after=busy.after, notice=Notice.DUE, failed=True)
        kit.fenced(await kit.store.wait(wait), job)
    except Exception as error:  # noqa: BLE001 - whatever it was, the notice may have been sent: never again
        kit.event(Event.NOTICE_FAIL, job, reason=type(error).__name__)
    else:
        kit.event(Event.NOTICE_SENT, job)


async def _say(kit: Kit, job: Job) -> None:
    channel = kit.channels[job.channel]
    try:
        await channel.notify(job)
    except ChatMoved as moved:  # provably not sent there
        await channel.notify(await move(kit, job, moved.address, job.parts))
