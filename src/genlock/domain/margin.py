"""Revenue, cost and margin in US dollars."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from genlock.domain.figures import ModelFigures
from genlock.domain.money import THOUSANDTHS


@dataclass(frozen=True, kw_only=True)
class Money:
    """Revenue and cost in US dollars."""

    revenue: Decimal = Decimal(0)
    cost: Decimal = Decimal(0)

    @property
    def margin(self) -> Decimal:
        return self.revenue - self.cost

    @property
    def margin_share(self) -> Decimal | None:
        """The margin as a share of the revenue; None without revenue."""
        return self.margin / self.revenue if self.revenue else None

    def __add__(self, other: "Money") -> "Money":
        return Money(revenue=self.revenue + other.revenue, cost=self.cost + other.cost)


class Rates:
    """Converts our credits and those of the providers to US dollars."""

    def __init__(self, credit_usd: float, provider_credit_usd: Mapping[str, Decimal]) -> None:
        self._credit = Decimal(str(credit_usd)) / THOUSANDTHS
        self._providers = {name: rate / THOUSANDTHS for name, rate in provider_credit_usd.items()}

    def revenue(self, thousandths: int) -> Decimal:
        return thousandths * self._credit

    def cost(self, provider: str, thousandths: int) -> Decimal:
        return thousandths * self._providers.get(provider, Decimal(0))

    def money(self, models: Iterable[ModelFigures]) -> Money:
        revenue, costs = 0, Counter[str]()
        for model_figures in models:
            revenue += model_figures.figures.revenue
            costs[model_figures.provider] += model_figures.figures.cost
        cost = sum((self.cost(provider, amount) for provider, amount in costs.items()), Decimal(0))
        return Money(revenue=self.revenue(revenue), cost=cost)

    def of(self, model_figures: ModelFigures) -> Money:
        return Money(
            revenue=self.revenue(model_figures.figures.revenue),
            cost=self.cost(model_figures.provider, model_figures.figures.cost),
        )
