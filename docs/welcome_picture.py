"""Paints the picture of the bot's first screen: `python docs/welcome_picture.py` writes it into the package."""

import math
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter

TARGET = Path(__file__).parents[1] / "src" / "genlock" / "bot" / "storefront" / "welcome.jpg"
WIDTH, HEIGHT = 1280, 640
#: everything is painted larger and scaled down, for smooth edges
SCALE = 2
CARD = (540, 420)

Colour = tuple[int, int, int]


def gradient(size: tuple[int, int], top: Colour, bottom: Colour, *, slanted: float = 0.0) -> Image.Image:
    """Return a picture that goes from one colour to another."""
    small = Image.new("RGB", (64, 64))
    for x in range(64):
        for y in range(64):
            share = min(max((y / 63) * (1 - slanted) + (x / 63) * slanted, 0.0), 1.0)
            small.putpixel((x, y), tuple(round(a + (b - a) * share) for a, b in zip(top, bottom, strict=True)))
    return small.resize(size, Image.Resampling.BICUBIC)


def landscape(size: tuple[int, int]) -> Image.Image:
    """Return mountains at sunset above a lake."""
    width, height = size
    picture = gradient(size, (255, 122, 105), (255, 214, 150))
    glow = Image.new("RGB", size)
    centre, radius = (width * 0.64, height * 0.42), height * 0.16
    draw = ImageDraw.Draw(glow)
    draw.ellipse(box(centre, radius * 2.2), fill=(150, 90, 40))
    picture = Image.composite(
        Image.new("RGB", size, (255, 240, 200)), picture, glow.convert("L").filter(ImageFilter.GaussianBlur(radius))
    )
    draw = ImageDraw.Draw(picture)
    draw.ellipse(box(centre, radius), fill=(255, 246, 214))
    for base, peak, colour, shift in (
        (0.66, 0.30, (190, 92, 128), 0.0),
        (0.68, 0.20, (134, 66, 122), 1.7),
        (0.70, 0.13, (84, 46, 104), 3.1),
    ):
        ridge = [
            (
                x,
                height
                * (base - peak * abs(math.sin(x / width * 4.1 + shift)) - 0.03 * math.sin(x / width * 23 + shift)),
            )
            for x in range(0, width + 8, 8)
        ]
        draw.polygon([(0, height), *ridge, (width, height)], fill=colour)
    lake = gradient((width, round(height * 0.3)), (120, 66, 120), (44, 30, 80))
    picture.paste(lake, (0, round(height * 0.7)))
    for number in range(9):
        y = height * (0.72 + number * 0.03)
        half = width * (0.03 + 0.012 * number) * (1 if number % 2 else 0.6)
        draw.rounded_rectangle((centre[0] - half, y, centre[0] + half, y + 3 * SCALE), 3 * SCALE, fill=(255, 214, 170))
    return picture


def box(centre: tuple[float, float], radius: float) -> tuple[float, float, float, float]:
    return centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius


def film(size: tuple[int, int]) -> Image.Image:
    """Return a frame of a film with a play button."""
    width, height = size
    picture = gradient(size, (24, 74, 122), (14, 160, 160), slanted=0.4)
    draw = ImageDraw.Draw(picture)
    for number in range(5):
        radius = width * (0.62 - number * 0.1)
        shade = (30 + number * 14, 96 + number * 22, 146 + number * 14)
        draw.ellipse(box((width * 0.5, height * 1.05), radius), fill=shade)
    for x in range(0, width, round(width / 9)):
        for y in (height * 0.045, height * 0.875):
            hole = (x + width * 0.03, y, x + width * 0.08, y + height * 0.08)
            draw.rounded_rectangle(hole, 6 * SCALE, fill=(8, 26, 48))
    centre, radius = (width * 0.44, height / 2), height * 0.17
    draw.ellipse(box(centre, radius), fill=(255, 255, 255))
    (x, y), side = centre, radius * 0.55
    left, right = x - side * 0.7, x + side * 1.1
    draw.polygon([(left, y - side), (left, y + side), (right, y)], fill=(14, 110, 140))
    return picture


def wave(size: tuple[int, int]) -> Image.Image:
    """Return the waveform of a song."""
    width, height = size
    picture = gradient(size, (98, 60, 200), (232, 78, 150), slanted=0.6)
    draw = ImageDraw.Draw(picture)
    bars = 21
    for number in range(bars):
        x = width * (0.1 + 0.8 * number / (bars - 1))
        swell = math.exp(-(((number - bars / 2) / (bars / 3)) ** 2))
        half = height * (0.05 + 0.27 * swell * abs(math.sin(number * 1.35 + 0.6)))
        bar = (x - 7 * SCALE, height / 2 - half, x + 7 * SCALE, height / 2 + half)
        draw.rounded_rectangle(bar, 7 * SCALE, fill=(255, 255, 255))
    return picture


def card(picture: Image.Image, angle: float) -> Image.Image:
    """Return a picture with round corners and a white border, turned."""
    width, height = picture.size
    border, radius = 10 * SCALE, 34 * SCALE
    whole = Image.new("RGBA", (width + 2 * border, height + 2 * border))
    ImageDraw.Draw(whole).rounded_rectangle((0, 0, *whole.size), radius + border, fill=(255, 255, 255, 255))
    mask = Image.new("L", picture.size)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, width, height), radius, fill=255)
    whole.paste(picture, (border, border), mask)
    return whole.rotate(angle, Image.Resampling.BICUBIC, expand=True)


def place(base: Image.Image, piece: Image.Image, centre: tuple[float, float]) -> None:
    """Put a card on the picture, with its shadow."""
    at = (round(centre[0] * SCALE - piece.width / 2), round(centre[1] * SCALE - piece.height / 2))
    shadow = Image.new("RGBA", base.size)
    shadow.paste((10, 4, 40, 150), (at[0], at[1] + 14 * SCALE), piece)
    base.alpha_composite(shadow.filter(ImageFilter.GaussianBlur(18 * SCALE)))
    base.alpha_composite(piece, (max(at[0], 0), max(at[1], 0)))


def sparkle(draw: ImageDraw.ImageDraw, centre: tuple[float, float], radius: float) -> None:
    x, y, r = centre[0] * SCALE, centre[1] * SCALE, radius * SCALE
    points = []
    for number in range(8):
        length = r if number % 2 == 0 else r * 0.24
        points.append((x + length * math.sin(number * math.pi / 4), y - length * math.cos(number * math.pi / 4)))
    draw.polygon(points, fill=(255, 236, 170, 255))


def paint() -> Image.Image:
    size = (WIDTH * SCALE, HEIGHT * SCALE)
    base = gradient(size, (36, 24, 92), (92, 36, 130), slanted=0.5).convert("RGBA")
    inner = (CARD[0] * SCALE, CARD[1] * SCALE)
    small = (round(inner[0] * 0.78), round(inner[1] * 0.78))
    place(base, card(film(small), 9), (285, 330))
    place(base, card(wave(small), -9), (995, 330))
    place(base, card(landscape(inner), 0), (640, 315))
    draw = ImageDraw.Draw(base)
    for centre, radius in (((928, 92), 44), ((352, 96), 26), ((1196, 112), 22), ((92, 548), 24), ((1010, 575), 30)):
        sparkle(draw, centre, radius)
    return base.convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


if __name__ == "__main__":
    paint().save(TARGET, "JPEG", quality=86, optimize=True, progressive=True)
