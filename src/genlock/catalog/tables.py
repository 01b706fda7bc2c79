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
            "input": field.name,
            "type": f"{field.type}s" if field.many and field.type is not FieldType.OBJECTS else field.type.value,
            "needed": "yes" if field.required and field.default is None else "",
            "default": field.default,
            "allowed": _allowed(field),
            "meaning": field.about.get("en", ""),
        }
        for field in model.fields
    ]


def _allowed(field: Field) -> str:
    if field.choices:
        more = " …" if len(field.choices) > CHOICES_SHOWN else ""
        return ", ".join(_label(field, choice) for choice in field.choices[:CHOICES_SHOWN]) + more
    limits = (
        (field.min, "{:.15g} or more"),
        (field.max, "{:.15g} or less"),
        (field.max_length, "{} characters"),
        (field.min_count or None, "{} or more of them"),
        (field.max_count, "at most {} of them"),
        (field.max_mb, "{:g} MB"),
        (field.max_seconds, "{:g} seconds"),
    )
    return ", ".join(text.format(value) for value, text in limits if value is not None)


def _label(field: Field, choice: object) -> str:
    return field.labels.get(str(choice), {}).get("en", str(choice))


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
        for offer in (*used, *(offer for offer in model.offers if offer not in used))
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


def differences(diff: Diff) -> list[dict[str, Any]]:
    rows = [
        *(("new", model, "not in the catalog") for model in diff.new),
        *(("gone", model, "offered, but no longer in the provider's list") for model in diff.gone),
        *(("back", model, "paused, but in the provider's list again") for model in diff.back),
        *(
            ("price", change.model, f"{change.old:f} → {change.new:f} credits: {change.label}")
            for change in diff.changed
        ),
        *(("unlisted", model, f"the provider's price list has no row: {label}") for model, label in diff.unlisted),
        *((change.kind.value, change.model, f"{change.provider}: {_offer_change(change)}") for change in diff.offers),
    ]
    return [{"what": what, "model": model, "detail": detail} for what, model, detail in rows]


def not_compared(diff: Diff) -> list[dict[str, Any]]:
    """Return the prices that could not be compared, each with the reason."""
    return [
        {
            "not compared": skipped.model,
            "provider": skipped.provider,
            "why": _WHY_NOT_COMPARED[skipped.why],
            "prices": "; ".join(skipped.rows),
        }
        for skipped in diff.not_compared
    ]


def _offer_change(change: OfferChange) -> str:
    """Return what differs at a provider, in words."""
    text = _OFFER_CHANGES[change.kind].format(input=change.input, values=", ".join(change.values), row=change.row)
    if change.old is not None and change.new is not None:
        text = f"{change.old:f} → {change.new:f} {text}"
    return f"{text}; it may be {change.renamed} now" if change.renamed else text


def plain(value: object) -> object:
    """Return a value for JSON: a decimal as a number, anything else as text."""
    return float(value) if isinstance(value, Decimal) else str(value)
