"""The order wizard and its screens without a chat: every input leads to a screen that Telegram accepts."""

import random
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from genlock.bot.buttons import DATA_BYTES_MAX, base36, from_base36, read
from genlock.bot.handlers.buttons import TRANSITIONS
from genlock.bot.order import draft as drafts
from genlock.bot.order import questions, wizard
from genlock.bot.order import screens as order
from genlock.bot.order.draft import Draft, SentFile, Step
from genlock.bot.order.draft_view import render
from genlock.bot.order.input_errors import explain
from genlock.bot.screen_context import choice_label, model_label
from genlock.bot.storefront import screens as front
from genlock.bot.storefront.menu_screens import menu, short_list
from genlock.domain.catalog import Category, Model
from genlock.domain.errors import InvalidInput
from genlock.domain.field import FieldType
from genlock.i18n.translator import package_texts, translator
from genlock.ports import OutgoingMessage
from tests.bot.screens import SHOP, screen_context
from tests.packaged import CATALOG

LANGUAGES = tuple(package_texts().languages)

TEXT_MAX, BUTTONS_MAX, ROW_MAX = 4096, 100, 8
#: the provider's names and numbers: nothing a user should read
RAW = re.compile(r"[a-z]_[a-z]|_url|[a-z][A-Z][a-z]+:|\d{10}")
FILE = {
    FieldType.IMAGE: "https://example.com/a.png",
    FieldType.VIDEO: "https://example.com/a.mp4",
    FieldType.AUDIO: "https://example.com/a.mp3",
}


class _Plain(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_fits_telegram(said: OutgoingMessage) -> None:
    """Check that Telegram accepts the screen: valid HTML, lengths, buttons."""
    page = _Plain()
    page.feed(said.text)
    assert page.open == []
    assert 0 < len(page.text) <= TEXT_MAX
    buttons = [button for row in said.buttons for button in row]
    assert 0 < len(buttons) <= BUTTONS_MAX
    assert all(0 < len(row) <= ROW_MAX for row in said.buttons)
    for button in buttons:
        assert button.text.strip()
        assert button.data is not None
        assert len(button.data.encode()) <= DATA_BYTES_MAX


def verbs(said: OutgoingMessage) -> set[str]:
    return {read(button.data or "").verb for row in said.buttons for button in row}


def has_a_way_out(said: OutgoingMessage) -> bool:
    return bool(verbs(said) & {"cancel", "menu"})


@pytest.mark.slow
def test_random_taps_and_texts_always_give_a_valid_screen(subtests: pytest.Subtests, first_seed: int) -> None:
    for model in CATALOG.offered():
        with subtests.test(model=model.id):
            assert walk_at_random(model, first_seed) == 40


def walk_at_random(model: Model, seed: int) -> int:
    """Check the screens of two walks of twenty steps, one of them in a group; return how many were checked."""
    checked = 0
    rng = random.Random(f"{model.id} {seed}")
    for group in (False, True):
        category = rng.choice([model.category.value, *(other.value for other in model.also), ""])
        seen = screen_context(rng.choice(LANGUAGES), rng.choice([0, 10**9]), group=group)
        draft = wizard.start_order(Draft(version=rng.randrange(36**7)), model, category)
        for _ in range(20):
            said = render(draft, seen)
            assert_fits_telegram(said)
            assert has_a_way_out(said), (draft.step, said)
            assert not [button.text for row in said.buttons for button in row if RAW.search(button.text)]
            assert drafts.load(drafts.dump(draft), version=draft.version, message=None) == draft
            draft = step(draft, model, said, rng)
            checked += 1
    return checked


def step(draft: Draft, model: Model, said: OutgoingMessage, rng: random.Random) -> Draft:
    """One random action of a user."""
    now = model.field(draft.field)
    if now is not None and draft.step in (Step.ASK, Step.EDIT) and rng.random() < 0.5:
        if now.type in FILE and rng.random() < 0.7:
            place = wizard.field_for_file(draft, model, now.type)
            assert place is not None
            sent = SentFile(kind=now.type, url=FILE[now.type], seconds=rng.choice([None, 3.0]))
            return wizard.after_file(wizard.add_file(draft, place, sent), model, place)
        words = ["a cat", "5", "x" * 30_000, "<b>&", "https://example.com/a.png", "", "[]", "a | 3", str(now.least())]
        return wizard.answer(draft, model, rng.choice(words))
    presses = [read(button.data or "") for row in said.buttons for button in row]
    press = rng.choice(presses)
    if press.verb == "back":
        return wizard.back(draft, model) or wizard.start_order(draft, model, draft.category)
    if press.verb == "example":
        return wizard.answer(draft, model, "an example")
    return TRANSITIONS[press.verb](draft, model, press) if press.verb in TRANSITIONS else draft


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_model_list_and_the_menu_fit_telegrams_limits(language: str) -> None:
    seen = screen_context(language)
    assert_fits_telegram(menu(Draft(), replace(seen, first_order=True)))
    for wish in CATALOG.wishes:
        for category in ("", *wish.categories):
            assert_fits_telegram(short_list(Draft(wish=wish.name, category=category, popular=True), wish, seen))
            carried = Draft(version=36**6, wish=wish.name, category=category, popular=True, text="<>&" * 2000)
            assert_fits_telegram(short_list(carried, wish, seen))
    for category in ("", *Category):
        draft = Draft(version=36**6, step=Step.LIST, category=category)
        for page in range(6):
            assert_fits_telegram(front.model_list(replace(draft, page=page), seen))
    assert_fits_telegram(front.model_list(Draft(step=Step.LIST, query="<>&" * 2000, text="<>&" * 2000), seen))
    for kind in FILE:
        assert_fits_telegram(
            front.file_menu(Draft(sent=(SentFile(kind=kind, url="https://a/b"),), text="x" * 4000), seen)
        )


def test_button_codes_of_models_are_unique() -> None:
    lists = [front.model_list(Draft(step=Step.LIST, page=page), screen_context()) for page in range(25)]
    taps = [read(row[0].data or "") for screen in lists for row in screen.buttons]
    codes = {tap.word() for tap in taps if tap.verb == "model"}

    assert len(codes) == sum(model.listed for model in CATALOG.offered())


def test_numbers_survive_the_round_trip_through_button_data() -> None:
    for number in (0, 1, 35, 36, 10**12):
        assert from_base36(base36(number)) == number
    assert [from_base36(word) for word in ("", "-1", "A", "é", "0001", "x" * 50)] == [None] * 6


def test_typed_values_are_parsed() -> None:
    kling = CATALOG.get("kling-3.0/video")
    draft = replace(Draft(model=kling.id, category="text-to-video"), step=Step.EDIT, field="multi_prompt")
    shots = wizard.answer(draft, kling, "A cat looks up | 3\nIt jumps | 2")
    assert shots.values["multi_prompt"] == [
        {"prompt": "A cat looks up", "duration": 3},
        {"prompt": "It jumps", "duration": 2},
    ]
    sound = wizard.answer(replace(draft, field="sound"), kling, "да")
    assert sound.values["sound"] is True
    effects = CATALOG.get("elevenlabs/sound-effect-v2")
    length = wizard.answer(Draft(model=effects.id, step=Step.EDIT, field="duration_seconds"), effects, "7,5")
    assert length.values["duration_seconds"] == 7.5


@pytest.mark.parametrize(
    ("model", "field", "typed", "english", "russian"),
    [
        ("z-image", "prompt", "x" * 1001, "That's too long: 1,001 characters. The limit is 1,000.",
         "Слишком длинно: 1 001 символ. Максимум — 1 000."),
        ("wan/2-7-image", "n", "13", "It must be between 1 and 12.", "Нужно число от 1 до 12."),
        ("wan/2-7-image", "n", "many", "It must be between 1 and 12.", "Нужно число от 1 до 12."),
        ("wan/2-7-image", "seed", "1.5", "I need a whole number here.",
         "Здесь нужно целое число."),
        ("elevenlabs/text-to-speech-turbo-2-5", "style", "0.305", "It has to be a multiple of 0.01.",
         "Число должно быть кратно 0,01."),
        ("z-image", "aspect_ratio", "5:7", "Tap one of the buttons.", "Нажмите, пожалуйста, одну из кнопок."),
        ("kling-3.0/video", "sound", "maybe", "Just yes or no, please.", "Ответьте, пожалуйста: да или нет?"),
        ("kling-3.0/video", "multi_prompt", "[1]", "I couldn't read that. One per line:", "удалось прочитать."),
        ("recraft/remove-background", "image", "cat.png", "Send a picture, or a link", "Пришлите картинку"),
        ("google/nano-banana-edit", "image_urls", "https://a.b/c.png " * 11,
         "I need 1 to 10 of them, and I have 11.", "Нужно от 1 до 10"),
        ("suno/generate", "prompt", "x" * 6000, "That's too long", "Слишком длинно"),
    ],
)  # fmt: skip
def test_an_invalid_value_is_refused_with_the_allowed_range(
    model: str, field: str, typed: str, english: str, russian: str
) -> None:
    found = CATALOG.get(model)
    draft = wizard.answer(Draft(model=model, step=Step.EDIT, field=field), found, typed)
    assert draft.problem is not None
    expected = {"en": english, "ru": russian}
    told = {language: explain(draft.problem, found, draft.values, translator(language)) for language in expected}

    assert {language for language, text in expected.items() if text not in told[language].replace("\xa0", " ")} == set()


@pytest.mark.parametrize(
    ("model", "values", "english"),
    [
        ("gpt-image-2-text-to-image", {"aspect_ratio": "1:1", "resolution": "4K"},
         "These don't go together: Aspect ratio: 1:1 + Resolution: 4K."),
        ("gpt-image-2-text-to-image", {"aspect_ratio": "16:9", "resolution": "2K", "background": "opaque"},
         "“Background” can't be used together with Resolution: 2K / 4K."),
        ("bytedance/seedance-2", {"first_frame_url": "https://a/b", "reference_image_urls": ["https://a/b"]},
         "“Reference images” can't be combined with “First frame”."),
        ("wan/2-7-image", {"n": 9}, "“How many images”: at most 4 with A series of images: No."),
        ("suno/generate", {"customMode": True}, "With Sing your text word for word: Yes I also need “Style”."),
        ("kling-3.0/video", {"multi_shots": True}, "“Shots”"),
    ],
)  # fmt: skip
def test_a_broken_rule_names_its_fields(model: str, values: dict[str, object], english: str) -> None:
    found = CATALOG.get(model)
    with pytest.raises(InvalidInput) as refused:
        found.validate({"prompt": "a cat", **values})
    told = explain(wizard.to_problem(refused.value), found, {"prompt": "a cat", **values}, translator("en"))

    assert english in told


def test_a_field_that_a_rule_requires_is_asked_for() -> None:
    suno = CATALOG.get("suno/generate")
    draft = wizard.start_order(Draft(), suno, "music")
    assert draft.field == "prompt"
    draft = wizard.skip(draft, suno)
    assert draft.field == "customMode"
    draft = wizard.skip_rest(draft, suno)
    assert (draft.step, draft.field) == (Step.ASK, "prompt"), "without own words a description is needed"
    assert "skip" not in verbs(order.ask(draft, suno, screen_context()))
    draft = wizard.answer(draft, suno, "x" * 600)
    assert draft.problem is not None
    assert draft.field == "prompt"
    assert wizard.answer(draft, suno, "a song").step is Step.CONFIRM


def test_a_text_that_a_rule_requires_cannot_be_skipped() -> None:
    suno, avatar = CATALOG.get("suno/generate"), CATALOG.get("kling/ai-avatar-pro")
    draft = wizard.start_order(Draft(), suno, "music")
    assert "skip" not in verbs(order.ask(draft, suno, screen_context()))
    draft = wizard.start_order(Draft(), avatar, "avatar")
    for kind in (FieldType.IMAGE, FieldType.AUDIO):
        assert "skip" not in verbs(order.ask(draft, avatar, screen_context()))
        draft = wizard.answer(draft, avatar, FILE[kind])
    assert draft.field == "prompt"
    assert "skip" in verbs(order.ask(draft, avatar, screen_context()))


def test_options_list_common_fields_first_and_no_internal_ones() -> None:
    model = CATALOG.get("qwen/image-edit")
    names = [field.name for field in questions.editable_fields(model)]
    assert names[:4] == ["prompt", "image_url", "image_size", "num_images"]
    assert {"nsfw_checker", "enable_safety_checker"}.isdisjoint(names)
    assert {field.name for field in model.fields} - set(names) == {"nsfw_checker", "enable_safety_checker"}


@pytest.mark.parametrize("name", ["nsfw_checker", "enable_safety_checker"])
def test_internal_fields_cannot_be_set_by_forged_data_or_an_old_order(name: str) -> None:
    model = CATALOG.get("qwen/image-edit")
    [place] = [place for place, field in enumerate(model.fields) if field.name == name]
    values = {"prompt": "a cat", "image_url": "https://example.com/a.png"}
    draft = replace(wizard.draft_from_job(Draft(), model, values, {}), step=Step.OPTIONS)

    assert wizard.edit(draft, model, place) == draft
    assert wizard.draft_from_job(Draft(), model, {**values, name: False}, {}).values == values


def test_editing_a_field_returns_to_its_page_of_the_options() -> None:
    model = CATALOG.get("qwen/image-edit")
    last = questions.editable_fields(model)[-1]
    values = {"prompt": "a cat", "image_url": "https://example.com/a.png"}
    draft = wizard.edit(Draft(model=model.id, values=values), model, model.fields.index(last))
    assert last.name == "seed"
    for after in (wizard.back(draft, model), wizard.answer(draft, model, "5")):
        assert after is not None
        assert (after.step, after.page, after.field) == (Step.OPTIONS, 1, "")
        assert any(
            "Seed" in button.text for row in order.options(after, model, screen_context()).buttons for button in row
        )


def test_clearing_a_field_returns_to_the_options_and_files_can_be_sent_again() -> None:
    model = CATALOG.get("flux-2/pro-image-to-image")
    values = {"prompt": "a cat", "input_urls": ["https://example.com/a.png"], "aspect_ratio": "4:3"}
    whole = Draft(model=model.id, step=Step.EDIT, values=values)
    files = replace(whole, field="input_urls")
    assert "clear" in verbs(order.ask(files, model, screen_context()))
    without = wizard.clear(files, model)
    assert (without.step, set(without.values)) == (Step.EDIT, {"prompt", "aspect_ratio"})
    seed = CATALOG.get("z-image")
    text = Draft(model=seed.id, step=Step.EDIT, field="aspect_ratio", values={"prompt": "a cat", "aspect_ratio": "4:3"})
    assert wizard.clear(text, seed).step is Step.OPTIONS


@pytest.mark.parametrize(
    ("longest", "count", "columns"), [(4, 5, 3), (4, 4, 4), (4, 8, 4), (5, 1, 1), (20, 3, 1), (4, 9, 3)]
)
def test_choices_are_spread_evenly_over_rows(longest: int, count: int, columns: int) -> None:
    assert order._columns(longest, count) == columns


def test_titles_and_choices_are_translated() -> None:
    ru, en = translator("ru"), translator("en")
    kling = CATALOG.get("kling-2.6/image-to-video")
    assert (model_label(kling, en), model_label(kling, ru)) == ("Kling 2.6 from an image", "Kling 2.6 по картинке")
    speech = CATALOG.get("elevenlabs/text-to-speech-multilingual-v2")
    voice = speech.field("voice")
    assert voice is not None
    assert [choice_label(voice, voice.default, t) for t in (en, ru)] == [
        "Brian, deep and comforting", "Brian, низкий и спокойный",
    ]  # fmt: skip
    assert [model_label(model, ru) for model in CATALOG.offered() if " from " in model_label(model, ru)] == []


def test_a_model_is_found_by_any_spelling_of_its_name() -> None:
    for line, model, rest in (
        ("z-image a fox", "z-image", "a fox"),
        ("Z-Image a fox", "z-image", "a fox"),
        ("zimage a fox", "z-image", "a fox"),
        ("nano banana pro a fox", "nano-banana-pro", "a fox"),
        ("Nano Banana a fox", "google/nano-banana", "a fox"),
        ("kling 3.0 turbo a fox", "kling/v3-turbo-text-to-video", "a fox"),
        ("suno/generate", "suno/generate", ""),
    ):
        found = SHOP.match_name(line)
        assert found is not None, line
        assert (found[0].id, found[1]) == (model, rest), line
    assert SHOP.match_name("what is this") is None


def test_a_file_is_stored_with_its_url_under_the_name_that_older_versions_read() -> None:
    draft = Draft(sent=(SentFile(kind=FieldType.AUDIO, url="https://a/b.mp3", seconds=2.5),))
    stored = drafts.dump(draft)
    assert '"sent":[{"kind":"audio","address":"https://a/b.mp3","seconds":2.5}]' in stored
    assert drafts.load(stored, version=draft.version, message=None).sent == draft.sent
