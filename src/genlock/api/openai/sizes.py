"""Sizes such as `1536x1024`, as a model's own choices of an aspect ratio and a resolution."""

import math
import re
from collections.abc import Callable, Mapping

from genlock.domain.catalog import Model, Output
from genlock.domain.field import Field, FieldType, Scalar

_PIXELS = re.compile(r"(\d{2,5})x(\d{2,5})")
_RATIO = re.compile(r"(\d{1,3}):(\d{1,3})")
_NAMED_RATIO = re.compile(r"(portrait|landscape)_(\d{1,2})_(\d{1,2})")
_THOUSANDS = re.compile(r"(\d(?:\.\d)?)k")
_LINES = re.compile(r"(\d{3,4})p")
#: 1792x1024 is sold as 16:9
TOLERANCE = 0.03
#: a picture with a side of this length is called 4K, whatever its other side
ULTRA_WIDE = 3840
#: the short side of videos that are named by thousands
_VIDEO_LINES = {2.0: 1440.0, 4.0: 2160.0}


def read_size(text: str) -> tuple[int, int] | None:
    """Return width and height; None if the text is not a size."""
    found = _PIXELS.fullmatch(text)
    width, height = (int(found[1]), int(found[2])) if found else (0, 0)
    return (width, height) if width and height else None


def ratio_field(model: Model) -> Field | None:
    return _first(model, lambda field: any(_ratio(choice) for choice in field.choices))


def resolution_field(model: Model) -> Field | None:
    return _first(model, lambda field: any(_side(choice, is_video=False) for choice in field.choices))


def nearest_ratio(field: Field, width: int, height: int) -> Scalar | None:
    """Return the choice with this aspect ratio; None if there is none."""
    wanted = math.log(width / height)
    found = [
        (round(abs(math.log(ratio) - wanted), 9), choice != field.default, number, choice)
        for number, choice in enumerate(field.choices)
        if (ratio := _ratio(choice)) is not None
    ]
    distance, _, _, choice = min(found, key=lambda row: row[:3])
    return choice if distance <= TOLERANCE else None


def nearest_resolution(model: Model, field: Field, width: int, height: int) -> Scalar:
    """Return the choice whose side is nearest to that of the size."""
    is_video = Output.VIDEO in model.outputs
    if is_video:
        wanted = float(min(width, height))
    else:
        wanted = 4096.0 if max(width, height) >= ULTRA_WIDE else math.sqrt(width * height)
    known = [(side, choice) for choice in field.choices if (side := _side(choice, is_video=is_video))]
    return min(known, key=lambda row: (round(abs(math.log(row[0] / wanted)), 9), row[0]))[1]


def size_of(model: Model, values: Mapping[str, object]) -> str | None:
    """Return the size that an order asks the model for; None if its input does not say."""
    shape, resolution = ratio_field(model), resolution_field(model)
    ratio = _ratio(values.get(shape.name)) if shape else None
    side = _side(values.get(resolution.name), is_video=Output.VIDEO in model.outputs) if resolution else None
    if ratio is None or side is None:
        return None
    short, long = round(side), round(side * max(ratio, 1 / ratio) / 2) * 2
    return f"{long}x{short}" if ratio >= 1 else f"{short}x{long}"


def _first(model: Model, fits: Callable[[Field], bool]) -> Field | None:
    fields = (field for field in model.fields if field.type is FieldType.CHOICE and not field.internal)
    return next((field for field in fields if fits(field)), None)


def _ratio(choice: object) -> float | None:
    """Return width divided by height of a choice such as `16:9` or `portrait_4_3`."""
    text = str(choice)
    if text in ("square", "square_hd"):
        return 1.0
    if found := _RATIO.fullmatch(text):
        first, second = int(found[1]), int(found[2])
        return first / second if first and second else None
    if found := _NAMED_RATIO.fullmatch(text):
        long, short = sorted((int(found[2]), int(found[3])), reverse=True)
        return long / short if found[1] == "landscape" else short / long
    return None


def _side(choice: object, *, is_video: bool) -> float | None:
    """Return the short side of a video, or the side of a square picture, in pixels."""
    text = str(choice).lower()
    if found := _LINES.fullmatch(text):
        return float(found[1])
    if found := _THOUSANDS.fullmatch(text):
        thousands = float(found[1])
        return _VIDEO_LINES.get(thousands, thousands * 1024) if is_video else thousands * 1024
    return None
