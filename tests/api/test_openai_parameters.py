"""OpenAI's parameters as fields of the models on sale, and requests without a key that overtake each other."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from genlock.api.openai.parameters import ModelInput, seconds_field
from genlock.api.openai.sizes import TOLERANCE, ratio_field, read_size, resolution_field, size_of
from genlock.api.problems import Problem
from genlock.domain.catalog import Model, Output, Status
from genlock.domain.job import Job
from tests.api.world import ApiWorld
from tests.packaged import CATALOG

SIZES = (
    "1024x1024", "1536x1024", "1024x1536", "1792x1024", "1024x1792", "1280x720", "720x1280", "256x256", "2048x2048",
    "3840x2160", "2560x1440", "99999x10", "0x10", "1024", "16:9", "big", "auto",
)  # fmt: skip
VIDEO_MODEL = "bytedance/v1-lite-text-to-video"


def offered(output: Output) -> list[Model]:
    return [model for model in CATALOG.models.values() if model.status is Status.OFFERED and output in model.outputs]


def ordered(model: Model, **given: Any) -> dict[str, Any]:
    """Return the values of the fields that parameters have set. Raises Problem."""
    found = ModelInput(model)
    found.set_size(given.get("size"))
    found.set_seconds(given.get("seconds"))
    found.set_count(given.get("n"))
    found.check()
    return found.values


def test_every_size_becomes_values_that_the_model_takes_or_is_refused_by_name() -> None:
    wrong, taken = [], 0
    for model in (*offered(Output.IMAGE), *offered(Output.VIDEO)):
        for size in SIZES:
            try:
                values = ordered(model, size=size)
            except Problem as refused:
                if [error["pointer"] for error in refused.members["errors"]] != ["/size"]:
                    wrong.append((model.id, size, refused.detail))
                continue
            taken += bool(values)
            for name, value in values.items():
                field = model.field(name)
                if field is None or value not in field.choices:
                    wrong.append((model.id, size, f"{name}={value}"))
            pixels, made = read_size(size), read_size(size_of(model, values) or "")
            if pixels and made and abs(made[0] / made[1] * pixels[1] / pixels[0] - 1) > TOLERANCE + 0.01:
                wrong.append((model.id, size, str(made)))
    assert wrong == []
    assert taken > 500


def test_sizes_choose_the_nearest_resolution_and_not_a_dearer_one() -> None:
    wanted = {
        ("qwen3/text-to-image", "1536x1024"): {"image_size": "3:2", "resolution": "1K"},
        ("qwen3/text-to-image", "1792x1024"): {"image_size": "16:9", "resolution": "1K"},
        ("nano-banana-pro", "2048x2048"): {"aspect_ratio": "1:1", "resolution": "2K"},
        ("nano-banana-pro", "3840x2160"): {"aspect_ratio": "16:9", "resolution": "4K"},
        ("bytedance/seedream", "1024x1536"): None,
        ("bytedance/seedream", "1024x1024"): {"image_size": "square_hd"},
        ("bytedance/seedream", "768x1024"): {"image_size": "portrait_4_3"},
        ("gpt4o-image", "1024x1536"): {"size": "2:3"},
        ("veo3_fast", "1920x1080"): {"aspect_ratio": "16:9", "resolution": "1080p"},
        ("veo3_fast", "3840x2160"): {"aspect_ratio": "16:9", "resolution": "4k"},
        (VIDEO_MODEL, "720x1280"): {"aspect_ratio": "9:16", "resolution": "720p"},
        ("minimax-h3/text-to-video", "2560x1440"): {"aspect_ratio": "16:9", "resolution": "2K"},
    }
    found: dict[tuple[str, str], dict[str, Any] | None] = {}
    for model_id, size in wanted:
        try:
            found[model_id, size] = ordered(CATALOG.models[model_id], size=size)
        except Problem:
            found[model_id, size] = None
    assert found == wanted


def test_lengths_and_counts_go_to_the_fields_that_the_catalog_marks() -> None:
    assert ordered(CATALOG.models[VIDEO_MODEL], seconds="10") == {"duration": "10"}
    assert ordered(CATALOG.models["veo3_fast"], seconds=8) == {"duration": 8}
    assert ordered(CATALOG.models["bytedance/seedream-v4-text-to-image"], n=4) == {"max_images": 4}
    several = replace(CATALOG.models["z-image"], count=4)
    assert ordered(several, n=4) == {}
    for model, wanted in ((several, 1), (CATALOG.models["z-image"], 2)):
        with pytest.raises(Problem) as refused:
            ordered(model, n=wanted)
        assert refused.value.detail.startswith(f"/n: must be {model.count}")
    for model_id, given in (("veo3_fast", {"seconds": "7"}), ("hailuo/02-text-to-video-pro", {"seconds": "5"})):
        with pytest.raises(Problem) as refused:
            ordered(CATALOG.models[model_id], **given)
        assert refused.value.members["errors"][0]["pointer"] == "/seconds"
    lengths = [model for model in offered(Output.VIDEO) if seconds_field(model)]
    assert len(lengths) > 30
    assert ratio_field(CATALOG.models["kling/v3-turbo-image-to-video"]) is None
    assert resolution_field(CATALOG.models["kling/v3-turbo-image-to-video"]) is not None


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("held", ["before it looks for orders", "after it has found none"])
async def test_a_repeated_attempt_that_overtakes_the_first_one_is_the_same_order(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    client = await world.client()
    look = world.store.newest_api_job_between
    is_held, go_on = asyncio.Event(), asyncio.Event()

    async def slow_look(account_id: int, first: str, last: str) -> Job | None:
        if is_held.is_set():
            return await look(account_id, first, last)
        is_held.set()
        found = None if held.startswith("before") else await look(account_id, first, last)
        await go_on.wait()
        return await look(account_id, first, last) if held.startswith("before") else found

    async def order(attempt: int) -> str:
        headers = {"X-Stainless-Retry-Count": str(attempt)}
        body = {"model": VIDEO_MODEL, "prompt": f"held {held}"}
        answer = await client.request("POST", "/v1/videos", headers=headers, json=body)
        assert answer.status == 200, answer.json
        return str(answer.json["id"])

    monkeypatch.setattr(world.store, "newest_api_job_between", slow_look)
    first = asyncio.create_task(order(0))
    await is_held.wait()
    repeated = [await order(1), await order(2)]
    go_on.set()
    assert {await first, *repeated} == {repeated[0]}
    assert await order(0) != repeated[0], "a later first attempt is a new order"
