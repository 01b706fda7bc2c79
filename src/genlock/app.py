"""The composition root: the only place that knows every part."""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime

from genlock.domain.errors import Refusal
from genlock.engine.engine import Engine
from genlock.engine.kit import Kit, Rules
from genlock.engine.limits import Limits
from genlock.ports import Channel, Clock, Observer, Provider, Store
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


async def open_store(url: str, *, observer: Observer, clock: Clock | None = None) -> Store:
    """The store an address names, with its schema up to date. `clock` is for simulations."""
    if url.startswith("sqlite:///"):
        return await SqliteStore.open(url.removeprefix("sqlite:///"), clock=clock or SystemClock(), observer=observer)
    if url.startswith(("postgresql://", "postgres://")):
        return await PostgresStore.open(url, clock=clock, observer=observer)
    raise Refusal(f"GENLOCK_DATABASE_URL must begin with sqlite:/// or postgresql://, not {url.partition(':')[0]!r}")


def make_engine(
    store: Store,
    observer: Observer,
    *,
    providers: Mapping[str, Provider],
    channels: Mapping[str, Channel],
    rules: Rules | None = None,
    public_url: str | None = None,
) -> Engine:
    """One instance over a store, under an id that no other start has had."""
    rules = rules or Rules()
    return Engine(
        Kit(
            store=store,
            providers=providers,
            channels=channels,
            observer=observer,
            instance=secrets.token_hex(8),
            limits=Limits(store, rules.limits),
            rules=rules,
            public_url=public_url,
        )
    )
