"""What the operations of the API work with."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from genlock.api.job_pages import ListSlots
from genlock.api.job_view import JobView
from genlock.api.job_watch import JobWatch
from genlock.api.request_limits import RequestLimits
from genlock.api.result_links import ResultLinks
from genlock.api.webhook_secrets import WebhookSecrets
from genlock.domain.current_catalog import CurrentCatalog
from genlock.engine.engine import Engine
from genlock.engine.file_storage import FileStorage
from genlock.engine.sell import Seller
from genlock.ports import Database, MediaStore, Observer
from genlock.ports.media_reader import MediaReader
from genlock.web.requests import BodyMemory


@dataclass(frozen=True, kw_only=True)
class ApiRules:
    markup: float
    credit_usd: float
    late_cancels_per_day: int
    running_max: int
    uploads_per_hour: int
    upload_megabytes_per_day: int
    keep_media_days: int
    #: our address as clients see it; None: as their requests name it
    public_url: str | None


@dataclass(frozen=True, kw_only=True)
class ApiParts:
    store: Database
    engine: Engine
    seller: Seller
    catalog: CurrentCatalog
    media: MediaStore
    #: measures files of clients
    reader: MediaReader
    #: stores a client's file where the providers can read it
    storage: FileStorage
    view: JobView
    links: ResultLinks
    watch: JobWatch
    limits: RequestLimits
    list_slots: ListSlots
    memory: BodyMemory
    rules: ApiRules
    observer: Observer
    now: Callable[[], datetime]
    webhook_secrets: WebhookSecrets
    #: `host:port` pairs that may be called although they are private
    private_hosts: frozenset[str]
    #: returns a random id, for endpoints of webhooks and their events
    new_id: Callable[[], str]
