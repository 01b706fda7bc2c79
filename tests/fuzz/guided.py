"""Coverage-guided fuzzing: an input that reaches a new line of a parser is kept, and changed further.

Plain mutation rarely passes two checks in a row that each need the right bytes. Here an input that passes the first one
is kept, so that the second is tried from there.
"""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import genlock

#: CPU seconds that no input may take. The tracing makes the parsers about ten times slower.
CPU_SECONDS_MAX = 20.0
#: a longer input is cut, so that repeated insertions do not end in megabytes
SIZE_MAX = 200_000
_SOURCES = str(Path(genlock.__file__).parent)

Mutate = Callable[[bytearray, Sequence[bytes], Random], None]


class TookTooLong(BaseException):
    """An input took more CPU time than allowed. Not an Exception, so that no parser can swallow it."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One parser: inputs to begin with, and a function that raises if the parser breaks its promise."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[bytes], object]
    mutate: Mutate
    #: beginning of the paths whose lines count, below src/genlock
    sources: tuple[str, ...] = ("",)


@dataclass(frozen=True, kw_only=True)
class Failure:
    target: str
    content: bytes
    error: BaseException


@dataclass
class Corpus:
    """Inputs of which each reached a line, or a step from one line to another, that none before it had reached."""

    inputs: list[bytes] = field(default_factory=list)
    steps: set[tuple[object, int, int]] = field(default_factory=set)

    def add(self, content: bytes, steps: set[tuple[object, int, int]]) -> bool:
        """Keep the input if it reached something new."""
        if steps <= self.steps:
            return False
        self.steps |= steps
        self.inputs.append(content)
        return True


def fuzz(target: Target, seed: int, is_over: Callable[[int], bool]) -> tuple[Corpus, int, Failure | None]:
    """Try inputs until `is_over(tried)`, or until the first failure. Returns the corpus and how many were tried."""
    rng, corpus, tried = Random(seed), Corpus(), 0
    for content in target.seeds():
        if failure := _try(target, content, corpus):
            return corpus, tried, failure
    while not is_over(tried):
        tried += 1
        content = _changed(target, corpus.inputs, rng)
        if failure := _try(target, content, corpus):
            return corpus, tried, failure
    return corpus, tried, None


def _changed(target: Target, inputs: Sequence[bytes], rng: Random) -> bytes:
    # Half of the time one of the newest: what was just reached leads further.
    newest = max(1, len(inputs) // 10)
    content = bytearray(rng.choice(inputs[-newest:] if rng.random() < 0.5 else inputs))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        target.mutate(content, inputs, rng)
    return bytes(content[:SIZE_MAX])


def _try(target: Target, content: bytes, corpus: Corpus) -> Failure | None:
    try:
        with _traced(target.sources) as steps, _within(CPU_SECONDS_MAX):
            target.read(content)
    except (Exception, TookTooLong) as error:  # noqa: BLE001 - whatever a parser raises is the finding
        return Failure(target=target.name, content=content, error=error)
    corpus.add(content, steps)
    return None


@contextmanager
def _traced(sources: tuple[str, ...]) -> Iterator[set[tuple[object, int, int]]]:
    """Record each step from one line to the next, in the files that count."""
    steps: set[tuple[object, int, int]] = set()
    beginnings = tuple(f"{_SOURCES}/{source}" for source in sources)

    def follow(frame: FrameType, event: str, _: Any) -> Any:
        if event != "call" or not frame.f_code.co_filename.startswith(beginnings):
            return None
        last, code = 0, frame.f_code

        def line(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "line":
                steps.add((code, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        yield steps
    finally:
        sys.settrace(before)


@contextmanager
def _within(cpu_seconds: float) -> Iterator[None]:
    """Raise TookTooLong in the block after this much CPU time, also in an endless loop."""

    def stop(*_: object) -> None:
        raise TookTooLong(f"more than {cpu_seconds:g} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def for_seconds(seconds: float) -> Callable[[int], bool]:
    """Return an `is_over` that is true after this time by the clock."""
    end = time.monotonic() + seconds
    return lambda _: time.monotonic() >= end


def for_cases(count: int) -> Callable[[int], bool]:
    """Return an `is_over` that is true after this many inputs."""
    return lambda tried: tried >= count
