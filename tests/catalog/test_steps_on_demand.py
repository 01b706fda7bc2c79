"""Steps that not every installation offers: with another provider's key, or unless the operator hides a model."""

from pathlib import Path

from genlock.bot.order.styles import styles_for
from genlock.catalog import load
from genlock.domain.catalog import Catalog, Category, Status
from genlock.domain.field import FieldType
from tests.catalog.test_overlay import overlaid

EXTEND = "ai-music-api/upload-and-extend-audio"


def song_steps(catalog: Catalog) -> list[str]:
    return [step.key for step in catalog.steps_for(FieldType.AUDIO, Category.MUSIC)]


def test_sound_is_added_to_a_video_by_a_model_that_only_another_provider_has() -> None:
    catalog = load()
    [step] = [step for step in catalog.steps_for(FieldType.VIDEO) if step.key == "video_sound"]
    models = catalog.step_models(step)
    assert {model.provider for model in models} == {"fal"}
    assert [styles_for(catalog, model) for model in models] == [[]], "its prompt is about the sound"


def test_a_song_can_be_extended_covered_filmed_and_have_its_vocals_taken_apart() -> None:
    catalog = load()
    assert song_steps(catalog)[:4] == ["audio_extend", "audio_cover", "audio_video", "audio_vocals"]
    assert catalog.get(EXTEND).status is Status.OFFERED


def test_a_song_is_not_extended_where_the_operator_takes_the_model_off_sale(tmp_path: Path) -> None:
    hidden = overlaid(tmp_path, f'[models."{EXTEND}"]\nstatus = "hidden"\nreason = "no longer sold"\n')
    assert "audio_extend" not in song_steps(hidden)
