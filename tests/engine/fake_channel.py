"""A channel that remembers what a user could have seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from genlock.domain.delivery import Level, Part
from genlock.domain.errors import AddressChanged, InvalidResult, LevelRefused, PlaceholderGone, RecipientUnreachable
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.ports import Channel, Placed
from tests.engine.faults import Fault, Faults, Gate, after


@dataclass(frozen=True)
class Call:
    operation: str
    job: int
    index: int = 0
    level: Level | None = None
    message: str | None = None


class FakeChannel(Channel):
    """A channel of messages with one text each, and a list of every change that a user could have seen."""

    name = "chat"

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        #: (message, new text) of every visible change, in order
        self.shown: list[tuple[str, str]] = []
        self.notices: list[int] = []
        #: (address, text) of messages that belong to no job
        self.told: list[tuple[str, str]] = []
        self.calls: list[Call] = []
        self.refused: set[Level] = set()
        #: a value at which the channel raises an unexpected error
        self.poison = ""
        self.closed = ""
        #: the new address of the chat, raised by the next call of this name
        self.moved: dict[str, str] = {}
        #: values that are not usable results
        self.broken: set[str] = set()
        self.fractions: Sequence[float] = ()
        self.faults = Faults()
        self.gate = Gate()
        self.progress_gate = Gate()
        self._numbers = count(1)

    def new_message(self) -> str:
        message = f"m{next(self._numbers)}"
        self.messages[message] = ""
        return message

    def delete(self, message: str | None) -> None:
        assert message is not None
        del self.messages[message]

    def showing(self, value: str) -> list[str]:
        """Return the messages that show a value, at any level."""
        return [message for message, text in self.messages.items() if text.partition(" ")[2] == value]

    def levels(self, operation: str = "put") -> list[Level | None]:
        return [call.level for call in self.calls if call.operation == operation]

    async def create_placeholder(self, job: Job, index: int) -> str:
        fault = await self._enter(Call("create_placeholder", job.id, index))
        message = self.new_message()
        after(fault)
        return message

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        assert part.message is not None
        fault = await self._enter(Call("put", job.id, index, part.level, part.message))
        self._allow(part)
        if part.message not in self.messages:
            raise PlaceholderGone
        return self._show(part.message, job, part, fault)

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        fault = await self._enter(Call("send", job.id, index, part.level))
        self._allow(part)
        return self._show(self.new_message(), job, part, fault)

    async def notify(self, job: Job) -> None:
        fault = await self._enter(Call("notify", job.id))
        self.notices.append(job.id)
        after(fault)

    async def tell(self, address: str, text: str) -> None:
        fault = await self._enter(Call("tell", 0))
        self.told.append((address, text))
        after(fault)

    def progress_points(self, job: Job) -> Sequence[float]:
        return self.fractions

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        fault = await self._enter(Call("progress", job.id, message=job.placeholder))
        if job.placeholder in self.messages:
            self.messages[job.placeholder] = f"progress {fraction:.2f}"
        after(fault)

    async def _enter(self, call: Call) -> Fault | None:
        self.calls.append(call)
        await (self.progress_gate if call.operation == "progress" else self.gate).through()
        fault = self.faults.before(call.operation)
        if call.operation in ("create_placeholder", "send", "notify") and call.operation in self.moved:
            raise AddressChanged(self.moved.pop(call.operation))
        if self.closed:
            raise RecipientUnreachable(self.closed)
        return fault

    def _allow(self, part: Part) -> None:
        if self.poison and part.value == self.poison:
            raise RuntimeError("bug")
        if part.value in self.broken:
            raise InvalidResult("it is an HTML page")
        if part.level in self.refused:
            raise LevelRefused

    def _show(self, message: str, job: Job, part: Part, fault: Fault | None) -> Placed:
        value = job.error_code if part.kind is PartKind.MESSAGE else part.value
        text = f"{part.level} {value}"
        if self.messages[message] != text:
            self.messages[message] = text
            self.shown.append((message, text))
        after(fault)
        return Placed(message=message, file=f"file-of-{message}")
