"""Makes the engine, and its rules from the settings and the catalog."""

import secrets
from collections.abc import Callable, Mapping

from genlock.domain import tariff
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.job import Job
from genlock.engine import retention
from genlock.engine.context import EngineContext, EngineRules, Offers, own_offer
from genlock.engine.engine import Engine
from genlock.engine.input_files import InputFiles
from genlock.engine.limits import RateLimiter
from genlock.engine.updates import UpdateWorker
from genlock.ports import Channel, Observer, Provider, RateLimit, Store
from genlock.settings import Settings


def make_engine(  # noqa: PLR0913 - one argument per part
    store: Store,
    observer: Observer,
    *,
    providers: Mapping[str, Provider],
    channels: Mapping[str, Channel],
    rules: EngineRules | None = None,
    public_url: str | None = None,
    instance: str | None = None,
    expected: Callable[[Job], float | None] | None = None,
    paid_for: Callable[[Job], int | None] | None = None,
    make_updates: Callable[[EngineContext], UpdateWorker] | None = None,
    poll_seconds: Mapping[str, float] | None = None,
    offers: Offers = own_offer,
    all_offers: Offers | None = None,
    concurrency: Mapping[str, int] | None = None,
    input_files: InputFiles | None = None,
    bots: frozenset[str] | None = None,
    mask: Callable[[str], str] = str,
) -> Engine:
    """Make an engine over a store, with an instance id that no other start has had."""
    rules = rules or EngineRules()
    ctx = EngineContext(
        store=store,
        providers=providers,
        channels=channels,
        observer=observer,
        instance=instance or secrets.token_hex(8),
        limits=RateLimiter(store, rules.limits),
        rules=rules,
        public_url=public_url,
        expected=expected,
        paid_for=paid_for,
        poll_seconds=poll_seconds or {},
        offers=offers,
        all_offers=all_offers,
        concurrency=concurrency or {},
        input_files=input_files,
        bots=bots,
        mask=mask,
    )
    return Engine(ctx, make_updates(ctx) if make_updates else None)


def make_rules(
    settings: Settings, *, limits: Mapping[str, RateLimit] | None = None, stop_seconds: float = 15.0
) -> EngineRules:
    return EngineRules(
        stop_seconds=stop_seconds,
        is_alone=settings.database_url.startswith("sqlite:"),
        lease_seconds=settings.lease_seconds,
        orphan_expire_seconds=settings.orphan_expire_seconds,
        poll_seconds=settings.poll_seconds,
        grace_seconds=settings.grace_seconds,
        limits=limits or {},
    )


def costs_paid_for(catalog: CurrentCatalog, *, markup: float, credit_usd: float) -> Callable[[Job], int | None]:
    """Return a function for the provider cost that a job's price covers; None for free runs and own prices."""

    def paid_for(job: Job) -> int | None:
        model = catalog.get().models.get(job.model)
        if model is None or model.own_price is not None or not job.price:
            return None
        return tariff.paid_for(job.price, markup, credit_usd, model.provider_credit_usd)

    return paid_for


def expected_seconds(catalog: CurrentCatalog) -> Callable[[Job], float | None]:
    """Return a function for the expected seconds of a job; None if its model is not in the catalog any more."""

    def expected(job: Job) -> float | None:
        model = catalog.get().models.get(job.model)
        return None if model is None else model.expected_seconds

    return expected


def retention_periods(settings: Settings) -> dict[str, float]:
    """Return how long rows are kept, in seconds by table; a table that is missing is kept forever."""
    keep = retention.keep_seconds(
        {
            "ordered_uploads": settings.keep_uploads_days,
            "drafts": settings.keep_drafts_days,
            "audit": settings.keep_audit_days,
            "promo_uses": settings.keep_promo_uses_days,
        }
    )
    return {**keep, "job_events": settings.keep_events_days * retention.DAY}  # 0: those of before are deleted
