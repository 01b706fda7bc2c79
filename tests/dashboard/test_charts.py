"""Charts: a picture that is XML, whose texts are escaped, and whose parts add up."""

from xml.etree import ElementTree as ET

import pytest

from genlock.dashboard.charts import HEIGHT, Chart, Series, lines, stacked_bars

HOSTILE = '"><script>alert(1)</script>'


def series(*values: float, name: str = "orders", style: int = 1) -> Series:
    return Series(name=name, values=values, style=style, written="{:g}".format, tick="{:g}".format)


def elements(chart: Chart, tag: str) -> list[ET.Element]:
    return [element for element in ET.fromstring(str(chart.svg)).iter() if element.tag == tag]  # noqa: S314 - our own


def test_every_text_is_escaped() -> None:
    chart = stacked_bars(HOSTILE, [HOSTILE], [series(3, name=HOSTILE)])

    assert "<script" not in chart.svg
    assert elements(chart, "svg")[0].get("aria-label") == HOSTILE
    assert elements(chart, "title")[0].text == f"{HOSTILE}\n{HOSTILE}: 3"


def test_the_parts_of_a_bar_stand_on_each_other() -> None:
    chart = stacked_bars("t", ["a"], [series(1, style=1), series(2, style=2)])

    lower, upper = (element for element in elements(chart, "rect") if element.get("class") != "hit")
    assert float(upper.get("y", 0)) + float(upper.get("height", 0)) == pytest.approx(float(lower.get("y", 0)), abs=0.11)
    assert float(upper.get("height", 0)) == pytest.approx(2 * float(lower.get("height", 0)), abs=0.2)


@pytest.mark.parametrize("values", [(0.0,), (0.0, 0.0), (5.0,), (-3.0, 2.0), (1e9, 0.0), (0.001, 0.002)])
def test_every_value_is_inside_the_picture(values: tuple[float, ...]) -> None:
    for chart in (lines("t", ["x"] * len(values), [series(*values)]),):
        for element in elements(chart, "path") + elements(chart, "circle"):
            numbers = [
                float(n)
                for n in (element.get("d") or element.get("cy") or "").replace("M", "").replace("L", "").split()
            ]
            assert all(-1 <= y <= HEIGHT for y in numbers[1::2] or numbers), values


def test_a_chart_without_values_says_so() -> None:
    assert stacked_bars("t", ["a", "b"], [series(0, 0)]).is_empty
    assert not stacked_bars("t", ["a", "b"], [series(0, 1)]).is_empty
    assert stacked_bars("t", [], [series()]).is_empty


@pytest.mark.parametrize("most", [0, 1, 2, 3, 4, 7, 8, 22, 76, 1001])
def test_an_axis_of_counts_has_whole_numbers(most: int) -> None:
    chart = stacked_bars("t", ["a"], [series(most)])

    ticks = [float(element.text or "") for element in elements(chart, "text") if element.get("text-anchor") == "end"]
    assert all(tick.is_integer() for tick in ticks), ticks
    assert ticks[-1] >= most
