"""The list of voices: filtered by sex and language, each to be listened to before it is chosen. Pure functions."""

from collections.abc import Mapping
from dataclasses import replace

from genlock.bot.buttons import Row, draft_button, grid
from genlock.bot.order.draft import Draft
from genlock.bot.screen_context import ScreenContext, choice_label
from genlock.bot.storefront.screens import pager
from genlock.domain.catalog import Model
from genlock.domain.field import Field, Scalar
from genlock.i18n.translator import Html, Translator
from genlock.ports import Button

VOICES_A_PAGE = 6
LANGUAGES_A_ROW = 5


def is_voice(field: Field | None) -> bool:
    """Whether the choices of a field have traits to filter by."""
    return field is not None and bool(field.traits)


def matching_voices(field: Field, filters: Mapping[str, str]) -> list[tuple[int, Scalar]]:
    """Return the voices that pass the filters, with their positions among all; all if a filter leaves none."""
    fitting = [
        (index, value)
        for index, value in enumerate(field.choices)
        if all(field.traits.get(str(value), {}).get(trait) == wanted for trait, wanted in filters.items())
    ]
    return fitting or list(enumerate(field.choices))


def filtered(draft: Draft, model: Model, trait: str, value: str) -> Draft:
    """Set a filter, or remove it with an empty value. A client may send any: unknown ones change nothing."""
    field = model.field(draft.field)
    if field is None or (value and value not in _values(field, trait)):
        return draft
    others = {name: value for name, value in draft.filters.items() if name != trait}
    return replace(draft, filters={**others, trait: value} if value else others, page=0, problem=None)


def listening(draft: Draft, model: Model, index: int) -> Draft:
    """Play one voice. A client may send any index: unknown ones change nothing."""
    field = model.field(draft.field)
    if field is None or not is_voice(field) or not 0 <= index < len(field.choices):
        return draft
    return replace(draft, played=str(field.choices[index]), problem=None)


def now_played(draft: Draft, field: Field, screen: ScreenContext) -> list[Html]:
    """Return the line about the voice that is played."""
    t = screen.translator
    if draft.played not in screen.voices_with_sample or draft.played not in map(str, field.choices):
        return []
    return [t.html("voice.now", name=choice_label(field, draft.played, t))]


def rows(draft: Draft, field: Field, screen: ScreenContext) -> list[Row]:
    """Return the filters and a page of voices: a voice with a sample is played first, then chosen."""
    t, voices = screen.translator, matching_voices(field, draft.filters)
    pages = max(1, -(-len(voices) // VOICES_A_PAGE))
    page = min(draft.page, pages - 1)
    found: list[Row] = [*_choose_played(draft, field, screen), *_filters(draft, field, t)]
    for index, value in voices[page * VOICES_A_PAGE : (page + 1) * VOICES_A_PAGE]:
        verb = "listen" if str(value) in screen.voices_with_sample else "pick"
        found.append((draft_button(_label(draft, field, value, screen), draft.version, verb, index),))
    return [*found, pager(draft, screen, page, pages)] if pages > 1 else found


def _label(draft: Draft, field: Field, value: Scalar, screen: ScreenContext) -> str:
    """Return a voice's name, marked if it is chosen, the default one, played, or can be played."""
    mark = ""
    if value == draft.values.get(field.name, field.default):
        mark = "✓ " if field.name in draft.values else "• "
    sign = ""
    if str(value) in screen.voices_with_sample:
        sign = "🔊 " if str(value) == draft.played else "▶️ "
    return f"{sign}{mark}{choice_label(field, value, screen.translator)}"


def _choose_played(draft: Draft, field: Field, screen: ScreenContext) -> list[Row]:
    """Return the button that chooses the voice that is played."""
    t, names = screen.translator, list(map(str, field.choices))
    if draft.played not in screen.voices_with_sample or draft.played not in names:
        return []
    text = t.plain("voice.choose", name=choice_label(field, draft.played, t))
    return [(draft_button(text, draft.version, "pick", names.index(draft.played)),)]


def _filters(draft: Draft, field: Field, t: Translator) -> list[Row]:
    """Return the filters whose traits differ between the voices."""
    rows: list[Row] = []
    for trait, columns in (("sex", 2), ("language", LANGUAGES_A_ROW)):
        values = _values(field, trait)
        if len(values) > 1:
            rows += grid([_filter(draft, trait, value, t) for value in values], columns)
    return rows


def _filter(draft: Draft, trait: str, value: str, t: Translator) -> Button:
    """Return the button of a filter; pressed again, it removes it."""
    key, on = f"voice.{trait}_{value}", draft.filters.get(trait) == value
    label = t.plain(key) if key in t else value.upper()
    return draft_button(f"✓ {label}" if on else label, draft.version, "filter", trait, "" if on else value)


def _values(field: Field, trait: str) -> list[str]:
    """Return the values of a trait, the commonest first."""
    values = [traits[trait] for traits in field.traits.values() if trait in traits]
    return sorted(set(values), key=lambda value: (-values.count(value), value))
