"""The channel suite: results, repeats, lost answers, crashes, and users who cannot be reached."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from genlock.domain.delivery import MESSAGE_ONLY, Level, Part
from genlock.domain.errors import (
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    InvalidResult,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
)
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.ports import Channel, Placed
from genlock.testing.channel_subject import ChannelSituation, ChannelSubject
from genlock.testing.jobs import make_job
from genlock.testing.provider_checks import cut_off
from genlock.testing.running import Suite, on_subject, report

TURNS = (0, 1, 2, 3, 5, 8, 13, 21, 34)
TEXT = "The fox is in the snow."
#: what must arrive as it is, in whatever markup the channel uses
TEXTS = (
    "<b>bold</b> & <script>alert(1)</script> &amp;",
    "*bold* _italic_ [link](javascript:alert(1)) `code` ||spoiler||",
    "two\n\nparagraphs  with two spaces",
    "Привет, лиса 🦊 👩‍👩‍👧‍👦 عربى",
    "/start@bot @name #tag https://example.org/?a=1&b=2",
)


class ChannelConformance(Suite[ChannelSubject]):
    """Everything that the engine relies on in a channel."""

    @on_subject
    async def test_a_result_is_put_on_its_placeholder_and_a_repeated_put_changes_nothing(
        self, subject: ChannelSubject
    ) -> None:
        channel, job = subject.make(), _job(subject)
        part = await _placed_text(channel, job, TEXT)
        first = await channel.put(job, 0, part)
        seen = list(await subject.shown())
        problems = _text_problems(subject, [message.text for message in seen], [TEXT])
        for again in (channel, subject.make()):
            placed = await again.put(job, 0, part)
            if (placed, list(await subject.shown())) != (first, seen):
                problems.append("a repeated put, or one of another process, changes what is shown")
        report(problems)

    @on_subject
    async def test_every_part_has_a_message_of_its_own(self, subject: ChannelSubject) -> None:
        channel, job = subject.make(), _job(subject)
        messages = [await channel.create_placeholder(job, index) for index in range(3)]
        assert len(set(messages)) == len(messages), "two parts have the same message"
        assert all(messages), "a message without an id"
        for index, message in enumerate(messages):
            await channel.put(job, index, _text(f"{TEXT} {index}", message))
        texts = [message.text for message in await subject.shown()]
        report(_text_problems(subject, texts, [f"{TEXT} {index}" for index in range(3)]))

    @on_subject
    async def test_texts_arrive_as_they_are(self, subject: ChannelSubject) -> None:
        channel, job = subject.make(), _job(subject)
        for index, text in enumerate(TEXTS):
            await channel.put(job, index, await _placed_text(channel, job, text, index))
        report(_text_problems(subject, [message.text for message in await subject.shown()], TEXTS))

    @on_subject
    async def test_a_long_text_is_split_without_losing_a_character(self, subject: ChannelSubject) -> None:
        channel, job = subject.make(), _job(subject)
        whole = (Part(kind=PartKind.TEXT, value=subject.long_text),)
        parts = channel.split(whole)
        assert channel.split(whole) == parts, "split gives another answer the second time"
        assert channel.split(parts) == parts, "the parts are split again"
        joined = "".join(part.value for part in parts)
        assert "".join(joined.split()) == "".join(subject.long_text.split()), "split loses or adds characters"
        for index, part in enumerate(parts[:3]):
            message = await channel.create_placeholder(job, index)
            await channel.put(job, index, replace(part, message=message))

    @on_subject
    async def test_a_file_is_shown_once_at_some_level(self, subject: ChannelSubject) -> None:
        channel, job = subject.make(), _job(subject)
        message = await channel.create_placeholder(job, 0)
        part = Part(kind=PartKind.FILE, value=subject.picture_url(), message=message)
        before = list(await subject.shown())
        shown, placed = await _put_at_some_level(channel, job, part)
        assert placed is not None, "the file could not be shown at any level"
        seen = list(await subject.shown())
        assert seen != before, "the file is reported as shown, but the user sees what was there before"
        again = await subject.make().put(job, 0, replace(shown, file=placed.file))
        assert (again.message, list(await subject.shown())) == (placed.message, seen), "a repeated put shows it anew"

    @on_subject
    async def test_a_page_is_never_shown_as_a_result(self, subject: ChannelSubject) -> None:
        channel, job = subject.make(), replace(_job(subject), attempts=100)
        message = await channel.create_placeholder(job, 0)
        part = Part(kind=PartKind.FILE, value=subject.page_url(), message=message)
        try:
            shown, placed = await _put_at_some_level(channel, job, part)
        except InvalidResult:
            return
        assert placed is None or shown.level is Level.TEXT, f"a web page was shown as a file, at level {shown.level}"

    @on_subject
    async def test_a_failure_is_shown_in_place_of_the_result(self, subject: ChannelSubject) -> None:
        channel, job = subject.make(), replace(_job(subject), error_code="provider_failed")
        message = await channel.create_placeholder(job, 0)
        part = replace(MESSAGE_ONLY[0], message=message)
        first = await channel.put(job, 0, part)
        seen = list(await subject.shown())
        assert await channel.put(job, 0, part) == first, "a repeated put of a failure has another answer"
        assert list(await subject.shown()) == seen, "a repeated put of a failure changes what is shown"
        assert not subject.shows_texts or seen[-1].text.strip(), "the message about the failure is empty"

    @on_subject
    async def test_a_busy_channel_shows_nothing_and_says_when_to_try_again(self, subject: ChannelSubject) -> None:
        channel, job = subject.make(), _job(subject)
        part = await _placed_text(channel, job, TEXT)
        before = list(await subject.shown())
        await subject.arrange(ChannelSituation.BUSY)
        with pytest.raises(ChannelBusy) as raised:
            await channel.put(job, 0, part)
        assert raised.value.after >= 0, f"asks to wait {raised.value.after} s"
        assert list(await subject.shown()) == before, "it was busy, but something was shown"
        await channel.put(job, 0, part)
        report(_text_problems(subject, [message.text for message in await subject.shown()], [TEXT]))

    @on_subject
    async def test_a_put_whose_answer_is_lost_can_be_repeated(self, subject: ChannelSubject) -> None:
        channel, job = subject.make(), _job(subject)
        part = await _placed_text(channel, job, TEXT)
        await subject.arrange(ChannelSituation.ANSWER_LOST)
        with suppress(ChannelOutcomeUnknown, ChannelBusy):
            await channel.put(job, 0, part)
        await channel.put(job, 0, part)
        report(_text_problems(subject, [message.text for message in await subject.shown()], [TEXT]))

    @on_subject
    async def test_a_new_message_whose_answer_is_lost_is_unknown_and_not_repeated(
        self, subject: ChannelSubject
    ) -> None:
        channel, job, problems = subject.make(), _job(subject), list[str]()
        placeholder = await channel.create_placeholder(job, 0)
        job = replace(job, placeholder=placeholder, parts=(_text(TEXT, placeholder),))
        for name, call in _new_messages(channel, job).items():
            before = len(await subject.shown())
            await subject.arrange(ChannelSituation.ANSWER_LOST)
            try:
                await call()
                problems.append(f"{name}: reported as done")
            except ChannelOutcomeUnknown:
                pass
            except ChannelError as error:
                problems.append(f"{name}: {type(error).__name__}, but it may have been done")
            new = len(await subject.shown()) - before
            if new > 1:
                problems.append(f"{name}: {new} messages")
        report(problems)

    @on_subject
    async def test_a_user_who_cannot_be_reached_is_reported(self, subject: ChannelSubject) -> None:
        channel, job, problems = subject.make(), _job(subject), list[str]()
        part = await _placed_text(channel, job, TEXT)
        job = replace(job, placeholder=part.message, parts=(part,))
        await subject.arrange(ChannelSituation.UNREACHABLE_USER)
        for name, call in _new_messages(channel, job).items():
            try:
                await call()
                problems.append(f"{name}: reported as done")
            except RecipientUnreachable:
                continue
            except ChannelError as error:
                problems.append(f"{name}: {error!r}, not RecipientUnreachable")
        report(problems)

    @on_subject
    async def test_a_part_whose_message_was_deleted_is_sent_anew(self, subject: ChannelSubject) -> None:
        channel, job = subject.make(), _job(subject)
        part = await _placed_text(channel, job, TEXT)
        assert part.message is not None
        await subject.delete(part.message)
        with pytest.raises(PlaceholderGone):
            await channel.put(job, 0, part)
        placed = await channel.send(job, 0, part)
        assert placed.message != part.message, "the new message has the id of the deleted one"
        report(_text_problems(subject, [message.text for message in await subject.shown()], [TEXT]))

    @on_subject
    async def test_calls_that_are_cut_off_at_any_point_leave_one_message_with_the_result(
        self, subject: ChannelSubject
    ) -> None:
        channel, job = subject.make(), _job(subject)
        part = await _placed_text(channel, job, TEXT)
        before = len(await subject.shown())
        for turns in TURNS:
            await cut_off(lambda: channel.put(job, 0, part), turns)
            seen = len(await subject.shown())
            assert seen <= max(before, 1), f"a put cut off after {turns} turns made a new message"
        await subject.make().put(job, 0, part)
        texts = [message.text for message in await subject.shown()]
        report(_text_problems(subject, texts, [TEXT]))

    @on_subject
    async def test_progress_is_shown_on_the_placeholder_or_dropped(self, subject: ChannelSubject) -> None:
        channel, job = subject.make(), _job(subject)
        job = replace(job, placeholder=await channel.create_placeholder(job, 0))
        points = list(channel.progress_points(job))
        assert points == list(channel.progress_points(job)), "progress_points gives another answer the second time"
        assert all(point > 0 for point in points), f"progress_points: {points}"
        before = len(await subject.shown())
        for fraction in (0.1, 0.5, 0.5, 0.99):
            try:
                await channel.progress(job, fraction, asyncio.get_running_loop().time() + 5.0)
            except ChannelError:
                continue  # it is dropped
        assert len(await subject.shown()) == before, "progress made a new message"


def _job(subject: ChannelSubject) -> Job:
    return make_job(7, address=subject.address)


def _text(text: str, message: str | None) -> Part:
    return Part(kind=PartKind.TEXT, value=text, message=message)


async def _placed_text(channel: Channel, job: Job, text: str, index: int = 0) -> Part:
    """Return a text part with its placeholder."""
    return _text(text, await channel.create_placeholder(job, index))


def _text_problems(subject: ChannelSubject, seen: Sequence[str], expected: Sequence[str]) -> list[str]:
    if not subject.shows_texts:
        return []
    counts = {text: seen.count(text) for text in expected}
    return [f"{text!r} is shown {count} times, not once, in {seen!r}" for text, count in counts.items() if count != 1]


def _new_messages(channel: Channel, job: Job) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return the calls that make a new message, by name."""
    return {
        "create_placeholder": lambda: channel.create_placeholder(job, 1),
        "send": lambda: channel.send(job, 0, replace(job.parts[0], message=None)),
        "tell": lambda: channel.tell(job.address, "news"),
    }


async def _put_at_some_level(channel: Channel, job: Job, part: Part) -> tuple[Part, Placed | None]:
    """Put a part at the first level that the channel does not refuse, as the engine does."""
    current: Part | None = part
    while current is not None:
        part = current
        try:
            return part, await channel.put(job, 0, part)
        except LevelRefused:
            current = part.lower()
    return part, None
