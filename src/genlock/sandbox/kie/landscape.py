"""Draw a landscape from a seed text: the same text gives the same image, and the sun moves during a video."""

import math
from random import Random

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

Colour = tuple[int, int, int]
#: three sky colours from top to bottom, then the farthest and nearest hills
PALETTES: tuple[tuple[Colour, Colour, Colour, Colour, Colour], ...] = (
    ((38, 27, 84), (214, 93, 120), (255, 200, 130), (150, 84, 130), (28, 18, 52)),
    ((12, 40, 84), (72, 140, 196), (250, 214, 165), (84, 124, 158), (14, 34, 54)),
    ((20, 16, 52), (52, 60, 130), (140, 110, 190), (64, 66, 128), (10, 10, 30)),
    ((24, 84, 110), (120, 196, 190), (255, 236, 190), (88, 150, 140), (16, 52, 56)),
    ((70, 20, 50), (226, 90, 70), (255, 190, 90), (160, 70, 70), (44, 12, 32)),
)
HILLS = 4
STARS = 70
GLOW_SCALE = 4


def paint(size: tuple[int, int], seed: str, share: float = 0.0) -> Image.Image:
    """Return the landscape of a seed at the fraction `share` of its video."""
    rng = Random(seed)
    top, middle, low, far, near = rng.choice(PALETTES)
    picture = _sky(size, top, middle, low)
    _stars(picture, rng, share)
    picture = _sun(picture, rng, share)
    pen = ImageDraw.Draw(picture)
    for layer in range(HILLS):
        _hill(pen, size, rng, layer, _between(far, near, layer / (HILLS - 1)), share)
    return picture


def _sky(size: tuple[int, int], top: Colour, middle: Colour, low: Colour) -> Image.Image:
    slope = Image.linear_gradient("L").resize(size)
    return ImageOps.colorize(slope, top, low, middle, midpoint=120)


def _stars(picture: Image.Image, rng: Random, share: float) -> None:
    width, height = picture.size
    pen = ImageDraw.Draw(picture)
    for _ in range(STARS):
        x, y, phase = rng.random() * width, rng.random() ** 1.6 * height * 0.55, rng.random()
        light = 140 + int(100 * abs(math.sin(math.pi * (share + phase))))
        radius = 0.6 if phase < 0.8 else 1.2
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=(light, light, min(255, light + 15)))


def _sun(picture: Image.Image, rng: Random, share: float) -> Image.Image:
    width, height = picture.size
    x = width * (0.25 + 0.5 * rng.random())
    y = height * (0.46 - 0.16 * share)
    radius = min(width, height) * (0.07 + 0.05 * rng.random())
    picture = ImageChops.screen(picture, _glow(picture.size, x, y, radius))
    ImageDraw.Draw(picture).ellipse((x - radius, y - radius, x + radius, y + radius), fill=(255, 243, 214))
    return picture


def _glow(size: tuple[int, int], x: float, y: float, radius: float) -> Image.Image:
    """Return a blurred disc, drawn small and enlarged, because blurring a large image is slow."""
    x, y, radius = x / GLOW_SCALE, y / GLOW_SCALE, radius / GLOW_SCALE
    glow = Image.new("RGB", (size[0] // GLOW_SCALE, size[1] // GLOW_SCALE))
    ImageDraw.Draw(glow).ellipse((x - radius * 2, y - radius * 2, x + radius * 2, y + radius * 2), fill=(110, 84, 50))
    return glow.filter(ImageFilter.BoxBlur(radius * 0.9)).resize(size)


def _hill(
    pen: ImageDraw.ImageDraw, size: tuple[int, int], rng: Random, layer: int, colour: Colour, share: float
) -> None:
    """Draw a ridge of three sine waves; near layers move faster."""
    width, height = size
    waves = [(rng.uniform(0.6, 4.0), rng.random() * 7, rng.uniform(0.3, 1.0)) for _ in range(3)]
    foot = height * (0.54 + 0.12 * layer)
    tall = height * (0.09 - 0.012 * layer)
    moved = share * 0.05 * (layer + 1)
    ridge = [
        (
            x,
            foot
            - tall
            * sum(weight * math.sin(rate * 2 * math.pi * (x / width + moved) + at) for rate, at, weight in waves),
        )
        for x in range(0, width + 8, 6)
    ]
    pen.polygon([(0, height), *ridge, (width, height)], fill=colour)


def _between(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue
