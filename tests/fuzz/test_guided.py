"""The fuzzer finds what plain mutation does not and stops endless loops, and every parser keeps its promise."""

from collections.abc import Sequence
from random import Random

import pytest

from tests.fuzz import guided
from tests.fuzz.guided import Target, TookTooLong, for_cases, fuzz
from tests.fuzz.targets import TARGETS


def change_one_byte(content: bytearray, _: Sequence[bytes], rng: Random) -> None:
    content[rng.randrange(len(content))] = rng.randrange(256)


def fail_after_four_bytes(content: bytes) -> None:
    if content[0] != ord("f"):
        return
    if content[1] != ord("u"):
        return
    if content[2] != ord("z"):
        return
    if content[3] != ord("z"):
        return
    raise LookupError


def loop_without_end(_: bytes) -> None:
    while True:
        pass


@pytest.fixture
def traced_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the lines of this file instead of those of the product."""
    monkeypatch.setattr(guided, "_SOURCES", __file__.rpartition("/")[0])


def target(read: object) -> Target:
    return Target(name="here", seeds=lambda: [bytes(4)], read=read, mutate=change_one_byte)  # type: ignore[arg-type]


@pytest.mark.usefixtures("traced_here")
def test_bytes_that_are_checked_one_after_the_other_are_found_one_after_the_other() -> None:
    """Random bytes alone would take four billion inputs."""
    _, tried, failure = fuzz(target(fail_after_four_bytes), 1, for_cases(200_000))

    assert failure is not None
    assert (failure.content, type(failure.error)) == (b"fuzz", LookupError)
    assert tried < 100_000


@pytest.mark.usefixtures("traced_here")
def test_an_endless_loop_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guided, "CPU_SECONDS_MAX", 0.1)
    _, _, failure = fuzz(target(loop_without_end), 1, for_cases(1))

    assert failure is not None
    assert isinstance(failure.error, TookTooLong)


@pytest.mark.parametrize("parser", TARGETS, ids=lambda parser: parser.name)
def test_a_parser_keeps_its_promise(parser: Target, fuzz_cases: int, first_seed: int) -> None:
    corpus, _, failure = fuzz(parser, first_seed + 1, for_cases(fuzz_cases // 200))

    assert failure is None, failure
    assert len(corpus.inputs) > 1
