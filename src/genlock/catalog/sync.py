"""Compares the catalog with what the providers publish: lists of models and prices, or a schema of each model.

Each model is compared with the lists of its own provider, each offer with the schema of its own provider. What a
provider does not publish is left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from genlock.catalog.offer_prices import compare_prices
from genlock.catalog.offer_sync import (
    OfferChange,
    OfferChangeKind,
    Sent,
    UncomparedPrices,
    offer_changes,
    sent_inputs,
)
from genlock.domain.catalog import Catalog, Model, Status
from genlock.domain.offer import Offer
from genlock.domain.tariff import normalise_label
from genlock.ports import PublicLists

GONE = "gone from the provider's list"
_ORDER = list(OfferChangeKind)


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceChange:
    model: str
    label: str
    old: Decimal
    new: Decimal


@dataclass(frozen=True, kw_only=True, slots=True)
class Diff:
    new: tuple[str, ...]  #: a provider lists them, the catalog does not have them
    gone: tuple[str, ...]  #: offered, but their provider no longer lists them
    back: tuple[str, ...]  #: paused by an earlier sync, and listed again
    changed: tuple[PriceChange, ...]
    unlisted: tuple[tuple[str, str], ...]  #: labels of offered models that the price list does not have: (model, label)
    offers: tuple[OfferChange, ...] = ()  #: what differs from the published schemas, the worst first
    not_compared: tuple[UncomparedPrices, ...] = ()  #: prices that may differ: the providers do not publish them

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.back or self.changed or self.unlisted or self.offers)


def diff(catalog: Catalog, lists: Mapping[str, PublicLists]) -> Diff:
    """Compare the models with the lists, which are given by provider."""
    known = {name for model in catalog.models.values() for name in (model.id, *model.aliases)}
    listed = [(model, lists[model.provider]) for model in catalog.models.values() if model.provider in lists]
    offered = [(model, own) for model, own in listed if model.status is Status.OFFERED]
    used = _used_inputs(catalog)
    offers = [change for model in catalog.offered() for change in _offer_changes(model, lists, used)]
    own_prices = [change for change in offers if _is_own_price(catalog, change)]
    gone_everywhere = [model.id for model in catalog.offered() if _gone_everywhere(model, lists)]
    offers = [change for change in offers if change.model not in gone_everywhere and change not in own_prices]
    return Diff(
        new=tuple(sorted({model_id for own in lists.values() for model_id in own.ids} - known)),
        gone=(
            *(model.id for model, own in offered if model.family in own.families and not _has(own, model)),
            *gone_everywhere,
        ),
        back=tuple(model.id for model, own in listed if model.reason.startswith(GONE) and _has(own, model)),
        changed=(
            *_changes(listed),
            *(
                PriceChange(model=change.model, label=change.row, old=change.old, new=change.new)
                for change in own_prices
                if change.old is not None and change.new is not None
            ),
        ),
        unlisted=tuple(
            dict.fromkeys(
                (model.id, label)
                for model, own in offered
                for label, _ in _labelled(model)
                if normalise_label(label) not in own.prices
            )
        ),
        offers=tuple(sorted(offers, key=lambda change: _ORDER.index(change.kind))),
        not_compared=tuple(skipped for model in catalog.offered() for skipped in _not_compared(model, lists)),
    )


def _used_inputs(catalog: Catalog) -> dict[tuple[str, str], dict[str, tuple[object, ...]]]:
    """Return what the offers send to each model of a provider, by provider and its id of the model."""
    used: dict[tuple[str, str], dict[str, tuple[object, ...]]] = {}
    for model in catalog.models.values():
        for offer in model.offers:
            known = used.setdefault((offer.provider, offer.model), {})
            for name, values in sent_inputs(model, offer).items():
                known[name] = (*known.get(name, ()), *values)
    return used


def _offer_changes(
    model: Model, lists: Mapping[str, PublicLists], used: Mapping[tuple[str, str], Sent]
) -> Iterator[OfferChange]:
    for offer in model.offers:
        schemas = lists[offer.provider].schemas if offer.provider in lists else {}
        if offer.model in schemas and not _left_out(model, offer):
            yield from offer_changes(model, offer, schemas[offer.model], used[offer.provider, offer.model])


def _not_compared(model: Model, lists: Mapping[str, PublicLists]) -> Iterator[UncomparedPrices]:
    for offer in model.offers:
        schemas = lists[offer.provider].schemas if offer.provider in lists else {}
        schema = schemas.get(offer.model)
        if schema is None or _left_out(model, offer):
            continue
        compared = compare_prices(model, offer, schema)
        if compared.not_compared:
            keys = tuple(dict.fromkeys(row.key for row in compared.not_compared))
            yield UncomparedPrices(model=model.id, provider=offer.provider, rows=keys, why=compared.why)


def _left_out(model: Model, offer: Offer) -> bool:
    """Return whether the operator, or an earlier sync, lists the providers and this one is not among them."""
    return isinstance(model.preference, tuple) and bool(model.preference) and offer.provider not in model.preference


def _is_own_price(catalog: Catalog, change: OfferChange) -> bool:
    """Return whether it is the price of the model itself, from which the user's price is made."""
    return change.kind is OfferChangeKind.PRICE and change.provider == catalog.get(change.model).provider


def _is_gone(offer: Offer, lists: Mapping[str, PublicLists]) -> bool:
    schemas = lists[offer.provider].schemas if offer.provider in lists else {}
    return offer.model in schemas and schemas[offer.model] is None


def _gone_everywhere(model: Model, lists: Mapping[str, PublicLists]) -> bool:
    used = model.used_offers()
    return bool(used) and all(_is_gone(offer, lists) for offer in used)


def _has(lists: PublicLists, model: Model) -> bool:
    offer = model.offers[0].model
    return not lists.ids.isdisjoint((model.id, *model.aliases)) or lists.schemas.get(offer) is not None


def _labelled(model: Model) -> Iterator[tuple[str, Decimal]]:
    for row in (*model.prices, *model.extras):
        if row.label:
            yield row.label, row.credits


def _changes(listed: Iterable[tuple[Model, PublicLists]]) -> Iterator[PriceChange]:
    for model, lists in listed:
        for label, credits_ in dict(_labelled(model)).items():
            new = lists.prices.get(normalise_label(label), credits_)
            if new != credits_:
                yield PriceChange(model=model.id, label=label, old=credits_, new=new)


def overlay(packaged: Catalog, lists: Mapping[str, PublicLists], today: str) -> dict[str, dict[str, object]]:
    """Return what an overlay must change so that the packaged catalog agrees with the lists."""
    difference = diff(packaged, lists)
    changes: dict[str, dict[str, object]] = {
        model_id: {"status": Status.PAUSED.value, "reason": f"{GONE} on {today}"} for model_id in difference.gone
    }
    for model in packaged.offered():
        used = model.used_offers()
        left = [offer.provider for offer in used if not _is_gone(offer, lists)]
        if model.id not in changes and len(left) < len(used):
            changes[model.id] = {"offers": left}
    for change in difference.changed:
        credits_ = changes.setdefault(change.model, {}).setdefault("credits", {})
        assert isinstance(credits_, dict)
        credits_[change.label] = change.new
    return changes
