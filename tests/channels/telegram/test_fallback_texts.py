"""A text that cannot be composed never holds up a delivery: the result arrives with a fallback instead."""

from typing import Any

import pytest

from genlock.channels.telegram.fallback_texts import FallbackTexts
from genlock.domain.events import Event
from genlock.domain.job import Delivery, State
from genlock.domain.money import HoldState
from tests.channels.telegram.harness import Harness
from tests.media.samples import image


class NoTexts:
    """Texts of which every one is missing."""

    def __getattr__(self, name: str) -> Any:
        def compose(*_: Any) -> Any:
            raise KeyError(name)

        return compose


@pytest.fixture
def without_texts(harness: Harness) -> Harness:
    harness.channel._texts = FallbackTexts(NoTexts(), harness.recorder)
    return harness


async def test_a_result_without_texts_is_delivered_and_paid_for(without_texts: Harness) -> None:
    harness = without_texts
    job = await harness.deliver(harness.files.put("a.png", image(), "image/png"))

    assert (job.state, job.delivery, job.hold_state) == (State.SUCCEEDED, Delivery.DELIVERED, HoldState.CAPTURED)
    [message] = harness.shown(job)
    assert message.kind == "photo"
    assert harness.recorder.of(Event.STAGE_ERROR, step="compose_text", error="KeyError('caption')")
    assert harness.recorder.of(Event.NOTICE_SENT, job=job.id)


async def test_a_failure_without_texts_is_reported_to_the_user_and_released(without_texts: Harness) -> None:
    harness = without_texts
    job = await harness.end(await harness.running(), state=State.FAILED, code="nsfw")

    assert (job.delivery, job.hold_state) == (Delivery.DELIVERED, HoldState.RELEASED)
    [message] = harness.shown(job)
    assert str(job.id) in message.text


def test_every_text_has_a_fallback(harness: Harness) -> None:
    texts = FallbackTexts(NoTexts(), harness.recorder)
    job: Any = type("J", (), {"id": 7, "model": "flux", "state": State.FAILED, "correlation_id": "c"})()
    part: Any = type("P", (), {"value": "https://files.example/?a=1&b=2"})()

    assert texts.label(job).title == "flux"
    for message in (
        texts.waiting(job, "en", 0.5),
        texts.placeholder(job, "en", 1),
        texts.failed(job, "en"),
        texts.notice(job, "en"),
    ):
        assert message.text
    assert texts.link(job, "en", 0, part).text == "https://files.example/?a=1&amp;b=2"
    assert texts.caption(job, "en", 0, part).text == ""
