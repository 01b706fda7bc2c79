"""Charts as SVG that the server makes: bars and lines, with an axis, hover texts, and colours from the style sheet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, log10

from markupsafe import Markup, escape

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

    @cached_property
    def texts(self) -> Sequence[str]:
        """The values as they are written, once for the hover text and the table."""
        return [self.written(value) for value in self.values]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What the template shows: the picture, and the same as a table."""

    title: str
    series: Sequence[Series]
    labels: Sequence[str]
    svg: Markup

    @property
    def is_empty(self) -> bool:
        return not any(value for dataset in self.series for value in dataset.values)


def stacked_bars(title: str, labels: Sequence[str], series: Sequence[Series]) -> Chart:
    """Return bars whose parts stand on each other; the values are counts."""
    sums = [sum(values) for values in zip(*(dataset.values for dataset in series), strict=True)]
    axis = _Axis(0.0, max(sums, default=0.0), len(labels), whole=True)
    parts: list[str] = []
    for place, label in enumerate(labels):
        bottom, bars = 0.0, ""
        for dataset in series:
            if value := dataset.values[place]:
                bars += _bar(axis, place, bottom, value, dataset.style)
                bottom += value
        parts.append(_group(axis, place, _hover(label, series, place), bars))
    return Chart(
        title=title, series=series, labels=labels, svg=_svg(title, axis, labels, parts, series[0].tick)
    )  # fmt: skip


def lines(title: str, labels: Sequence[str], series: Sequence[Series]) -> Chart:
    """Return one line per series; values may be negative."""
    values = [value for dataset in series for value in dataset.values]
    axis = _Axis(min(0.0, min(values, default=0.0)), max(values, default=0.0), len(labels))
    parts = [_line(axis, dataset) for dataset in series]
    parts += [_group(axis, place, _hover(label, series, place), "") for place, label in enumerate(labels)]
    return Chart(
        title=title, series=series, labels=labels, svg=_svg(title, axis, labels, parts, series[0].tick)
    )  # fmt: skip


class _Axis:
    """Where values are in the picture."""

    def __init__(self, low: float, high: float, places: int, *, whole: bool = False) -> None:
        self.step = _nice_step((high - low) / TICKS, whole=whole)
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


def _nice_step(least: float, *, whole: bool) -> float:
    """Return the next round number: 1, 2, 2.5 or 5 times a power of ten; an integer if `whole`."""
    if least <= 0 or (whole and least <= 1):
        return 1.0
    power = 10.0 ** floor(log10(least))
    steps = (step * power for step in _STEPS)
    return next(step for step in steps if step >= least * 0.999 and (not whole or step.is_integer()))


# The functions below return parts of the picture as text: every text in it is escaped where it is put in.


def _svg(title: str, axis: _Axis, labels: Sequence[str], parts: Sequence[str], tick: Callable[[float], str]) -> Markup:
    grid = "".join(_tick(axis.y(value), tick(value)) for value in axis.ticks())
    every = max(1, ceil(len(labels) / LABELS_MAX))
    below = "".join(_label(axis, place, label) for place, label in enumerate(labels) if place % every == 0)
    opening = f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
    return Markup(f"{opening}{grid}{''.join(parts)}{below}</svg>")  # noqa: S704 - escaped


def _label(axis: _Axis, place: int, text: str) -> str:
    x = min(max(axis.x(place) + axis.slot / 2, LEFT + 12), WIDTH - RIGHT - 16)
    return f'<text x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(text)}</text>'


def _tick(y: float, text: str) -> str:
    return (
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'
    )


def _bar(axis: _Axis, place: int, bottom: float, value: float, style: int) -> str:
    top, base = axis.y(bottom + value), axis.y(bottom)
    gap = min(4.0, axis.slot * 0.2)
    x, width, height = axis.x(place) + gap / 2, axis.slot - gap, max(base - top, 0.8)
    return f'<rect class="series-{style}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="1"/>'


def _line(axis: _Axis, series: Series) -> str:
    points = [(axis.x(place) + axis.slot / 2, axis.y(value)) for place, value in enumerate(series.values)]
    path = " ".join(f"{'L' if place else 'M'}{x:.1f} {y:.1f}" for place, (x, y) in enumerate(points))
    if len(points) == 1:
        [(x, y)] = points
        return f'<circle class="series-{series.style}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
    return f'<path class="line series-{series.style}" d="{path}"/>'


def _group(axis: _Axis, place: int, hover: str, content: str) -> str:
    """Return a whole column: the pointer anywhere in it shows the hover text."""
    x, width, height = axis.x(place), axis.slot, HEIGHT - TOP - BOTTOM
    hit = f'<rect class="hit" x="{x:.1f}" y="{TOP}" width="{width:.1f}" height="{height}"/>'
    return f'<g class="column"><title>{escape(hover)}</title>{hit}{content}</g>'


def _hover(label: str, series: Sequence[Series], place: int) -> str:
    return "\n".join([label, *(f"{dataset.name}: {dataset.texts[place]}" for dataset in series)])
