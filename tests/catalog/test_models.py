"""The packaged models can be ordered and cost what the provider's price list says."""

from dataclasses import replace

import pytest

from genlock.catalog.check import Failure, check
from genlock.domain.catalog import Catalog, Category, Output, Status, price
from genlock.domain.errors import GenlockError, InvalidInput, ModelNotFound
from genlock.domain.offer import Offer
from genlock.providers.kie.families import ROUTES, Family
from tests.packaged import CATALOG

OFFERED = [model.id for model in CATALOG.offered()]
GENERATION_TYPES = {
    *(Category.TEXT_TO_IMAGE, Category.IMAGE_TO_IMAGE, Category.TEXT_TO_VIDEO, Category.IMAGE_TO_VIDEO),
    *(Category.VIDEO_TO_VIDEO, Category.UPSCALE, Category.BACKGROUND_REMOVAL, Category.TEXT_TO_SPEECH),
    *(Category.SOUND_EFFECTS, Category.SPEECH_TO_TEXT, Category.MUSIC, Category.AVATAR),
}
IMAGE = "https://example.com/a.png"
VIDEO = "https://example.com/a.mp4"
AUDIO = "https://example.com/a.mp3"

#: model, input, seconds of files, the provider's credits
KNOWN = [
    ("z-image", {"prompt": "x"}, {}, 0.8),
    ("google/nano-banana", {"prompt": "x"}, {}, 4),
    ("nano-banana-pro", {"prompt": "x", "resolution": "2K"}, {}, 18),
    ("nano-banana-pro", {"prompt": "x", "resolution": "4K"}, {}, 24),
    ("nano-banana-2", {"prompt": "x", "resolution": "2K"}, {}, 12),
    ("bytedance/seedream-v4-text-to-image", {"prompt": "x", "max_images": 3}, {}, 15),
    ("flux-2/flex-text-to-image", {"prompt": "xyz", "resolution": "2K"}, {}, 24),
    ("qwen3/pro-image-to-image", {"prompt": "x", "image_urls": [IMAGE, IMAGE], "resolution": "2K"}, {}, 13),
    ("seedream/5-pro-image-to-image", {"prompt": "x", "image_urls": [IMAGE] * 3, "quality": "high"}, {}, 15),
    ("ideogram/character", {"prompt": "x", "reference_image_urls": [IMAGE], "num_images": 2}, {}, 36),
    ("gpt-image/1.5-text-to-image", {"prompt": "x", "quality": "high"}, {}, 22),
    ("wan/2-7-image", {"prompt": "x", "n": 2}, {}, 9.6),
    ("topaz/image-upscale", {"image_url": IMAGE, "upscale_factor": "4"}, {}, 20),
    ("recraft/crisp-upscale", {"image": IMAGE}, {}, 0.5),
    ("recraft/remove-background", {"image": IMAGE}, {}, 1),
    ("kling-2.6/text-to-video", {"prompt": "x", "duration": "10", "sound": "yes"}, {}, 220),
    ("kling-3.0/video", {"prompt": "x", "mode": "std", "duration": "4"}, {}, 56),
    ("wan/2-6-text-to-video", {"prompt": "x", "duration": "15", "resolution": "1080p"}, {}, 315),
    ("wan/2-2-animate-move", {"image_url": IMAGE, "video_url": VIDEO, "resolution": "720p"}, {"video_url": 4}, 50),
    ("wan/2-7-videoedit", {"video_url": VIDEO, "resolution": "720p"}, {"video_url": 6.5}, 104),
    ("wan/2-7-videoedit", {"video_url": VIDEO, "resolution": "720p", "duration": 3}, {"video_url": 6.5}, 48),
    ("hailuo/2-3-image-to-video-pro", {"prompt": "x", "image_url": IMAGE, "resolution": "1080P"}, {}, 80),
    ("bytedance/seedance-2", {"prompt": "xyz", "resolution": "1080p", "duration": 10}, {}, 1020),
    (
        "bytedance/seedance-2-fast",
        {"prompt": "xyz", "reference_video_urls": [VIDEO], "duration": 5},
        {"reference_video_urls": 4},
        135,
    ),
    ("minimax-h3/image-to-video", {"prompt": "x", "first_frame_url": IMAGE, "duration": 6}, {}, 82),
    ("grok-imagine/text-to-image", {"prompt": "x", "enable_pro": True}, {}, 5),
    ("grok-imagine/text-to-video", {"prompt": "x", "duration": 10, "resolution": "720p"}, {}, 45),
    ("veo3_fast", {"prompt": "x", "resolution": "1080p"}, {}, 65),
    ("veo3_lite", {"prompt": "x", "resolution": "4k"}, {}, 150),
    ("veo3", {"prompt": "x"}, {}, 250),
    ("runway-video", {"prompt": "x", "aspectRatio": "16:9", "duration": 10}, {}, 30),
    ("aleph", {"prompt": "x", "videoUrl": VIDEO}, {}, 110),
    ("gpt4o-image", {"prompt": "x"}, {}, 6),
    ("flux-kontext-max", {"prompt": "x"}, {}, 10),
    ("suno/generate", {"prompt": "x"}, {}, 12),
    ("ai-music-api/sounds", {"prompt": "x"}, {}, 2.5),
    ("elevenlabs/text-to-speech-turbo-2-5", {"text": "x" * 1500}, {}, 9),
    ("elevenlabs/text-to-speech-multilingual-v2", {"text": "x" * 100}, {}, 1.2),
    ("elevenlabs/sound-effect-v2", {"text": "x", "duration_seconds": "2,5"}, {}, 0.6),
    ("elevenlabs/speech-to-text", {"audio_url": AUDIO}, {"audio_url": 90}, 5.25),
    ("infinitalk/from-audio", {"image_url": IMAGE, "audio_url": AUDIO, "prompt": "x"}, {"audio_url": 7}, 21),
    ("infinitalk/from-audio", {"image_url": IMAGE, "audio_url": AUDIO, "prompt": "x"}, {}, 45),
    ("omnihuman-1-5", {"image_url": IMAGE, "audio_url": AUDIO}, {"audio_url": 10}, 270),
    ("kling/ai-avatar-pro", {"image_url": IMAGE, "audio_url": AUDIO}, {"audio_url": 10}, 160),
]

#: model, input, the message of the refusal
REFUSED = [
    ("runway-video", {"prompt": "x", "imageUrl": IMAGE, "duration": 10, "quality": "1080p"}, "not available together"),
    ("runway-video", {"prompt": "x"}, "give at least one of imageUrl, aspectRatio"),
    ("bytedance/seedance-2", {}, "give at least one of prompt, first_frame_url"),
    (
        "bytedance/seedance-2",
        {"first_frame_url": IMAGE, "reference_image_urls": [IMAGE]},
        "cannot be combined with first_frame_url",
    ),
    ("bytedance/seedance-2-5", {"prompt": "x", "last_frame_url": IMAGE}, "is required when last_frame_url is given"),
    ("veo3_fast", {"prompt": "x", "generationType": "REFERENCE_2_VIDEO"}, "is required when generationType = REF"),
    ("gpt-image-2-text-to-image", {"prompt": "x", "aspect_ratio": "1:1", "resolution": "4K"}, "not available together"),
    (
        "hailuo/2-3-image-to-video-pro",
        {"prompt": "x", "image_url": IMAGE, "duration": 10, "resolution": "1080P"},
        "not",
    ),
    ("suno/generate", {"prompt": "x" * 501}, "must have at most 500 characters when customMode = no"),
    ("suno/generate", {"prompt": "x", "customMode": "да"}, "is required when customMode = yes"),
    ("wan/2-7-image", {"prompt": "x", "n": 5}, "must be at most 4 when enable_sequential = no"),
    (
        "grok-imagine/image-to-video",
        {"image_urls": [IMAGE, IMAGE], "resolution": "1080p"},
        "must be at most 1, not 2, when resolution = 1080p",
    ),
    ("gpt4o-image", {}, "give at least one of prompt, filesUrl"),
    ("z-image", {"prompt": "x", "colour": "red"}, "is not an input of Z-Image; there are aspect_ratio, nsfw_checker"),
]


def test_there_are_enough_models(catalog: Catalog) -> None:
    assert sum(bool(model.fields) for model in catalog.models.values()) >= 130
    assert len(catalog.offered()) >= 130


def test_every_generation_type_and_every_older_family_is_offered(catalog: Catalog) -> None:
    assert set(catalog.categories()) >= GENERATION_TYPES
    older = {Family.VEO, Family.RUNWAY, Family.ALEPH, Family.GPT4O, Family.FLUX_KONTEXT, Family.SUNO}
    assert older < {model.family for model in catalog.offered()}
    assert {(model.family, model.operation) for model in catalog.offered()} <= ROUTES.keys()
    assert set(Output) == {output for model in catalog.offered() for output in model.outputs}


@pytest.mark.parametrize("model_id", ["sora-2-text-to-video", "sora-2-pro-image-to-video", "midjourney", "luma-modify"])
def test_a_model_that_the_provider_removed_is_kept_with_the_reason_and_not_offered(
    catalog: Catalog, model_id: str
) -> None:
    model = catalog.get(model_id)
    assert model.status in {Status.PAUSED, Status.DEAD}
    assert model.reason
    assert model not in catalog.offered()


def test_the_smallest_and_the_largest_input_are_valid_and_have_a_price(
    catalog: Catalog, subtests: pytest.Subtests
) -> None:
    for model in map(catalog.get, OFFERED):
        with subtests.test(model=model.id):
            for values in (model.minimal_input(), model.maximal_input()):
                assert model.validate(values) == values
                assert model.credits(values) > 0
                assert model.results(values) >= 1
                due = model.credits(values) * model.provider_credit_usd * 200
                assert 0 <= price(model, values, 2.0, 0.01) - due < 10, "whole hundredths of a credit"


def test_every_field_has_a_description_in_both_languages(catalog: Catalog) -> None:
    wrong = [
        f"{model_id}: {field.name}"
        for model_id in OFFERED
        for field in catalog.get(model_id).fields
        if {"en", "ru"} - set(field.about)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("model_id", "values", "seconds", "credits_"), KNOWN)
def test_known_prices(
    catalog: Catalog, model_id: str, values: dict[str, object], seconds: dict[str, float], credits_: float
) -> None:
    model = catalog.get(model_id)
    assert model.credits(model.validate(values), seconds) == round(credits_ * 1000)


@pytest.mark.parametrize(("model_id", "values", "message"), REFUSED)
def test_rules_between_fields(catalog: Catalog, model_id: str, values: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        catalog.get(model_id).validate(values)
    assert caught.value.message.startswith(message)


def test_a_price_is_made_of_the_provider_s_credits_the_markup_and_our_credit(catalog: Catalog) -> None:
    model = catalog.get("z-image")
    values = model.minimal_input()
    assert price(model, values, markup=2.0, credit_usd=0.01) == 800
    assert price(model, values, markup=3.0, credit_usd=0.01) == 1200
    assert price(model, values, markup=2.0, credit_usd=0.005) == 1600
    assert price(model, values, markup=1.0, credit_usd=0.03) == 140  # 0.1333…, rounded up


def test_an_older_interface_is_sent_its_model(catalog: Catalog) -> None:
    clean = catalog.get("veo3_lite").validate({"prompt": "x"})
    assert clean["model"] == "veo3_lite"
    with pytest.raises(InvalidInput):
        catalog.get("veo3_lite").validate({"prompt": "x", "model": "veo3"})


def test_the_expected_number_of_results(catalog: Catalog) -> None:
    assert catalog.get("suno/generate").results({}) == 2
    assert catalog.get("bytedance/seedream-v4-edit").results({"max_images": 4}) == 4
    assert catalog.get("ideogram/v3-remix").results({"num_images": "3"}) == 3


def test_an_unknown_model_is_refused(catalog: Catalog) -> None:
    with pytest.raises(ModelNotFound, match="There is no model 'nope'"):
        catalog.get("nope")


async def test_check_orders_every_model_from_its_own_provider_and_reports_refusals(catalog: Catalog) -> None:
    ordered = []

    async def send(offer: Offer, _: object) -> None:
        ordered.append(offer.model)
        if offer.model == "z-image":
            raise GenlockError("not today")

    assert await check(catalog) == []
    assert await check(catalog, {"kie": send}) == [
        Failure(model="z-image", provider="kie", input=name, why="not today") for name in ("minimal", "maximal")
    ]
    assert len(ordered) == 2 * len(catalog.sold_through({"kie"}).offered())
    ordered.clear()
    elsewhere = replace(catalog.get("z-image"), provider="other")
    assert await check(replace(catalog, models={**catalog.models, "z-image": elsewhere}), {"kie": send}) == []
    assert "z-image" not in ordered


def test_models_of_a_provider_that_is_not_configured_are_not_on_sale(catalog: Catalog) -> None:
    elsewhere = replace(catalog.get("z-image"), provider="other")
    both = replace(catalog.sold_through({"kie"}), models={**catalog.sold_through({"kie"}).models, "z-image": elsewhere})
    sold = both.sold_through({"kie"})
    assert {model.id for model in both.offered()} - {model.id for model in sold.offered()} == {"z-image"}
    assert sold.get("z-image").reason == "the provider other is not configured"
    assert sold.get("midjourney") == both.get("midjourney")
    assert both.sold_through(set()).offered() == []
