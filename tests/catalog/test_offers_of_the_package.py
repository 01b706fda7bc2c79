"""The offers of the package, and the models that only another provider than the usual one has."""

import re
from collections.abc import Iterator

from genlock.domain.catalog import Catalog, Model, Status
from genlock.domain.errors import InvalidInput
from genlock.domain.field import Field
from genlock.domain.offer import Offer

#: how each provider writes the id of a model
IDS = {"fal": r"[a-z0-9-]+(/[a-z0-9.-]+)+", "replicate": r"[a-z0-9-]+/[a-z0-9.-]+"}
PAGES = {"fal": "https://fal.ai/", "replicate": "https://replicate.com/"}
#: what users of the bot know by name; each must have a second provider
KNOWN = (
    "flux",
    "seedream",
    "nano-banana",
    "kling",
    "veo3",
    "wan/",
    "hailuo",
    "ideogram",
    "upscale",
    "background",
    "speech",
)


def offers_of(catalog: Catalog) -> Iterator[tuple[Model, Offer]]:
    return ((model, offer) for model in catalog.models.values() for offer in model.more_offers)


def exclusive(catalog: Catalog) -> list[Model]:
    return [model for model in catalog.offered() if model.provider in IDS]


def test_there_are_enough_offers_and_models_of_other_providers(catalog: Catalog) -> None:
    second = {model.id for model, _ in offers_of(catalog) if model.status is Status.OFFERED}
    assert len(second) >= 25
    assert len({model.id for model, offer in offers_of(catalog) if offer.verified}) >= 15
    assert [name for name in KNOWN if not any(name in model_id for model_id in second)] == []
    assert len(exclusive(catalog)) >= 10


def test_models_of_another_provider_are_on_sale_only_with_its_key(catalog: Catalog) -> None:
    ids = {model.id for model in exclusive(catalog)}
    assert not ids & {model.id for model in catalog.sold_through({"kie"}).offered()}
    assert ids <= {model.id for model in catalog.sold_through({"fal"}).offered()}


def test_an_id_has_the_form_of_its_provider_and_a_verified_offer_names_its_document(catalog: Catalog) -> None:
    wrong = []
    every = [*offers_of(catalog), *((model, model.offers[0]) for model in exclusive(catalog))]
    for model, offer in every:
        if not re.fullmatch(IDS[offer.provider], offer.model):
            wrong.append(f"{model.id}: {offer.model} is not an id of {offer.provider}")
        note = offer.note or model.note
        if not note or offer.verified != note.startswith(PAGES[offer.provider] + "models/" + offer.model + "/"):
            wrong.append(f"{model.id}: {offer.provider}: {note!r}")
    assert wrong == []


def test_each_offer_takes_the_least_and_the_most_order_and_has_a_cost_for_them(catalog: Catalog) -> None:
    failures = []
    for model, offer in [*offers_of(catalog), *((model, model.offers[0]) for model in exclusive(catalog))]:
        for values in (model.minimal_input(), model.maximal_input(offer.accepts)):
            try:
                assert model.validate(values) == values, "changes when it is validated again"
                assert offer.accepts(values), "is not taken"
                assert offer.credits(values, model.lengths()) > 0, "costs nothing"
                sent = offer.input(values)
                assert sent.keys() >= offer.fixed.keys()
                assert None not in sent.values(), "has an empty input"
            except (AssertionError, InvalidInput) as error:
                failures.append(f"{model.id}: {offer.provider}: {values}: {error}")
    assert failures == []


def test_each_value_that_an_offer_takes_has_a_cost(catalog: Catalog) -> None:
    """Every choice of every field on top of the smallest order: an order that is accepted can be paid for."""
    failures = []
    for model, offer in offers_of(catalog):
        least = model.minimal_input()
        for field in model.fields:
            for choice in _choices(field):
                try:
                    values = model.validate(least | {field.name: choice})
                except InvalidInput:
                    continue
                if offer.accepts(values) and not any(row.matches(values) for row in offer.prices):
                    failures.append(f"{model.id}: {offer.provider}: {field.name} = {choice} has no cost")
    assert failures == []


def _choices(field: Field) -> tuple[object, ...]:
    return field.choices or ((True, False) if field.type == "boolean" else ())
