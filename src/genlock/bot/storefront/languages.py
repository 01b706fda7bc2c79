"""The language menu, for any number of languages."""

from genlock.bot.buttons import Row, button, grid
from genlock.i18n.loader import Language
from genlock.i18n.translator import Html, Translator
from genlock.ports import Button

COLUMNS = 2


def languages_text(t: Translator) -> Html:
    """Return the request to choose, in every language that has it, the user's first."""
    ordered = sorted(t.languages.values(), key=lambda language: language.code != t.language)
    asked = [text for language in ordered if isinstance(text := language.texts.get("language.choose"), str)]
    return Html("🌐 " + " / ".join(dict.fromkeys(asked)))


def language_rows(t: Translator) -> list[Row]:
    return grid([_language(language, t) for language in t.languages.values()], COLUMNS)


def _language(language: Language, t: Translator) -> Button:
    mark = "✓" if language.code == t.language else language.flag
    return button(f"{mark} {language.name}".strip(), "speak", language.code)
