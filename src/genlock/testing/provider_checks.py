"""Words for the outcomes of calls, and what every report of a provider must hold to."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from urllib.parse import urlsplit

from genlock.domain.errors import ProviderBusy, ProviderError, SubmitRefused
from genlock.domain.result import Outcome, PartKind, Report
from genlock.domain.task import Handle

#: characters that databases cannot store
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
_TASK_ID_LENGTH_MAX = 300
_TEXT_LENGTH_MAX = 1_000_000
_COST_MAX = 10**15
#: a provider that asks for more is wrong, and the order would wait until its deadline
_AFTER_MAX = 24 * 3600.0


class Calls:
    """Makes calls and says in a word how each ended. Remembers every text, to look for secrets in them."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = secrets
        self.problems: list[str] = []

    async def create(self, what: str, call: Awaitable[object]) -> str:
        """Return `accepted`, the code of a refusal, `busy` or `unknown`."""
        try:
            handle = await call
        except SubmitRefused as refused:
            self._look(what, refused)
            return refused.code
        except ProviderBusy as busy:
            self._look(what, busy)
            if not 0 <= busy.after <= _AFTER_MAX:
                self.problems.append(f"{what}: asks to wait {busy.after} s")
            return "busy"
        except Exception as error:  # noqa: BLE001 - the engine takes any other exception for an unknown outcome
            self._look(what, error)
            return "unknown"
        if not isinstance(handle, Handle):
            self.problems.append(f"{what}: create returned a {type(handle).__name__}, not a Handle")
        return "accepted"

    async def status(self, what: str, call: Awaitable[Report]) -> str:
        """Return the outcome of a report, `busy` or `error`."""
        try:
            report = await call
        except ProviderBusy as busy:
            self._look(what, busy)
            return "busy"
        except ProviderError as error:
            self._look(what, error)
            return "error"
        except Exception as error:  # noqa: BLE001 - reported below
            self.problems.append(f"{what}: raised {error!r}, which is not a ProviderError")
            return "error"
        self.problems += [f"{what}: {problem}" for problem in problems_of(report)]
        self._look(what, report)
        return report.outcome.value

    def _look(self, what: str, value: object) -> None:
        text = f"{value} {value!r} {getattr(value, 'text', '')}"
        if any(secret in text for secret in self._secrets):
            self.problems.append(f"{what}: shows a secret")

    def expect(self, what: str, actual: object, *allowed: object) -> None:
        if actual not in allowed:
            self.problems.append(f"{what}: {actual!r}, expected {' or '.join(repr(value) for value in allowed)}")

    def require(self, condition: object, otherwise: str) -> None:
        if not condition:
            self.problems.append(otherwise)


def problems_of(report: object) -> Iterator[str]:
    """Yield what is wrong with a report, whatever it was read from."""
    if not isinstance(report, Report):
        yield f"returned a {type(report).__name__}, not a Report"
        return
    for name in ("error_code", "error_text", "word"):
        yield from _text_problems(name, getattr(report, name))
    if report.task_id is not None:
        yield from _text_problems("task_id", report.task_id, _TASK_ID_LENGTH_MAX)
    if report.cost is not None and (type(report.cost) is not int or not 0 <= report.cost <= _COST_MAX):
        yield f"cost is {report.cost!r}"
    if report.outcome is Outcome.FAILURE and not report.error_code:
        yield "a failure without an error code"
    for piece in report.pieces:
        yield from _text_problems("piece", piece.value)
        if piece.kind is PartKind.FILE and not _is_url(piece.value):
            yield f"the file {piece.value[:100]!r} is not an http URL"


def _text_problems(name: str, text: object, length_max: int = _TEXT_LENGTH_MAX) -> Iterator[str]:
    if not isinstance(text, str):
        yield f"{name} is a {type(text).__name__}"
    elif len(text) > length_max:
        yield f"{name} has {len(text)} characters"
    elif _NOT_TEXT.search(text):
        yield f"{name} has characters that databases cannot store"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


async def cut_off(call: Callable[[], Awaitable[object]], turns: int) -> None:
    """Start a call and cancel it after this many turns of the event loop, as the end of a process does."""
    task = asyncio.ensure_future(call())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
