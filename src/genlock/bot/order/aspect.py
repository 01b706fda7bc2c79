"""The aspect ratio of a result that is made from the user's picture: that of the picture, unless the user chooses."""

import re
from dataclasses import replace

from genlock.bot.order.draft import Draft
from genlock.domain.catalog import NOTHING, Model
from genlock.domain.field import Field, FieldType, Scalar

_RATIO = re.compile(r"(\d+)[:_](\d+)$")
#: a picture whose sides differ by less keeps the model's default
NEARLY_SQUARE = 1.1
#: choices that leave it to the provider, which sees the picture
_AUTOMATIC = ("auto", "adaptive")


def fit_picture(draft: Draft, model: Model) -> Draft:
    """Choose the aspect ratio closest to the order's first picture, where the model's default would be a fixed one."""
    field, ratio = aspect_field(model), _ratio_of_picture(draft, model)
    if field is None or ratio is None or field.name in draft.values:
        return draft
    return replace(draft, values={**draft.values, field.name: _closest(field, ratio)})


def refit_picture(draft: Draft, model: Model, before: Draft) -> Draft:
    """Fit a draft whose picture was exchanged, unless the user chose the aspect ratio of the order before it."""
    field, ratio = aspect_field(model), _ratio_of_picture(before, model)
    if field is None or ratio is None or before.values.get(field.name) != _closest(field, ratio):
        return draft
    return fit_picture(
        replace(draft, values={name: value for name, value in draft.values.items() if name != field.name}), model
    )


def aspect_field(model: Model) -> Field | None:
    """Return the field with a fixed aspect ratio as its default; None if there is none or the provider decides."""
    for field in model.fields:
        if field.type is FieldType.CHOICE and not field.many and field.default not in NOTHING:
            ratios = [choice for choice in field.choices if _ratio(choice) is not None]
            if len(ratios) > 1 and _ratio(str(field.default)) is not None:
                return field
    return None


def _closest(field: Field, ratio: float) -> Scalar:
    automatic = next((choice for choice in field.choices if str(choice).lower() in _AUTOMATIC), None)
    if automatic is not None:
        return automatic

    def distance(choice: Scalar) -> tuple[float, bool]:
        own = _ratio(choice) or 1.0
        return max(own / ratio, ratio / own), choice != field.default

    return min((choice for choice in field.choices if _ratio(choice) is not None), key=distance)


def _ratio(choice: Scalar) -> float | None:
    """Return width divided by height: `16:9`, `landscape_16_9`, `portrait_16_9` (9:16) or `square_hd`."""
    text = str(choice)
    if text.startswith("square"):
        return 1.0
    match = _RATIO.search(text)
    if match is None or not int(match[2]) or not int(match[1]):
        return None
    ratio = int(match[1]) / int(match[2])
    return 1 / ratio if text.startswith("portrait") else ratio


def _ratio_of_picture(draft: Draft, model: Model) -> float | None:
    """Return width divided by height of the first picture; None if it is unknown or nearly square."""
    first = next((field for field in model.fields if field.type is FieldType.IMAGE), None)
    value = draft.values.get(first.name) if first else None
    url = value[0] if isinstance(value, list) and value else value
    ratio = draft.aspects.get(str(url), 1.0)
    return None if 1 / NEARLY_SQUARE < ratio < NEARLY_SQUARE else ratio
