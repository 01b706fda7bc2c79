"""Makes the API and its channel."""

import secrets
from contextlib import AsyncExitStack
from time import time

from genlock.api.app import Api
from genlock.api.job_pages import ListSlots
from genlock.api.job_view import JobView
from genlock.api.job_watch import JobWatch
from genlock.api.parts import ApiParts, ApiRules
from genlock.api.request_limits import RequestLimits
from genlock.api.result_links import ResultLinks
from genlock.api.webhook_sender import WebhookSender
from genlock.app.clock import SystemClock
from genlock.app.telegram import bot_texts
from genlock.app.webhook_secrets import make_webhook_owners, make_webhook_secrets
from genlock.channels.api.channel import ApiChannel
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.public_number import PublicNumbers
from genlock.engine.engine import Engine
from genlock.engine.file_storage import FileStorage
from genlock.engine.sell import SaleRules, Seller
from genlock.media.download import Downloads
from genlock.media.post import Posts
from genlock.media.process import MediaProcess
from genlock.media.transfers import Transfers
from genlock.ports import Database, MediaStore
from genlock.settings import ServiceSettings, Settings
from genlock.web.requests import BodyMemory


def make_api_channel(
    settings: Settings, media: MediaStore, watch: JobWatch, transfers: Transfers, closing: AsyncExitStack
) -> ApiChannel:
    downloads = Downloads(private=settings.media_private_hosts, transfers=transfers)
    closing.push_async_callback(downloads.close)
    return ApiChannel(downloads, media, changed=watch.job_changed)


def make_api(  # noqa: PLR0913 - one argument per part
    *,
    settings: ServiceSettings,
    store: Database,
    engine: Engine,
    catalog: CurrentCatalog,
    storage: FileStorage,
    media: MediaStore,
    watch: JobWatch,
    memory: BodyMemory,
    transfers: Transfers,
    closing: AsyncExitStack,
) -> Api:
    reader = MediaProcess(transfers)  # of its own: files of clients do not wait for results
    closing.push_async_callback(reader.close)
    links = ResultLinks.of_installation(settings.telegram_token.get_secret_value(), time)
    return Api(
        ApiParts(
            store=store,
            engine=engine,
            seller=Seller(engine=engine, store=store, catalog=catalog, rules=make_sale_rules(settings)),
            catalog=catalog,
            media=media,
            reader=reader,
            storage=storage,
            view=_make_view(settings, catalog, links),
            links=links,
            watch=watch,
            limits=RequestLimits(store, settings.api_requests_per_second, engine.ctx.loop.time),
            list_slots=ListSlots(),
            memory=memory,
            rules=_make_rules(settings),
            observer=engine.ctx.observer,
            now=SystemClock().now,
            webhook_secrets=make_webhook_secrets(settings),
            private_hosts=frozenset(settings.media_private_hosts),
            new_id=lambda: secrets.token_hex(8),
        )
    )


def _make_rules(settings: Settings) -> ApiRules:
    return ApiRules(
        markup=settings.markup,
        credit_usd=settings.credit_usd,
        late_cancels_per_day=settings.late_cancels_per_day,
        running_max=settings.api_running_max,
        uploads_per_hour=settings.uploads_per_hour,
        upload_megabytes_per_day=settings.api_upload_mb_per_day,
        keep_media_days=settings.keep_media_days,
        public_url=settings.public_url,
    )


def make_webhook_sender(
    settings: ServiceSettings, store: Database, engine: Engine, catalog: CurrentCatalog, closing: AsyncExitStack
) -> WebhookSender:
    token = settings.telegram_token.get_secret_value()
    posts = Posts(private=settings.media_private_hosts)
    sender = WebhookSender(
        store=store,
        instance=engine.ctx.instance,
        posts=posts,
        view=_make_view(settings, catalog, ResultLinks.of_installation(token, time)),
        secrets=make_webhook_secrets(settings),
        base_url=settings.public_url or f"http://{settings.host}:{settings.port}",
        observer=engine.ctx.observer,
        now=SystemClock().now,
        rng=engine.ctx.rng,
        owners=make_webhook_owners(settings, store, engine),
    )
    closing.push_async_callback(posts.close)
    closing.push_async_callback(sender.close)
    return sender


def _make_view(settings: ServiceSettings, catalog: CurrentCatalog, links: ResultLinks) -> JobView:
    token = settings.telegram_token.get_secret_value()
    return JobView(
        numbers=PublicNumbers.of_bot(token),
        catalog=catalog,
        texts=bot_texts(token).translator("en"),
        links=links,
        keep_days=settings.keep_media_days,
    )


def make_sale_rules(settings: Settings) -> SaleRules:
    """Return the rules for orders of API clients: no free runs, and limits per key instead of per minute and hour."""
    return SaleRules(
        markup=settings.markup,
        credit_usd=settings.credit_usd,
        free_per_day=0,
        running_max=settings.api_running_max,
        per_minute=None,
        per_hour=None,
    )
