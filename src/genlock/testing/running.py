"""Runs a test of a suite: with a subject of its own, in an event loop of its own."""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

import pytest

SubjectT = TypeVar("SubjectT")
#: a test that takes longer hangs
TEST_SECONDS = 60.0


class NotShown(Exception):
    """The subject cannot bring about a situation; the test is skipped."""


class Suite(Generic[SubjectT]):
    """A set of tests. A subclass whose name begins with `Test` runs them against its subject."""

    @abstractmethod
    def running(self) -> AbstractAsyncContextManager[SubjectT]:
        """Return a context in which a new subject runs."""


def on_subject(test: Callable[[Any, Any], Awaitable[None]]) -> Callable[[Any], None]:
    """Make a test of a coroutine that takes a subject."""

    def run(self: Suite[Any]) -> None:
        async def main() -> None:
            async with asyncio.timeout(TEST_SECONDS), self.running() as subject:
                await test(self, subject)

        try:
            asyncio.run(main())
        except NotShown as not_shown:
            pytest.skip(str(not_shown))

    run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
    run.__module__ = test.__module__
    return run


def report(problems: list[str]) -> None:
    """Fail with all problems at once."""
    assert not problems, "\n".join(problems)
