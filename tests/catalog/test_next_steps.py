"""The next steps of results: complete in every language, checked at the start, done by models on sale."""

from dataclasses import replace
from pathlib import Path

import pytest

from genlock.bot.order.draft import Draft, SentFile
from genlock.bot.order.next_step_drafts import fitting, start_step
from genlock.catalog import load
from genlock.catalog.next_steps import STEPS
from genlock.domain.catalog import Category, Status
from genlock.domain.errors import InvalidCatalog
from genlock.domain.field import SAMPLES, FieldType
from genlock.domain.next_step import PromptSource
from genlock.i18n.translator import package_texts
from tests.catalog.model_files import GOOD, write
from tests.packaged import CATALOG

STEP = """
[text.again]
category = "text-to-image"
[text.again.models]
"maker/one" = "prompt"
"""


def test_every_step_has_its_texts_in_every_language() -> None:
    missing = []
    for language in package_texts().languages.values():
        for step in CATALOG.next_steps:
            keys = [f"button.next_{step.key}"]
            if step.prompt in (PromptSource.ORDER, PromptSource.OURS):
                keys.append(f"next.prompt_{step.key}")
            missing += [f"{language.code}: {key}" for key in keys if key not in language.texts]
    assert missing == []


def test_every_model_of_a_step_begins_an_order_without_a_problem() -> None:
    wrong = []
    for step in CATALOG.next_steps:
        for model in CATALOG.step_models(step):
            sent = () if step.kind is FieldType.TEXT else (SentFile(kind=step.kind, url=SAMPLES[step.kind]),)
            text = "a fox" if not sent or step.prompt in (PromptSource.ORDER, PromptSource.OURS) else ""
            draft = start_step(Draft(), step, model, sent, text)
            if draft.problem or step.models[model.id] not in draft.values:
                wrong.append((step.key, model.id, draft.problem))
    assert wrong == []


def test_a_kind_has_one_step_for_replies_and_callback_data_stays_short() -> None:
    for kind in (FieldType.IMAGE, FieldType.VIDEO, FieldType.AUDIO):
        assert len([step for step in CATALOG.steps_for(kind) if step.reply]) == 1
    for step in CATALOG.next_steps:
        assert len(f"next:{2**63 - 1}:9:{step.key}".encode()) <= 64


def test_the_first_model_on_sale_is_suggested_and_featured_ones_come_first() -> None:
    step = CATALOG.step("image_edit")
    assert step is not None
    first, second, third = CATALOG.step_models(step)

    def models_with(**changes: object) -> list[str]:
        changed = {first.id: replace(first, status=Status.HIDDEN), third.id: replace(third, **changes)}  # type: ignore[arg-type]
        return [model.id for model in replace(CATALOG, models={**CATALOG.models, **changed}).step_models(step)]

    assert models_with() == [second.id, third.id]
    assert models_with(featured=True) == [third.id, second.id]
    hidden = {model_id: replace(CATALOG.models[model_id], status=Status.HIDDEN) for model_id in step.models}
    without = replace(CATALOG, models={**CATALOG.models, **hidden})
    assert "image_edit" not in [next_step.key for next_step in without.steps_for(FieldType.IMAGE)]


def test_a_model_that_takes_the_length_is_preferred() -> None:
    step = CATALOG.step("video_edit")
    assert step is not None
    models = CATALOG.step_models(step)
    assert fitting(step, models, 5.0) is models[0]
    assert fitting(step, models, 30.0) is models[1]


def test_of_the_models_that_take_the_file_one_that_takes_the_text_is_preferred() -> None:
    step = CATALOG.step("image_avatar")
    assert step is not None
    usual, short = CATALOG.step_models(step)
    assert fitting(step, [short, usual], None, "hello") is short
    assert fitting(step, [short, usual], None, "hello " * 100) is usual
    assert fitting(step, [short, usual], None, "hello " * 1000) is short


def test_an_edited_portrait_stays_a_portrait() -> None:
    step = CATALOG.step("image_edit")
    assert step is not None
    picture = SentFile(kind=FieldType.IMAGE, url=SAMPLES[FieldType.IMAGE])
    draft = Draft(aspects={picture.url: 0.56})
    chosen = {
        model.id: start_step(draft, step, model, [picture], "make it winter").values
        for model in CATALOG.step_models(step)
    }
    assert chosen["google/nano-banana-edit"]["aspect_ratio"] == "auto"
    assert chosen["bytedance/seedream-v4-edit"]["image_size"] == "portrait_16_9"
    assert chosen["qwen/image-edit"]["image_size"] == "portrait_16_9"


def test_a_song_and_speech_have_steps_of_their_own() -> None:
    song = [step.name for step in CATALOG.steps_for(FieldType.AUDIO, Category.MUSIC)]
    speech = [step.name for step in CATALOG.steps_for(FieldType.AUDIO, Category.TEXT_TO_SPEECH)]
    assert song[:4] == ["extend", "cover", "video", "vocals"]
    assert "avatar" in speech
    assert "cover" not in speech


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"maker/one"', '"maker/two"', "steps.toml: text.again: there is no model 'maker/two'"),
        ('"prompt"', '"size"', "steps.toml: text.again: maker/one has no field 'size' for text"),
        ("[text.again", "[image.again", "steps.toml: image.again: maker/one has no field 'prompt' for image"),
        (
            "[text.again.models]",
            'values = { size = "9K" }\n[text.again.models]',
            "steps.toml: text.again: maker/one: size must be one of",
        ),
        ('"text-to-image"', '"nothing"', "steps.toml: text"),
    ],
)
def test_a_mistake_in_the_steps_is_reported_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    write(tmp_path, STEP.replace(old, new), STEPS)
    with pytest.raises(InvalidCatalog) as caught:
        load(data=write(tmp_path, GOOD))
    assert str(caught.value).startswith(message)
