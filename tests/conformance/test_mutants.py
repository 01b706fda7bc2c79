"""The suites find adapters that break a promise: each mutant makes one test fail, and says why."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from genlock.domain.delivery import Part
from genlock.domain.errors import ChannelOutcomeUnknown, ProviderBusy, ProviderError, SubmitRefused, SubmitUnknown
from genlock.domain.job import Job
from genlock.domain.result import Outcome, Report
from genlock.domain.task import CancelOutcome, Handle, TaskOrder
from genlock.ports import Channel, Placed, ProviderBundle
from genlock.testing import ChannelConformance, ChannelSubject, ProviderConformance, ProviderSubject
from tests.conformance.simulated_channels import TelegramSubject, running_telegram_subject
from tests.conformance.simulated_providers import ReplicateSubject, running_replicate_subject


class Mutant:
    """An adapter that does what another does, except for what a subclass defines."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


# providers


class Repeats(Mutant):
    async def create(self, order: TaskOrder) -> Handle:
        try:
            handle: Handle = await self.inner.create(order)
        except SubmitUnknown:
            handle = await self.inner.create(order)
        return handle


class TakesLostForBusy(Mutant):
    async def create(self, order: TaskOrder) -> Handle:
        try:
            handle: Handle = await self.inner.create(order)
        except SubmitUnknown as error:
            raise ProviderBusy(1.0, str(error)) from error
        return handle


class BlamesTheUser(Mutant):
    async def create(self, order: TaskOrder) -> Handle:
        try:
            handle: Handle = await self.inner.create(order)
        except SubmitRefused as refused:
            raise SubmitRefused("bad_input", refused.text) from refused
        return handle


class ReusesATask(Mutant):
    async def create(self, order: TaskOrder) -> Handle:
        await self.inner.create(order)
        return Handle(task_id="always-the-same")


class ShowsTheKey(Mutant):
    async def create(self, order: TaskOrder) -> Handle:
        try:
            handle: Handle = await self.inner.create(order)
        except ProviderBusy as busy:
            raise ProviderBusy(busy.after, f"with {self.inner._http._headers}") from busy
        return handle


class InventsAFailure(Mutant):
    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        try:
            report: Report = await self.inner.status(handle, order)
        except ProviderError:
            return Report(outcome=Outcome.FAILURE, task_id=handle.task_id, error_code="provider_failed", cost=0)
        return report


class RaisesAnything(Mutant):
    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        try:
            report: Report = await self.inner.status(handle, order)
        except ProviderError as error:
            raise KeyError("state") from error
        return report


class FailsOverModeration(Mutant):
    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        report: Report = await self.inner.status(handle, order)
        code = "provider_failed" if report.error_code == "moderation" else report.error_code
        return replace(report, error_code=code)


class CancelsAnything(Mutant):
    async def cancel(self, handle: Handle, order: TaskOrder) -> CancelOutcome:
        return CancelOutcome.CANCELLED


class PretendsToCancel(Mutant):
    """Says that a running task is cancelled, without asking the provider."""

    outcome = CancelOutcome.CANCELLED

    async def cancel(self, handle: Handle, order: TaskOrder) -> CancelOutcome:
        report: Report = await self.inner.status(handle, order)
        return CancelOutcome.TOO_LATE if report.outcome is Outcome.SUCCESS else self.outcome


class SaysTooLate(PretendsToCancel):
    outcome = CancelOutcome.TOO_LATE


class NeverKnows(PretendsToCancel):
    outcome = CancelOutcome.UNKNOWN


class CancelsUnheard(Mutant):
    async def cancel(self, handle: Handle, order: TaskOrder) -> CancelOutcome:
        try:
            outcome: CancelOutcome = await self.inner.cancel(handle, order)
        except ProviderError:
            return CancelOutcome.CANCELLED
        return CancelOutcome.CANCELLED if outcome is CancelOutcome.UNKNOWN else outcome


class FindsAnything(Mutant):
    async def find(self, order: TaskOrder, since: datetime) -> Sequence[Handle]:
        return [Handle(task_id=task_id) for task_id in ("a", "b")]


class ReadsNothing(Mutant):
    def read_callback(self, body: bytes) -> Report:
        try:
            report: Report = self.inner.read_callback(body)
        except ValueError:
            return Report(outcome=Outcome.UNKNOWN)
        return report


class TrustsEveryCallback(Mutant):
    """Its bundle verifies everything; see `mutated`."""


PROVIDERS: dict[type[Mutant], str] = {
    Repeats: "test_an_accepted_order_whose_answer_is_lost_is_unknown_and_not_repeated",
    TakesLostForBusy: "test_an_accepted_order_whose_answer_is_lost_is_unknown_and_not_repeated",
    FindsAnything: "test_an_accepted_order_whose_answer_is_lost_is_unknown_and_not_repeated",
    BlamesTheUser: "test_only_what_was_provably_not_accepted_is_refused_or_busy",
    ShowsTheKey: "test_only_what_was_provably_not_accepted_is_refused_or_busy",
    ReusesATask: "test_orders_at_the_same_time_become_tasks_of_their_own",
    InventsAFailure: "test_a_status_query_never_invents_an_end",
    RaisesAnything: "test_a_status_query_never_invents_an_end",
    FailsOverModeration: "test_a_failure_says_whether_another_provider_may_try",
    CancelsAnything: "test_the_outcome_of_a_cancellation_agrees_with_what_becomes_of_the_task",
    PretendsToCancel: "test_the_outcome_of_a_cancellation_agrees_with_what_becomes_of_the_task",
    SaysTooLate: "test_the_outcome_of_a_cancellation_agrees_with_what_becomes_of_the_task",
    NeverKnows: "test_the_outcome_of_a_cancellation_agrees_with_what_becomes_of_the_task",
    CancelsUnheard: "test_the_outcome_of_a_cancellation_agrees_with_what_becomes_of_the_task",
    ReadsNothing: "test_whatever_is_sent_in_place_of_a_callback_is_refused_or_read_without_harm",
    TrustsEveryCallback: "test_only_callbacks_that_the_provider_signed_are_authentic",
}


async def verify_all(*_: object) -> bool:
    return True


def mutated(bundle: ProviderBundle, mutant: type[Mutant]) -> ProviderBundle:
    verify = verify_all if mutant is TrustsEveryCallback else bundle.verify_callback
    provider: Any = mutant(bundle.provider)
    return replace(bundle, provider=provider, verify_callback=verify)


@pytest.mark.parametrize("mutant", PROVIDERS)
def test_the_provider_suite_finds(mutant: type[Mutant]) -> None:
    class Subject(ReplicateSubject):
        patience_seconds = 0.3

        def make(self, *given: Any, **named: Any) -> ProviderBundle:
            return mutated(super().make(*given, **named), mutant)

    class Mutated(ProviderConformance):
        @asynccontextmanager
        async def running(self) -> AsyncIterator[ProviderSubject]:
            async with running_replicate_subject() as subject:
                subject.__class__ = Subject
                yield subject

    with pytest.raises(AssertionError):
        getattr(Mutated(), PROVIDERS[mutant])()


# channels


class PutsAnew(Mutant):
    async def put(self, job: Job, index: int, part: Part) -> Placed:
        placed: Placed = await self.inner.send(job, index, part)
        return placed


class SendsTwice(Mutant):
    async def send(self, job: Job, index: int, part: Part) -> Placed:
        try:
            placed: Placed = await self.inner.send(job, index, part)
        except ChannelOutcomeUnknown:
            placed = await self.inner.send(job, index, part)
        return placed


class LosesTheEnd(Mutant):
    def split(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        return tuple(replace(part, value=part.value[:4000]) for part in parts)


class SwallowsErrors(Mutant):
    async def put(self, job: Job, index: int, part: Part) -> Placed:
        try:
            placed: Placed = await self.inner.put(job, index, part)
        except Exception:  # noqa: BLE001 - that is the fault
            return Placed(message=part.message)
        return placed


class SharesAMessage(Mutant):
    _first: str | None = None

    async def create_placeholder(self, job: Job, index: int) -> str:
        self._first = self._first or await self.inner.create_placeholder(job, index)
        return self._first


CHANNELS: dict[type[Mutant], str] = {
    PutsAnew: "test_a_result_is_put_on_its_placeholder_and_a_repeated_put_changes_nothing",
    SendsTwice: "test_a_new_message_whose_answer_is_lost_is_unknown_and_not_repeated",
    LosesTheEnd: "test_a_long_text_is_split_without_losing_a_character",
    SwallowsErrors: "test_a_part_whose_message_was_deleted_is_sent_anew",
    SharesAMessage: "test_every_part_has_a_message_of_its_own",
}


@pytest.mark.parametrize("mutant", CHANNELS)
def test_the_channel_suite_finds(mutant: type[Mutant]) -> None:
    class Subject(TelegramSubject):
        def make(self) -> Channel:
            made: Any = mutant(super().make())
            return made  # type: ignore[no-any-return]

    class Mutated(ChannelConformance):
        @asynccontextmanager
        async def running(self) -> AsyncIterator[ChannelSubject]:
            async with running_telegram_subject() as subject:
                subject.__class__ = Subject
                yield subject

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(Mutated(), CHANNELS[mutant])()
