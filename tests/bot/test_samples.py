"""Samples on the cards of models, and voices that are played before they are chosen."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.bot.order import voice_list
from genlock.bot.order.draft import Draft, Step
from genlock.domain.presets import SampleFiles
from genlock.sandbox.kie.media import make_audio, make_image
from tests.bot.conftest import BOSS
from tests.bot.pages import label, page
from tests.bot.rules import OPEN
from tests.bot.steps import opened
from tests.bot.world import BotWorld, ChatUser, running_bot, sqlite_url
from tests.packaged import CATALOG

SPEECH = "ElevenLabs Turbo 2.5"
VOICES = CATALOG.get("elevenlabs/text-to-speech-turbo-2-5").field("voice")
assert VOICES is not None
ARABELLA = next(voice for voice, names in VOICES.labels.items() if names["en"].startswith("Arabella"))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[BotWorld]:
    """A bot with an operator, a sample for one model and one for two voices."""
    picture, sound = tmp_path / "sample.png", tmp_path / "voice.mp3"
    picture.write_bytes(make_image("Z-Image", {}, 0))
    sound.write_bytes(make_audio(0))
    assert VOICES is not None
    samples = SampleFiles(
        models={"z-image": str(picture)}, voices={ARABELLA: str(sound), str(VOICES.default): str(sound)}
    )
    catalog, rules = replace(CATALOG, samples=samples), replace(OPEN, admin_ids=frozenset({BOSS}))
    async with running_bot(sqlite_url(tmp_path), rules=rules, catalog=catalog) as found:
        yield found


async def draft_of(ann: ChatUser) -> dict[str, object]:
    saved = await ann.world.store.draft(ann.number, ann.client.id)
    assert saved is not None
    body: dict[str, object] = json.loads(saved.body)
    return body


async def test_the_card_shows_the_sample_of_the_overlay_and_the_order_stays_a_text(world: BotWorld) -> None:
    boss, ann = await world.add_user("Boss"), await world.add_user()
    await opened(boss, "Z-Image")
    await opened(ann, "Z-Image")
    card, other = ann.screen, boss.screen
    assert (card.kind, page("ask.text")(card)) == ("photo", True)
    assert card.file_id == other.file_id, "the file is uploaded once"
    await ann.write("a red fox")
    assert ann.screen.kind == "text"
    assert card.id not in [message.id for message in ann.client.messages], "the screen has moved below the answer"
    await ann.tap(label("button.back"))
    assert ann.screen.kind == "photo", "the same message becomes the card again"
    await ann.tap(label("button.back"))
    assert ann.screen.kind == "text"
    await opened(ann, "Z-Image")
    world.telegram.state.files.known.clear()
    await ann.tap(label("favourite.add"))
    assert ann.screen.kind in ("photo", "text")
    assert label("favourite.remove").search(" ".join(button["text"] for button in ann.screen.buttons))


async def test_an_operators_result_becomes_the_sample_and_is_taken_back(world: BotWorld) -> None:
    boss, ann = await world.add_user("Boss"), await world.add_user()
    await boss.write("/gen flux 2 pro a castle")
    await world.quiet()
    [job] = await world.jobs(boss)
    title = CATALOG.get(job.model).title
    await opened(ann, title)
    assert ann.screen.kind == "text", "no sample yet"
    await boss.write("/results")
    mark = next(
        button["callback_data"] for button in boss.screen.buttons if button["callback_data"].startswith("sample")
    )
    for _ in range(2):
        await boss.press(boss.screen, mark)
    await opened(ann, title)
    assert (ann.screen.kind, ann.screen.file_id) == ("photo", (job.parts[0].file or "").partition(":")[2])
    assert len([line for line in await world.store.audit(10) if line.action == "sample"]) == 1
    await boss.tap(label("gallery.sample_off"))
    await opened(ann, title)
    assert ann.screen.kind == "text"


async def test_users_cannot_make_samples(world: BotWorld) -> None:
    await world.add_user("Boss")
    ann = await world.add_user()
    await ann.write("/gen flux 2 pro a castle")
    await world.quiet()
    [job] = await world.jobs(ann)
    await ann.write("/results")
    assert not any(button["callback_data"].startswith("sample") for button in ann.screen.buttons)
    await ann.press(ann.screen, f"sample:{world.bot.texts.numbers.order(job.id)}:0:1:all")
    assert await world.store.kv_list("sample:", world.bot_id) == []


def voices_shown(ann: ChatUser) -> list[str]:
    chosen = label("voice.choose", language="ru")
    verbs = (":pick:", ":listen:")
    shown = [button["text"] for button in ann.screen.buttons if any(verb in button["callback_data"] for verb in verbs)]
    return [text for text in shown if not chosen.search(text)]


async def test_a_voice_that_users_of_two_languages_play_has_its_title_in_each_language(world: BotWorld) -> None:
    await world.add_user("Boss")
    for language, title in (("en", "Arabella, mysterious"), ("ru", "Arabella, таинственная")):
        user = await world.add_user(language=language)
        await opened(user, SPEECH)
        await user.write("Hello!")
        await user.tap(label("voice.button", language=language))
        await user.tap(re.compile(f"^[▶🔊].*{title}"))
        await user.sees(page("voice.now", language=language))
        assert user.screen.content["audio"]["title"] == title


async def test_a_voice_is_filtered_played_and_chosen(world: BotWorld) -> None:
    await world.add_user("Boss")
    ann = await world.add_user(language="ru")
    await opened(ann, SPEECH)
    await ann.write("Здравствуйте! Проверка голоса.")
    await ann.tap(label("voice.button", language="ru"))
    await ann.tap(label("voice.sex_female", language="ru"))
    names = voices_shown(ann)
    assert any("Arabella, таинственная" in name for name in names)
    assert not any("James" in name for name in names)
    assert ann.screen.kind == "text"
    for _ in range(2):
        await ann.tap(re.compile("^[▶🔊].*Arabella, таинственная"))
    assert (ann.screen.kind, page("voice.now", language="ru")(ann.screen)) == ("audio", True)
    await ann.tap("HI")
    names = voices_shown(ann)
    assert len(names) == 2, "the Hindi voices of women"
    await ann.tap("HI")
    await ann.tap(label("voice.choose", language="ru"))
    assert (ann.screen.kind, page("confirm.price", language="ru")(ann.screen)) == ("text", True)
    assert "таинственная" in ann.screen.text
    values = (await draft_of(ann))["values"]
    assert isinstance(values, dict)
    assert values["voice"] == ARABELLA


def test_made_up_filters_and_voices_change_nothing() -> None:
    model = CATALOG.get("elevenlabs/text-to-speech-turbo-2-5")
    draft = Draft(model=model.id, step=Step.EDIT, field="voice")
    assert voice_list.filtered(draft, model, "sex", "robot") == draft
    assert voice_list.filtered(draft, model, "age", "old") == draft
    assert voice_list.listening(draft, model, 10_000) == voice_list.listening(draft, model, -1) == draft
    text = replace(draft, field="text")
    assert voice_list.listening(text, model, 0) == text
    both = voice_list.filtered(voice_list.filtered(draft, model, "sex", "male"), model, "language", "ja")
    field = model.field("voice")
    assert field is not None
    assert len(voice_list.matching_voices(field, both.filters)) == len(field.choices), (
        "filters that leave none are not applied"
    )


def test_every_voice_has_a_sex_and_a_language_and_the_default_is_a_calm_one() -> None:
    fields = [(model.id, field) for model in CATALOG.models.values() for field in model.fields if field.traits]
    assert len(fields) >= 2
    for model_id, field in fields:
        assert set(field.traits) == set(map(str, field.choices)), model_id
        assert {frozenset(traits) for traits in field.traits.values()} == {frozenset({"sex", "language"})}, model_id
        assert "спокойный" in field.labels[str(field.default)]["ru"], model_id


#: endings of adjectives that disagree with the sex of a voice, and words about something else in its description
DISAGREEING: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "female": (("ный", "вый", "ной", "ий"), ("низкий",)),
    "male": (("ная", "вая"), ("естественная", "живая")),
}


def test_descriptions_of_voices_agree_with_their_sex_in_russian() -> None:
    assert VOICES is not None
    wrong: list[str] = []
    sexes: Counter[str] = Counter()
    for voice, names in VOICES.labels.items():
        sex, words = VOICES.traits[voice]["sex"], names["ru"].partition(", ")[2].split()
        sexes[sex] += 1
        ends, apart = DISAGREEING.get(sex, ((), ()))
        if any(word.endswith(ends) and word not in apart for word in words) and "акцент" not in names["ru"]:
            wrong.append(names["ru"])
    assert wrong == []
    assert min(sexes["female"], sexes["male"]) > 5
