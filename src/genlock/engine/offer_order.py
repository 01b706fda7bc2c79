"""The order in which a model's offers are tried: the operator's, the cheapest first, or the quickest first."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import inf

from genlock.domain.catalog import Model
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import InvalidInput
from genlock.domain.figures import hour_number, percentile
from genlock.domain.job import Job, NewJob
from genlock.domain.offer import Offer, Preference
from genlock.engine.context import own_offer
from genlock.ports import Database

PERIOD_SECONDS = 600.0
MEASURED_DAYS = 7


@dataclass
class OfferOrder:
    """Looks up the offers of orders in the catalog. The medians are those of the last days, read now and then."""

    catalog: CurrentCatalog
    #: seconds from the order to the result, by provider and model
    medians: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def __call__(self, order: Job | NewJob) -> Sequence[Offer]:
        """Return the offers that the order may use, the preferred one first."""
        model = self.catalog.get().models.get(order.model)
        if model is None:
            return own_offer(order)
        used = model.used_offers()
        if len(used) > 1 and model.preference is Preference.CHEAPEST:
            return sorted(used, key=lambda offer: _usd(model, offer, order.input))
        if len(used) > 1 and model.preference is Preference.QUICKEST:
            return sorted(used, key=lambda offer: self.medians.get((offer.provider, model.id), inf))
        return used

    def all(self, order: Job | NewJob) -> Sequence[Offer]:
        """Return every offer of the order's model, also those that new orders do not use."""
        model = self.catalog.get().models.get(order.model)
        return own_offer(order) if model is None else model.offers

    async def read_medians(self, store: Database) -> None:
        """Read how long each provider took for each model, from the figures that the leader keeps."""
        until = hour_number(await store.read_clock()) + 1
        durations = await store.model_durations(until - 24 * MEASURED_DAYS, until)
        found = {key: percentile(buckets, 0.5) for key, buckets in durations.items()}
        self.medians = {key: seconds for key, seconds in found.items() if seconds is not None}


def _usd(model: Model, offer: Offer, text: str) -> Decimal:
    """Return what an order costs there, in US dollars; an unknown cost counts as the highest."""
    try:
        values = json.loads(text)
        cost = offer.credits(values if isinstance(values, dict) else {}, model.lengths())
    except (InvalidInput, ValueError):
        return Decimal("Infinity")
    return cost * offer.credit_usd
