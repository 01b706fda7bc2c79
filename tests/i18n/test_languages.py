"""A language is one folder: a third one needs no code, and what it lacks is English."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from genlock.bot.order.draft import Draft
from genlock.bot.screen_context import ScreenContext
from genlock.bot.storefront import menu_screens
from genlock.bot.storefront.languages import language_rows, languages_text
from genlock.bot.storefront.storefront import Storefront
from genlock.catalog import load
from genlock.domain.alarm import AlarmNotice, Finding
from genlock.domain.money import Wallet
from genlock.domain.promo import FreeRuns
from genlock.i18n.alarms import alarm_text
from genlock.i18n.catalog_texts import category_title, field_name, model_title
from genlock.i18n.loader import InvalidLanguage
from genlock.i18n.translator import Texts, Translator
from genlock.ports import OutgoingMessage

pytestmark = pytest.mark.usefixtures("_two_languages")

GERMAN = """
[unit]
credits = { one = "{n} Guthabenpunkt", other = "{n} Guthabenpunkte" }
[menu]
choose = "Wähle unten, oder schreib einfach, was du sehen möchtest."
[language]
choose = "Wähle deine Sprache"
"""


@pytest.fixture
def with_german(tmp_path: Path) -> Texts:
    folder = tmp_path / "de"
    folder.mkdir()
    settings = 'name = "Deutsch"\nflag = "🇩🇪"\ntelegram_codes = ["nds", "lb"]\n'
    (folder / "language.toml").write_text(settings, encoding="utf-8")
    (folder / "some.toml").write_text(GERMAN, encoding="utf-8")
    return Texts.load(tmp_path)


def menu(t: Translator) -> OutgoingMessage:
    storefront = Storefront(load(), markup=2.0, credit_usd=0.01)
    wallet = Wallet(account_id=1, available=1_234_500, held=0)
    free = FreeRuns(today=0, gifts=0)
    return menu_screens.menu(Draft(), ScreenContext(translator=t, storefront=storefront, wallet=wallet, free=free))


def buttons(message: OutgoingMessage) -> dict[str | None, str]:
    return {button.data: button.text for row in message.buttons for button in row}


def test_a_third_language_is_used_where_it_has_texts_and_is_english_elsewhere(with_german: Texts) -> None:
    german, english = with_german.translator("de"), with_german.translator("en")

    assert german.html("menu.choose").startswith("Wähle unten")
    assert german.credits(1000) == "1 Guthabenpunkt"
    assert german.credits(1_234_500) == "1.234,5 Guthabenpunkte"
    assert german.plain("unit.seconds", n=1) == "1\u00a0second"
    assert german.html("menu.nothing_chosen") == english.html("menu.nothing_chosen")
    assert german.day(datetime(2026, 3, 5, tzinfo=UTC)) == "5. März"
    assert "1.234,5 Guthabenpunkte" in menu(german).text
    assert english.html("menu.choose") in menu(english).text


def test_a_third_language_serves_its_telegram_codes(with_german: Texts) -> None:
    codes = ("de", "de-AT", "lb", "ru", "kk", "RU-ru", "en-GB", "fr", "", None)

    assert [with_german.guess_language(code) for code in codes] == [
        "de", "de", "de", "ru", "ru", "ru", "en", "en", "en", "en",
    ]  # fmt: skip
    assert Texts.load().guess_language("de") == "en"


def test_the_menu_offers_the_other_language_or_the_choice_of_several(with_german: Texts) -> None:
    two, three = Texts.load(), with_german

    assert buttons(menu(two.translator("en")))["speak:ru"] == "🌐 Русский"
    assert buttons(menu(two.translator("ru")))["speak:en"] == "🌐 English"
    assert buttons(menu(three.translator("de")))["language"] == three.translator("en").plain("button.languages")


def test_the_language_menu_has_a_button_for_each_language(with_german: Texts) -> None:
    rows = language_rows(with_german.translator("ru"))

    assert [(button.data, button.text) for row in rows for button in row] == [
        ("speak:en", "🇬🇧 English"), ("speak:de", "🇩🇪 Deutsch"), ("speak:ru", "✓ Русский"),
    ]  # fmt: skip
    assert languages_text(with_german.translator("ru")) == (
        "🌐 Выберите язык / Choose your language / Wähle deine Sprache"
    )


@pytest.mark.usefixtures("with_german")
def test_inputs_of_models_have_names_in_a_third_language_or_in_english(tmp_path: Path) -> None:
    names = '[field]\nprompt = "Beschreibe, was du sehen möchtest"\n'
    (tmp_path / "de" / "catalog.toml").write_text(names, encoding="utf-8")
    german = Texts.load(tmp_path).translator("de")
    model = load().get("z-image")
    inputs = {field.name: field for field in model.fields}

    assert field_name(inputs["prompt"], german) == "Beschreibe, was du sehen möchtest"
    assert field_name(inputs["aspect_ratio"], german) == inputs["aspect_ratio"].about["en"]
    assert model_title("Kling 3.0 from an image", german) == "Kling 3.0 from an image"
    assert category_title(model.category, german) == category_title(model.category, Texts.load().translator("en"))


@pytest.mark.usefixtures("with_german")
def test_alarms_are_told_in_any_language(tmp_path: Path) -> None:
    (tmp_path / "de" / "alarms.toml").write_text('[alarm.undelivered]\ntitle = "Ergebnisse warten"\n', encoding="utf-8")
    notice = AlarmNotice(name="undelivered", finding=Finding(numbers={"count": 1}, seconds=301))
    texts = [alarm_text(notice, Texts.load(tmp_path).translator(code)) for code in ("en", "ru", "de")]

    assert [text.splitlines()[0] for text in texts] == [
        "🔴 Results are waiting to be delivered: 1, the oldest for 5\N{NO-BREAK SPACE}min.",
        "🔴 Готовые результаты ещё не в чате: 1, самый старый ждёт 5\N{NO-BREAK SPACE}мин.",
        "🔴 Ergebnisse warten: 1, the oldest for 5\N{NO-BREAK SPACE}min.",
    ]


def test_a_folder_can_replace_single_texts_of_a_language(tmp_path: Path) -> None:
    (tmp_path / "ru").mkdir()
    (tmp_path / "ru" / "own.toml").write_text('[menu]\nchoose = "Сюда"\n', encoding="utf-8")
    russian = Texts.load(tmp_path).translator("ru")

    assert russian.html("menu.choose") == "Сюда"
    assert russian.plain("button.menu") == Texts.load().translator("ru").plain("button.menu")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("de", None, "language.toml is missing"),
        ("de", "name = ", "language.toml: Invalid value"),
        ("de", 'flag = "x"', "missing 1 required keyword-only argument: 'name'"),
        ("de", 'name = "x"\nfalg = "x"', "unexpected keyword argument 'falg'"),
        ("nowhere", 'name = "x"', "'nowhere' is not a language code"),
    ],
)
def test_a_broken_language_folder_is_named(tmp_path: Path, name: str, settings: str | None, message: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "bot.toml").touch()
    if settings is not None:
        (tmp_path / name / "language.toml").write_text(settings, encoding="utf-8")
    with pytest.raises(InvalidLanguage, match=re.escape(message)) as raised:
        Texts.load(tmp_path)

    assert str(tmp_path / name) in str(raised.value)
