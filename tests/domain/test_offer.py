"""Offers translate an order into the provider's own names and values, or say that they cannot."""

from dataclasses import replace

import pytest

from genlock.domain.errors import SubmitRefused
from genlock.domain.offer import Offer
from genlock.domain.task import DETAILS_LENGTH_MAX, Handle, TaskOrder
from tests.rows import JOB

OFFER = Offer(
    provider="other",
    model="other/model",
    inputs={"prompt": "text", "aspect_ratio": "image_size", "image_urls": "image_url", "photo": "photos"},
    values={"aspect_ratio": {"1:1": "square", "16:9": "wide"}},
    single=("image_urls",),
    listed=("photo",),
    lacking={"seed": None, "quality": "normal"},
    fixed={"num_images": 1},
)


def test_an_order_is_translated_into_the_providers_names_and_values() -> None:
    values = {"prompt": "a", "aspect_ratio": "16:9", "image_urls": ["u"], "photo": "p", "quality": "normal"}

    assert OFFER.accepts(values)
    assert OFFER.input(values) == {
        "text": "a",
        "image_size": "wide",
        "image_url": "u",
        "photos": ["p"],
        "num_images": 1,
    }


@pytest.mark.parametrize(
    "values",
    [
        {"aspect_ratio": "4:3"},  # the provider has no such choice
        {"image_urls": ["a", "b"]},  # it takes one file
        {"quality": "high"},  # it makes normal quality only
        {"unheard_of": 1},
        {"aspect_ratio": ["1:1"]},
    ],
)
def test_an_offer_does_not_accept_what_the_provider_cannot_be_asked_for(values: dict[str, object]) -> None:
    assert not OFFER.accepts({"prompt": "a"} | values)
    order = TaskOrder(job=replace(JOB, input='{"prompt": "a", "aspect_ratio": "4:3"}'), offer=OFFER)
    with pytest.raises(SubmitRefused, match="model_unavailable"):
        order.input()


def test_an_offer_without_a_list_of_inputs_takes_the_order_as_it_is() -> None:
    assert Offer(provider="p", model="m").input({"prompt": "a", "seed": 3}) == {"prompt": "a", "seed": 3}


@pytest.mark.parametrize(
    "given", [{"task_id": ""}, {"task_id": "t" * 301}, {"task_id": "t", "details": "d" * (DETAILS_LENGTH_MAX + 1)}]
)
def test_a_handle_has_a_task_and_a_limited_length(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="limited length"):
        Handle(**given)
