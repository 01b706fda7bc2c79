"""Models, prices and differences as rows for the command line."""

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from genlock.catalog.offer_prices import WhyNotCompared
from genlock.catalog.offer_sync import OfferChange, OfferChangeKind
from genlock.catalog.sync import Diff
from genlock.domain.catalog import Field, Model, price_from
from genlock.domain.field import FieldType
from genlock.domain.offer import Offer
from genlock.domain.tariff import PriceRow, our_price, thousandths

CHOICES_SHOWN = 12
_OFFER_CHANGES = {
    OfferChangeKind.GONE: "it no longer has this model",
    OfferChangeKind.DEPRECATED: "it will take this model down",
    OfferChangeKind.UNPUBLISHED: "it publishes no schema of this model, so the inputs were not compared",
    OfferChangeKind.NEEDED: "it requires the input {input}, which an order may lack",
    OfferChangeKind.REMOVED: "it no longer takes the input {input}",
    OfferChangeKind.CHOICES_REMOVED: "{input} can no longer be {values}",
    OfferChangeKind.CHOICES_ADDED: "{input} can also be {values}",
    OfferChangeKind.ADDED: "it also takes the input {input}, which the catalog does not use",
    OfferChangeKind.PRICE: "credits: {row}",
}
_WHY_NOT_COMPARED = {
    WhyNotCompared.NO_PRICE: "it publishes no price of this model",
    WhyNotCompared.ONE_PRICE: "it publishes only one price of this model",
    WhyNotCompared.OTHER_UNIT: "its price is for another unit",
    WhyNotCompared.UNKNOWN_CONDITIONS: "it does not publish which inputs its price is for",
}


def brief(model: Model, markup: float, credit_usd: float, *, with_status: bool) -> dict[str, Any]:
    known = bool(model.prices) or model.free or model.own_price is not None
    row: dict[str, Any] = {
        "model": model.id,
        "title": model.title,
        "category": model.category.value,
        "from": price_from(model, markup, credit_usd) / 1000 if known else None,
    }
    return row | ({"status": model.status.value, "reason": model.reason} if with_status else {})


def details(model: Model, markup: float, credit_usd: float) -> dict[str, Any]:
    """Return everything about a model, with the prices that users pay."""
    return asdict(model) | {"our_prices": prices(model, markup, credit_usd), "offers": offers(model)}


def inputs(model: Model) -> list[dict[str, Any]]:
    return [
        {
            "input": one.name,
            "type": f"{one.type}s" if one.many and one.type is not FieldType.OBJECTS else one.type.value,
            "needed": "yes" if one.required and one.default is None else "",
            "default": one.default,
            "allowed": _allowed(one),
            "meaning": one.about.get("en", ""),
        }
        for one in model.fields
    ]


def _allowed(one: Field) -> str:
    if one.choices:
        more = " …" if len(one.choices) > CHOICES_SHOWN else ""
        return ", ".join(_label(one, choice) for choice in one.choices[:CHOICES_SHOWN]) + more
    limits = (
        (one.min, "{:g} or more"),
        (one.max, "{:g} or less"),
        (one.max_length, "{} characters"),
        (one.min_count or None, "{} or more of them"),
        (one.max_count, "at most {} of them"),
        (one.max_mb, "{:g} MB"),
        (one.max_seconds, "{:g} seconds"),
    )
    return ", ".join(text.format(value) for value, text in limits if value is not None)


def _label(one: Field, choice: object) -> str:
    return one.labels.get(str(choice), {}).get("en", str(choice))


def prices(model: Model, markup: float, credit_usd: float) -> list[dict[str, Any]]:
    """Return what users pay. The operator's own price replaces the rows made from the provider's credits."""
    if model.own_price is not None:
        return [
            {
                "when": "always",
                "provider_credits": "",
                "our_credits": model.own_price / 1000,
                "per": "run",
                "as_of": "set by the operator",
                "row": "",
            }
        ]
    return [
        {
            "when": row.conditions() or "always",
            "provider_credits": f"{row.credits:f}",
            "our_credits": our_price(thousandths(row.credits), markup, credit_usd, model.provider_credit_usd) / 1000,
            "per": _per(row),
            "as_of": model.price_as_of,
            "row": row.key,
        }
        for row in (*model.prices, *model.extras)
    ]


def offers(model: Model) -> list[dict[str, Any]]:
    """Return who can make the model, the first choice first, and what the smallest order costs there."""
    used, least = model.used_offers(), model.minimal_input()
    return [
        {
            "provider": offer.provider,
            "id": offer.model,
            "used": "yes" if offer in used else "not verified" if not offer.verified else "not listed",
            "cost": _cost(offer, model, least),
            "note": offer.note,
        }
        for offer in (*used, *(one for one in model.offers if one not in used))
    ]


def _cost(offer: Offer, model: Model, values: dict[str, object]) -> str:
    if not offer.prices:
        return ""
    cost = offer.credits(values, model.lengths()) * offer.credit_usd / 1000
    return f"${cost.normalize():f}"


def _per(row: PriceRow) -> str:
    many = f"{row.each} " if row.each > 1 else ""
    match row.measure():
        case "times", name:
            return f"{many}{name}"
        case "count", name:
            return f"file of {name}" + (f" after {row.free}" if row.free else "")
        case "seconds", name:
            return f"{many}second{'s' if many else ''} of {name}"
        case "characters", name:
            return f"{many}characters of {name}"
    return "run"


def differences(found: Diff) -> list[dict[str, Any]]:
    rows = [
        *(("new", model, "not in the catalog") for model in found.new),
        *(("gone", model, "offered, but no longer in the provider's list") for model in found.gone),
        *(("back", model, "paused, but in the provider's list again") for model in found.back),
        *(("price", one.model, f"{one.old:f} → {one.new:f} credits: {one.label}") for one in found.changed),
        *(("unlisted", model, f"the provider's price list has no row: {label}") for model, label in found.unlisted),
        *((one.kind.value, one.model, f"{one.provider}: {_offer_change(one)}") for one in found.offers),
    ]
    return [{"what": what, "model": model, "detail": detail} for what, model, detail in rows]


def not_compared(found: Diff) -> list[dict[str, Any]]:
    """Return the prices that could not be compared, each with the reason."""
    return [
        {
            "not compared": one.model,
            "provider": one.provider,
            "why": _WHY_NOT_COMPARED[one.why],
            "prices": "; ".join(one.rows),
        }
        for one in found.not_compared
    ]


def _offer_change(one: OfferChange) -> str:
    """Return what differs at a provider, in words."""
    text = _OFFER_CHANGES[one.kind].format(input=one.input, values=", ".join(one.values), row=one.row)
    if one.old is not None and one.new is not None:
        text = f"{one.old:f} → {one.new:f} {text}"
    return f"{text}; it may be {one.renamed} now" if one.renamed else text


def plain(value: object) -> object:
    """Return a value for JSON: a decimal as a number, anything else as text."""
    return float(value) if isinstance(value, Decimal) else str(value)
