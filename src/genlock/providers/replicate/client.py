"""The Replicate client: creates, queries, finds and cancels predictions, checks callbacks and uploads files."""

import re
from collections.abc import AsyncIterable, AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from mimetypes import guess_type
from typing import Any

import aiohttp

from genlock.domain.errors import ProviderError, SubmitRefused, SubmitUnknown
from genlock.domain.model_schema import ModelSchema
from genlock.domain.result import Outcome, Report
from genlock.domain.task import CancelOutcome, Handle, TaskOrder
from genlock.ports.provider import Provider, ProviderHealth
from genlock.providers.http import UPLOAD_TIMEOUT, HttpAnswer, HttpClient
from genlock.providers.json_values import clean, load_json_or_none, load_object, read_url, read_url_of
from genlock.providers.key_cache import KeyCache
from genlock.providers.outputs import read_output
from genlock.providers.replicate.errors import busy, error_text, failure_code, refusal
from genlock.providers.replicate.public_schemas import fetch_schemas
from genlock.providers.replicate.settings import API_URL
from genlock.providers.replicate.signature import is_recent, is_signed, read_secret

_NOT_FOUND = 404
_TOO_MANY = 429
_MODEL = re.compile(r"([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)(:[0-9a-f]{64})?")
_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_RUNNING = frozenset({"starting", "processing"})
#: states without a result, and their error codes where no text says more
_FAILED = {"failed": "provider_failed", "canceled": "provider_failed", "aborted": "provider_timeout"}
#: pages of the list of predictions that are searched for a lost one, each with 100
_PAGES_MAX = 5
#: how far the clocks may be apart
_SKEW = timedelta(seconds=5)


class Replicate(Provider):
    """The Provider port on Replicate, the only one here that lists tasks: a lost answer can be found again."""

    name = "replicate"

    def __init__(self, *, token: str, api_url: str = API_URL, timeout_seconds: float = 60.0) -> None:
        self._http = HttpClient({"Authorization": f"Bearer {token}"}, timeout_seconds)
        self._api_url = api_url.rstrip("/")
        self._secret = KeyCache(self._fetch_secret)

    async def close(self) -> None:
        await self._http.close()

    # the Provider port

    async def create(self, order: TaskOrder) -> Handle:
        url, body = self.create_request(order)
        answer = await self._http.create(url, body)
        content = load_json_or_none(answer.content)
        if not answer.is_ok:
            raise refusal(answer.status, content)
        task_id = _task_id(content)
        if task_id is None:
            raise SubmitUnknown("accepted without an id")
        return Handle(task_id=task_id)

    def create_request(self, order: TaskOrder) -> tuple[str, dict[str, Any]]:
        """Return the URL and the body of the call that creates a prediction. Raises SubmitRefused."""
        found = _MODEL.fullmatch(order.model)
        if found is None:
            raise SubmitRefused("model_unavailable", f"{order.model!r} is not a model of Replicate")
        body: dict[str, Any] = {"input": order.input()}
        if order.callback_url:
            body |= {"webhook": order.callback_url, "webhook_events_filter": ["completed"]}
        if found[2]:
            return f"{self._api_url}/v1/predictions", body | {"version": order.model}
        return f"{self._api_url}/v1/models/{order.model}/predictions", body

    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        answer = await self._query("GET", f"{self._api_url}/v1/predictions/{handle.task_id}")
        if answer.status == _NOT_FOUND:
            return Report(outcome=Outcome.RUNNING, task_id=handle.task_id, word="no record")
        if not answer.is_ok:
            raise ProviderError(f"status {answer.status}: {answer.text(error_text)}")
        report = _read_prediction(answer.object())
        if report.task_id != handle.task_id:
            raise ProviderError(f"queried {handle.task_id}, but the answer is for {report.task_id}")
        return report

    def read_callback(self, body: bytes) -> Report:
        content = load_object(body)
        if _task_id(content) is None:
            raise ValueError("the body names no prediction")
        return _read_prediction(content)

    async def cancel(self, handle: Handle, order: TaskOrder) -> CancelOutcome:
        answer = await self._query("POST", f"{self._api_url}/v1/predictions/{handle.task_id}/cancel")
        if answer.status == _NOT_FOUND:
            return CancelOutcome.TOO_LATE
        if not answer.is_ok:
            return CancelOutcome.UNKNOWN
        word = answer.object().get("status")
        return CancelOutcome.TOO_LATE if word in ("succeeded", "failed", "aborted") else CancelOutcome.CANCELLED

    async def find(self, order: TaskOrder, since: datetime) -> Sequence[Handle]:
        """Search the newest predictions for those with the model and exactly the input of the order."""
        wanted = order.input()
        return [
            Handle(task_id=task_id)
            async for prediction in self._newest(since - _SKEW)
            if (task_id := _task_id(prediction)) and _is_order(prediction, order.model, wanted, since - _SKEW)
        ]

    async def _newest(self, since: datetime) -> AsyncIterator[Any]:
        """Yield the predictions since then, newest first, of a few pages."""
        url, params = f"{self._api_url}/v1/predictions", {"created_after": since.isoformat()}
        for _ in range(_PAGES_MAX):
            answer = await self._query("GET", url, params=params)
            if not answer.is_ok:
                raise ProviderError(f"status {answer.status}: {answer.text(error_text)}")
            page = answer.object()
            results = page.get("results")
            for prediction in results if isinstance(results, list) else []:
                yield prediction
            following = read_url_of(self._api_url, page.get("next"))
            if following is None:
                return
            url, params = following, {}

    # callbacks, files, health

    async def verify_callback(self, headers: Mapping[str, str], body: bytes, now: float) -> bool:
        """Tell whether Replicate signed a callback. Raises ProviderError if its secret cannot be fetched."""
        if not is_recent(headers, now):
            return False
        return await self._secret.is_signed(lambda key: is_signed(headers, body, key), now)

    async def _fetch_secret(self) -> bytes:
        answer = await self._query("GET", f"{self._api_url}/v1/webhooks/default/secret")
        key = read_secret(answer.object().get("key")) if answer.is_ok else None
        if key is None:
            raise ProviderError(f"Replicate's webhook secret cannot be read (status {answer.status})")
        return key

    async def upload(self, content: AsyncIterable[bytes], name: str, folder: str) -> str:
        """Store a file at Replicate, which keeps it for a day, and return its URL."""
        kind = guess_type(name)[0] or "application/octet-stream"
        form = aiohttp.FormData()
        form.add_field("content", content, filename=name, content_type=kind)
        form.add_field("filename", name)
        form.add_field("type", kind)
        answer = await self._query("POST", f"{self._api_url}/v1/files", data=form, timeout=UPLOAD_TIMEOUT)
        urls = answer.object().get("urls") if answer.is_ok else None
        url = read_url(urls.get("get")) if isinstance(urls, dict) else None
        if url is None:
            raise ProviderError(f"the upload was refused (status {answer.status}): {answer.text(error_text)}")
        return url

    async def health(self) -> ProviderHealth:
        answer = await self._query("GET", f"{self._api_url}/v1/account")
        if answer.status in (401, 403):
            text = "Replicate does not accept the token. Set GENLOCK_REPLICATE_TOKEN to one of replicate.com/account."
            return ProviderHealth(ok=False, text=text)
        if not answer.is_ok:
            return ProviderHealth(ok=False, text=f"Replicate answered with status {answer.status}: try again later")
        try:
            await self._fetch_secret()
        except ProviderError as error:
            return ProviderHealth(ok=False, text=f"{error}, so callbacks cannot be verified and results are polled for")
        return ProviderHealth(ok=True, text="Replicate accepts the token")

    async def fetch_schemas(self, ids: Collection[str]) -> dict[str, ModelSchema | None]:
        """Return what Replicate publishes about each model. Raises ProviderError."""
        return await fetch_schemas(self._http, self._api_url, ids)

    async def _query(self, method: str, url: str, **options: Any) -> HttpAnswer:
        answer = await self._http.request(method, url, **options)
        if answer.status == _TOO_MANY:
            raise busy(load_json_or_none(answer.content))
        return answer


def _task_id(body: Any) -> str | None:
    task_id = body.get("id") if isinstance(body, dict) else None
    return task_id if isinstance(task_id, str) and _TASK_ID.fullmatch(task_id) else None


def _read_prediction(body: Mapping[str, Any]) -> Report:
    task_id, word = _task_id(body), str(body.get("status"))
    if word == "succeeded":
        pieces = read_output(body.get("output"))
        return Report(outcome=Outcome.SUCCESS, task_id=task_id, pieces=pieces, word=word)
    if word in _FAILED:
        text = clean(str(body.get("error") or word))[:500]
        # A prediction that never started cost nothing; what Replicate bills for a failed run, it does not tell.
        cost = 0 if body.get("started_at") is None else None
        code = failure_code(text) if word == "failed" else _FAILED[word]
        return Report(outcome=Outcome.FAILURE, task_id=task_id, error_code=code, error_text=text, cost=cost, word=word)
    outcome = Outcome.RUNNING if word in _RUNNING else Outcome.UNKNOWN
    return Report(outcome=outcome, task_id=task_id, word=clean(word)[:80])


def _is_order(prediction: Mapping[str, Any], model: str, values: Mapping[str, Any], since: datetime) -> bool:
    if prediction.get("model") != model.partition(":")[0] or prediction.get("input") != values:
        return False
    try:
        created = datetime.fromisoformat(str(prediction.get("created_at")))
    except ValueError:
        return False
    return created.tzinfo is not None and created >= since
