"""Texts about models that depend on the language: categories, titles, names of inputs and values."""

from collections.abc import Mapping

from genlock.domain.field import Field
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Translator

_FIELD = "field."


def category_title(category: str, t: Translator) -> str:
    return t.plain(f"category.{category}")


def model_title(title: str, t: Translator) -> str:
    """Return a model's title with its English ending translated: names stay, `from an image` does not."""
    for key, ending in t.languages[DEFAULT].title_endings.items():
        if title.endswith(ending):
            return title.removesuffix(ending) + t.plain(key)
    return title


def in_language(texts: Mapping[str, str], t: Translator) -> str:
    """Return a text that the catalog keeps with a model, by language; English where the language has none."""
    return texts.get(t.language) or texts.get(DEFAULT) or ""


def field_name(field: Field, t: Translator) -> str:
    """Return the name of an input.

    The catalog has English and Russian names; another language has its own under `[field]` in its folder.
    """
    own = t.languages[t.language].texts.get(f"{_FIELD}{field.name}")
    named = field.about.get(t.language) or (own if isinstance(own, str) else "")
    return named or in_language(field.about, t) or field.name


def choice_name(field: Field, value: object, t: Translator) -> str:
    """Return the name of a choice: the catalog's, or the language's; empty if the value speaks for itself."""
    if labels := field.labels.get(str(value)):
        return in_language(labels, t)
    key = f"choice.{str(value).lower()}"
    return t.plain(key) if key in t else ""
