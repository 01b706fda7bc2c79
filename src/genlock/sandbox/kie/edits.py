"""Change the picture or video that was sent, visibly: the simulator's edits, animations, upscales and cut-outs."""

import re
from collections.abc import Iterator
from random import Random

from PIL import Image, ImageChops, ImageDraw, ImageEnhance, ImageFilter, ImageOps

from genlock.domain.catalog import Category
from genlock.sandbox.kie.landscape import paint
from genlock.sandbox.kie.source import FRAMES_PER_SECOND, Source

Colour = tuple[int, int, int]
VIDEO_SIDE_MAX = 640
VIDEO_SECONDS = 2
ZOOM = 0.22
SCALE = 2
UPSCALED_SIDE_MAX = 4096
UPSCALED_VIDEO_SIDE_MAX = 1280
CUT_OUT_SCALE = 4
FLAKES = 320
INSET_SHARE = 0.24
#: looks that a prompt asks for by name: shadows, highlights, whether it snows
LOOKS: tuple[tuple[str, Colour, Colour, bool], ...] = (
    ("winter|snow|christmas|зим|снег|снеж|нов.. год", (26, 48, 84), (244, 250, 255), True),
    ("night|moon|dark|ноч|лун", (4, 8, 34), (120, 150, 220), False),
    ("sunset|autumn|fall|warm|закат|осен|тёпл", (64, 20, 30), (255, 214, 130), False),
    ("black and white|monochrome|noir|ч[её]рно-бел", (0, 0, 0), (255, 255, 255), False),
)
#: other prompts get one of these
TINTS: tuple[tuple[Colour, Colour], ...] = (
    ((30, 16, 70), (255, 196, 220)),
    ((6, 52, 56), (255, 238, 190)),
    ((60, 14, 46), (255, 206, 120)),
    ((10, 30, 90), (190, 250, 235)),
)
TINT_SHARE = 0.55


def changed_picture(source: Source, prompt: str, seed: str) -> Image.Image:
    """Return the picture as a model of its category would change it. The same seed changes it in the same way."""
    picture = source.picture
    match source.category:
        case Category.BACKGROUND_REMOVAL:
            return _cut_out(picture)
        case Category.UPSCALE:
            return _sharpened(_enlarged(picture, UPSCALED_SIDE_MAX))
        case _:
            return _with_insets(_tinted(_opaque(picture, seed), prompt, seed), source.pictures[1:])


def changed_frames(source: Source, prompt: str, seed: str) -> Iterator[Image.Image]:
    """Yield frames of the same even size: the picture moves, or the video is changed, enlarged or continued."""
    if not source.frames:
        still = _even(_opaque(source.picture, seed), VIDEO_SIDE_MAX)
        yield from _zooming(still)
        return
    for frame in source.frames:
        if source.category is Category.UPSCALE:
            yield _even(_enlarged(frame, UPSCALED_VIDEO_SIDE_MAX), UPSCALED_VIDEO_SIDE_MAX)
        else:
            even = _even(frame, VIDEO_SIDE_MAX)
            yield even if source.continued else _tinted(even, prompt, seed)
    if source.continued:
        yield from _zooming(_even(source.picture, VIDEO_SIDE_MAX))


def _zooming(still: Image.Image) -> Iterator[Image.Image]:
    """Move the camera slowly towards the middle."""
    count = FRAMES_PER_SECOND * VIDEO_SECONDS
    width, height = still.size
    for place in range(count):
        margin = ZOOM / 2 * place / count
        box = (width * margin, height * margin * 0.6, width * (1 - margin), height * (1 - margin * 1.4))
        yield still.resize(still.size, Image.Resampling.BILINEAR, box=box)


def _opaque(picture: Image.Image, seed: str) -> Image.Image:
    """Put a cut-out in front of a landscape."""
    if picture.mode != "RGBA":
        return picture
    scene = paint(picture.size, seed)
    scene.paste(picture, mask=picture.getchannel("A"))
    return scene


def _tinted(picture: Image.Image, prompt: str, seed: str) -> Image.Image:
    found = next((look for look in LOOKS if re.search(look[0], prompt, re.IGNORECASE)), None)
    shadows, highlights = found[1:3] if found else Random(seed).choice(TINTS)
    toned = ImageOps.colorize(ImageOps.autocontrast(picture.convert("L")), shadows, highlights)
    mixed = Image.blend(picture.convert("RGB"), toned, 1.0 if found and shadows == (0, 0, 0) else TINT_SHARE)
    return _snowing(mixed, seed) if found and found[3] else mixed


def _snowing(picture: Image.Image, seed: str) -> Image.Image:
    rng, (width, height) = Random(seed), picture.size
    snow = Image.new("L", picture.size)
    pen = ImageDraw.Draw(snow)
    for _ in range(FLAKES):
        x, y, radius = rng.random() * width, rng.random() * height, min(picture.size) * rng.uniform(0.002, 0.008)
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=rng.randrange(150, 256))
    return ImageChops.screen(picture, Image.merge("RGB", [snow.filter(ImageFilter.GaussianBlur(0.8))] * 3))


def _with_insets(picture: Image.Image, others: tuple[Image.Image, ...]) -> Image.Image:
    """Show further input pictures in the upper corner: the result is made from all of them."""
    side = round(min(picture.size) * INSET_SHARE)
    for place, other in enumerate(others):
        inset = ImageOps.expand(ImageOps.fit(other.convert("RGB"), (side, side)), 3, "white")
        picture.paste(inset, (picture.width - (inset.width + 8) * (place + 1), 10))
    return picture


def _enlarged(picture: Image.Image, side_max: int) -> Image.Image:
    scale = min(SCALE, side_max / max(picture.size))
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    return picture.resize(size, Image.Resampling.BICUBIC)


def _sharpened(picture: Image.Image) -> Image.Image:
    return ImageEnhance.Contrast(picture.filter(ImageFilter.UnsharpMask(2, 90, 2))).enhance(1.06)


def _cut_out(picture: Image.Image) -> Image.Image:
    """Keep an oval in the middle: the simulator does not know what the subject is."""
    width, height = (max(1, side // CUT_OUT_SCALE) for side in picture.size)
    mask = Image.new("L", (width, height))
    ImageDraw.Draw(mask).ellipse((width * 0.12, height * 0.08, width * 0.88, height * 0.94), fill=255)
    mask = mask.filter(ImageFilter.GaussianBlur(1.5)).resize(picture.size, Image.Resampling.BICUBIC)
    before = picture.getchannel("A") if picture.mode == "RGBA" else Image.new("L", picture.size, 255)
    cut = picture.convert("RGBA")
    cut.putalpha(ImageChops.multiply(before, mask))
    return cut


def _even(picture: Image.Image, side_max: int) -> Image.Image:
    """Fit the picture into the side. H.264 needs even sides."""
    scale = min(1.0, side_max / max(picture.size))
    width, height = (max(32, round(side * scale) // 2 * 2) for side in picture.size)
    return picture if (width, height) == picture.size else picture.resize((width, height))
