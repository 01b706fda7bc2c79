"""Compares the catalog with the providers' public lists of models and prices.

Each model is compared with the lists of its own provider. The models of a provider without lists are left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from genlock.domain.catalog import Catalog, Model, Status
from genlock.domain.tariff import normalise_label
from genlock.ports import PublicLists

GONE = "gone from the provider's list"


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

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.back or self.changed or self.unlisted)


def diff(catalog: Catalog, lists: Mapping[str, PublicLists]) -> Diff:
    """Compare the models with the lists, which are given by provider."""
    known = {name for model in catalog.models.values() for name in (model.id, *model.aliases)}
    listed = [(model, lists[model.provider]) for model in catalog.models.values() if model.provider in lists]
    offered = [(model, own) for model, own in listed if model.status is Status.OFFERED]
    return Diff(
        new=tuple(sorted({model_id for own in lists.values() for model_id in own.ids} - known)),
        gone=tuple(model.id for model, own in offered if model.family in own.families and not _has(own, model)),
        back=tuple(model.id for model, own in listed if model.reason.startswith(GONE) and _has(own, model)),
        changed=tuple(_changes(listed)),
        unlisted=tuple(
            dict.fromkeys(
                (model.id, label)
                for model, own in offered
                for label, _ in _labelled(model)
                if normalise_label(label) not in own.prices
            )
        ),
    )


def _has(lists: PublicLists, model: Model) -> bool:
    return not lists.ids.isdisjoint((model.id, *model.aliases))


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
    for change in difference.changed:
        credits_ = changes.setdefault(change.model, {}).setdefault("credits", {})
        assert isinstance(credits_, dict)
        credits_[change.label] = change.new
    return changes
