"""Sales figures of a period."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from genlock.domain.value import value

HOUR_SECONDS = 3600


#: upper bounds in seconds of the buckets of a histogram of durations; the last bucket has none
DURATION_BOUNDS = (
    0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0,
    240.0, 360.0, 480.0, 720.0, 1080.0, 1800.0, 3600.0, 7200.0,
)  # fmt: skip
#: numbers of jobs by the number of their bucket
Durations = Mapping[int, int]


@value
class JobFigures:
    """What became of the orders of a period; money in thousandths of a credit, of ours or of the provider."""

    orders: int = 0
    #: results that the channel confirmed
    delivered: int = 0
    #: ended by the provider, or by us at the deadline
    failed: int = 0
    cancelled: int = 0
    #: the user got the price back: the hold was released, or an operator refunded the order
    refunded: int = 0
    #: prices that were captured, less what operators refunded
    revenue: int = 0
    #: what the provider billed, in its credits
    cost: int = 0
    #: the part of it for orders that no user paid for in the end
    loss: int = 0
    #: the newest job that failed; 0 if there is none
    last_failed_job: int = 0

    def __add__(self, other: "JobFigures") -> "JobFigures":
        return JobFigures(
            orders=self.orders + other.orders,
            delivered=self.delivered + other.delivered,
            failed=self.failed + other.failed,
            cancelled=self.cancelled + other.cancelled,
            refunded=self.refunded + other.refunded,
            revenue=self.revenue + other.revenue,
            cost=self.cost + other.cost,
            loss=self.loss + other.loss,
            last_failed_job=max(self.last_failed_job, other.last_failed_job),
        )

    def __sub__(self, other: "JobFigures") -> "JobFigures":
        """Subtract a part. What it contains already may be missing here for some seconds: nothing is below 0."""
        return JobFigures(
            orders=max(0, self.orders - other.orders),
            delivered=max(0, self.delivered - other.delivered),
            failed=max(0, self.failed - other.failed),
            cancelled=max(0, self.cancelled - other.cancelled),
            refunded=max(0, self.refunded - other.refunded),
            revenue=max(0, self.revenue - other.revenue),
            cost=max(0, self.cost - other.cost),
            loss=max(0, self.loss - other.loss),
            last_failed_job=self.last_failed_job,
        )


@value
class ModelFigures:
    """The orders of one model of one provider."""

    provider: str
    model: str
    figures: JobFigures


def sum_by_model(models: Iterable[ModelFigures]) -> dict[str, JobFigures]:
    """Put the figures of all providers of a model together."""
    sums: dict[str, JobFigures] = defaultdict(JobFigures)
    for model_figures in models:
        sums[model_figures.model] += model_figures.figures
    return dict(sums)


def sum_by_provider(models: Iterable[ModelFigures]) -> dict[str, JobFigures]:
    """Put the figures of all models of a provider together."""
    sums: dict[str, JobFigures] = defaultdict(JobFigures)
    for model_figures in models:
        sums[model_figures.provider] += model_figures.figures
    return sums


@value
class TopupFigures:
    """The payments of a period. One that was refunded counts as a refund, in the period of the payment."""

    topups: int = 0
    #: what was paid, in the smallest unit of the currency
    paid_amount: int = 0
    credits: int = 0
    #: top-ups that were not the first payment of their account
    repeated: int = 0
    refunds: int = 0
    #: what was refunded, in the same unit
    refunded_amount: int = 0

    def __add__(self, other: "TopupFigures") -> "TopupFigures":
        return TopupFigures(
            topups=self.topups + other.topups,
            paid_amount=self.paid_amount + other.paid_amount,
            credits=self.credits + other.credits,
            repeated=self.repeated + other.repeated,
            refunds=self.refunds + other.refunds,
            refunded_amount=self.refunded_amount + other.refunded_amount,
        )

    def __sub__(self, other: "TopupFigures") -> "TopupFigures":
        """Subtract a part, as `JobFigures` does."""
        return TopupFigures(
            topups=max(0, self.topups - other.topups),
            paid_amount=max(0, self.paid_amount - other.paid_amount),
            credits=max(0, self.credits - other.credits),
            repeated=max(0, self.repeated - other.repeated),
            refunds=max(0, self.refunds - other.refunds),
            refunded_amount=max(0, self.refunded_amount - other.refunded_amount),
        )


def percentile(durations: Durations, share: float) -> float | None:
    """Return the seconds that this share of the jobs took at most, interpolated within a bucket; None without jobs."""
    left = sum(durations.values()) * share
    for bucket, jobs in sorted(durations.items()):
        if jobs and left <= jobs:
            low = DURATION_BOUNDS[bucket - 1] if bucket else 0.0
            high = DURATION_BOUNDS[bucket] if bucket < len(DURATION_BOUNDS) else low
            return low + (high - low) * left / jobs
        left -= jobs
    return None


def hour_number(at: datetime) -> int:
    """Return the number of full hours since 1970, by which the figures of an hour are stored."""
    return int(at.timestamp() // HOUR_SECONDS)


def hour_start(hour: int) -> datetime:
    return datetime.fromtimestamp(hour * HOUR_SECONDS, UTC)
