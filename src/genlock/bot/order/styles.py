"""Styles of an order: which fit a model, what they add to the prompt, and the screen that chooses one."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from genlock.bot.buttons import Row, draft_button, grid
from genlock.bot.order.draft import Draft, Step
from genlock.bot.order.questions import PROMPT, main_text, takes_text
from genlock.bot.screen_context import ScreenContext
from genlock.bot.screen_files import ScreenFile, by_path, content_key
from genlock.bot.storefront.screens import back_and_cancel
from genlock.domain.catalog import Catalog, Model
from genlock.domain.presets import Style
from genlock.i18n.catalog_texts import in_language
from genlock.ports import OutgoingMessage

COLUMNS = 2
#: pictures in a row of the sheet
SHEET_COLUMNS = 4
#: sides in pixels of a picture on the sheet, and of the gap between two
TILE, GAP = 300, 8
NUMBER_HEIGHT = 44


def styles_for(catalog: Catalog, model: Model) -> list[Style]:
    """Return the styles that fit what the model makes; none if it takes no prompt."""
    main = main_text(model)
    if main is None or main.name != PROMPT or not model.styles:
        return []
    return [style for style in catalog.styles if model.outputs[0].value in style.of]


def style_of(draft: Draft, model: Model, catalog: Catalog) -> Style | None:
    """Return the style of an order; None if it has none or the prompt leaves no room for it."""
    style = next((candidate for candidate in styles_for(catalog, model) if candidate.key == draft.style), None)
    prompt = str(draft.values.get(PROMPT, ""))
    return style if style and prompt and takes_text(model, style.added_to(prompt)) else None


def styled(values: Mapping[str, Any], style: Style | None) -> Mapping[str, Any]:
    """Return the values of an order with the style added to its prompt."""
    return values if style is None else {**values, PROMPT: style.added_to(str(values[PROMPT]))}


def recognised(draft: Draft, model: Model, catalog: Catalog) -> Draft:
    """Return a draft made from a past order with its style apart from the prompt, so that it is not added twice."""
    prompt = str(draft.values.get(PROMPT, ""))
    for style in styles_for(catalog, model):
        if (plain := style.taken_from(prompt)) is not None:
            return replace(draft, values={**draft.values, PROMPT: plain}, style=style.key)
    return draft


def choose(draft: Draft) -> Draft:
    return replace(draft, step=Step.STYLE, field="", problem=None)


def screen(draft: Draft, model: Model, context: ScreenContext) -> OutgoingMessage:
    """Return the screen that chooses a style: a picture of each, numbered as the buttons are."""
    t, version = context.translator, draft.version
    buttons = [
        draft_button(
            f"{'✓ ' if style.key == draft.style else ''}{number}. {in_language(style.name, t)}",
            version,
            "style",
            style.key,
        )
        for number, style in enumerate(styles_for(context.storefront.catalog, model), 1)
    ]
    none = t.plain("style.none")
    plain = draft_button(none if draft.style else f"✓ {none}", version, "style", "")
    rows: list[Row] = [*grid(buttons, COLUMNS), (plain,), back_and_cancel(draft, context)]
    return OutgoingMessage(text=t.html("style.choose"), buttons=tuple(rows))


def sheet(styles: Sequence[Style]) -> ScreenFile | None:
    """Return one picture with all styles, numbered; None if a picture is missing."""
    files = [by_path(style.picture) for style in styles]
    found = [file for file in files if file is not None]
    if len(found) < len(styles) or not found:
        return None
    key = content_key("sheet", *(file.key for file in found))
    name = hashlib.sha256(key.encode()).hexdigest()[:8]
    return ScreenFile(key=key, name=f"styles-{name}.jpg", read=lambda: _draw([style.picture for style in styles]))


def _draw(paths: Sequence[str]) -> bytes:
    from PIL import Image, ImageDraw, ImageFont, ImageOps  # noqa: PLC0415 - only this screen needs it, once per version

    columns = min(SHEET_COLUMNS, len(paths))
    rows = -(-len(paths) // columns)
    whole = Image.new("RGB", (columns * (TILE + GAP) - GAP, rows * (TILE + GAP) - GAP), "white")
    font, pen = ImageFont.load_default(NUMBER_HEIGHT * 0.62), ImageDraw.Draw(whole)
    for index, path in enumerate(paths):
        x, y = index % columns * (TILE + GAP), index // columns * (TILE + GAP)
        with Image.open(path) as picture:
            whole.paste(ImageOps.fit(picture.convert("RGB"), (TILE, TILE)), (x, y))
        pen.rounded_rectangle((x + 10, y + 10, x + 10 + NUMBER_HEIGHT * 1.2, y + 10 + NUMBER_HEIGHT), 14, fill="#000c")
        middle = (x + 10 + NUMBER_HEIGHT * 0.6, y + 10 + NUMBER_HEIGHT / 2)
        pen.text(middle, str(index + 1), font=font, fill="white", anchor="mm")
    file = io.BytesIO()
    whole.save(file, "JPEG", quality=85)
    return file.getvalue()
