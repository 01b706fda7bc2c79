"""Tasks of the Kie.ai simulator: validation, prices and credits, rate limits, and the run of each task."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from time import time
from typing import Any

from genlock.domain.catalog import Catalog, Model, Output, Status
from genlock.domain.errors import InvalidInput
from genlock.domain.field import FieldType
from genlock.sandbox.faults import Faults
from genlock.sandbox.kie.callbacks import CallbackSender, order_callbacks
from genlock.sandbox.kie.endpoint import SimulatedEndpoint
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.files import PAGE, FileHost
from genlock.sandbox.kie.task import EXTENSIONS, STATES, Task

RESULT_SECONDS = 86_400.0
#: what every recording says, by the language that the sandbox's chat page wrote into the file
SPOKEN = {
    b"language=ru": "Рыжая лиса в снегу, мягкий утренний свет",
    b"": "A red fox in the snow, soft morning light",
}
#: where an Ogg file has its tags
TAGS_BYTES = 4096
NOT_SUPPORTED = (
    "The model name you specified is not supported. Please verify your input and use one of the supported models "
    "provided by KIE."
)


class KieError(Exception):
    """A call that is answered with an error envelope."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass
class Window:
    """Sliding-window rate limit: at most `count` calls in any `seconds`; more are refused."""

    count: int
    seconds: float
    admitted: list[float] = field(default_factory=list)
    refused: int = 0
    _recent: deque[float] = field(default_factory=deque)

    def admit(self, now: float) -> None:
        while self._recent and self._recent[0] <= now - self.seconds:
            self._recent.popleft()
        if len(self._recent) >= self.count:
            self.refused += 1
            raise KieError(429, "Your call frequency is too high. Please try again later.")
        self._recent.append(now)
        self.admitted.append(now)


@dataclass(kw_only=True)
class KieService:
    catalog: Catalog
    files: FileHost
    callback_sender: CallbackSender
    faults: Faults[Fault]
    rng: Random
    credits: int  #: thousandths
    speed: float
    creates: Window
    queries: Window
    null_seconds: float  #: how long after the create call the record does not exist yet
    same_media: bool = False  #: whether all results of a kind have the same content, made once
    tasks: dict[str, Task] = field(default_factory=dict)
    _running: set[asyncio.Task[None]] = field(default_factory=set)
    #: whether tasks run at present
    _going: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._going.set()

    # orders

    def accept(self, endpoint: SimulatedEndpoint, body: Mapping[str, Any], faults: set[Fault]) -> Task:
        """Create a task and charge its price. Raises KieError."""
        self.creates.admit(asyncio.get_running_loop().time())
        callback_url = body.get("callBackUrl")
        if endpoint.needs_callback and not callback_url:
            raise KieError(422, "Please enter callBackUrl.")
        model = self._find(endpoint, dict(body))
        values = _validated(model, endpoint.read_order(dict(body))[1])
        price = _price(model, values)
        if price > self.credits:
            code, text = (
                (500, "Credits insufficient") if Fault.CREDITS_AS_500 in faults else (402, "Insufficient Credits")
            )
            raise KieError(code, text)
        self.credits -= price
        task = self._make(model, values, callback_url if isinstance(callback_url, str) else None, price, faults)
        self.tasks[task.id] = task
        return task

    def _find(self, endpoint: SimulatedEndpoint, body: dict[str, Any]) -> Model:
        name, values = endpoint.read_order(body)
        models = [
            model
            for model in self.catalog.models.values()
            if (model.family, model.operation) == (endpoint.family, endpoint.operation)
            and (model.id == name if name is not None else _is_fixed(model, values))
        ]
        if not models or models[0].status is Status.DEAD:
            raise KieError(422, NOT_SUPPORTED)
        if models[0].status is Status.PAUSED:
            raise KieError(500, "This interface is temporarily paused.")
        return models[0]

    def _make(
        self, model: Model, values: dict[str, Any], callback_url: str | None, price: int, faults: set[Fault]
    ) -> Task:
        task = Task(
            id=f"{self.rng.getrandbits(128):032x}",
            model=model,
            values=values,
            callback_url=callback_url,
            faults=faults,
            price=price,
            seconds=model.expected_seconds * self.rng.uniform(0.8, 1.2),
            real_seconds=0.0,
            created=time(),
            states=self.rng.choice(STATES),
        )
        task.real_seconds = task.seconds / self.speed
        self.add_results(task)
        return task

    def add_results(self, task: Task) -> None:
        kind = task.model.outputs[0]
        task.results = [self._result(task, kind, number) for number in range(task.model.results(task.values))]

    def _result(self, task: Task, kind: Output, number: int) -> str:
        if kind is Output.TEXT:
            if recordings := file_urls(task.model, task.values, FieldType.AUDIO):
                return self._spoken(recordings[0])
            given = "; ".join(f"{key}: {value}" for key, value in task.values.items())
            return f"{task.model.title} no. {number + 1} was asked: {given}"
        path = f"{kind}/{task.id}_{number + 1}.{EXTENSIONS[kind]}"
        make = _make_once(kind) if self.same_media else self._content_maker(task.model, task.values, number)
        url = self.files.add(path, make, seconds=RESULT_SECONDS)
        file = self.files.files[path]
        file.gone = Fault.FILE_GONE in task.faults
        if Fault.FILE_HTML in task.faults:
            file.content, file.type = PAGE, "text/html"
        return url

    def _spoken(self, url: str) -> str:
        file = self.files.find(url)
        tags = file.read()[:TAGS_BYTES] if file and file.available else b""
        return next(text for tag, text in SPOKEN.items() if tag in tags.lower())

    def _content_maker(self, model: Model, values: Mapping[str, Any], number: int) -> Callable[[], bytes]:
        urls = {type_: self._input_urls(model, values, type_) for type_ in (FieldType.IMAGE, FieldType.VIDEO)}

        def make() -> bytes:
            from genlock.sandbox.kie.media import make_media  # noqa: PLC0415 - the codecs are only needed when a result is downloaded
            from genlock.sandbox.kie.source import read_source  # noqa: PLC0415 - likewise

            source = read_source(model, urls, self.files)
            return make_media(model.outputs[0], model.title, values, number, source)

        return make

    def _input_urls(self, model: Model, values: Mapping[str, Any], type_: FieldType) -> list[str]:
        """Return the URLs of the input files of a type, among them the results of an earlier task that is named."""
        earlier = [self.tasks[task_id] for task_id in file_urls(model, values, FieldType.TASK) if task_id in self.tasks]
        results = [url for task in earlier if task.model.outputs[0].value == type_.value for url in task.results]
        return file_urls(model, values, type_) + results

    # running tasks

    def start(self, task: Task, endpoint: SimulatedEndpoint) -> None:
        self._spawn(self._run(task, endpoint))

    def hold_tasks(self) -> None:
        """Let no new task begin until `release_tasks` is called."""
        self._going.clear()

    def release_tasks(self) -> None:
        self._going.set()

    async def finish_now(self, task: Task, endpoint: SimulatedEndpoint) -> None:
        """End a task and send its callbacks before the create call is answered."""
        self._end(task)
        for share, body in order_callbacks(task, endpoint.callbacks(task)):
            await self.callback_sender.call(task, endpoint, body, last=share >= 1.0)

    async def _run(self, task: Task, endpoint: SimulatedEndpoint) -> None:
        """Run a task. Each callback is built when it is sent, because faults may be added while the task runs."""
        await self._going.wait()
        end = task.created + task.real_seconds
        place = 0
        while place < len(calls := order_callbacks(task, endpoint.callbacks(replace(task, ended=task.ended or end)))):
            share = calls[place][0]
            await asyncio.sleep(max(0.0, task.created + task.real_seconds * share - time()))
            if share >= 1.0 and task.ended is None:
                self._end(task)
            body = order_callbacks(task, endpoint.callbacks(replace(task, ended=task.ended or end)))[place][1]
            self._spawn(self.callback_sender.call(task, endpoint, body, last=share >= 1.0))
            place += 1

    def _end(self, task: Task) -> None:
        task.ended = time()
        if task.failed:
            self.credits += task.price

    def _spawn(self, work: Any) -> None:
        running = asyncio.get_running_loop().create_task(work)
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def close(self) -> None:
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self.callback_sender.close()

    async def settled(self) -> None:
        """Wait until every task has ended and every callback has been sent."""
        while self._running:
            await asyncio.wait(self._running)


def _is_fixed(model: Model, values: Mapping[str, Any]) -> bool:
    return all(values.get(name, value) == value for name, value in model.fixed.items())


def _validated(model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the known fields and ignore unknown ones, as the real service does. Raises KieError."""
    known = {input_field.name for input_field in model.fields} | set(model.fixed)
    try:
        return model.validate({name: value for name, value in values.items() if name in known})
    except InvalidInput as refused:
        if refused.problem == "missing":
            raise KieError(500, f"{refused.field} is required") from None
        raise KieError(422, f"Invalid {refused.field} parameter: {refused.message}") from None


def _price(model: Model, values: Mapping[str, Any]) -> int:
    try:
        return model.credits(values)
    except InvalidInput:
        return 1000


@cache
def _make_once(kind: Output) -> Callable[[], bytes]:
    def make() -> bytes:
        from genlock.sandbox.kie.media import make_media  # noqa: PLC0415 - the codecs are only needed when a result is downloaded

        return make_media(kind, "bench", {"prompt": "bench"}, 0)

    return cache(make)


def file_urls(model: Model, values: Mapping[str, Any], type_: FieldType) -> list[str]:
    """Return the values of all fields of a type, as one list."""
    given = [values.get(field.name) for field in model.fields if field.type is type_]
    each = [value for item in given for value in (item if isinstance(item, list) else [item])]
    return [value for value in each if isinstance(value, str) and value]
