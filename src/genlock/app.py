"""The composition root: the only place that knows every part."""

import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING

from genlock.domain import tariff
from genlock.domain.catalog import Catalog
from genlock.domain.errors import Refusal, StoreInUse
from genlock.domain.job import Job
from genlock.domain.money import THOUSANDTHS
from genlock.engine.context import EngineContext, EngineRules
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimit, RateLimiter
from genlock.engine.updates import UpdateWorker
from genlock.ports import Channel, Clock, Database, DatabaseCheck, Observer, Provider, Store
from genlock.stores.database import SqlDatabase
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore, must_exist

if TYPE_CHECKING:
    from genlock.bot.router import ChatBot
    from genlock.bot.rules import BotRules
    from genlock.channels.telegram.caller import Caller
    from genlock.media.download import Downloads
    from genlock.providers.kie.client import Kie
    from genlock.settings import Settings
    from genlock.web.callbacks import CallbackEndpoint

#: what Kie.ai allows an account in 10 s, unless it has agreed to more
KIE_CREATES = 20


def kie_limits(creates: int = KIE_CREATES) -> Mapping[str, RateLimit]:
    """What the provider allows in 10 s, as turns; and 10 queries in 1 s, of which a refused one does no harm.

    Turns 0.54 s apart are at most 19 in 10 s, and 20 even if the first was used late; later than that it is given up.
    """
    return {
        "create:kie": RateLimit(interval=10.8 / creates, late=0.4),
        "status:kie": RateLimit(interval=0.108),
    }


#: what an operator gets for a star, and the packages of stars that are offered unless others are set
STAR_USD = 0.013
STARS = (50, 100, 250, 500, 1000, 2500)


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


async def open_store(
    url: str, *, observer: Observer, clock: Clock | None = None, beside: bool = False, existing: bool = False
) -> SqlDatabase:
    """The store an address names, with its schema up to date. `clock` is for simulations.

    With `beside`, an SQLite file that a service has is opened all the same, for an operator's short visit. With
    `existing`, one that is not there is not made. Raises StoreUnavailable.
    """
    if url.startswith("sqlite:///"):
        path, clock = url.removeprefix("sqlite:///"), clock or SystemClock()
        if existing:
            must_exist(path)
        try:
            return await SqliteStore.open(path, clock=clock, observer=observer)
        except StoreInUse:
            if not beside:
                raise
            return await SqliteStore.open(path, clock=clock, observer=observer, beside=True)
    if url.startswith(("postgresql://", "postgres://")):
        return await PostgresStore.open(url, clock=clock, observer=observer)
    raise Refusal(f"GENLOCK_DATABASE_URL must begin with sqlite:/// or postgresql://, not {url.partition(':')[0]!r}")


async def examine_store(url: str, *, observer: Observer) -> DatabaseCheck:
    """The store an address names, as it is. Raises StoreUnavailable."""
    from genlock.stores.check import PostgresCheck, SqliteCheck

    if url.startswith("sqlite:///"):
        path = url.removeprefix("sqlite:///")
        opened = await SqliteStore.open(path, clock=SystemClock(), observer=observer, beside=True)
        return SqliteCheck(opened, path)
    return PostgresCheck(await PostgresStore.open(url, observer=observer, migrate=False))


def make_engine(  # noqa: PLR0913 - the parts of an instance
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
) -> Engine:
    """One instance over a store, under an id that no other start has had."""
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
    )
    return Engine(ctx, make_updates(ctx) if make_updates else None)


def make_kie(settings: "Settings", catalog: Catalog) -> "Kie":
    from genlock.providers.kie.client import Kie

    if settings.kie_api_key is None:
        raise Refusal("GENLOCK_KIE_API_KEY is not set: there is no account at Kie.ai to order from")
    return Kie(
        key=settings.kie_api_key.get_secret_value(),
        find_model=catalog.get,
        api_url=settings.kie_api_url,
        upload_url=settings.kie_upload_url,
    )


def make_channel(settings: "Settings", caller: "Caller", catalog: Catalog, downloads: "Downloads") -> Channel:
    from genlock.bot.order.job_texts import JobTexts
    from genlock.channels.telegram.caller import API_URL
    from genlock.channels.telegram.channel import TelegramChannel

    # A Bot API server of one's own may reach what Telegram's cannot.
    local_bot_api = settings.telegram_api_url != API_URL
    return TelegramChannel(caller, JobTexts(catalog.get), downloads, local_bot_api=local_bot_api)


def make_chat(
    settings: "Settings", *, caller: "Caller", store: Database, engine: Engine, catalog: Catalog, kie: "Kie"
) -> "ChatBot":
    from genlock.bot.router import ChatBot

    rules = make_shop_rules(settings)
    return ChatBot.made_of(caller=caller, store=store, engine=engine, catalog=catalog, rules=rules, upload=kie.upload)


def make_shop_rules(settings: "Settings") -> "BotRules":
    from genlock.bot.rules import BotRules, Package

    packages = settings.star_packages or {stars: round(stars * STAR_USD / settings.credit_usd) for stars in STARS}
    return BotRules(
        markup=settings.markup,
        credit_usd=settings.credit_usd,
        admin_ids=frozenset(settings.admin_ids),
        support=settings.support,
        packages=tuple(Package(stars=stars, credits=credits_) for stars, credits_ in packages.items() if credits_),
        welcome=round(settings.welcome_credits * THOUSANDTHS),
        free_per_day=settings.free_per_day,
        reward_inviter=round(settings.reward_inviter_credits * THOUSANDTHS),
        reward_invited=round(settings.reward_invited_credits * THOUSANDTHS),
        running_max=settings.running_max,
        per_minute=settings.per_minute,
        per_hour=settings.per_hour,
        uploads_per_hour=settings.uploads_per_hour,
        late_cancels_per_day=settings.late_cancels_per_day,
    )


def costs_paid_for(catalog: Catalog, *, markup: float, credit_usd: float) -> Callable[[Job], int | None]:
    """What the prices of jobs were made from; None for a free run and for a price of the operator's own."""

    def paid_for(job: Job) -> int | None:
        model = catalog.models.get(job.model)
        if model is None or model.own_price is not None or not job.price:
            return None
        return tariff.paid_for(job.price, markup, credit_usd)

    return paid_for


def expected_seconds(catalog: Catalog) -> Callable[[Job], float | None]:
    """How long a job will take, by its model; None for one that is not known any more."""

    def expected(job: Job) -> float | None:
        model = catalog.models.get(job.model)
        return None if model is None else model.expected_seconds

    return expected


def make_kie_endpoint(engine: Engine, settings: "Settings") -> "CallbackEndpoint":
    """The door for Kie.ai's callbacks; with a webhook key, only for signed ones."""
    from genlock.providers.kie.signature import is_signed
    from genlock.web.callbacks import CallbackEndpoint

    if settings.kie_webhook_key is None:
        return CallbackEndpoint(engine=engine, provider="kie")
    key = settings.kie_webhook_key.get_secret_value()

    async def verify(headers: Mapping[str, str], body: bytes) -> bool:
        return is_signed(headers, body, key, time())

    return CallbackEndpoint(engine=engine, provider="kie", verify=verify)


def make_rules(settings: "Settings", *, stop_seconds: float = 15.0) -> EngineRules:
    return EngineRules(
        stop_seconds=stop_seconds,
        lease_seconds=settings.lease_seconds,
        orphan_expire_seconds=settings.orphan_expire_seconds,
        poll_seconds=settings.poll_seconds,
        grace_seconds=settings.grace_seconds,
        limits=kie_limits(settings.kie_creates_per_10_seconds),
    )
