"""The rows of the Models page: every model with its price, its margin and its figures, filtered and sorted."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from genlock.catalog.margins import Margin, PriceRules, usual_margin
from genlock.domain.catalog import Category, Model, Status
from genlock.domain.figures import Durations, JobFigures, ModelFigures, percentile

#: the periods that figures can be shown for, in days
PERIODS = (7, 30)
MEDIAN, P95 = 0.5, 0.95
#: the value of the filter by status that lets every model through
ALL = "all"
TEXT_LENGTH_MAX = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRow:
    model: Model
    margin: Margin | None
    figures: JobFigures
    durations: Durations
    #: whether an operator edited it in the dashboard
    edited: bool

    @property
    def failure_share(self) -> float | None:
        """Return the part of the ended orders that failed; None if none has ended."""
        ended = self.figures.delivered + self.figures.failed
        return self.figures.failed / ended if ended else None

    @property
    def median(self) -> float | None:
        return percentile(self.durations, MEDIAN)

    @property
    def p95(self) -> float | None:
        return percentile(self.durations, P95)


@dataclass(frozen=True, kw_only=True)
class ModelFilter:
    """What the address of the list says, and what in it was not understood."""

    text: str = ""
    category: Category | None = None
    #: None: all
    status: Status | None = Status.OFFERED
    days: int = PERIODS[0]
    sort: str = "menu"
    descending: bool = False
    page: int = 1
    #: parameters with an unknown value
    unknown: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "ModelFilter":
        allowed = {
            "category": {"", *Category},
            "status": {"", ALL, *Status},
            "days": {"", *map(str, PERIODS)},
            "sort": {"", *SORTS, *(f"-{column}" for column in SORTS)},
        }
        unknown = {name: value for name, value in query.items() if name not in _NAMES}
        unknown |= {name: query[name] for name, values in allowed.items() if query.get(name, "") not in values}
        known = {name: value for name, value in query.items() if name not in unknown}
        status, sort, page = known.get("status", Status.OFFERED), known.get("sort", ""), known.get("page", "")
        return cls(
            text=known.get("q", "").strip()[:TEXT_LENGTH_MAX],
            category=Category(known["category"]) if known.get("category") else None,
            status=None if status in ("", ALL) else Status(status),
            days=int(known.get("days") or PERIODS[0]),
            sort=sort.removeprefix("-") or "menu",
            descending=sort.startswith("-"),
            page=int(page) if _PAGE.fullmatch(page) else 1,
            unknown=unknown,
        )

    def accepts(self, model: Model) -> bool:
        words = self.text.lower().split()
        searched = " ".join((model.title, model.vendor, model.id, *model.aliases)).lower()
        return (
            (self.status is None or model.status is self.status)
            and self.category in (None, model.category, *model.also)
            and all(word in searched for word in words)
        )

    def sorted(self, rows: Iterable[ModelRow]) -> list[ModelRow]:
        """Return the rows in the chosen order. Rows without a value come last, in either direction."""
        found = list(rows)
        if self.sort == "menu":
            return sorted(found, key=_menu_position, reverse=self.descending)
        value = _VALUES[self.sort]
        keyed: list[tuple[Any, ModelRow]] = [(value(row), row) for row in found]
        known = [pair for pair in keyed if pair[0] is not None]
        known.sort(key=itemgetter(0), reverse=self.descending)
        return [row for _, row in known] + [row for key, row in keyed if key is None]


_NAMES = {"q", "category", "status", "days", "sort", "page"}
_PAGE = re.compile(r"[1-9]\d{0,3}")


_CATEGORIES = {category: number for number, category in enumerate(Category)}
_LAST = 1_000_000


def _menu_position(row: ModelRow) -> tuple[int, bool, int, int, str]:
    """Return the sort key of the bot's menus: by category, featured models, positions, then the cheapest."""
    model = row.model
    position = _LAST if model.order is None else model.order
    price = row.margin.price if row.margin else 0
    return _CATEGORIES[model.category], not model.featured, position, price, model.title


_VALUES: Mapping[str, Callable[[ModelRow], float | str | None]] = {
    "title": lambda row: row.model.title.lower(),
    "price": lambda row: row.margin.price if row.margin else None,
    "cost": lambda row: float(row.margin.cost_usd) if row.margin else None,
    "margin": lambda row: row.margin.share if row.margin else None,
    "orders": lambda row: row.figures.orders,
    "failures": lambda row: row.failure_share,
    "median": lambda row: row.median,
    "p95": lambda row: row.p95,
    "last_failure": lambda row: row.figures.last_failed_job or None,
}
#: by which a list can be sorted; `menu` is the order in which the bot shows the models
SORTS = ("menu", *_VALUES)


@dataclass(frozen=True, kw_only=True, slots=True)
class PeriodFigures:
    """The figures of one model in a period."""

    figures: JobFigures = field(default_factory=JobFigures)
    #: from the order to the result
    durations: Durations = field(default_factory=dict)


class ModelRows:
    """Makes rows. The margin of a model that is the same object as before is not calculated again."""

    def __init__(self, rules: PriceRules) -> None:
        self.rules = rules
        self._margins: dict[str, tuple[Model, Margin | None]] = {}

    def margin(self, model: Model) -> Margin | None:
        known = self._margins.get(model.id)
        if known is None or known[0] is not model:
            known = self._margins[model.id] = (model, usual_margin(model, self.rules))
        return known[1]

    def rows(
        self, models: Iterable[Model], figures: Mapping[str, PeriodFigures], edited: Collection[str]
    ) -> list[ModelRow]:
        none = PeriodFigures()
        return [
            ModelRow(
                model=model,
                margin=self.margin(model),
                figures=figures.get(model.id, none).figures,
                durations=figures.get(model.id, none).durations,
                edited=model.id in edited,
            )
            for model in models
        ]


def by_model(
    figures: Iterable[ModelFigures], durations: Mapping[tuple[str, str], Durations]
) -> dict[str, PeriodFigures]:
    """Return the figures of each model, of all its providers together."""
    found: dict[str, PeriodFigures] = {}
    for model_figures in figures:
        known = found.get(model_figures.model, PeriodFigures())
        own = durations.get((model_figures.provider, model_figures.model), {})
        buckets = {bucket: known.durations.get(bucket, 0) + own.get(bucket, 0) for bucket in {*known.durations, *own}}
        found[model_figures.model] = PeriodFigures(figures=known.figures + model_figures.figures, durations=buckets)
    return found
