"""The provider suite: orders, status queries, failures, cancellation, lost answers and crashes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

from genlock.domain.attempt import ELSEWHERE, may_fail_over
from genlock.domain.errors import ProviderError
from genlock.domain.result import Outcome
from genlock.domain.task import CancelOutcome, Handle, TaskOrder
from genlock.ports import ProviderBundle
from genlock.testing.provider_callbacks import ProviderCallbackConformance
from genlock.testing.provider_checks import Calls, cut_off
from genlock.testing.provider_subject import ProviderSubject, Situation
from genlock.testing.running import NotShown, on_subject, report

#: after how many turns of the event loop a create call is cut off
TURNS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55)
AT_ONCE = 8
#: create calls that the service provably does not accept, and what the adapter must make of them
NOT_ACCEPTED = {
    Situation.NO_CREDIT: "no_provider_credits",
    Situation.UNKNOWN_MODEL: "model_unavailable",
    Situation.TOO_MANY: "busy",
}
ACCEPTED_UNHEARD = (Situation.ANSWER_LOST, Situation.ANSWER_GARBLED, Situation.ANSWER_LATE)
STATUS_FAULTS = {
    Situation.STATUS_TOO_MANY: ("busy",),
    Situation.STATUS_SERVER_ERROR: ("busy", "error"),
    Situation.STATUS_GARBLED: ("busy", "error"),
    Situation.STATUS_WORD: ("unknown", "running"),
}


@asynccontextmanager
async def opened(bundle: ProviderBundle) -> AsyncIterator[ProviderBundle]:
    try:
        yield bundle
    finally:
        await bundle.close()


class ProviderConformance(ProviderCallbackConformance):
    """Everything that the engine relies on in a provider."""

    @on_subject
    async def test_an_order_becomes_one_task_whose_end_every_query_reports(self, subject: ProviderSubject) -> None:
        order = subject.order()
        async with opened(subject.make()) as bundle:
            handle = await bundle.provider.create(order)
            calls = Calls(subject.secrets)
            calls.expect("tasks after one create call", await subject.created(), 1)
            first = await subject.ended(bundle, handle, order)
            calls.expect("the end of the task", first.outcome, Outcome.SUCCESS)
            calls.require(first.pieces or first.incomplete, "a success without a result")
            calls.expect("the id in the report", first.task_id, handle.task_id, None)
            calls.expect("the second query", await bundle.provider.status(handle, order), first)
        async with opened(subject.make()) as restarted:
            stored = Handle(task_id=handle.task_id, details=handle.details)
            calls.expect("a query after a restart", await restarted.provider.status(stored, order), first)
            await calls.status("a query", restarted.provider.status(stored, order))
        calls.expect("tasks at the end", await subject.created(), 1)
        report(calls.problems)

    @on_subject
    async def test_orders_at_the_same_time_become_tasks_of_their_own(self, subject: ProviderSubject) -> None:
        async with opened(subject.make()) as bundle:
            orders = [subject.order(number) for number in range(1, AT_ONCE + 1)]
            handles = await asyncio.gather(*(bundle.provider.create(order) for order in orders))
        assert len({handle.task_id for handle in handles}) == AT_ONCE, "two orders have the same task"
        assert await subject.created() == AT_ONCE, "there are more tasks than orders, or fewer"

    @on_subject
    async def test_only_what_was_provably_not_accepted_is_refused_or_busy(self, subject: ProviderSubject) -> None:
        calls, order, shown = Calls(subject.secrets), subject.order(), 0
        async with opened(subject.make()) as bundle:
            for situation, expected in NOT_ACCEPTED.items():
                if await _arranged(subject, situation):
                    shown += 1
                    found = await calls.create(situation, bundle.provider.create(order))
                    calls.expect(situation, found, expected)
            calls.expect("tasks after refusals", await subject.created(), 0)
            if await _arranged(subject, Situation.SERVER_ERROR):
                before = await subject.created()
                found = await calls.create("server_error", bundle.provider.create(order))
                accepted = await subject.created() - before
                calls.require(found == "unknown" or not accepted, f"server_error: {found}, but the order was accepted")
                calls.require(found != "accepted" or accepted, "server_error: reported as accepted")
        for what, make, expected in (
            ("wrong key", subject.make_with_wrong_key, "provider_key"),
            ("unreachable", subject.make_unreachable, "busy"),
        ):
            try:
                made = make()
            except NotShown:
                continue
            async with opened(made) as bundle:
                shown += 1
                calls.expect(what, await calls.create(what, bundle.provider.create(order)), expected)
        _require_shown(shown, "no refusal")
        report(calls.problems)

    @on_subject
    async def test_an_accepted_order_whose_answer_is_lost_is_unknown_and_not_repeated(
        self, subject: ProviderSubject
    ) -> None:
        calls, shown = Calls(subject.secrets), 0
        async with opened(subject.make()) as bundle:
            for number, situation in enumerate(ACCEPTED_UNHEARD, 1):
                if not await _arranged(subject, situation):
                    continue
                shown += 1
                order, before, since = subject.order(number), await subject.created(), datetime.now(UTC)
                found = await calls.create(situation, bundle.provider.create(order))
                calls.expect(situation, found, "unknown")
                calls.expect(f"tasks after {situation}", await subject.created() - before, 1)
                await _check_find(subject, bundle, order, since, calls)
        _require_shown(shown, "no lost answer")
        report(calls.problems)

    @on_subject
    async def test_a_create_call_that_is_cut_off_at_any_point_starts_at_most_one_task(
        self, subject: ProviderSubject
    ) -> None:
        calls = Calls(subject.secrets)
        async with opened(subject.make()) as bundle:
            for number, turns in enumerate(TURNS, 1):
                order, before = subject.order(number), await subject.created()
                await cut_off(partial(bundle.provider.create, order), turns)
                started = await subject.created() - before
                calls.require(started <= 1, f"cut off after {turns} turns: {started} tasks")
            order = subject.order(100)
            handle = await bundle.provider.create(order)
            found = await subject.ended(bundle, handle, order)
            calls.expect("an order after the interruptions", found.outcome, Outcome.SUCCESS)
        report(calls.problems)

    @on_subject
    async def test_a_status_query_never_invents_an_end(self, subject: ProviderSubject) -> None:
        calls, order, shown = Calls(subject.secrets), subject.order(), 0
        async with opened(subject.make()) as bundle:
            handle = await bundle.provider.create(order)
            await subject.ended(bundle, handle, order)
            for situation, expected in STATUS_FAULTS.items():
                if await _arranged(subject, situation, handle):
                    shown += 1
                    found = await calls.status(situation, bundle.provider.status(handle, order))
                    calls.expect(situation, found, *expected)
                    after = await calls.status(f"after {situation}", bundle.provider.status(handle, order))
                    calls.expect(f"after {situation}", after, "success")
        _require_shown(shown, "no fault of a status query")
        report(calls.problems)

    @on_subject
    async def test_a_failure_says_whether_another_provider_may_try(self, subject: ProviderSubject) -> None:
        calls, shown = Calls(subject.secrets), 0
        async with opened(subject.make()) as bundle:
            for number, situation in enumerate(
                (Situation.TASK_FAILS, Situation.TASK_MODERATED, Situation.TASK_EMPTY, Situation.BAD_INPUT), 1
            ):
                if not await _arranged(subject, situation):
                    continue
                shown += 1
                await _check_failure(subject, bundle, subject.order(number), situation, calls)
        _require_shown(shown, "no failure")
        report(calls.problems)

    @on_subject
    async def test_the_outcome_of_a_cancellation_agrees_with_what_becomes_of_the_task(
        self, subject: ProviderSubject
    ) -> None:
        """Cancelled: the task ends without a result. Too late: it has ended. Unknown: the answer was lost.

        A provider that cannot cancel always answers `unknown`.
        """
        calls = Calls(subject.secrets)
        async with opened(subject.make()) as bundle:
            order = subject.order(1)
            handle = await bundle.provider.create(order)
            await subject.ended(bundle, handle, order)
            outcomes = [await bundle.provider.cancel(handle, order) for _ in range(2)]
            for outcome in outcomes:
                calls.expect("cancelling a task that has ended", outcome, CancelOutcome.TOO_LATE, CancelOutcome.UNKNOWN)
            if await _arranged(subject, Situation.TASK_SLOW):
                outcomes += await _check_cancel(subject, bundle, calls)
                calls.require(
                    CancelOutcome.UNKNOWN not in outcomes or set(outcomes) == {CancelOutcome.UNKNOWN},
                    f"cancelling: unknown though the provider answered: {[str(outcome) for outcome in outcomes]}",
                )
                if await _arranged(subject, Situation.CANCEL_UNHEARD):
                    await _check_unheard_cancel(subject, bundle, calls)
        report(calls.problems)

    @on_subject
    async def test_health_and_credit_answer_and_a_wrong_key_is_named(self, subject: ProviderSubject) -> None:
        calls = Calls(subject.secrets)
        async with opened(subject.make()) as bundle:
            if bundle.health is None and bundle.credit is None:
                raise NotShown("the bundle has neither health nor credit")
            if bundle.health is not None:
                health = await bundle.health()
                calls.require(health.ok, f"health: {health!r}")
            if bundle.credit is not None:
                left = await bundle.credit()
                calls.require(type(left) is int, f"credit: {left!r} is not a number of thousandths")
        async with opened(subject.make_with_wrong_key()) as wrong:
            if wrong.health is not None:
                health = await wrong.health()
                calls.require(not health.ok and health.text, "health: a wrong key is not named")
            elif wrong.credit is not None:
                try:
                    await wrong.credit()
                    calls.problems.append("credit: answered with a wrong key")
                except ProviderError as error:
                    calls.require(not any(secret in str(error) for secret in subject.secrets), "credit: shows a secret")
        report(calls.problems)

    @on_subject
    async def test_a_file_is_stored_where_models_can_read_it(self, subject: ProviderSubject) -> None:
        async def content() -> AsyncIterator[bytes]:
            yield b"\x89PNG\r\n\x1a\n"
            yield b"of a user"

        async with opened(subject.make()) as bundle:
            if bundle.upload is None:
                raise NotShown("the bundle has no upload")
            url = await bundle.upload(content(), "5f2b8c1d9e3a.png", "conformance")
        assert url.startswith(("http://", "https://")), f"upload: {url!r} is not an http URL"


async def _arranged(subject: ProviderSubject, situation: Situation, handle: Handle | None = None) -> bool:
    """Bring a situation about. Returns False if the subject cannot."""
    try:
        await subject.arrange(situation, handle)
    except NotShown:
        return False
    return True


def _require_shown(shown: int, what: str) -> None:
    if not shown:
        raise NotShown(f"the subject shows {what}")


async def _check_find(
    subject: ProviderSubject, bundle: ProviderBundle, order: TaskOrder, since: datetime, calls: Calls
) -> None:
    """A lost task is found or not; what is found is a task, and never one of another order."""
    found = await bundle.provider.find(order, since - timedelta(seconds=1))
    for handle in found:
        word = await calls.status("a found task", bundle.provider.status(handle, order))
        calls.expect("a found task", word, "success", "running")
    later = await bundle.provider.find(order, since + timedelta(days=2))
    calls.require(not later, "find: returns tasks from before the call")
    other = {**subject.values, **{key: f"{value} (another order)" for key, value in _texts(subject).items()}}
    if other != dict(subject.values):
        others = await bundle.provider.find(subject.order(99, other), since - timedelta(seconds=1))
        calls.require(not others, "find: returns the task of another input")


def _texts(subject: ProviderSubject) -> dict[str, str]:
    return {key: value for key, value in subject.values.items() if isinstance(value, str)}


async def _check_failure(
    subject: ProviderSubject, bundle: ProviderBundle, order: TaskOrder, situation: Situation, calls: Calls
) -> None:
    handles: list[Handle] = []

    async def create() -> Handle:
        handles.append(await bundle.provider.create(order))
        return handles[0]

    word = await calls.create(situation, create())
    if not handles:
        calls.require(situation is Situation.BAD_INPUT, f"{situation}: {word} at the create call")
        calls.require(word not in ELSEWHERE | {"busy", "unknown"}, f"{situation}: {word} lets another provider try")
        return
    found = await subject.ended(bundle, handles[0], order)
    await calls.status(situation, bundle.provider.status(handles[0], order))
    if situation is Situation.TASK_EMPTY:
        calls.require(not found.pieces, f"{situation}: has a result")
        return
    calls.expect(situation, found.outcome, Outcome.FAILURE)
    if situation is Situation.TASK_FAILS:
        calls.require(found.error_code in ELSEWHERE, f"{situation}: {found.error_code} is not the provider's fault")
    else:
        calls.require(not may_fail_over(found), f"{situation}: {found.error_code} lets another provider try")
        calls.require(found.error_code not in ELSEWHERE, f"{situation}: {found.error_code} is the provider's fault")


async def _check_cancel(subject: ProviderSubject, bundle: ProviderBundle, calls: Calls) -> list[CancelOutcome]:
    """Cancel a running task, twice, and watch what becomes of it."""
    order = subject.order(2)
    handle = await bundle.provider.create(order)
    found = await calls.status("a running task", bundle.provider.status(handle, order))
    calls.expect("a running task", found, "running")
    first = await bundle.provider.cancel(handle, order)
    calls.require(isinstance(first, CancelOutcome), f"cancelling a running task: {first!r}")
    if first is not CancelOutcome.UNKNOWN:
        try:
            async with asyncio.timeout(subject.patience_seconds):
                end = await subject.ended(bundle, handle, order)
        except TimeoutError:
            calls.problems.append(f"cancelling a running task: {first}, but the task goes on")
        else:
            calls.expect(f"the end of a task after {first}", end.outcome, Outcome.FAILURE)
            calls.require(not end.pieces, f"a task has a result after {first}")
    return [first, await bundle.provider.cancel(handle, order)]


async def _check_unheard_cancel(subject: ProviderSubject, bundle: ProviderBundle, calls: Calls) -> None:
    order = subject.order(3)
    handle = await bundle.provider.create(order)
    try:
        outcome = await bundle.provider.cancel(handle, order)
    except ProviderError:
        return  # the port allows it: the engine asks again
    calls.expect("cancelling without an answer", outcome, CancelOutcome.UNKNOWN)
