"""A channel that misbehaves: lost answers, limits, refusals, deleted messages, closed chats."""

from dataclasses import replace

from genlock.domain.delivery import Level, Part
from genlock.domain.errors import ChannelBusy, ChannelUnknown, ChatClosed, LevelRefused, PlaceholderGone
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.ports import Placed
from genlock.sandbox.world import Message, World

_DEPTH = {Level.ADDRESS: 0, Level.BYTES: 1, Level.DOCUMENT: 2, Level.TEXT: 3}


class BadChannel:
    name = "chat"

    def __init__(self, world: World) -> None:
        self._world = world
        self._truth = world.truth
        self._chance = world.stream("channel")

    # the Channel port

    async def place(self, job: Job, index: int) -> str:
        await self._arrive("place", job)
        message = self.post(job.address)
        self._world.note("channel", "PLACED", job=job.id, index=index, message=message)
        await self._answer("place", job)
        return message

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        await self._arrive("put", job)
        message = self._truth.messages[part.message or ""]
        if message.deleted:
            raise PlaceholderGone
        self._check_level(part)
        self._show(job, index, part, message)
        await self._answer("put", job)
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
        self._world.note("channel", "NOTICE", job=job.id, state=job.state)
        await self._answer("notify", job)

    # what really happens

    def post(self, address: str) -> str:
        """A new, empty message."""
        name = f"m{len(self._truth.messages) + 1}"
        self._truth.messages[name] = Message(address=address)
        return name

    def _show(self, job: Job, index: int, part: Part, message: Message) -> None:
        message.shows = (job.id, words_of(job) if part.kind is PartKind.WORDS else part.value)
        facts = {"index": index, "message": part.message, "level": part.level, "value": message.shows[1]}
        self._world.note("channel", "SHOWN", job=job.id, token=job.lease_token, **facts)

    def _check_level(self, part: Part) -> None:
        if _DEPTH[part.level] < self._truth.refusals.get(part.value, 0):
            raise LevelRefused

    async def _arrive(self, call: str, job: Job) -> None:
        await self._world.delay(job.id)
        kind = self._world.pick((f"{call}: busy", f"{call}: request lost"), job=job.id)
        if kind == f"{call}: busy":
            raise ChannelBusy(self._chance.uniform(0.5, 6.0))
        if kind:
            self._truth.hiccups[job.id] += 1
            raise ChannelUnknown
        if job.address in self._truth.closed:
            raise ChatClosed("blocked by the person")

    async def _answer(self, call: str, job: Job) -> None:
        await self._world.delay(job.id)
        kind = self._world.pick((f"{call}: answer lost", f"{call}: unforeseen error"), job=job.id)
        if kind:
            self._truth.hiccups[job.id] += 1
        if kind == f"{call}: answer lost":
            raise ChannelUnknown
        if kind:
            raise RuntimeError("a bug in the channel")


def words_of(job: Job) -> str:
    """What the person reads about a job without a result."""
    return f"words: {job.state}"
