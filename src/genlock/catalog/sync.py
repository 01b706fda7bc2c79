"""Compares the catalog with the provider's public lists of models and prices."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import aiohttp

from genlock.domain.catalog import Catalog, Family, Model, Status
from genlock.domain.errors import ProviderError

MODELS_PATH = "/api/v1/playground/model-paths"
PRICES_PATH = "/client/v1/model-pricing/page"
PAGE_SIZE = 100
PAGES_MAX = 50
SECONDS_MAX = 30
OK = 200
GONE = "gone from the provider's list"
#: The lists belong to the provider's web site, which turns away clients that do not look like a browser.
HEADERS = {"User-Agent": "Mozilla/5.0 (compatible; genlock)"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Lists:
    """What the provider says it has: ids of models, and credits by the label of a price."""

    ids: frozenset[str]
    prices: Mapping[str, Decimal]


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceChange:
    model: str
    label: str
    old: Decimal
    new: Decimal


@dataclass(frozen=True, kw_only=True, slots=True)
class Diff:
    new: tuple[str, ...]  #: the provider has them, the catalog does not
    gone: tuple[str, ...]  #: offered, and the provider has them no more
    back: tuple[str, ...]  #: paused by an earlier sync, and the provider has them again
    changed: tuple[PriceChange, ...]
    unlisted: tuple[tuple[str, str], ...]  #: prices of offered models that the provider does not list: (model, label)

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.back or self.changed or self.unlisted)


async def fetch(base_url: str) -> Lists:
    """Read both lists. Raises ProviderError that says which one could not be had, and why."""
    timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
    async with aiohttp.ClientSession(timeout=timeout, headers=HEADERS) as session:
        ids = _ids(await _ask(session, "GET", base_url.rstrip("/") + MODELS_PATH))
        prices: dict[str, Decimal] = {}
        pages = page = 1
        while page <= min(pages, PAGES_MAX):
            body = {"pageNum": page, "pageSize": PAGE_SIZE, "modelDescription": "", "interfaceType": ""}
            data = await _ask(session, "POST", base_url.rstrip("/") + PRICES_PATH, body)
            if not isinstance(data, dict) or not isinstance(data.get("records"), list):
                raise ProviderError(f"{PRICES_PATH}: the provider's price list has no records")
            prices |= _prices(data["records"])
            pages = data["pages"] if isinstance(data.get("pages"), int) else 1
            page += 1
    return Lists(ids=ids, prices=prices)


async def _ask(session: aiohttp.ClientSession, method: str, url: str, body: object = None) -> Any:
    try:
        async with session.request(method, url, json=body) as response:
            answer = await response.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise ProviderError(f"{url}: the provider's list cannot be read: {why}") from error
    if response.status != OK or not isinstance(answer, dict) or answer.get("code") != OK:
        said = answer.get("msg") if isinstance(answer, dict) else None
        raise ProviderError(f"{url}: the provider refused its list: {response.status} {said or ''}".rstrip())
    return answer.get("data")


def _ids(data: object) -> frozenset[str]:
    ids = frozenset(item for item in data if isinstance(item, str)) if isinstance(data, list) else frozenset()
    if not ids:
        raise ProviderError(f"{MODELS_PATH}: the provider's list of models is empty")
    return ids


def _prices(records: Iterable[object]) -> dict[str, Decimal]:
    """Rows that can be read; labels and numbers are typed by hand over there."""
    prices = {}
    for record in records:
        if not isinstance(record, dict) or not isinstance(record.get("modelDescription"), str):
            continue
        try:
            credits_ = Decimal(str(record.get("creditPrice")).strip().replace(",", "."))
        except InvalidOperation:
            continue
        if credits_.is_finite() and credits_ >= 0:
            prices[_label(record["modelDescription"])] = credits_
    return prices


def _label(text: str) -> str:
    """A label without what varies from week to week: case, spaces, the width of brackets."""
    return "".join(unicodedata.normalize("NFKC", text).lower().split())


def diff(catalog: Catalog, lists: Lists) -> Diff:
    known = {name for model in catalog.models.values() for name in (model.id, *model.aliases)}
    offered = catalog.offered()
    return Diff(
        new=tuple(sorted(lists.ids - known)),
        gone=tuple(model.id for model in offered if model.family is Family.MARKET and not _listed(model, lists)),
        back=tuple(
            model.id for model in catalog.models.values() if model.reason.startswith(GONE) and _listed(model, lists)
        ),
        changed=tuple(_changes(catalog.models.values(), lists)),
        unlisted=tuple(
            dict.fromkeys(
                (model.id, label) for model in offered for label, _ in _rows(model) if _label(label) not in lists.prices
            )
        ),
    )


def _listed(model: Model, lists: Lists) -> bool:
    return not lists.ids.isdisjoint((model.id, *model.aliases))


def _rows(model: Model) -> Iterator[tuple[str, Decimal]]:
    for row in (*model.prices, *model.extras):
        if row.label:
            yield row.label, row.credits


def _changes(models: Iterable[Model], lists: Lists) -> Iterator[PriceChange]:
    for model in models:
        for label, credits_ in dict(_rows(model)).items():
            new = lists.prices.get(_label(label), credits_)
            if new != credits_:
                yield PriceChange(model=model.id, label=label, old=credits_, new=new)


def overlay(packaged: Catalog, lists: Lists, today: str) -> dict[str, dict[str, object]]:
    """What an overlay must say so that the packaged catalog agrees with the lists."""
    difference = diff(packaged, lists)
    changes: dict[str, dict[str, object]] = {
        model_id: {"status": Status.PAUSED.value, "reason": f"{GONE} on {today}"} for model_id in difference.gone
    }
    for change in difference.changed:
        credits_ = changes.setdefault(change.model, {}).setdefault("credits", {})
        assert isinstance(credits_, dict)
        credits_[change.label] = change.new
    return changes
