"""Deliver: put each part on its message. Puts may be repeated; what may not be is journaled first."""

from dataclasses import replace

from genlock.domain.delivery import Part, Step
from genlock.domain.errors import (
    ChannelBusy,
    ChannelError,
    ChannelUnknown,
    ChatClosed,
    LevelRefused,
    PlaceholderGone,
)
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, Notice
from genlock.domain.retry import backoff
from genlock.engine.kit import Kit
from genlock.ports import Channel, Finish, Placed, Wait

#: the part of a lease after which its holder no longer acts on it without a renewal
TRUST = 0.8


class _SendUnknown(Exception):
    """A send may have been made, and nobody knows: it must not be made again."""


class _NoLevelLeft(Exception):
    """The channel refuses this part at every level."""


async def deliver(kit: Kit, job: Job) -> None:
    """Show an ended job's parts, in order, each once, then the notice."""
    kit.event(Event.DELIVER_LOCK_WIN, job, token=job.lease_token, task_id=job.task_id)
    kit.event(Event.DELIVER_START, job, parts=len(job.parts), attempt=job.attempts)
    started = kit.loop.time()
    showing = _Showing(kit, job)
    try:
        await showing.all()
    except (ChannelBusy, ChannelUnknown) as error:
        await _later(kit, job, showing.parts, error)
    except ChatClosed as closed:
        await _finish(kit, job, showing.parts, Delivery.UNDELIVERABLE, closed.reason)
    except _NoLevelLeft:
        await _finish(kit, job, showing.parts, Delivery.UNDELIVERABLE, "the channel refused every way of showing it")
    except _SendUnknown:
        await _finish(kit, job, showing.parts, Delivery.UNKNOWN, "a send's answer was lost")
    else:
        took = round(kit.loop.time() - started, 3)
        kit.event(Event.DELIVER_OK, job, levels=",".join(part.level for part in showing.parts), seconds=took)
        await _finish(kit, job, showing.parts, Delivery.DELIVERED, None)


class _Showing:
    """One attempt at one job's parts. `parts` is what has been reached so far."""

    def __init__(self, kit: Kit, job: Job) -> None:
        self._kit = kit
        self._job = job
        self._channel: Channel = kit.channels[job.channel]
        self._clock = kit.loop.time
        self._trusted_until = self._clock() + kit.lease.seconds * TRUST
        self.parts = job.parts

    async def all(self) -> None:
        for index, part in enumerate(self.parts):
            if part.step is Step.DONE:
                continue
            await self._one(index)
            if index + 1 < len(self.parts):  # the last one is written with the end of the delivery
                await self._save()

    async def _one(self, index: int) -> None:
        """Go down the levels, and from putting to sending, until the part is shown."""
        while self.parts[index].step is not Step.DONE:
            part = self.parts[index]
            if part.step is Step.SEND:
                raise _SendUnknown
            self._still_ours()
            try:
                placed = await (self._send(index) if part.gone else self._put(index))
            except LevelRefused:
                await self._lower(index)
            except PlaceholderGone:
                self._set(index, replace(self.parts[index], gone=True))
                await self._save()  # also a renewal: finding it gone may have taken a whole upload
            else:
                self._set(index, replace(part, step=Step.DONE, message=placed.message, file=placed.file))

    async def _put(self, index: int) -> Placed:
        part = self.parts[index]
        if part.message is None:
            # The first part takes the placeholder; the others, and a first without one, get a message of their own.
            message = self._job.placeholder if index == 0 else None
            if message is None:
                message = await self._channel.place(self._job, index)
                self._set(index, replace(part, message=message))
                await self._save()
            else:
                self._set(index, replace(part, message=message))
        return await self._channel.put(self._job, index, self.parts[index])

    async def _send(self, index: int) -> Placed:
        """The message is gone: one send, journaled before it is made."""
        self._set(index, replace(self.parts[index], step=Step.SEND))
        await self._save()
        try:
            return await self._channel.send(self._job, index, self.parts[index])
        except ChannelUnknown as error:
            raise _SendUnknown from error
        except ChannelError:
            # Provably not sent: the part is free again.
            self._set(index, replace(self.parts[index], step=Step.PUT))
            await self._save()
            raise

    async def _lower(self, index: int) -> None:
        lower = self.parts[index].lower()
        if lower is None:
            raise _NoLevelLeft
        self._set(index, lower)
        await self._save()

    def _set(self, index: int, part: Part) -> None:
        self.parts = (*self.parts[:index], part, *self.parts[index + 1 :])

    async def _save(self) -> None:
        job, store = self._job, self._kit.store
        asked = self._clock()  # not when it is answered: we may sleep in between
        self._kit.fenced(await store.save_parts(job.id, job.lease_token, self.parts, self._kit.lease), job)
        self._trusted_until = asked + self._kit.lease.seconds * TRUST

    def _still_ours(self) -> None:
        """The channel cannot check our token. A process that slept through its lease must not touch the chat."""
        self._kit.fenced(self._clock() < self._trusted_until, self._job)


async def _later(kit: Kit, job: Job, parts: tuple[Part, ...], error: ChannelError) -> None:
    """Free the job for another try: at once after a lost answer, later each time; on the list when hope is gone."""
    kit.event(Event.DELIVER_FAIL, job, reason=type(error).__name__, attempt=job.attempts)
    kit.observer.count("deliveries", 1, outcome=type(error).__name__, level=_level(parts))
    busy = isinstance(error, ChannelBusy)
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
        await kit.channels[job.channel].notify(job)
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
