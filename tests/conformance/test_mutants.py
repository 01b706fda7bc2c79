"""The suites find adapters that break a promise: each mutant makes one test fail, and says why."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from genlock.domain.delivery import Level, Part
from genlock.domain.errors import (
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    PlaceholderGone,
    ProviderBusy,
    ProviderError,
    RecipientUnreachable,
    SubmitRefused,
    SubmitUnknown,
)
from genlock.domain.job import Job
from genlock.domain.result import Outcome, PartKind, Report
from genlock.domain.task import CancelOutcome, Handle, TaskOrder
from genlock.ports import Channel, Placed, ProviderBundle, ProviderHealth
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


class OrdersTwice(Mutant):
    async def create(self, order: TaskOrder) -> Handle:
        await self.inner.create(order)
        handle: Handle = await self.inner.create(order)
        return handle


class RepeatsWhenCutOff(Mutant):
    async def create(self, order: TaskOrder) -> Handle:
        try:
            handle: Handle = await self.inner.create(order)
        except asyncio.CancelledError:
            await self.inner.create(order)
            raise
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


class MisreadsTheEnd(Mutant):
    def read_callback(self, body: bytes) -> Report:
        report: Report = self.inner.read_callback(body)
        return replace(report, outcome=Outcome.FAILURE, error_code="provider_failed")


class IsAlwaysWell(Mutant):
    async def health(self) -> ProviderHealth:
        return ProviderHealth(ok=True, text="all is well")


class StoresNowhere(Mutant):
    async def upload(self, _content: object, name: str, _folder: str) -> str:
        return name


class TrustsEveryCallback(Mutant):
    async def verify_callback(self, *_: object) -> bool:
        return True


PROVIDERS: dict[type[Mutant], str] = {
    OrdersTwice: "test_an_order_becomes_one_task_whose_end_every_query_reports",
    RepeatsWhenCutOff: "test_a_create_call_that_is_cut_off_at_any_point_starts_at_most_one_task",
    MisreadsTheEnd: "test_a_callback_reports_what_a_query_reports",
    IsAlwaysWell: "test_health_and_credit_answer_and_a_wrong_key_is_named",
    StoresNowhere: "test_a_file_is_stored_where_models_can_read_it",
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


def mutated(bundle: ProviderBundle, mutant: type[Mutant]) -> ProviderBundle:
    """Return the bundle with the mutant as its provider, and with what else of a bundle the mutant defines."""
    provider: Any = mutant(bundle.provider)
    own = {name: getattr(provider, name) for name in ("verify_callback", "health", "upload") if name in vars(mutant)}
    return replace(bundle, provider=provider, **own)


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


class StripsMarkup(Mutant):
    async def put(self, job: Job, index: int, part: Part) -> Placed:
        placed: Placed = await self.inner.put(job, index, replace(part, value=part.value.replace("<", "")))
        return placed


class ShowsNoFile(Mutant):
    async def put(self, job: Job, index: int, part: Part) -> Placed:
        return Placed(message=part.message)


class ShowsPages(Mutant):
    async def put(self, job: Job, index: int, part: Part) -> Placed:
        await self.inner.put(job, index, replace(part, level=Level.TEXT))
        return Placed(message=part.message)


class CountsFailures(Mutant):
    puts = 0

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        self.puts += 1
        text = replace(part, kind=PartKind.TEXT, value=f"Failed, attempt {self.puts}")
        placed: Placed = await self.inner.put(job, index, text)
        return placed


class TakesBusyForUnknown(Mutant):
    async def put(self, job: Job, index: int, part: Part) -> Placed:
        try:
            placed: Placed = await self.inner.put(job, index, part)
        except ChannelBusy as busy:
            raise ChannelOutcomeUnknown from busy
        return placed


class TakesLostForGone(Mutant):
    async def put(self, job: Job, index: int, part: Part) -> Placed:
        try:
            placed: Placed = await self.inner.put(job, index, part)
        except ChannelOutcomeUnknown as lost:
            raise PlaceholderGone from lost
        return placed


class WaitsForTheUser(Mutant):
    async def send(self, job: Job, index: int, part: Part) -> Placed:
        try:
            placed: Placed = await self.inner.send(job, index, part)
        except RecipientUnreachable as unreachable:
            raise ChannelBusy(60.0) from unreachable
        return placed


class SendsWhenCutOff(Mutant):
    async def put(self, job: Job, index: int, part: Part) -> Placed:
        try:
            placed: Placed = await self.inner.put(job, index, part)
        except asyncio.CancelledError:
            await self.inner.send(job, index, part)
            raise
        return placed


class SendsProgress(Mutant):
    async def progress(self, job: Job, fraction: float, until: float) -> None:
        await self.inner.send(job, 0, Part(kind=PartKind.TEXT, value=f"{fraction:.0%}"))


CHANNELS: dict[type[Mutant], str] = {
    StripsMarkup: "test_texts_arrive_as_they_are",
    ShowsNoFile: "test_a_file_is_shown_once_at_some_level",
    ShowsPages: "test_a_page_is_never_shown_as_a_result",
    CountsFailures: "test_a_failure_is_shown_in_place_of_the_result",
    TakesBusyForUnknown: "test_a_busy_channel_shows_nothing_and_says_when_to_try_again",
    TakesLostForGone: "test_a_put_whose_answer_is_lost_can_be_repeated",
    WaitsForTheUser: "test_a_user_who_cannot_be_reached_is_reported",
    SendsWhenCutOff: "test_calls_that_are_cut_off_at_any_point_leave_one_message_with_the_result",
    SendsProgress: "test_progress_is_shown_on_the_placeholder_or_dropped",
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

    with pytest.raises((AssertionError, ChannelError, pytest.fail.Exception)):
        getattr(Mutated(), CHANNELS[mutant])()


@pytest.mark.parametrize(("suite", "mutants"), [(ProviderConformance, PROVIDERS), (ChannelConformance, CHANNELS)])
def test_every_test_of_a_suite_has_a_mutant_that_it_finds(suite: type, mutants: dict[type[Mutant], str]) -> None:
    assert {name for name in dir(suite) if name.startswith("test_")} == set(mutants.values())
