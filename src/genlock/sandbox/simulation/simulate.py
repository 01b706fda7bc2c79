"""The `simulate` command: run many seeds on every processor, count the faults, report each failing seed."""

import asyncio
import json
import multiprocessing
import os
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import Progress

from genlock.domain.errors import Refusal
from genlock.ports import Store, Violation
from genlock.sandbox.postgres import PostgresServer
from genlock.sandbox.simulation.databases import Database, Postgres, Sqlite, create_database, drop_database
from genlock.sandbox.simulation.scenario import Run, Scenario
from genlock.sandbox.simulation.virtual_time import TimeDoesNotAdvance, VirtualLoop
from genlock.sandbox.simulation.world import Entry, World

CHUNK = 10
REPORTS_MAX = 3
Mutate = Callable[[Store], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    seed: int
    rules: list[str]
    report: str


@dataclass(kw_only=True, slots=True)
class Summary:
    """The outcome of some seeds."""

    seeds: int = 0
    violations: int = 0
    virtual_seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: "Summary") -> None:
        self.seeds += other.seeds
        self.violations += other.violations
        self.virtual_seconds += other.virtual_seconds
        self.faults += other.faults
        self.failures += other.failures


# one seed


def run_seed(seed: int, database: Database | None = None, mutate: Mutate | None = None) -> Run:
    """Run one seed. `mutate` may break the store first, to test that the checker finds it."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        world = runner.run(_make_world(seed))
        try:
            violations = runner.run(_run(world, database or Sqlite(), mutate))
        except TimeDoesNotAdvance:
            detail = f"every task waits, or some loop forever, at {world.loop.time():.3f}"
            violations = [Violation(rule="Virtual time advances.", subject="-", detail=detail)]
        world.finished = True
    return Run(
        seed=seed,
        violations=violations,
        history=world.history,
        faults=world.faults,
        virtual_seconds=world.loop.time(),
    )


async def _make_world(seed: int) -> World:
    return World(seed)


async def _run(world: World, database: Database, mutate: Mutate | None) -> list[Violation]:
    assert isinstance(world.loop, VirtualLoop)
    store = await database.open(world.loop)
    if mutate:
        mutate(store)
    return await Scenario(world, store).run()


def report(run: Run, store: str) -> str:
    """Return the violations of a run and the history of the jobs concerned, in time order."""
    lines = [f"Seed {run.seed} violates {len(run.violations)} rule(s):"]
    lines += [f"  {broken.rule} Job {broken.subject}: {broken.detail}" for broken in run.violations]
    lines.append("History (virtual seconds, who, what, fields):")
    lines += [_line(entry) for entry in _concerned(run)]
    lines.append(f"Repeat: genlock simulate --store {store} --seeds 1 --first-seed {run.seed}")
    return "\n".join(lines)


def _concerned(run: Run) -> Iterator[Entry]:
    """Return the entries about the jobs of the violations, and those about no job."""
    jobs = {int(broken.subject) for broken in run.violations if broken.subject.isdigit()}
    orders = {
        fields["order"]: fields["job"] for _, _, _, fields in run.history if "order" in fields and fields.get("job")
    }
    for entry in run.history:
        fields = entry[3]
        job = fields.get("job") or orders.get(fields.get("order"))
        if job is None or not jobs or job in jobs:
            yield entry


def _line(entry: Entry) -> str:
    seconds, who, what, fields = entry
    return f"{seconds:10.3f}  {who:8} {what:20} " + " ".join(f"{name}={value}" for name, value in fields.items())


# many seeds


def simulate(
    seeds: int,
    first_seed: int = 1,
    store: str = "sqlite",
    database_url: str | None = None,
    progress: Callable[[Summary], None] = lambda _: None,
) -> Summary:
    """Run seeds on every processor. On PostgreSQL each process gets a database of its own."""
    todo = [
        range(start, min(start + CHUNK, first_seed + seeds)) for start in range(first_seed, first_seed + seeds, CHUNK)
    ]
    workers = min(os.cpu_count() or 1, len(todo))
    total = Summary()
    with _databases(store, database_url, workers) as urls:
        spawn = multiprocessing.get_context("spawn")
        queue = spawn.SimpleQueue()
        for url in urls:
            queue.put(url)
        pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_prepare, initargs=(store, queue))
        with pool, _ended_by_ctrl_c():
            for part in _start(pool, todo):
                total.add(part.result())
                progress(total)
    return total


def _start(pool: ProcessPoolExecutor, todo: list[range]) -> list[Future[Summary]]:
    """Start the processes of the pool with SIGINT blocked, which they inherit: Ctrl-C reaches all of a terminal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return [pool.submit(_run_chunk, seeds) for seeds in todo]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """End the processes of the pool on Ctrl-C, which would otherwise wait for the seeds that they are at."""
    try:
        yield
    except KeyboardInterrupt:
        for process in multiprocessing.active_children():
            process.terminate()
        raise


_database: Database = Sqlite()
_store_name = "sqlite"


def _prepare(store: str, urls: Any) -> None:
    global _database, _store_name  # noqa: PLW0603 - a worker process has one database
    _store_name = store
    if store == "postgres":
        _database = Postgres(urls.get())


def _run_chunk(seeds: range) -> Summary:
    part = Summary()
    for seed in seeds:
        run = run_seed(seed, _database)
        part.seeds += 1
        part.violations += len(run.violations)
        part.virtual_seconds += run.virtual_seconds
        part.faults += run.faults
        if run.violations:
            rules = [broken.rule for broken in run.violations]
            part.failures.append(Failure(seed=seed, rules=rules, report=report(run, _store_name)))
    return part


@contextmanager
def _databases(store: str, url: str | None, count: int) -> Iterator[list[str]]:
    """Create `count` databases on the named server, or on one of our own, and drop them afterwards."""
    if store == "sqlite":
        yield []
        return
    if store != "postgres":
        raise Refusal(f"--store is sqlite or postgres, not {store!r}")
    with nullcontext(url) if url else PostgresServer.running() as server:
        place = server if isinstance(server, str) else server.url("postgres")
        names = [f"genlock_simulation_{secrets.token_hex(6)}" for _ in range(count)]
        try:
            yield [asyncio.run(create_database(place, name)) for name in names]
        finally:
            for name in names:
                asyncio.run(drop_database(place, name))


# the command


def run(seeds: int, first_seed: int, store: str, database_url: str | None, as_json: bool) -> int:  # noqa: FBT001 - a flag of the command
    """Run seeds, print their outcome, and return the exit code."""
    started = time.monotonic()
    with _bar(seeds) as progress:
        total = simulate(seeds, first_seed, store, database_url, progress)
    seconds = time.monotonic() - started
    if as_json:
        print(json.dumps(_as_json(total, store, seconds)))  # noqa: T201 - the command's output
    else:
        for failure in total.failures[:REPORTS_MAX]:
            print(failure.report, end="\n\n")  # noqa: T201
        print(_summary_line(total, store, seconds))  # noqa: T201
    return 1 if total.failures else 0


def _as_json(total: Summary, store: str, seconds: float) -> dict[str, Any]:
    return {
        "seeds": total.seeds,
        "violations": total.violations,
        "seconds": round(seconds, 2),
        "store": store,
        "failing_seeds": [failure.seed for failure in total.failures],
        "faults": total.faults.total(),
        "kinds_of_faults": len(total.faults),
        "virtual_hours": round(total.virtual_seconds / 3600, 2),
    }


def _summary_line(total: Summary, store: str, seconds: float) -> str:
    failing = ", ".join(str(failure.seed) for failure in total.failures)
    return (
        f"{_count(total.seeds, 'seed')} on {store} in {seconds:.1f} s: "
        f"{_virtual_time(total.virtual_seconds)} of virtual time, "
        f"{_count(total.faults.total(), 'fault')} of {_count(len(total.faults), 'kind')}, "
        f"{_count(total.violations, 'violation')}" + (f" (seeds {failing})" if failing else "")
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _virtual_time(seconds: float) -> str:
    if seconds < 3600:
        return _count(round(seconds / 60), "minute")
    return f"{seconds / 3600:.1f} hours"


@contextmanager
def _bar(seeds: int) -> Iterator[Callable[[Summary], None]]:
    """Show a progress bar on a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("seeds", total=seeds)
        yield lambda total: progress.update(task, completed=total.seeds)
