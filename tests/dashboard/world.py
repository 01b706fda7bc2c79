"""The dashboard on a real server, with a client that posts forms as a browser does."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import aiohttp
from starlette.applications import Starlette

from genlock.app.dashboard import dashboard_routes
from genlock.app.dashboard_pages import make_pages
from genlock.app.dashboard_parts import DashboardParts
from genlock.app.databases import open_store
from genlock.app.engine import make_engine
from genlock.app.logins import make_logins
from genlock.app.media import media_folder
from genlock.app.plugins import find_plugins
from genlock.app.providers import fetch_public_lists, make_bundles
from genlock.catalog.editor import CatalogEditor
from genlock.dashboard.csrf import csrf_token
from genlock.dashboard.installation import Examine
from genlock.dashboard.login import COOKIE
from genlock.dashboard.page import PageRoute
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.operator import Operator, OperatorRole
from genlock.domain.payment import Payment
from genlock.engine.accounts import AccountActions
from genlock.engine.attention import AttentionCounts
from genlock.engine.engine import Engine
from genlock.engine.full_check import FullMoneyCheck
from genlock.engine.logins import Logins
from genlock.engine.operator_tools import OperatorTools
from genlock.engine.reconciliation import ReconciliationRecord, Run
from genlock.engine.refunds import Refunds
from genlock.engine.stats import Stats
from genlock.engine.tell import send_queued, tell
from genlock.i18n.translator import package_texts
from genlock.media.download import Downloads
from genlock.media.stores.folder import FolderMediaStore
from genlock.ports import Clock
from genlock.settings import ServiceSettings
from genlock.stores.database import SqlDatabase
from genlock.web.requests import BodyMemory
from genlock.web.server import serving
from tests.engine.fake_channel import FakeChannel
from tests.engine.fake_provider import FakeProvider
from tests.engine.recorder import Recorder
from tests.engine.world import RULES, die
from tests.http_session import new_session
from tests.packaged import CATALOG
from tests.settings import service_settings

OWNER_ID = 7
TOKEN = "a long and secret token"


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    headers: Mapping[str, str]


class Client:
    """A browser without scripts: keeps cookies, follows no redirects, and adds the CSRF token to forms."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session
        self.cookies: dict[str, str] = {}

    async def get(self, path: str, **headers: str) -> Answer:
        return await self._request("GET", path, headers, None)

    async def post(self, path: str, fields: Mapping[str, Any] | None = None, **headers: str) -> Answer:
        """Post a form of the page, with the token of the session unless the fields have another."""
        secret = self.cookies.get(COOKIE)
        form = {**({"csrf": csrf_token(secret)} if secret else {}), **(fields or {})}
        return await self._request("POST", path, headers, form)

    async def follow(self, path: str, fields: Mapping[str, Any] | None = None) -> Answer:
        """Post a form and return the page that it leads to."""
        answer = await self.post(path, fields)
        assert answer.status == 303, answer.text
        return await self.get(answer.headers["Location"].removeprefix("/dashboard"))

    async def _request(
        self, method: str, path: str, headers: Mapping[str, str], form: Mapping[str, Any] | None
    ) -> Answer:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Accept-Language": "en", **headers, **({"Cookie": cookie} if cookie else {})}
        async with self._session.request(
            method, f"{self._url}/dashboard{path}", headers=headers, data=form, allow_redirects=False
        ) as response:
            for name, morsel in response.cookies.items():
                if morsel.value and morsel["max-age"] != "0":
                    self.cookies[name] = morsel.value
                else:
                    self.cookies.pop(name, None)
            return Answer(response.status, await response.text(errors="replace"), response.headers)


class FakeStars:
    """Telegram's side of payments: which refunds were asked for, and how it answers."""

    name, currency, symbol = "Telegram", "stars", "⭐"

    def __init__(self) -> None:
        self.refunded: list[str] = []
        self.stars = 1234
        self.missed = 0
        #: raised by the next call, once
        self.error: Exception | None = None

    def _answer(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error

    async def refund(self, payment: Payment, external_id: str) -> None:
        self._answer()
        self.refunded.append(payment.charge)

    async def balance(self) -> int:
        self._answer()
        return self.stars

    def tools(self, bot: str, store: Any, engine: Engine) -> OperatorTools:
        texts, send = package_texts(), partial(send_queued, engine.ctx)
        record = ReconciliationRecord(store, bot)

        async def reconcile() -> int:
            self._answer()
            await record.write(Run(read=self.missed, position=self.missed))
            return self.missed

        return OperatorTools(
            accounts=AccountActions(store=store, texts=texts, tell=partial(tell, engine.ctx), send_queued=send),
            refunds=Refunds(bot=bot, store=store, texts=texts, send_queued=send, service=self),
            reconciliation=record,
            reconcile=reconcile,
            payments=self,
            full_check=FullMoneyCheck(store, engine.ctx.observer, engine.ctx.instance),
        )


@dataclass(frozen=True, kw_only=True)
class DashboardWorld:
    url: str
    store: SqlDatabase
    engine: Engine
    channel: FakeChannel
    provider: FakeProvider
    logins: Logins
    recorder: Recorder
    routes: list[PageRoute]
    parts: DashboardParts
    telegram: FakeStars
    _session: aiohttp.ClientSession = field(repr=False)

    def client(self) -> Client:
        """Return a browser that is not logged in."""
        return Client(self.url, self._session)

    async def log_in(self, role: OperatorRole = OperatorRole.OWNER) -> Client:
        """Return the browser of an operator with this role."""
        operator = str(OWNER_ID)
        if role is not OperatorRole.OWNER:
            operator = f"id-of-{role}"
            await self.store.set_operator(Operator(id=operator, role=role, name=f"the {role}"), "test")
        path = await self.logins.make_link(operator)
        assert path is not None
        client = self.client()
        answer = await client.post(path.removeprefix("/dashboard"))
        assert (answer.status, answer.headers["Location"]) == (303, "/dashboard")
        return client


@asynccontextmanager
async def running_dashboard(
    database_url: str,
    *,
    fetch_lists: Any = None,
    examine: Examine | None = None,
    port: int = 0,
    clock: Clock | None = None,
    **settings: Any,
) -> AsyncIterator[DashboardWorld]:
    defaults = {
        "telegram_token": "42:sandbox",
        "kie_api_key": "key",
        "database_url": database_url,
        "kie_api_url": "http://127.0.0.1:9",  # nothing answers there
        "admin_ids": (OWNER_ID,),
        "dashboard_token": TOKEN,
    }
    with service_settings(**defaults | settings) as service:
        async with _running(service, fetch_lists or fetch_public_lists, examine, port, clock) as world:
            yield world


@asynccontextmanager
async def _running(
    service: ServiceSettings, fetch_lists: Any, examine: Examine | None, port: int, clock: Clock | None
) -> AsyncIterator[DashboardWorld]:
    recorder, channel, provider = Recorder(), FakeChannel(), FakeProvider()
    plugins = find_plugins()
    catalog = replace(CATALOG, provider_titles=plugins.titles())
    providers, downloads = make_bundles(plugins, CATALOG), Downloads(private=service.media_private_hosts)
    store: Any = await open_store(service.database_url, observer=recorder, clock=clock)
    engine = make_engine(
        store, recorder, providers={provider.name: provider}, channels={channel.name: channel}, rules=RULES
    )  # fmt: skip
    telegram = FakeStars()
    parts = DashboardParts(
        settings=service,
        store=store,
        engine=engine,
        logins=make_logins(service, store),
        memory=BodyMemory(),
        stats=Stats(engine.ctx, store),
        attention=AttentionCounts(engine.ctx, store),
        editor=CatalogEditor(
            base=catalog,
            current=CurrentCatalog(catalog.sold_through({"kie"})),
            providers={"kie"},
            store=store,
            observer=recorder,
        ),
        fetch_lists=fetch_lists,
        plugins=plugins,
        providers=providers,
        downloads=downloads,
        media=FolderMediaStore(media_folder(service)),
        tools=telegram.tools(service.bot_id, store, engine),
        texts=package_texts(),
        examine=examine,
    )
    web = Starlette(routes=dashboard_routes(parts))
    try:
        async with serving(web, "127.0.0.1", port) as url, new_session() as session:
            yield DashboardWorld(
                url=url, store=store, engine=engine, channel=channel, provider=provider, logins=parts.logins,
                recorder=recorder, routes=make_pages(parts), parts=parts, telegram=telegram, _session=session,
            )  # fmt: skip
    finally:
        await downloads.close()
        for bundle in providers.values():
            await bundle.close()
        await die(engine)
        await store.close()
