"""The fal client: orders in the queue, queries, cancels, checks callbacks and uploads files."""

import json
import re
from collections.abc import AsyncIterable, Collection, Mapping
from math import floor, isfinite
from mimetypes import guess_type
from typing import Any
from urllib.parse import quote

from genlock.domain.errors import ProviderBusy, ProviderError, SubmitRefused, SubmitUnknown
from genlock.domain.model_schema import ModelSchema
from genlock.domain.result import Outcome, Report
from genlock.domain.task import CancelOutcome, Handle, TaskOrder
from genlock.ports.provider import Provider, ProviderHealth
from genlock.providers.fal.errors import BUSY_SECONDS, SERVER_ERROR, error_text, failure_code, refusal
from genlock.providers.fal.public_schemas import fetch_schemas
from genlock.providers.fal.settings import API_URL, REST_URL
from genlock.providers.fal.signature import is_recent, is_signed, read_keys
from genlock.providers.http import UPLOAD_TIMEOUT, HttpAnswer, HttpClient
from genlock.providers.json_values import clean, load_json, load_json_or_none, load_object, read_url, read_url_of
from genlock.providers.key_cache import KeyCache
from genlock.providers.outputs import read_output

#: where schemas are published, and where prices and the account's credit are shown
SITE_URL = "https://fal.ai"
PLATFORM_URL = "https://api.fal.ai"
_NOT_FOUND = 404
_TOO_MANY = 429
_MODEL = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+")
_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_STATUS_IN_TEXT = re.compile(r"status code: (\d{3})")
#: three addresses are stored with the task, in a handle of limited length
_URL_CHARS_MAX = 500
_RUNNING = frozenset({"IN_QUEUE", "IN_PROGRESS"})
#: the header by which fal says that an error is its own, not that of a gateway
ERROR_TYPE = "X-Fal-Error-Type"
_CANCELLED = frozenset({"OK", "CANCELLATION_REQUESTED"})


class Fal(Provider):
    """The Provider port on fal. A task is found again by the addresses that the order was answered with."""

    name = "fal"

    def __init__(
        self,
        *,
        key: str,
        admin_key: str | None = None,
        api_url: str = API_URL,
        rest_url: str = REST_URL,
        timeout_seconds: float = 60.0,
    ) -> None:
        self._http = HttpClient({"Authorization": f"Key {key}"}, timeout_seconds)
        #: without the key: for the addresses of storages and for public documents
        self._public_http = HttpClient({}, timeout_seconds)
        self._admin_http = HttpClient({"Authorization": f"Key {admin_key}"}, timeout_seconds) if admin_key else None
        self._api_url = api_url.rstrip("/")
        # Another queue than fal's own, such as the simulator's, serves these as well.
        own = self._api_url == API_URL
        self._site_url = SITE_URL if own else self._api_url
        self._platform_url = PLATFORM_URL if own else self._api_url
        self._rest_url = rest_url.rstrip("/")
        self._keys = KeyCache(self._fetch_keys)

    async def close(self) -> None:
        for http in (self._http, self._public_http, self._admin_http):
            if http is not None:
                await http.close()

    # the Provider port

    async def create(self, order: TaskOrder) -> Handle:
        url, body = self.create_request(order)
        answer = await self._http.create(url, body)
        content = load_json_or_none(answer.content)
        if not answer.is_ok:
            raise refusal(answer.status, content)
        return self._read_created(order.model, content)

    def create_request(self, order: TaskOrder) -> tuple[str, dict[str, Any]]:
        """Return the URL and the body of the call that creates a task. Raises SubmitRefused."""
        if not _MODEL.fullmatch(order.model):
            raise SubmitRefused("model_unavailable", f"{order.model!r} is not a model of fal")
        query = f"?fal_webhook={quote(order.callback_url, safe='')}" if order.callback_url else ""
        return f"{self._api_url}/{order.model}{query}", order.input()

    def _read_created(self, model: str, body: Any) -> Handle:
        request_id = body.get("request_id") if isinstance(body, dict) else None
        if not isinstance(request_id, str) or not _TASK_ID.fullmatch(request_id):
            raise SubmitUnknown("accepted without a request id")
        base = f"{self._api_url}/{'/'.join(model.split('/')[:2])}/requests/{request_id}"
        usual = {"status": f"{base}/status", "response": base, "cancel": f"{base}/cancel"}
        # The key goes to these addresses, so those of another host are not used.
        urls = {name: self._own_url(body.get(f"{name}_url")) or url for name, url in usual.items()}
        return Handle(task_id=request_id, details=json.dumps(urls, separators=(",", ":")))

    def _own_url(self, value: Any) -> str | None:
        url = read_url_of(self._api_url, value)
        return url if url and len(url) < _URL_CHARS_MAX else None

    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        urls = _urls(handle)
        answer = await self._query("GET", urls["status"])
        if answer.status == _NOT_FOUND:
            return Report(outcome=Outcome.RUNNING, task_id=handle.task_id, word="no record")
        if not answer.is_ok:
            raise ProviderError(f"status {answer.status}: {answer.text(error_text)}")
        body = answer.object()
        word = body.get("status")
        if word == "COMPLETED":
            failed = bool(body.get("error") or body.get("error_type"))
            return await self._result(handle.task_id, urls["response"], failed=failed)
        outcome = Outcome.RUNNING if word in _RUNNING else Outcome.UNKNOWN
        return Report(outcome=outcome, task_id=handle.task_id, word=clean(str(word))[:80])

    async def _result(self, task_id: str, url: str, *, failed: bool) -> Report:
        """Fetch the result. `failed`: fal has said that there is none, so a server error is the end of the task.

        Without that, a server error may come from a gateway, while the result is there and billed.
        """
        answer = await self._query("GET", url)
        try:
            body = load_json(answer.content)
        except ValueError:
            raise ProviderError(f"the result of {task_id} is not JSON (status {answer.status})") from None
        if answer.is_ok:
            return Report(outcome=Outcome.SUCCESS, task_id=task_id, pieces=read_output(body), word="COMPLETED")
        if answer.status == 400 and error_text(body).startswith("Request is still in progress"):  # noqa: PLR2004
            return Report(outcome=Outcome.RUNNING, task_id=task_id, word="IN_PROGRESS")
        if answer.status >= SERVER_ERROR and not failed and ERROR_TYPE not in answer.headers:
            raise ProviderError(f"the result of {task_id} was answered with status {answer.status}: {error_text(body)}")
        return _failure(task_id, answer.status, body)

    def read_callback(self, body: bytes) -> Report:
        content = load_object(body)
        task_id = content.get("request_id")
        if not isinstance(task_id, str) or not _TASK_ID.fullmatch(task_id):
            raise ValueError("the body names no request")
        word, payload = content.get("status"), content.get("payload")
        if word == "OK":
            whole = payload is not None and not content.get("payload_error")
            pieces = read_output(payload) if whole else ()
            return Report(outcome=Outcome.SUCCESS, task_id=task_id, pieces=pieces, incomplete=not whole, word="OK")
        if word == "ERROR":
            found = _STATUS_IN_TEXT.search(str(content.get("error"))[:500])
            return _failure(task_id, int(found[1]) if found else 0, payload or {"detail": content.get("error")})
        return Report(outcome=Outcome.UNKNOWN, task_id=task_id, word=clean(str(word))[:80])

    async def cancel(self, handle: Handle, order: TaskOrder) -> CancelOutcome:
        answer = await self._query("PUT", _urls(handle)["cancel"])
        try:
            word = load_object(answer.content).get("status")
        except ValueError:
            word = None
        if word in _CANCELLED:
            return CancelOutcome.CANCELLED
        return CancelOutcome.TOO_LATE if word in ("ALREADY_COMPLETED", "NOT_FOUND") else CancelOutcome.UNKNOWN

    # callbacks, files, health

    async def verify_callback(self, headers: Mapping[str, str], body: bytes, now: float) -> bool:
        """Tell whether fal signed a callback. Raises ProviderError if its keys cannot be fetched."""
        if not is_recent(headers, now):
            return False
        return await self._keys.is_signed(lambda keys: is_signed(headers, body, keys), now)

    async def _fetch_keys(self) -> list[bytes]:
        answer = await self._public_http.request("GET", f"{self._rest_url}/.well-known/jwks.json")
        keys = read_keys(answer.object()) if answer.is_ok else []
        if not keys:
            raise ProviderError(f"fal's keys cannot be read (status {answer.status})")
        return keys

    async def upload(self, content: AsyncIterable[bytes], name: str, folder: str) -> str:
        """Store a file at fal and return its URL."""
        kind = guess_type(name)[0] or "application/octet-stream"
        url = f"{self._rest_url}/storage/upload/initiate?storage_type=gcs"
        started = await self._query("POST", url, json={"file_name": name, "content_type": kind})
        body = started.object() if started.is_ok else {}
        upload_url, file_url = read_url(body.get("upload_url")), read_url(body.get("file_url"))
        if upload_url is None or file_url is None:
            raise ProviderError(f"the upload was refused (status {started.status}): {started.text(error_text)}")
        stored = await self._public_http.request(
            "PUT", upload_url, data=content, headers={"Content-Type": kind}, timeout=UPLOAD_TIMEOUT
        )
        if not stored.is_ok:
            raise ProviderError(f"the upload failed with status {stored.status}")
        return file_url

    async def health(self) -> ProviderHealth:
        """Ask for a request that does not exist: the answer tells whether the key is accepted."""
        url = f"{self._api_url}/fal-ai/flux/requests/00000000-0000-0000-0000-000000000000/status"
        answer = await self._query("GET", url)
        if answer.status in (401, 403):
            text = "fal does not accept the key. Set GENLOCK_FAL_KEY to a key of fal.ai/dashboard/keys."
            return ProviderHealth(ok=False, text=text)
        if answer.status >= SERVER_ERROR:
            return ProviderHealth(ok=False, text=f"fal answered with status {answer.status}: try again later")
        try:
            await self._fetch_keys()
        except ProviderError as error:
            text = f"{error}, so callbacks cannot be verified and results are polled for: check GENLOCK_FAL_REST_URL"
            return ProviderHealth(ok=False, text=text)
        return ProviderHealth(ok=True, text="fal accepts the key")

    async def credit(self) -> int:
        """Return the credit left, in thousandths of a US dollar. fal shows it to an admin key only."""
        assert self._admin_http is not None
        answer = await self._admin_http.request("GET", f"{self._platform_url}/v1/account/billing?expand=credits")
        if answer.status in (401, 403):
            raise ProviderError(
                "fal does not show the credit to this key. Set GENLOCK_FAL_ADMIN_KEY to a key with the scope ADMIN "
                "from fal.ai/dashboard/keys."
            )
        found = answer.object().get("credits") if answer.is_ok else None
        credits_ = found if isinstance(found, dict) else {}
        balance = credits_.get("current_balance")
        if not isinstance(balance, int | float) or not isfinite(balance) or credits_.get("currency", "USD") != "USD":
            raise ProviderError(f"fal's credit cannot be read (status {answer.status})")
        return floor(balance * 1000)

    async def fetch_schemas(self, ids: Collection[str]) -> dict[str, ModelSchema | None]:
        """Return what fal publishes about each model. Raises ProviderError."""
        return await fetch_schemas(
            site=self._public_http,
            site_url=self._site_url,
            platform=self._http,
            platform_url=self._platform_url,
            ids=ids,
        )

    async def _query(self, method: str, url: str, **options: Any) -> HttpAnswer:
        answer = await self._http.request(method, url, **options)
        if answer.status == _TOO_MANY:
            raise ProviderBusy(BUSY_SECONDS, answer.text(error_text))
        return answer


def _failure(task_id: str, status: int, body: Any) -> Report:
    """Return the report of a request without a result. fal does not bill server errors; it may bill others."""
    return Report(
        outcome=Outcome.FAILURE,
        task_id=task_id,
        error_code=failure_code(status, body),
        error_text=error_text(body),
        cost=0 if status >= SERVER_ERROR else None,
        word=f"status {status}" if status else "ERROR",
    )


def _urls(handle: Handle) -> dict[str, str]:
    """Return the addresses of a task. Raises ProviderError if its handle has none."""
    try:
        urls = load_object(handle.details)
    except ValueError:
        urls = {}
    if not all(isinstance(urls.get(name), str) for name in ("status", "response", "cancel")):
        raise ProviderError("the addresses of this task are not known; its callback can still end it")
    return urls
