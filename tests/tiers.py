"""Tiers of tests: markers are set by what a test uses, and a test without a marker cannot start a process.

`make quick` leaves out every test with one of these markers; `make test` runs all. If several processes run the
tests, this module also chooses the tests that each process runs first.
"""

import inspect
import multiprocessing.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import cycle, islice
from pathlib import Path, PurePath
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
MARKERS = {
    "browser": "drives a real browser",
    "postgres": "needs a PostgreSQL server",
    "process": "starts a process",
    "slow": "takes seconds, or runs the whole product",
}
#: folders whose tests are all of one tier
FOLDERS = {
    "api": "slow",  # each test runs the web application on a store and a media folder
    "dashboard": "slow",
    "doctor": "slow",
    "journeys": "process",
    "page": "browser",
    "simulation": "slow",
}
FIXTURES = {"browser": "browser", "fork_server": "process", "fuzz_cases": "slow"}
#: aiogram takes seconds to import
PARAMETERS = {"postgres": "postgres", "aiogram": "slow"}
MAY_START = ("browser", "postgres", "process")
#: multiprocessing raises no audit event when it spawns
SPAWN = "multiprocessing.spawn"
#: audit events of Python that mean a new process
STARTS = {SPAWN, "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen"}


#: Fixtures and modules that take a process seconds of CPU, once, the most expensive first; and the number of the
#: process that begins with the files that use them.
SHARED = {"shared_sandbox": 0, "browser": 0, "aiogram": 1}
#: folders and files whose tests take seconds each
LONG = (
    "tests/api/test_document.py",
    "tests/bot/test_every_model.py",
    "tests/channels/telegram/test_kills.py",
    "tests/cli/test_bench.py",
    "tests/journeys/",
    "tests/simulation/test_simulation.py",
    "tests/stores/test_growth.py",
)


class ProcessStarted(Exception):
    """A test started a process without a marker that allows it."""


class _Watch:
    """Refuses processes while a test runs that may not start one."""

    def __init__(self) -> None:
        self.armed = False
        self.started: list[str] = []

    def observe(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.armed and event in STARTS:
            what = f"{event} {arguments[:2]!r}"
            self.started.append(what)
            raise ProcessStarted(what)


_watch = _Watch()


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers and watch for processes: what subprocess and os start, and what multiprocessing spawns."""
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    sys.addaudithook(_watch.observe)
    spawn = multiprocessing.util.spawnv_passfds

    def watched_spawn(*arguments: Any) -> int:
        _watch.observe(SPAWN, arguments)
        return spawn(*arguments)

    multiprocessing.util.spawnv_passfds = watched_spawn  # type: ignore[assignment]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out folders whose tests would all be deselected: importing them is half of the inner loop's collection."""
    wanted: str = config.option.markexpr
    if " or " in wanted or not collection_path.is_relative_to(config.rootpath):
        return None
    left_out = (FOLDERS.get(part) for part in collection_path.relative_to(config.rootpath).parts)
    return True if any(marker and f"not {marker}" in wanted for marker in left_out) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for marker in tiers_of(item):
            item.add_marker(marker)
    ranks = _ranks(items)
    items.sort(key=lambda item: ranks[_file(item)])
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    if processes > 1:
        items[:] = put_first(items, _first_tests(items, ranks, processes))


def _ranks(items: list[pytest.Item]) -> dict[str, int]:
    """Return for each file the place in SHARED of the most expensive thing that its tests use."""
    ranks: dict[str, int] = {}
    for item in items:
        used = {*getattr(item, "fixturenames", ()), *_parameters(item)}
        rank = next((rank for rank, name in enumerate(SHARED) if name in used), len(SHARED))
        ranks[_file(item)] = min(rank, ranks.get(_file(item), rank))
    return ranks


def _first_tests(items: list[pytest.Item], ranks: Mapping[str, int], processes: int) -> list[list[pytest.Item]]:
    """Return the tests that each process runs first.

    Files that share something expensive are together, so that only one process makes it. Half of the processes begin
    with the long tests, so that none of these is left for the end. Long tests mostly wait, and meanwhile the other half
    of the processes uses the cores.
    """
    first: list[list[pytest.Item]] = [[] for _ in range(processes)]
    numbers, takers = list(SHARED.values()), cycle(first[processes // 2 :])
    for item in items:
        rank = ranks[_file(item)]
        if rank < len(numbers):
            first[numbers[rank]].append(item)
        elif item.nodeid.startswith(LONG):
            next(takers).append(item)
    return first


def put_first(items: Sequence[T], first: Sequence[Sequence[T]]) -> list[T]:
    """Order the items, so that each process begins with its own list of `first`.

    xdist divides the items into equal runs, one for each process.
    """
    chosen = {item for tests in first for item in tests}
    others = (item for item in items if item not in chosen)
    ordered: list[T] = []
    for number, tests in enumerate(first):
        size = (len(items) - len(ordered)) // (len(first) - number)
        ordered += [*tests, *islice(others, max(0, size - len(tests)))]
    return [*ordered, *others]


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _parameters(item: pytest.Item) -> list[str]:
    """Return the parameters of a test that are words."""
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return [value for value in given if isinstance(value, str)]


def tiers_of(item: pytest.Item) -> Iterator[str]:
    """Yield the markers that a test gets from its folder, its fixtures and its parameters."""
    parts = _parts(_file(item))
    yield from (marker for folder, marker in FOLDERS.items() if folder in parts)
    fixtures: list[str] = getattr(item, "fixturenames", [])
    yield from (marker for fixture, marker in FIXTURES.items() if fixture in fixtures)
    if any("postgres" in fixture or "pgbouncer" in fixture for fixture in fixtures):
        yield "postgres"
    parameters = _parameters(item)
    yield from (marker for parameter, marker in PARAMETERS.items() if parameter in parameters)
    if item.get_closest_marker("timeout"):
        yield "slow"  # it asks for more time than other tests have
    if "bot" in parts and inspect.iscoroutinefunction(getattr(item, "obj", None)):
        yield "slow"  # it runs the whole bot against the simulators


@cache
def _parts(path: str) -> tuple[str, ...]:
    """Return the folders and the name of a file; thousands of tests are in some hundred files."""
    return PurePath(path).parts


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    yield from _watched(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield from _watched(item)


def _watched(item: pytest.Item) -> Iterator[None]:
    """Arm the watch; not while fixtures end, because a server that other tests share may end after this one."""
    _watch.started.clear()
    _watch.armed = not any(item.get_closest_marker(name) for name in MAY_START)
    try:
        yield
    finally:
        _watch.armed = False
    if _watch.started:
        pytest.fail(f"a test without a marker started a process: {_watch.started}", pytrace=False)
