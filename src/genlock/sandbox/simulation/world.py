"""The world of one simulated run: its random streams, its history, and what really happened outside the engine."""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from genlock.domain.events import Event
from genlock.domain.job import Delivery
from genlock.domain.result import Outcome, Piece
from genlock.ports import Violation

#: (virtual seconds, who, what, fields)
Entry = tuple[float, str, str, dict[str, Any]]

#: Every kind of fault, and its probability where it can occur. A seed scales each by one of INTENSITIES.
FAULT_RATES: dict[str, float] = {
    "create: busy": 0.06,
    "create: refused": 0.04,
    "create: request lost": 0.04,
    "create: answer lost": 0.08,
    "create: unforeseen error": 0.03,
    "task: long": 0.10,
    "status: busy": 0.06,
    "status: error": 0.06,
    "status: lags behind": 0.08,
    "status: unknown word": 0.04,
    "callback: early": 0.12,
    "callback: late": 0.15,
    "callback: twice": 0.20,
    "callback: never": 0.12,
    "callback: contradicts": 0.12,
    "callback: after the deadline": 0.12,
    "callback: progress": 0.10,
    "callback: unknown word": 0.06,
    "callback: unreadable": 0.06,
    "callback: without token": 0.15,
    "callback: forged": 0.10,
    "callback: unauthenticated": 0.05,
    "callback: names another task": 0.04,
    "callback: during progress": 0.60,
    "create_placeholder: busy": 0.06,
    "create_placeholder: request lost": 0.04,
    "create_placeholder: answer lost": 0.06,
    "put: busy": 0.06,
    "put: request lost": 0.04,
    "put: answer lost": 0.08,
    "send: busy": 0.08,
    "send: request lost": 0.06,
    "send: answer lost": 0.08,
    "notify: busy": 0.08,
    "notify: request lost": 0.04,
    "notify: answer lost": 0.06,
    "create_placeholder: unforeseen error": 0.02,
    "put: unforeseen error": 0.02,
    "send: unforeseen error": 0.02,
    "notify: unforeseen error": 0.02,
    "part: refused at some levels": 0.15,
    "part: refused at every level": 0.02,
    "part: invalid result": 0.10,
    "message: deleted": 0.20,
    "chat: unreachable": 0.03,
    "chat: address changed": 0.05,
    "progress: dropped": 0.10,
    "progress: unforeseen error": 0.02,
    "progress: slow": 0.30,
    "call: slow": 0.06,
    "store: slow": 0.05,
    "store: answer slow": 0.05,
    "store: unavailable": 0.004,
    "store: answer lost": 0.004,
    "store: statement retried": 0.004,
    "instance: killed": 0.08,
    "instance: paused": 0.25,
    "instance: stopped": 0.08,
    "instance: started": 0.08,
    "instance: all killed": 0.02,
    "instance: disconnected from the store": 0.06,
    "store: down": 0.04,
    "progress: outlives its caller": 0.10,
    "chat: blocked between parts": 0.08,
    "create: refused for lack of credit": 0.10,
    "create: refused though accepted": 0.05,
    "create: does not connect": 0.05,
    "task: fails without a bill": 0.25,
    "find: error": 0.10,
    "callback: another result": 0.10,
    "create_placeholder: refused": 0.04,
    "store: full": 0.01,
    "webhook: request lost": 0.0,
    "webhook: refused": 0.0,
    "webhook: answer lost": 0.0,
}
#: What makes orders go on to a second provider, and tests what becomes of the first. Seeds with two providers take one
#: of them, half of these seeds without other faults.
FAIL_OVER_THEMES: tuple[tuple[str, ...], ...] = (
    (),
    ("create: answer lost", "create: unforeseen error"),
    ("create: refused though accepted", "callback: early", "call: slow"),
    ("task: fails without a bill", "callback: contradicts", "callback: twice", "call: slow"),
    ("create: refused for lack of credit", "create: does not connect", "instance: killed"),
    ("callback: never", "task: fails without a bill", "instance: paused"),
)
FAULT_RATE_MAX = 0.6
#: Factors of the fault rates; a seed draws one for each kind.
INTENSITIES = (0, 0, 1, 1, 1, 3, 8)
#: Faults that find most bugs when they occur together. Seeds take turns with them.
THEMES: tuple[tuple[str, ...], ...] = (
    (),
    ("callback: after the deadline", "call: slow", "instance: paused", "instance: killed"),
    ("message: deleted", "send: answer lost", "send: busy", "instance: killed"),
    ("store: slow", "store: answer slow", "call: slow", "instance: paused", "callback: without token"),
    ("create: answer lost", "callback: early", "callback: without token", "call: slow"),
    ("task: long", "progress: slow", "callback: during progress", "callback: contradicts"),
    ("task: long", "progress: outlives its caller", "callback: contradicts", "instance: killed"),
    ("chat: blocked between parts", "part: refused at every level", "part: invalid result", "instance: killed"),
    ("part: invalid result", "chat: address changed", "message: deleted", "instance: killed"),
)
THEME_RATE = 0.35
#: In these seeds progress edits outlive their callers, and the operator resends what they may still overwrite.
RESENDS_EVERY, RESENDS_FIRST = 20, 0
RESENDS_THEME = ("task: long", "progress: outlives its caller")
#: In these seeds each provider may work on a limited number of tasks at once. The statements differ from those of other
#: seeds, so seeds that tests name are not among them.
LIMITED_EVERY, LIMITED_FIRST = 14, 12
TASKS_AT_ONCE = 2
#: In these seeds users and operators go on with orders that have ended: users have results shown again, unblock the bot
#: and press buttons of old messages, operators refund and mark as handled. Seeds that tests name are not among them.
AFTERWARDS_EVERY, AFTERWARDS = 11, (4, 5)
AFTERWARDS_RATE = 0.5
AFTERWARDS_THEMES: tuple[tuple[str, ...], ...] = (
    ("task: long", "progress: outlives its caller", "callback: after the deadline", "callback: another result"),
    ("put: busy", "callback: after the deadline"),
    ("create_placeholder: refused", "chat: unreachable", "callback: another result"),
)
#: In these seeds users also order by updates. Seeds that tests name are not among them.
CHATS_EVERY, CHATS_FIRST = 29, 26
#: In these seeds the results of these jobs crash every instance that shows them, and others take the instances' places.
POISON_EVERY, POISON_FIRST = 31, 24
POISON_JOBS = frozenset({1, 4})
#: What some seeds have besides, from the number of seeds and the first one. Seeds that tests name are not among them.
ADDITIONS: dict[str, tuple[int, int]] = {
    "erasures": (19, 17),
    "broadcasts": (22, 21),
    "clients": (24, 21),
    "clocks": (27, 21),
    "payments": (25, 21),
}
#: their rate where there are webhooks
WEBHOOK_FAULTS = ("webhook: request lost", "webhook: refused", "webhook: answer lost")
WEBHOOK_FAULT_RATE = 0.2
#: Every n-th seed of a theme has no other faults: those would hide what the theme's own can cause.
ALONE_EVERY = 5


@dataclass(kw_only=True, slots=True)
class Task:
    """A task at the provider, and how it will really end."""

    id: str
    provider: str
    job_id: int
    #: the provider's id of the model, and the whole input
    asked: tuple[str, dict[str, object]]
    outcome: Outcome
    pieces: tuple[Piece, ...]
    #: it fails by the provider's fault, and the provider bills nothing
    unbilled: bool = False
    #: the provider said that it did not accept the order
    disowned: bool = False
    #: what the provider called a success as well, later and with other files
    other_pieces: tuple[Piece, ...] = ()
    done: bool = False
    #: set to end the task at once
    end_now: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(kw_only=True, slots=True)
class Message:
    """A message in a chat. `shows` is the job and the part's value, or None while it is empty."""

    address: str
    shows: tuple[int, str] | None = None
    #: what it shows is a file, which no text can overwrite
    media: bool = False
    #: a progress edit has overwritten what it showed
    progress: bool = False
    deleted: bool = False


@dataclass(kw_only=True, slots=True)
class Truth:
    """What really happened. The engine never reads this; the checker compares the engine's rows with it."""

    tasks: dict[str, Task] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    notices: Counter[int] = field(default_factory=Counter)
    unreachable: dict[str, float] = field(default_factory=dict)
    #: chats that were unreachable for a while
    unblocked: set[str] = field(default_factory=set)
    #: the new address of chats whose address changed, by the old one
    moved: dict[str, str] = field(default_factory=dict)
    #: chats whose messages can no longer be edited, because their address changed
    frozen: set[str] = field(default_factory=set)
    #: results that are HTML pages
    invalid_results: set[str] = field(default_factory=set)
    #: how many levels the channel refuses for a part's value
    refusals: dict[str, int] = field(default_factory=dict)
    #: jobs that the provider has reported as failed at least once
    failures: set[int] = field(default_factory=set)
    #: jobs whose success was in an authenticated callback that an instance acknowledged
    acknowledged_successes: set[int] = field(default_factory=set)
    #: acknowledged callbacks: the job whose secret each carried, and the task it named
    acknowledged: dict[int, tuple[int | None, str | None]] = field(default_factory=dict)
    orders: dict[tuple[int, str], int] = field(default_factory=dict)
    granted: Counter[int] = field(default_factory=Counter)
    cancelled: set[int] = field(default_factory=set)
    resends: Counter[int] = field(default_factory=Counter)
    #: the messages that were, at any time, to become the result of a job
    placeholders: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    #: how the last delivery of a job ended, and the messages that showed no end when its result got a new one
    deliveries: dict[int, Delivery] = field(default_factory=dict)
    left_over: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    #: the messages that could not be edited, because their user had blocked the bot
    blocked_puts: set[str] = field(default_factory=set)
    #: those of them on which the end was to be put again: that is not tried a second time
    given_up: set[str] = field(default_factory=set)
    #: how many puts may still take effect on a message, also of instances that have crashed or lost their lease
    on_the_wire: Counter[str] = field(default_factory=Counter)
    #: messages for the second and further parts of a result
    further_parts: set[str] = field(default_factory=set)
    #: how many instances have crashed while they showed a job's result
    crashes: Counter[int] = field(default_factory=Counter)
    #: jobs for which the channel refused a placeholder
    refused_placeholders: set[int] = field(default_factory=set)
    #: jobs that an operator took off the list, and that nothing has changed since
    handled: set[int] = field(default_factory=set)
    #: the accounts and reasons of refunds, and what each account got back
    refunds: set[tuple[Any, ...]] = field(default_factory=set)
    refunded: Counter[int] = field(default_factory=Counter)
    #: jobs with a progress edit that may take effect after its caller stopped waiting
    late_progress: list[int] = field(default_factory=list)
    #: jobs of whose result the engine has recorded a part as shown
    shown: set[int] = field(default_factory=set)
    #: a job and the task of another job that the provider named in a callback to its URL
    named_elsewhere: set[tuple[int, str]] = field(default_factory=set)
    #: jobs that failed because their result is invalid
    invalid_ends: set[int] = field(default_factory=set)
    #: ends of a job that bring a notice of their own: late results, and deliveries whose outcome is unknown
    late_ends: Counter[int] = field(default_factory=Counter)
    unknown_ends: Counter[int] = field(default_factory=Counter)
    retries: Counter[int] = field(default_factory=Counter)
    #: calls for a job that failed in a way that counts as an attempt
    failed_calls: Counter[int] = field(default_factory=Counter)
    #: the highest token any instance was given, and when the last intent to submit was committed
    tokens: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    submits: dict[int, float] = field(default_factory=dict)
    #: the provider that each job is being submitted to or runs at, by the intents that were committed
    submitted_to: dict[int, str] = field(default_factory=dict)
    #: what is noted when the database answers a call: its name, its arguments and the answer
    watchers: list[Callable[[str, tuple[Any, ...], Any], None]] = field(default_factory=list)
    #: jobs of users whose data were erased
    erased: set[int] = field(default_factory=set)
    #: jobs with a progress edit that was journaled: they may remember its message
    edited: set[int] = field(default_factory=set)
    #: the instance to which each token of a job was given
    holders: dict[tuple[int, int], str] = field(default_factory=dict)
    #: the instances whose heartbeat row exists
    registered: set[str] = field(default_factory=set)
    violations: list[Violation] = field(default_factory=list)

    def tasks_of(self, job_id: int) -> list[Task]:
        return [task for task in self.tasks.values() if task.job_id == job_id]

    def add_violation(self, rule: str, job_id: int, detail: str) -> None:
        self.violations.append(Violation(rule=rule, subject=str(job_id), detail=detail))


class World:
    """All randomness comes from the seed; each concern has a stream of its own."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.loop = asyncio.get_running_loop()
        self.history: list[Entry] = []
        self.faults: Counter[str] = Counter()
        self.truth = Truth()
        #: no new faults are injected; lasting ones, such as deleted messages, stay
        self.faults_over = False
        self.finished = False
        #: when the database's clock was set the last time
        self.clock_set_at = -inf
        #: until when the database answers no instance
        self.store_down_until = 0.0
        #: never completed: a dead instance waits for it
        self.never: asyncio.Future[None] = self.loop.create_future()
        self._rng = self.stream("faults")
        levels = self.stream("levels")
        self.rates = {
            kind: min(FAULT_RATE_MAX, rate * levels.choice(INTENSITIES)) for kind, rate in FAULT_RATES.items()
        }
        if seed // len(THEMES) % ALONE_EVERY == 0:
            self.rates = dict.fromkeys(FAULT_RATES, 0.0)
        self.rates.update({kind: max(THEME_RATE, FAULT_RATES[kind]) for kind in THEMES[seed % len(THEMES)]})
        offers = self.stream("offers")
        #: in these seeds two providers can make every order
        self.two_providers = offers.random() < 0.5
        theme = offers.choice(FAIL_OVER_THEMES) if self.two_providers else ()
        if theme and offers.random() < 0.5:
            self.rates = dict.fromkeys(FAULT_RATES, 0.0)
        self.rates.update({kind: max(THEME_RATE, self.rates[kind]) for kind in theme})
        self.resends_after_progress = seed % RESENDS_EVERY == RESENDS_FIRST
        if self.resends_after_progress:
            self.rates.update(dict.fromkeys(RESENDS_THEME, FAULT_RATE_MAX))
        #: whether users and operators go on with orders that have ended
        self.afterwards = seed % AFTERWARDS_EVERY in AFTERWARDS
        theme = AFTERWARDS_THEMES[seed % len(AFTERWARDS_THEMES)] if self.afterwards else ()
        self.rates.update({kind: max(AFTERWARDS_RATE, self.rates[kind]) for kind in theme})
        if self.has("clients"):
            self.rates.update(dict.fromkeys(WEBHOOK_FAULTS, WEBHOOK_FAULT_RATE))
        #: jobs whose result crashes the instance that shows it
        self.poison = POISON_JOBS if seed % POISON_EVERY == POISON_FIRST else frozenset()
        #: whether users also order by updates, which instances store and handle in the order of each chat
        self.has_chats = seed % CHATS_EVERY == CHATS_FIRST or bool(self.poison)
        #: how many tasks a provider may work on at once; None: as many as it likes
        self.tasks_at_once = TASKS_AT_ONCE if seed % LIMITED_EVERY == LIMITED_FIRST else None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._errors: list[BaseException] = []

    def has(self, addition: str) -> bool:
        every, first = ADDITIONS[addition]
        return self.seed % every == first

    def stream(self, concern: str) -> random.Random:
        return random.Random(f"{self.seed}:{concern}")

    def note(self, who: str, what: str, /, **fields: Any) -> None:
        self.history.append((self.loop.time(), who, what, fields))

    def pick(self, kinds: Iterable[str], who: str = "world", /, **fields: Any) -> str | None:
        """Draw at most one of these kinds of faults, and record it."""
        if self.faults_over:
            return None
        roll = self._rng.random()
        for kind in kinds:
            roll -= self.rates[kind]
            if roll < 0:
                self.faults[kind] += 1
                self.note(who, "FAULT", kind=kind, **fields)
                return kind
        return None

    def happens(self, kind: str, who: str = "world", /, **fields: Any) -> bool:
        return self.pick((kind,), who, **fields) is not None

    def flip(self) -> bool:
        return self._rng.random() < 0.5

    async def delay(self, job_id: int) -> None:
        """Wait as long as a network call takes: shortly, sometimes long."""
        seconds = self._rng.random() * 0.4
        if self.happens("call: slow", job=job_id):
            seconds += self._rng.uniform(2.0, 30.0)
        await asyncio.sleep(seconds)

    async def lag(self) -> None:
        """Wait as long as a slow database takes: sometimes longer than a heartbeat."""
        await asyncio.sleep(self._rng.choice((0.05, 0.5, 3.0, 8.0)) * self._rng.random())

    # background tasks

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine in the background until it is done or the run is finished."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._errors.append(error)

    @property
    def busy(self) -> bool:
        """Whether a background task still runs. Raises the first error of the simulation itself."""
        if self._errors:
            raise self._errors[0]
        return bool(self._tasks)


class Recorder:
    """The observer of an instance: writes its events to the history."""

    def __init__(self, world: World, who: str) -> None:
        self._world = world
        self._who = who

    def event(self, event: Event, correlation_id: str = "", /, **fields: Any) -> None:
        if correlation_id:
            fields["order"] = correlation_id
        self._world.note(self._who, event.value, **fields)

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Counters are not part of the history."""
