"""Charts as SVG that the server makes: bars and lines, with an axis, hover texts, and colours from the style sheet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup

WIDTH, HEIGHT = 400, 190
LEFT, RIGHT, TOP, BOTTOM = 48, 6, 8, 22
LABELS_MAX = 6
TICKS = 3
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, kw_only=True)
class Series:
    """One row of values. `style` is the number of a colour in the style sheet, 1 to 4."""

    name: str
    values: Sequence[float]
    style: int
    #: how a value is written in the hover text and in the table
    written: Callable[[float], str]
    #: how it is written at the axis
    tick: Callable[[float], str]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What the template shows: the picture, and the same as a table."""

    title: str
    series: Sequence[Series]
    labels: Sequence[str]
    svg: Markup

    @property
    def is_empty(self) -> bool:
        return not any(value for one in self.series for value in one.values)


def stacked_bars(title: str, labels: Sequence[str], series: Sequence[Series]) -> Chart:
    """Return bars whose parts stand on each other."""
    sums = [sum(values) for values in zip(*(one.values for one in series), strict=True)]
    axis = _Axis(0.0, max(sums, default=0.0), len(labels))
    parts: list[Markup] = []
    for place, label in enumerate(labels):
        bottom, bars = 0.0, Markup()
        for one in series:
            if value := one.values[place]:
                bars += _bar(axis, place, bottom, value, one.style)
                bottom += value
        parts.append(_group(axis, place, _hover(label, series, place), bars))
    return Chart(
        title=title, series=series, labels=labels, svg=_svg(title, axis, labels, parts, series[0].tick)
    )  # fmt: skip


def lines(title: str, labels: Sequence[str], series: Sequence[Series]) -> Chart:
    """Return one line per series; values may be negative."""
    values = [value for one in series for value in one.values]
    axis = _Axis(min(0.0, min(values, default=0.0)), max(values, default=0.0), len(labels))
    parts = [_line(axis, one) for one in series]
    parts += [_group(axis, place, _hover(label, series, place), Markup()) for place, label in enumerate(labels)]
    return Chart(
        title=title, series=series, labels=labels, svg=_svg(title, axis, labels, parts, series[0].tick)
    )  # fmt: skip


class _Axis:
    """Where values are in the picture."""

    def __init__(self, low: float, high: float, places: int) -> None:
        self.step = _nice_step((high - low) / TICKS)
        self.low = floor(low / self.step) * self.step
        self.high = max(ceil(high / self.step) * self.step, self.low + self.step)
        self.slot = (WIDTH - LEFT - RIGHT) / max(places, 1)

    def y(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - value) / (self.high - self.low)

    def x(self, place: int) -> float:
        """Return the left side of a place."""
        return LEFT + place * self.slot

    def ticks(self) -> list[float]:
        number = round((self.high - self.low) / self.step)
        return [self.low + self.step * tick for tick in range(number + 1)]


def _nice_step(wanted: float) -> float:
    """Return the next number that people count in: 1, 2, 2.5 or 5 times a power of ten."""
    if wanted <= 0:
        return 1.0
    power = 10.0 ** floor(log10(wanted))
    return next(step * power for step in _STEPS if step * power >= wanted * 0.999)


def _svg(
    title: str, axis: _Axis, labels: Sequence[str], parts: Sequence[Markup], tick: Callable[[float], str]
) -> Markup:
    grid = Markup().join(_tick(axis.y(value), tick(value)) for value in axis.ticks())
    every = max(1, ceil(len(labels) / LABELS_MAX))
    below = Markup().join(
        Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
            min(max(axis.x(place) + axis.slot / 2, LEFT + 12), WIDTH - RIGHT - 16), HEIGHT - 6, label
        )
        for place, label in enumerate(labels)
        if place % every == 0
    )
    return Markup(
        '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="{title}">{grid}{parts}{below}</svg>'
    ).format(w=WIDTH, h=HEIGHT, title=title, grid=grid, parts=Markup().join(parts), below=below)


def _tick(y: float, text: str) -> Markup:
    return Markup(
        '<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        '<text x="{at}" y="{below:.1f}" text-anchor="end">{text}</text>'
    ).format(left=LEFT, right=WIDTH - RIGHT, y=y, at=LEFT - 6, below=y + 4, text=text)


def _bar(axis: _Axis, place: int, bottom: float, value: float, style: int) -> Markup:
    top, base = axis.y(bottom + value), axis.y(bottom)
    gap = min(4.0, axis.slot * 0.2)
    return Markup('<rect class="series-{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="1"/>').format(
        style, axis.x(place) + gap / 2, top, axis.slot - gap, max(base - top, 0.8)
    )


def _line(axis: _Axis, series: Series) -> Markup:
    points = [(axis.x(place) + axis.slot / 2, axis.y(value)) for place, value in enumerate(series.values)]
    path = " ".join(f"{'L' if place else 'M'}{x:.1f} {y:.1f}" for place, (x, y) in enumerate(points))
    if len(points) == 1:
        return Markup('<circle class="series-{}" cx="{:.1f}" cy="{:.1f}" r="3"/>').format(series.style, *points[0])
    return Markup('<path class="line series-{}" d="{}"/>').format(series.style, path)


def _group(axis: _Axis, place: int, hover: str, content: Markup) -> Markup:
    """Return a whole column: the pointer anywhere in it shows the hover text."""
    return Markup(
        '<g class="column"><title>{}</title><rect class="hit" x="{:.1f}" y="{}" width="{:.1f}" height="{}"/>{}</g>'
    ).format(hover, axis.x(place), TOP, axis.slot, HEIGHT - TOP - BOTTOM, content)


def _hover(label: str, series: Sequence[Series], place: int) -> str:
    return "\n".join([label, *(f"{one.name}: {one.written(one.values[place])}" for one in series)])
