"""The API on a real server: a real store and media folder, the engine, and the provider's simulator over HTTP."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from genlock.api.app import PREFIX, Api
from genlock.api.job_view import JobView
from genlock.api.job_watch import JobWatch
from genlock.api.problems import CODES
from genlock.api.webhook_sender import WebhookSender
from genlock.app.api import make_api, make_api_channel, make_webhook_sender
from genlock.app.databases import open_store
from genlock.app.engine import expected_seconds, make_engine
from genlock.app.media import make_media_store
from genlock.app.plugins import find_plugins
from genlock.app.providers import file_storage, make_bundles
from genlock.domain.api_key import ALL_SCOPES, ApiKey, ApiScope
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.job import State
from genlock.domain.money import EntryKind
from genlock.engine.api_keys import create_api_key, ensure_api_account
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.media.transfers import Transfers
from genlock.ports import Channel, Clock, Database, MediaStore, ProviderBundle
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.simulator import KieSimulator
from genlock.settings import ServiceSettings
from genlock.web.requests import BodyMemory
from genlock.web.routes import make_web, with_applications
from genlock.web.server import serving
from tests.changes import poll_until
from tests.engine.recorder import Recorder
from tests.http_session import new_session
from tests.packaged import CATALOG
from tests.settings import service_settings
from tests.unlimited_kie import unlimited_kie

QUICK = EngineRules(claim_seconds=0.05, sweep_seconds=0.1, poll_seconds=0.05, grace_seconds=1.0, is_alone=True)
MODEL = "z-image"
PROMPT = {"prompt": "a cat in a space suit", "aspect_ratio": "1:1"}
CREDITS = 1000
_numbers = count(1)


@dataclass(frozen=True)
class Answer:
    status: int
    content: bytes
    json: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        """The reason of a refused request, as a problem document or in OpenAI's shape."""
        return str(self.json["error"]["code"] if "error" in self.json else self.json["code"])


@dataclass(kw_only=True)
class Client:
    """An API client with its key."""

    url: str
    session: aiohttp.ClientSession = field(repr=False)
    secret: str = field(repr=False)
    key: ApiKey

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.request("GET", path, headers=headers)

    async def post(self, path: str, json: Any = None, **headers: str) -> Answer:
        return await self.request("POST", path, headers=headers, json=json)

    async def order(self, key: str | None = None, *, wait: int = 0, **changes: Any) -> Answer:
        """Order a picture; `wait` seconds for its end."""
        headers = {"Idempotency-Key": key or f"key-{next(_numbers)}", **({"Prefer": f"wait={wait}"} if wait else {})}
        return await self.request(
            "POST", "/v1/jobs", headers=headers, json={"model": MODEL, "input": PROMPT, **changes}
        )

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **arguments: Any
    ) -> Answer:
        url = path if path.startswith("http") else f"{self.url}{path}"
        named = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        given = {"Authorization": f"Bearer {self.secret}", **named}
        given = {name: value for name, value in given.items() if value}
        async with self.session.request(method, url, headers=given, allow_redirects=False, **arguments) as response:
            content = await response.read()
            body: Any = await response.json(content_type=None) if "json" in response.content_type and content else None
            if "problem" in response.content_type and content:
                assert body is not None
                assert body["code"] in CODES, body
            return Answer(response.status, content, body, response.headers)


@dataclass(kw_only=True, repr=False)
class ApiWorld:
    url: str
    api: Api
    store: Database
    engine: Engine
    media: MediaStore
    media_folder: Path
    kie: KieSimulator
    recorder: Recorder
    session: aiohttp.ClientSession
    webhooks: WebhookSender
    watch: JobWatch
    #: whether the instance accepts traffic; false while it stops
    is_open: list[bool]
    view: JobView

    async def client(
        self,
        *,
        credits_: int = CREDITS,
        scopes: frozenset[ApiScope] = ALL_SCOPES,
        spend_limit: int | None = None,
        account_id: int | None = None,
    ) -> Client:
        """A client of a new account, or of a given one."""
        number = next(_numbers)
        account = account_id or await ensure_api_account(self.store, f"client-{number}")
        if credits_:
            await self.store.transfer(account, EntryKind.GRANT, credits_ * 1000, f"test:{number}")
        key, secret = await create_api_key(
            self.store,
            account,
            name=f"client {number}",
            scopes=scopes,
            spend_limit=spend_limit,
            request_key=f"request-{number}",
            author="test",
            random_bytes=os.urandom,
        )
        assert secret is not None
        return Client(url=self.url, session=self.session, secret=secret, key=key)

    async def fault_of_next_order(self, fault: Fault) -> None:
        """Let the next order meet a fault of the provider, when every earlier one has been submitted without it."""
        await poll_until(self._has_submitted_all)
        self.kie.faults.order(fault)

    async def _has_submitted_all(self) -> bool:
        return not {State.QUEUED, State.SUBMITTING} & (await self.store.counts()).keys()

    def job_id(self, public_id: str) -> int:
        found = self.view.job_id(public_id)
        assert found is not None
        return found

    async def available(self, client: Client) -> int:
        return (await self.store.wallet(client.key.account_id)).available


@asynccontextmanager
async def running_api(
    database_url: str,
    folder: Path,
    *,
    channel: Channel | None = None,
    kie: KieSimulator | None = None,
    speed: float = 600.0,
    clock: Clock | None = None,
    private_hosts: tuple[str, ...] = (),
    **settings: Any,
) -> AsyncIterator[ApiWorld]:
    async with AsyncExitStack() as closing:
        if kie is None:
            kie = await closing.enter_async_context(unlimited_kie(speed))
        service = closing.enter_context(_make_settings(kie, database_url, folder, private_hosts, settings))
        recorder = Recorder()
        store: Any = await open_store(database_url, observer=recorder, clock=clock)
        closing.push_async_callback(store.close)
        plugins = find_plugins()
        bundles = make_bundles(plugins, CATALOG)
        for bundle in bundles.values():
            closing.push_async_callback(bundle.close)
        is_open = [True]
        watch = JobWatch(store, recorder, lambda: is_open[0])
        media = make_media_store(service, closing)
        api_channel = channel or make_api_channel(service, media, watch, Transfers(), closing)
        current = CurrentCatalog(CATALOG.sold_through(bundles))
        engine = _make_engine(store, recorder, bundles, api_channel, current)
        api = make_api(
            settings=service, store=store, engine=engine, catalog=current, storage=file_storage(bundles, plugins),
            media=media, watch=watch, memory=BodyMemory(), transfers=Transfers(), closing=closing,
        )  # fmt: skip
        webhooks = make_webhook_sender(service, store, engine, current, closing)
        url = await closing.enter_async_context(serving(with_applications(make_web([]), {PREFIX: api}), "127.0.0.1", 0))
        session = await closing.enter_async_context(new_session())
        await engine.start()
        try:
            yield ApiWorld(
                url=url, api=api, store=store, engine=engine, media=media, media_folder=folder, kie=kie,
                recorder=recorder, session=session, webhooks=webhooks, watch=watch, is_open=is_open,
                view=webhooks.view,
            )  # fmt: skip
        finally:
            is_open[0] = False
            await engine.stop()
            await watch.close()
            await asyncio.sleep(0)


def _make_engine(
    store: Any, recorder: Recorder, bundles: Mapping[str, ProviderBundle], channel: Channel, current: CurrentCatalog
) -> Engine:
    return make_engine(
        store,
        recorder,
        providers={name: bundle.provider for name, bundle in bundles.items()},
        channels={channel.name: channel},
        rules=replace(QUICK, limits={}),
        expected=expected_seconds(current),
    )


def _make_settings(
    kie: KieSimulator, database_url: str, folder: Path, private_hosts: tuple[str, ...], more: dict[str, Any]
) -> AbstractContextManager[ServiceSettings]:
    return service_settings(
        **{
            "telegram_token": "42:sandbox",
            "kie_api_key": kie.key,
            "kie_api_url": kie.url,
            "kie_upload_url": kie.url,
            "database_url": database_url,
            "media_url": f"file://{folder}",
            "media_private_hosts": (*_hosts(kie.files_url, kie.url), *private_hosts),
            **more,
        }
    )


def _hosts(*urls: str) -> tuple[str, ...]:
    return tuple(url.removeprefix("http://") for url in urls)
