"""The callbacks of a provider: what they report, who sent them, and what attackers send in their place."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers

from genlock.domain.errors import ProviderError
from genlock.domain.result import Outcome
from genlock.domain.task import Handle
from genlock.ports.provider import VerifyCallback
from genlock.testing.hostile import hostile_bodies
from genlock.testing.provider_checks import Calls, problems_of
from genlock.testing.provider_subject import ProviderSubject, SentCallback
from genlock.testing.running import NotShown, Suite, on_subject, report

#: no provider repeats a callback for that long
DAY_SECONDS = 24 * 3600.0


class ProviderCallbackConformance(Suite[ProviderSubject]):
    """What the engine relies on in callbacks. ProviderConformance has these tests, too."""

    @on_subject
    async def test_a_callback_reports_what_a_query_reports(self, subject: ProviderSubject) -> None:
        order, calls, bundle = subject.order(), Calls(subject.secrets), subject.make()
        try:
            handle = await bundle.provider.create(order)
            queried = await subject.ended(bundle, handle, order)
            sent = await subject.callback(handle)
            read = bundle.provider.read_callback(sent.body)
            calls.problems += problems_of(read)
            calls.expect("the callback's task", read.task_id, handle.task_id)
            calls.expect("the callback's outcome", read.outcome, queried.outcome)
            calls.require(read.incomplete or read.pieces == queried.pieces, "the callback has another result")
            calls.expect("the callback read again", bundle.provider.read_callback(sent.body), read)
        finally:
            await bundle.close()
        report(calls.problems)

    @on_subject
    async def test_whatever_is_sent_in_place_of_a_callback_is_refused_or_read_without_harm(
        self, subject: ProviderSubject
    ) -> None:
        bundle, problems = subject.make(), list[str]()
        try:
            for body in hostile_bodies(await _genuine(subject)):
                try:
                    read = bundle.provider.read_callback(body)
                except ValueError:
                    continue
                except Exception as error:  # noqa: BLE001 - reported below
                    problems.append(f"{body[:200]!r}: raised {error!r}, not ValueError")
                    continue
                problems += [f"{body[:200]!r}: {problem}" for problem in problems_of(read)]
                if read.task_id is None and read.outcome is Outcome.UNKNOWN and not read.word:
                    problems.append(f"{body[:200]!r}: names neither a task nor a state, and was not refused")
        finally:
            await bundle.close()
        report(problems)

    @on_subject
    async def test_only_callbacks_that_the_provider_signed_are_authentic(self, subject: ProviderSubject) -> None:
        bundle = subject.make()
        try:
            if bundle.verify_callback is None:
                raise NotShown("the provider's callbacks are not signed")
            order = subject.order()
            handle = await bundle.provider.create(order)
            await subject.ended(bundle, handle, order)
            sent = await subject.callback(handle)
            problems = [await _problem(bundle.verify_callback, callback) for callback in _presented(sent, handle)]
        finally:
            await bundle.close()
        report([problem for problem in problems if problem])


async def _genuine(subject: ProviderSubject) -> bytes | None:
    bundle, order = subject.make(), subject.order()
    try:
        handle = await bundle.provider.create(order)
        await subject.ended(bundle, handle, order)
        return (await subject.callback(handle)).body
    except NotShown:
        return None
    finally:
        await bundle.close()


@dataclass(frozen=True)
class _Presented:
    """A callback as it is presented to the check."""

    what: str
    headers: Mapping[str, str]
    body: bytes
    at: float
    genuine: bool | None = False  #: None: it may be either, but must not raise


def _presented(sent: SentCallback, handle: Handle) -> Iterator[_Presented]:
    headers, body, at = dict(sent.headers), sent.body, sent.at
    yield _Presented("the genuine callback", headers, body, at, genuine=True)
    yield _Presented("the genuine callback again", headers, body, at, genuine=True)
    yield _Presented("no headers", {}, body, at)
    yield _Presented("empty headers", dict.fromkeys(headers, ""), body, at)
    yield _Presented("garbled headers", dict.fromkeys(headers, "\xff\0%=,;1e999"), body, at)
    yield _Presented("long headers", dict.fromkeys(headers, "9" * 100_000), body, at)
    yield _Presented("a day later", headers, body, at + DAY_SECONDS)
    yield _Presented("a day earlier", headers, body, at - DAY_SECONDS)
    yield _Presented("an empty body", headers, b"", at)
    yield _Presented("another task", headers, body.replace(handle.task_id.encode(), b"another-task"), at)
    for name in headers:
        kept = {key: value for key, value in headers.items() if key != name}
        yield _Presented(f"without {name}", kept, body, at, genuine=None)


async def _problem(verify: VerifyCallback, callback: _Presented) -> str:
    try:
        found = await verify(Headers(dict(callback.headers)), callback.body, callback.at)
    except ProviderError:
        return f"{callback.what}: the check could not be made" if callback.genuine else ""
    except Exception as error:  # noqa: BLE001 - reported
        return f"{callback.what}: raised {error!r}"
    return "" if callback.genuine is None or found is callback.genuine else f"{callback.what}: verified as {found!r}"
