"""Texts that cannot fail: a text that cannot be composed is replaced, so that it never holds up a delivery."""

from collections.abc import Callable
from html import escape
from typing import TypeVar

from genlock.domain.delivery import Part
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.ports import FileLabel, MessageTexts, Observer, OutgoingMessage

T = TypeVar("T")
_WAIT = OutgoingMessage(text="⏳")


class FallbackTexts(MessageTexts):
    """Asks the given texts first. Where they raise, reports the error and returns a short text of its own."""

    def __init__(self, texts: MessageTexts, observer: Observer) -> None:
        self._texts = texts
        self._observer = observer

    def label(self, job: Job) -> FileLabel:
        return self._try(lambda: self._texts.label(job), job, FileLabel(title=job.model, performer=job.model))

    def waiting(self, job: Job, language: str, fraction: float | None) -> OutgoingMessage:
        return self._try(lambda: self._texts.waiting(job, language, fraction), job, _WAIT)

    def placeholder(self, job: Job, language: str, index: int) -> OutgoingMessage:
        return self._try(lambda: self._texts.placeholder(job, language, index), job, _WAIT)

    def caption(self, job: Job, language: str, index: int, part: Part) -> OutgoingMessage:
        return self._try(lambda: self._texts.caption(job, language, index, part), job, OutgoingMessage(text=""))

    def link(self, job: Job, language: str, index: int, part: Part) -> OutgoingMessage:
        fallback = OutgoingMessage(text=escape(part.value))
        return self._try(lambda: self._texts.link(job, language, index, part), job, fallback)

    def failed(self, job: Job, language: str) -> OutgoingMessage:
        fallback = OutgoingMessage(text=f"❌ #{job.id}: {job.state}")
        return self._try(lambda: self._texts.failed(job, language), job, fallback)

    def notice(self, job: Job, language: str) -> OutgoingMessage:
        return self._try(
            lambda: self._texts.notice(job, language), job, OutgoingMessage(text=f"#{job.id}: {job.state}")
        )

    def _try(self, compose: Callable[[], T], job: Job, fallback: T) -> T:
        try:
            return compose()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a text, the result must be delivered
            self._observer.event(
                Event.STAGE_ERROR, job.correlation_id, job=job.id, step="compose_text", error=repr(error)
            )
            return fallback
