"""The generations of a simulated provider: a queue, a number of runners, results as files, and callbacks at the end."""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from random import Random
from time import time
from typing import Any

from genlock.domain.catalog import Output
from genlock.sandbox.faults import Faults
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.generation import Generation, SimulatedModel
from genlock.sandbox.generations.schemas import PublishedSchemas
from genlock.sandbox.kie.files import PAGE, FileHost

EXTENSIONS = {Output.IMAGE: "png", Output.VIDEO: "mp4", Output.AUDIO: "mp3"}
#: what a simulated language model adds to a text, in English, or in Russian if the text is
DETAILS = "in warm evening light, rich in detail, shallow depth of field, seen from a low angle"
DETAILS_RU = "в тёплом вечернем свете, множество деталей, малая глубина резкости, вид снизу"
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")


@dataclass(kw_only=True)
class GenerationService:
    models: Mapping[str, SimulatedModel]
    files: FileHost
    faults: Faults[Fault]
    rng: Random
    speed: float
    #: how many run at once; the others wait in the queue
    runners: int
    file_seconds: float
    credit_usd: float
    #: sends the callbacks of a generation that has ended
    send_callbacks: Callable[[Generation], Coroutine[Any, Any, None]]
    generations: dict[str, Generation] = field(default_factory=dict)
    schemas: PublishedSchemas = field(init=False)
    _queue: deque[Generation] = field(default_factory=deque)
    _runs: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _background: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.schemas = PublishedSchemas(models=self.models)

    async def accept(
        self, model: SimulatedModel, values: Mapping[str, Any], webhook_url: str | None, faults: set[Fault]
    ) -> Generation:
        """Queue a generation. With CALLBACK_EARLY it has ended, and was reported, when this returns."""
        generation = Generation(
            id=f"{self.rng.getrandbits(128):032x}",
            model=model,
            values=dict(values),
            webhook_url=webhook_url,
            faults=faults,
            created=time(),
            real_seconds=model.expected_seconds * self.rng.uniform(0.8, 1.2) / self.speed,
            problems=model.problems(values),
        )
        generation.results = [self._result(generation, number) for number in range(model.count(values))]
        self.generations[generation.id] = generation
        if Fault.CALLBACK_EARLY in faults:
            self._end(generation)
            await self.send_callbacks(generation)
        else:
            self._queue.append(generation)
            self._start_waiting()
        return generation

    def queue_position(self, generation: Generation) -> int | None:
        """How many are before it in the queue; None if it is not in the queue."""
        return self._queue.index(generation) if generation in self._queue else None

    def cancel(self, generation: Generation) -> None:
        """Take it out of the queue, or stop it, and report its end."""
        if generation in self._queue:
            self._queue.remove(generation)
        elif run := self._runs.pop(generation.id, None):
            run.cancel()
        generation.cancelled = True
        generation.end()
        self._start_waiting()
        self._spawn(self.send_callbacks(generation))

    def _start_waiting(self) -> None:
        while self._queue and len(self._runs) < self.runners:
            generation = self._queue.popleft()
            generation.started = time()
            self._runs[generation.id] = asyncio.get_running_loop().create_task(self._run(generation))

    async def _run(self, generation: Generation) -> None:
        await asyncio.sleep(0.0 if generation.problems else generation.real_seconds)
        self._end(generation)
        self._runs.pop(generation.id, None)
        self._start_waiting()
        self._spawn(self.send_callbacks(generation))

    def _end(self, generation: Generation) -> None:
        generation.end()
        if generation.billed:
            self.credit_usd -= generation.model.price_usd * generation.model.count(generation.values)

    def _result(self, generation: Generation, number: int) -> str:
        model, values = generation.model, generation.values
        if model.writes and isinstance(values.get("prompt"), str):
            return _rewritten(values["prompt"])
        if model.output is Output.TEXT:
            given = "; ".join(f"{key}: {value}" for key, value in values.items())
            return f"{model.title or model.id} was asked: {given}"
        path = f"{model.output}/{generation.id}_{number + 1}.{EXTENSIONS[model.output]}"
        url = self.files.add(path, _content_maker(model, values, number), seconds=self.file_seconds)
        file = self.files.files[path]
        file.gone = Fault.FILE_GONE in generation.faults
        if Fault.FILE_HTML in generation.faults:
            file.content, file.type = PAGE, "text/html"
        return url

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def settled(self) -> None:
        """Wait until every generation has ended and every callback has been sent."""
        while self._runs or self._background:
            await asyncio.wait([*self._runs.values(), *self._background])

    async def close(self) -> None:
        running = [*self._runs.values(), *self._background]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _content_maker(model: SimulatedModel, values: Mapping[str, Any], number: int) -> Callable[[], bytes]:
    def make() -> bytes:
        from genlock.sandbox.kie.media import make_media  # noqa: PLC0415 - the codecs are only needed when a result is downloaded

        return make_media(model.output, model.title or model.id, values, number)

    return make


def _rewritten(prompt: str) -> str:
    """Return what a language model makes of a prompt that ends with the text to rewrite."""
    text = prompt.rstrip().rpartition("\n")[2].strip().rstrip(".")
    return f"{text}, {DETAILS_RU if _CYRILLIC.search(text) else DETAILS}"
