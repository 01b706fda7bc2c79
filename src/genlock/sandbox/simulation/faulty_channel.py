"""A channel with faults: lost answers, rate limits, refusals, deleted messages, unreachable chats."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from genlock.domain.delivery import Level, Part
from genlock.domain.errors import (
    AddressChanged,
    ChannelBusy,
    ChannelOutcomeUnknown,
    InvalidResult,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
)
from genlock.domain.job import Delivery, Job
from genlock.domain.result import PartKind
from genlock.ports import Channel, Placed
from genlock.sandbox.simulation.world import Message, World

PROGRESS_POINTS = tuple(step / 10 for step in range(1, 10))
#: how long after its caller stopped waiting a slow progress edit may still take effect
LATE_EDIT_SECONDS = 1.5
#: the same for one whose connection hangs
LATE_EDIT_SECONDS_MAX = 35.0
_DEPTH = {Level.ADDRESS: 0, Level.BYTES: 1, Level.DOCUMENT: 2, Level.TEXT: 3}


class FaultyChannel(Channel):
    name = "chat"

    def __init__(self, world: World) -> None:
        self._world = world
        self._truth = world.truth
        self._rng = world.stream("channel")
        #: whether a bot that was blocked may still edit its messages; Telegram does not document it
        self._edits_pass_block = world.stream("block").random() < 0.5
        #: whether messages of a chat whose address changed can no longer be edited, as in a group that has migrated
        self._edits_end_with_address = world.afterwards and world.stream("moves").random() < 0.5

    # the Channel port

    async def create_placeholder(self, job: Job, index: int) -> str:
        await self._arrive("create_placeholder", job)
        if self._world.afterwards and self._world.happens("create_placeholder: refused", job=job.id):
            self._truth.refused_placeholders.add(job.id)
            raise PlaceholderGone
        message = self.post(job.address)
        self._world.note("channel", "PLACED", job=job.id, index=index, message=message)
        await self._answer("create_placeholder", job)
        return message

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        try:
            await self._arrive("put", job)
        except RecipientUnreachable:
            blocked = self._truth.blocked_puts if job.delivery is Delivery.SENDING else self._truth.given_up
            blocked.add(part.message or "")
            raise
        message = self._truth.messages[part.message or ""]
        if self._edits_end_with_address and message.address in self._truth.moved:
            self._truth.frozen.add(message.address)
        if message.deleted or message.address in self._truth.frozen:
            raise PlaceholderGone
        self._check_level(part)
        self._show(job, index, part, message)
        await self._answer("put", job)
        self._block_between_parts(job, index)
        return Placed(message=part.message or "", file=f"file-of-{part.value}")

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        await self._arrive("send", job)
        self._check_level(part)
        name = self.post(job.address)
        self._show(job, index, replace(part, message=name), self._truth.messages[name])
        await self._answer("send", job)
        return Placed(message=name, file=f"file-of-{part.value}")

    async def notify(self, job: Job) -> None:
        await self._arrive("notify", job)
        self._truth.notices[job.id] += 1
        self._world.note("channel", "NOTICE", job=job.id, state=job.state, token=job.lease_token)
        await self._answer("notify", job)

    def progress_points(self, job: Job) -> Sequence[float]:
        return PROGRESS_POINTS

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        """End in time for the caller; the edit may take effect later."""
        left = until - self._world.loop.time()
        kinds = ("dropped", "unforeseen error", "slow", "outlives its caller")
        kind = self._world.pick([f"progress: {kind}" for kind in kinds], job=job.id)
        if kind == "progress: dropped" or left <= 0.0:
            raise ChannelBusy(0.0)
        overtaken = job.task_id and self._world.happens("callback: during progress", job=job.id)
        if overtaken:
            self._truth.tasks[job.task_id or ""].end_now.set()
        slow = overtaken or kind == "progress: slow"
        seconds = self._rng.uniform(0.0, left + LATE_EDIT_SECONDS) if slow else 0.1 * left
        if kind == "progress: outlives its caller":
            self._truth.late_progress.append(job.id)
            seconds = left + self._rng.uniform(0.0, LATE_EDIT_SECONDS_MAX)
        self._world.spawn(self._land(job, seconds))
        await asyncio.sleep(min(seconds, left))
        if seconds > left:
            raise ChannelOutcomeUnknown
        if kind == "progress: unforeseen error":
            raise RuntimeError("a bug in the channel")

    async def _land(self, job: Job, seconds: float) -> None:
        began = self._world.loop.time()
        await asyncio.sleep(seconds)
        message = self._truth.messages[job.placeholder or ""]
        # How long the result is put again depends on the database's clock: set forward, it ends that too early.
        is_clock_right = self._world.clock_set_at <= began
        if is_clock_right and not (message.deleted or message.media):
            message.progress = True
            self._world.note("channel", "PROGRESS", job=job.id, message=job.placeholder, token=job.lease_token)

    # what really happens

    def _block_between_parts(self, job: Job, index: int) -> None:
        """Let the user block the bot when a part of the result is shown and more are to come."""
        more = index + 1 < len(job.parts) and job.has_result
        if more and self._world.happens("chat: blocked between parts", job=job.id):
            self._truth.unreachable.setdefault(job.address, self._world.loop.time())

    def post(self, address: str) -> str:
        """Create an empty message and return its name."""
        name = f"m{len(self._truth.messages) + 1}"
        self._truth.messages[name] = Message(address=address)
        return name

    def _show(self, job: Job, index: int, part: Part, message: Message) -> None:
        message.shows = (job.id, message_of(job) if part.kind is PartKind.MESSAGE else part.value)
        message.media = part.kind is PartKind.FILE and part.level is not Level.TEXT
        message.progress = False
        fields = {"index": index, "message": part.message, "level": part.level, "value": message.shows[1]}
        self._world.note("channel", "SHOWN", job=job.id, token=job.lease_token, **fields)

    def _check_level(self, part: Part) -> None:
        if part.value in self._truth.invalid_results:
            raise InvalidResult("an HTML page")
        if _DEPTH[part.level] < self._truth.refusals.get(part.value, 0):
            raise LevelRefused

    async def _arrive(self, call: str, job: Job) -> None:
        await self._world.delay(job.id)
        kind = self._world.pick((f"{call}: busy", f"{call}: request lost"), job=job.id)
        if kind == f"{call}: busy":
            raise ChannelBusy(self._rng.uniform(0.5, 6.0))
        if kind:
            self._truth.failed_calls[job.id] += 1
            raise ChannelOutcomeUnknown
        if job.address in self._truth.unreachable and not (call == "put" and self._edits_pass_block):
            raise RecipientUnreachable("blocked by the user")
        if call != "put" and job.address in self._truth.moved:
            raise AddressChanged(self._truth.moved[job.address])

    async def _answer(self, call: str, job: Job) -> None:
        await self._world.delay(job.id)
        kind = self._world.pick((f"{call}: answer lost", f"{call}: unforeseen error"), job=job.id)
        if kind:
            self._truth.failed_calls[job.id] += 1
        if kind == f"{call}: answer lost":
            raise ChannelOutcomeUnknown
        if kind:
            raise RuntimeError("a bug in the channel")


def message_of(job: Job) -> str:
    """Return what the user reads about a job without a result."""
    return f"message: {job.state}"
