"""A text that cannot be composed never holds up a delivery: the result arrives with a fallback instead."""

from typing import Any

import pytest
from tests.channels.telegram.house import House, picture

from genlock.channels.telegram.address import Address
from genlock.channels.telegram.fallback_texts import FallbackTexts
from genlock.domain.events import Event
from genlock.domain.job import Delivery, State
from genlock.domain.money import HoldState


class NoTexts:
    """Texts of which every one is missing."""

    def __getattr__(self, name: str) -> Any:
        def compose(*_: Any) -> Any:
            raise KeyError(name)

        return compose


@pytest.fixture
def without_texts(house: House) -> House:
    house.channel._words = FallbackTexts(NoTexts(), house.recorder)
    return house


async def test_a_result_without_texts_is_delivered_and_paid_for(without_texts: House) -> None:
    house = without_texts
    job = await house.deliver(house.shelf.put("a.png", picture(), "image/png"))

    assert (job.state, job.delivery, job.hold_state) == (State.SUCCEEDED, Delivery.DELIVERED, HoldState.CAPTURED)
    [message] = house.shown(job)
    assert message.kind == "photo"
    assert house.recorder.of(Event.STAGE_ERROR, step="compose_text", error="KeyError('caption')")
    assert house.recorder.of(Event.NOTICE_SENT, job=job.id)


async def test_a_failure_without_texts_is_reported_to_the_user_and_released(without_texts: House) -> None:
    house = without_texts
    job = await house.end(await house.running(), state=State.FAILED, code="nsfw")

    assert (job.delivery, job.hold_state) == (Delivery.DELIVERED, HoldState.RELEASED)
    [message] = house.shown(job)
    assert str(job.id) in message.text


def test_every_text_has_a_fallback(house: House) -> None:
    address = Address(chat=1, language="en")
    texts = FallbackTexts(NoTexts(), house.recorder)
    job: Any = type("J", (), {"id": 7, "model": "flux", "state": State.FAILED, "correlation_id": "c"})()
    part: Any = type("P", (), {"value": "https://files.example/?a=1&b=2"})()

    assert texts.label(job).title == "flux"
    for message in (
        texts.waiting(job, address, 0.5),
        texts.placeholder(job, address, 1),
        texts.failed(job, address),
        texts.notice(job, address),
    ):
        assert message.text
    assert texts.link(job, address, 0, part).text == "https://files.example/?a=1&amp;b=2"
    assert texts.caption(job, address, 0, part).text == ""
