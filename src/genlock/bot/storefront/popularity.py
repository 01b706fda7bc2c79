"""What users of this installation really finish, and how long it takes, read from the hourly figures."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from genlock.domain.catalog import Model
from genlock.domain.figures import hour_number, percentile, sum_by_model
from genlock.ports import Database

#: the figures are read again after this time
REFRESH_SECONDS = 600.0
#: the period that counts, for what users finish and for how long it takes
DELIVERED_HOURS, SECONDS_HOURS = 30 * 24, 7 * 24
#: fewer results say little about how long a model takes
RESULTS_MIN = 5
#: this many results of users weigh as much as the first place in the catalog's own list
FIRST_PLACE_RESULTS = 50
#: a model that the catalog does not recommend needs this many results to be shown beside those that it does
NEWCOMER_RESULTS = 20
SHOWN, SHOWN_LEAST = 5, 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Experience:
    """What the installation knows of its models, by id."""

    #: results that arrived
    delivered: Mapping[str, int] = field(default_factory=dict)
    #: the median of the seconds that results took
    median_seconds: Mapping[str, float] = field(default_factory=dict)


class Popularity:
    """Keeps the experience up to date. Reading it costs the same however long the history is."""

    def __init__(
        self, store: Database, bot: str, learn: Callable[[Experience], None], clock: Callable[[], float] = monotonic
    ) -> None:
        self._store = store
        self._bot = bot
        self._learn = learn
        self._clock = clock
        self._read_at: float | None = None

    async def refresh(self) -> None:
        """Read the figures if they are old. Screens shown meanwhile use what was known before."""
        now, before = self._clock(), self._read_at
        if before is not None and now - before < REFRESH_SECONDS:
            return
        self._read_at = now
        try:
            self._learn(await self._read())
        except BaseException:
            self._read_at = before
            raise

    async def _read(self) -> Experience:
        until = hour_number(await self._store.read_clock()) + 1
        figures = await self._store.model_figures(until - DELIVERED_HOURS, until, self._bot)
        durations = await self._store.model_durations(until - SECONDS_HOURS, until)
        histograms: dict[str, Counter[int]] = defaultdict(Counter)
        for (_, model), found in durations.items():
            histograms[model].update(found)
        known = {model: found for model, found in histograms.items() if found.total() >= RESULTS_MIN}
        medians = {model: percentile(found, 0.5) for model, found in known.items()}
        return Experience(
            delivered={model: found.delivered for model, found in sum_by_model(figures).items()},
            median_seconds={model: seconds for model, seconds in medians.items() if seconds},
        )


def most_popular(models: Sequence[Model], recommended: Sequence[str], experience: Experience) -> list[Model]:
    """Return the short list of some models: those of the operator and the catalog, weighed with what users finish."""
    if len(models) <= SHOWN + 1:
        return sorted(models, key=lambda model: _rank(model, recommended, experience))
    known = [
        model
        for model in models
        if model.featured or model.id in recommended or experience.delivered.get(model.id, 0) >= NEWCOMER_RESULTS
    ]
    known.sort(key=lambda model: _rank(model, recommended, experience))
    others = [model for model in models if model not in known]
    return [*known, *others[: max(SHOWN_LEAST - len(known), 0)]][:SHOWN]


def _rank(model: Model, recommended: Sequence[str], experience: Experience) -> tuple[bool, float]:
    delivered = experience.delivered.get(model.id, 0)
    if model.id not in recommended:
        return not model.featured, -delivered
    place = 1 - recommended.index(model.id) / len(recommended)
    return not model.featured, -(delivered + FIRST_PLACE_RESULTS * place)
