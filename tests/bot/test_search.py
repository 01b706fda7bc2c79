"""Searching models and reading wishes: Russian and English words, transliteration, typos, hostile texts."""

import pytest

from genlock.bot.storefront import spelling
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Category
from tests.packaged import CATALOG

SHOP = Storefront(CATALOG, markup=2.0, credit_usd=0.01)

#: what users write, and a word that every title of the result has
NAMES = {
    "клинг": "Kling",
    "lking": "Kling",
    "КЛИНГ": "Kling",
    "нано банана": "Nano Banana",
    "нанобанана": "Nano Banana",
    "nano-banana": "Nano Banana",
    "банана про": "Nano Banana",
    "бананна": "Nano Banana",
    "флюкс": "Flux",
    "вео": "Veo",
    "ван 2.2": "Wan 2.2",
    "сидрим": "Seedream",
    "сидэнс": "Seedance",
    "квен": "Qwen",
    "хайлуо": "Hailuo",
    "хайло": "Hailuo",
    "пиксверс": "PixVerse",
    "ранвей": "Runway",
    "имаген": "Imagen",
    "чатгпт": "GPT",
    "klng": "Kling",
    "klign": "Kling",
    "клинк": "Kling",
    "seedreem": "Seedream",
    "идеограмм": "Ideogram",
    "rkbyu": "Kling",
}
#: what users write, and a category that every result belongs to
TOPICS = {
    "видео из фото": Category.IMAGE_TO_VIDEO,
    "оживить фото": Category.IMAGE_TO_VIDEO,
    "animate": Category.IMAGE_TO_VIDEO,
    "remove background": Category.BACKGROUND_REMOVAL,
    "remove the background": Category.BACKGROUND_REMOVAL,
    "убрать фон": Category.BACKGROUND_REMOVAL,
    "удалить фон на фото": Category.BACKGROUND_REMOVAL,
    "апскейл": Category.UPSCALE,
    "apskeil": Category.UPSCALE,
    "музыка": Category.MUSIC,
    "muzyka": Category.MUSIC,
    "песня": Category.MUSIC,
    "озвучка": Category.TEXT_TO_SPEECH,
    "озвучька": Category.TEXT_TO_SPEECH,
    "аватар": Category.AVATAR,
    "липсинк": Category.AVATAR,
    "транскрибация": Category.SPEECH_TO_TEXT,
    "убрать шум": Category.AUDIO_TOOLS,
    "звуки": Category.SOUND_EFFECTS,
    "нарисовать": Category.TEXT_TO_IMAGE,
    "картинки": Category.TEXT_TO_IMAGE,
}


def test_a_search_finds_names_in_both_scripts_and_with_typos() -> None:
    wrong = {}
    for text, title in NAMES.items():
        titles = [model.title for model in SHOP.search(text)]
        if not titles or not all(title in shown for shown in titles):
            wrong[text] = titles

    assert wrong == {}


def test_a_search_finds_categories_and_abilities() -> None:
    wrong = {}
    for text, category in TOPICS.items():
        found = SHOP.search(text)
        if not found or category not in (found[0].category, *found[0].also):
            wrong[text] = [model.title for model in found]

    assert wrong == {}


def test_a_search_for_video_finds_models_of_every_kind_of_video_with_text_to_video_first() -> None:
    found = SHOP.search("видео")
    categories = {category for model in found for category in (model.category, *model.also)}

    assert {Category.TEXT_TO_VIDEO, Category.IMAGE_TO_VIDEO, Category.VIDEO_TO_VIDEO} <= categories
    assert Category.TEXT_TO_VIDEO in (found[0].category, *found[0].also)
    assert [model.id for model in found] == [model.id for model in SHOP.search("video")]


def test_the_whole_title_of_a_model_finds_it_first() -> None:
    missed = {
        model.title: [found.title for found in SHOP.search(model.title)][:3]
        for model in SHOP.models()
        if model.title not in {found.title for found in SHOP.search(model.title)[:1]}
        or model.title not in {found.title for found in SHOP.index.named(model.title)}
    }

    assert missed == {}


def test_a_name_and_an_ability_together_narrow_the_search() -> None:
    found = SHOP.search("клинг аватар")

    assert found
    assert all("Kling" in model.title and Category.AVATAR in (model.category, *model.also) for model in found)
    assert {model.title for model in SHOP.search("улучшить видео")} == {"Topaz Video Upscale"}


def test_what_is_not_sold_is_not_found() -> None:
    for text in ("midjourney", "кот", "рыжий кот", "сова", "a red fox", "qqq", "", " - ", "лес", "ток", "a b c d"):
        assert SHOP.search(text) == [], text


def test_a_hostile_search_reads_a_bounded_part_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    distance = spelling.edit_distance

    def counted(word: str, other: str) -> int:
        nonlocal compared
        compared += len(word) * len(other)
        return distance(word, other)

    monkeypatch.setattr(spelling, "edit_distance", counted)
    texts = [
        "a" * 1_000_000, "клинг " * 100_000, "ab" * 500_000, "ё" * 300_000, "\u0301" * 200_000, "🙂" * 100_000,
        "ﷺ" * 100_000, " ".join(f"klin{number}" for number in range(50_000)), "[[[((((*+?" * 10_000, "\x00" * 1000,
        "slonopotam gippopotam begemotik",
    ]  # fmt: skip
    for text in texts:
        compared = 0
        SHOP.search(text)
        SHOP.index.find(text, topics=False)
        SHOP.index.named(text)
        SHOP.index.named_before(text)
        SHOP.intents.read(text)
        assert compared < 100_000, text[:20]


def test_transliteration_works_both_ways() -> None:
    for cyrillic, latin in (
        ("клинг", "kling"), ("флюкс", "flux"), ("сидрим", "seedream"), ("гугл", "google"), ("джемини", "gemini"),
        ("квен", "qwen"), ("музыка", "muzyka"), ("видео", "video"), ("минимакс", "minimax"), ("алеф", "aleph"),
    ):  # fmt: skip
        assert spelling.sound(cyrillic) == spelling.sound(latin), cyrillic


#: what users write, the category it asks for (None: a description of a picture), and the text for the model
WISHES = {
    "песня про кота": ("music", "песня про кота"),
    "Весёлая народная песня про кота, который улетел на Луну": ("music", None),
    "A cheerful folk song about a cat who flew to the Moon": ("music", None),
    "Write me a song about rain": ("music", None),
    "рэп про маму": ("music", None),
    "pesnya pro kota": ("music", None),
    "звук дождя по крыше": ("sound-effects", None),
    "нарисуй музыканта": ("text-to-image", None),
    "draw a music video set": ("text-to-image", None),
    "сделай видео, где кот танцует": ("text-to-video", None),
    "make me a video of a cat": ("text-to-video", None),
    "озвучь: Привет, мир!": ("text-to-speech", "Привет, мир!"),
    "Озвучь текст «Доброе утро»": ("text-to-speech", "Доброе утро"),
    "скажи привет": ("text-to-speech", "привет"),
    "say hello to my friend": ("text-to-speech", "hello to my friend"),
    "озвучка": ("text-to-speech", ""),
    "видео": ("text-to-video", ""),
    "хочу песню": ("music", ""),
    "оживи фото": ("image-to-video", ""),
    "оживи фото: ветер в волосах": ("image-to-video", "оживи фото: ветер в волосах"),
    "убери фон на фото": ("background-removal", ""),
    "please remove the background": ("background-removal", ""),
    "улучши качество": ("upscale", ""),
    "добавь снег": ("image-to-image", "добавь снег"),
    "расшифруй голосовое": ("speech-to-text", None),
    "рыжий лис в снегу": (None, None),
    "a girl with a music box": (None, None),
    "музыкант играет на скрипке": (None, None),
    "шумный город ночью": (None, None),
    "кот смотрит видео": ("text-to-video", None),
    "": (None, None),
    "🙂": (None, None),
}


def test_a_typed_wish_is_understood_by_what_it_asks_for() -> None:
    wrong = {}
    for text, (category, description) in WISHES.items():
        request = SHOP.intents.read(text)
        found = request.intent.category if request else None
        given = request.text if request else None
        if found != category or (description is not None and given != description):
            wrong[text] = (found, given)

    assert wrong == {}


def test_words_about_lyrics_lead_to_lyrics_and_a_song_to_a_song() -> None:
    song, lyrics = (SHOP.intents.read(text) for text in ("песня про осень", "текст песни про осень"))

    assert song is not None
    assert lyrics is not None
    assert song.intent.models != lyrics.intent.models
    for request, output in ((song, "audio"), (lyrics, "text")):
        assert [CATALOG.get(model_id).outputs[0].value for model_id in request.intent.models] == [output]


def test_a_name_of_several_words_before_a_description_chooses_the_model() -> None:
    for text in ("нано банана рыжий кот", "Nano Banana рыжий кот"):
        found = SHOP.index.named_before(text)
        assert found is not None
        assert (found[0].title, found[1]) == ("Nano Banana", "рыжий кот")
    assert SHOP.index.named_before("Nano Banana Pro рыжий кот")[0].title == "Nano Banana Pro"  # type: ignore[index]
    assert SHOP.index.named_before("runway model in paris") is None, "one word may belong to the description"
    assert SHOP.index.named_before("нано банана") is None
