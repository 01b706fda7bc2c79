"""The Kie.ai adapter: orders, questions, files and credits over HTTP."""

import base64
import io
import json
from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from genlock.domain.catalog import Model
from genlock.domain.errors import ModelNotFound, ProviderBusy, ProviderError, SubmitRefused, SubmitUnknown
from genlock.domain.job import Job
from genlock.domain.result import Outcome, Report
from genlock.providers.kie import wire as kie_wire
from genlock.providers.kie.answers import Sort, sort_answer
from genlock.providers.kie.families import ROUTES, Route
from genlock.providers.kie.wire import OK, clean, load_json, read_task_id

API_URL = "https://api.kie.ai"
UPLOAD_URL = "https://kieai.redpandaai.co"
ANSWER_BYTES_MAX = 4_000_000
#: before anything was sent: nobody at the other end knows of the order
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
_UNREACHABLE_SECONDS = 5.0
_NOT_GOOD = 300
_UPLOAD_TIMEOUT = aiohttp.ClientTimeout(total=600.0, sock_connect=10.0, sock_read=120.0)
_GENERATION_FAILED = frozenset({501, 531})
_NOT_FOUND = frozenset({404, 422})


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What came back: the code that counts, the words, and the whole envelope where there is one."""

    code: int
    text: str
    said: Mapping[str, Any]


class Kie:
    """The Provider port on Kie.ai. Also uploads files, tells the balance and makes links for downloads."""

    name = "kie"

    def __init__(
        self,
        *,
        key: str,
        find_model: Callable[[str], Model],
        api_url: str = API_URL,
        upload_url: str = UPLOAD_URL,
        timeout_seconds: float = 60.0,
    ) -> None:
        self._headers = {"Authorization": f"Bearer {key}"}
        self._find_model = find_model
        self._api_url = api_url.rstrip("/")
        self._upload_url = upload_url.rstrip("/")
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=min(10.0, timeout_seconds))
        self._orders: aiohttp.ClientSession | None = None
        self._questions: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        for session in (self._orders, self._questions):
            if session is not None:
                await session.close()

    # the Provider port

    async def create(self, job: Job, callback_url: str | None) -> str:
        route, model = self._route(job.model)
        body = route.body(model.id, _read_input(job.input), callback_url)
        try:
            answer = await self._post_order(route.create, body)
        except _NOT_SENT as error:
            raise ProviderBusy(_UNREACHABLE_SECONDS, f"not reached: {type(error).__name__}") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:  # a time-out is an OSError
            raise SubmitUnknown(f"the answer was lost: {type(error).__name__}") from error
        return _read_create(answer)

    async def status(self, task_id: str, job: Job) -> Report:
        route, _ = self._route(job.model)
        answer = await self._ask("GET", f"{self._api_url}{route.query}", params={"taskId": task_id})
        return _read_status(answer, task_id)

    def read_callback(self, body: bytes) -> Report:
        return kie_wire.read_callback(body)

    # beside the port

    async def credits(self) -> int:
        """What is left on the account, in thousandths of its credit."""
        data = _data(await self._ask("GET", f"{self._api_url}/api/v1/chat/credit"))
        if not isinstance(data, int | float):
            raise ProviderError("the balance is not a number")
        return round(data * 1000)

    async def download_url(self, url: str) -> str:
        """A link for twenty minutes to one of Kie's own files."""
        answer = await self._ask("POST", f"{self._api_url}/api/v1/common/download-url", json={"url": url})
        return _address(_data(answer))

    async def upload(self, content: bytes | AsyncIterable[bytes], name: str, folder: str) -> str:
        """Keep a file at Kie's for three days; returns its address."""
        form = aiohttp.FormData()
        form.add_field("file", io.BytesIO(content) if isinstance(content, bytes) else content, filename=name)
        form.add_field("uploadPath", folder)
        form.add_field("fileName", name)
        return await self._uploaded("/api/file-stream-upload", data=form)

    async def upload_base64(self, content: bytes, name: str, folder: str) -> str:
        """The same for a small file, in one JSON."""
        body = {"base64Data": base64.b64encode(content).decode(), "uploadPath": folder, "fileName": name}
        file = io.BytesIO(json.dumps(body).encode())
        return await self._uploaded("/api/file-base64-upload", data=file, headers={"Content-Type": "application/json"})

    async def upload_from(self, url: str, name: str, folder: str) -> str:
        """The same for a file that Kie fetches itself."""
        body = {"fileUrl": url, "uploadPath": folder, "fileName": name}
        return await self._uploaded("/api/file-url-upload", json=body)

    async def _uploaded(self, path: str, **body: Any) -> str:
        answer = await self._ask("POST", f"{self._upload_url}{path}", timeout=_UPLOAD_TIMEOUT, **body)
        data = _data(answer)
        return _address(data.get("downloadUrl") or data.get("fileUrl") if isinstance(data, dict) else None)

    # the wire

    def _route(self, model_id: str) -> tuple[Route, Model]:
        try:
            model = self._find_model(model_id)
            return ROUTES[model.family, model.operation], model
        except (ModelNotFound, KeyError):
            raise SubmitRefused("model_unavailable", f"no way to order {model_id!r}") from None

    async def _post_order(self, path: str, body: dict[str, Any]) -> Answer:
        """On a connection of its own: one kept from before may close under the order, read or unread."""
        if self._orders is None:
            self._orders = self._session(aiohttp.TCPConnector(limit=0, force_close=True))
        url = f"{self._api_url}{path}"
        async with self._orders.post(url, json=body, allow_redirects=False) as response:
            return await _read(response)

    async def _ask(self, method: str, url: str, **more: Any) -> Answer:
        """A call that may be made again. Raises ProviderBusy for what passes."""
        if self._questions is None:
            self._questions = self._session(aiohttp.TCPConnector(limit=100))
        try:
            async with self._questions.request(method, url, allow_redirects=False, **more) as response:
                answer = await _read(response)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ProviderError(f"{method} {url}: {type(error).__name__}") from error
        row = sort_answer(answer.code, answer.text)
        if answer.code != OK and row.sort is Sort.LATER:
            raise ProviderBusy(row.after, answer.text)
        return answer

    def _session(self, connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector, headers=self._headers, timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar()
        )


async def _read(response: aiohttp.ClientResponse) -> Answer:
    """The envelope's code, or the HTTP status where there is no envelope. ValueError if it should have been there."""
    body = await response.content.read(ANSWER_BYTES_MAX)
    while len(body) < ANSWER_BYTES_MAX and (more := await response.content.read(ANSWER_BYTES_MAX - len(body))):
        body += more
    try:
        said = load_json(body)
    except ValueError:
        said = None
    code = said.get("code") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(code, int) or isinstance(code, bool):
        if response.status < _NOT_GOOD:
            raise ValueError("the answer is not an envelope")
        return Answer(code=response.status, text=clean(response.reason or ""), said={})
    text = next((said[key] for key in ("msg", "message") if isinstance(said.get(key), str)), "")
    if code == OK and response.status >= _NOT_GOOD and read_task_id(said) is None:
        code = response.status
    return Answer(code=code, text=clean(text)[:500], said=said)


def _read_input(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise SubmitRefused("bad_input", "the input is not a JSON object")
    return values


def _read_create(answer: Answer) -> str:
    """The task's id; anything else by the table."""
    if answer.code == OK:
        task_id = read_task_id(answer.said)
        if task_id is None:
            raise SubmitUnknown("accepted without a task id")
        return task_id
    row = sort_answer(answer.code, answer.text)
    if row.sort is Sort.LATER:
        raise ProviderBusy(row.after, answer.text)
    if row.sort is Sort.REFUSED:
        raise SubmitRefused(row.name, answer.text)
    raise SubmitUnknown(f"code {answer.code}: {answer.text}")


def _read_status(answer: Answer, task_id: str) -> Report:
    """A record is read like a callback. A record that is not there yet, or no more, says nothing."""
    if answer.code == OK:
        if not isinstance(answer.said.get("data"), dict):
            return Report(outcome=Outcome.RUNNING, task_id=task_id, word="no record")
        return _of(task_id, kie_wire.read_answer(answer.said))
    if answer.code in _GENERATION_FAILED:
        return _of(task_id, kie_wire.read_answer({**answer.said, "taskId": task_id}))
    if answer.code in _NOT_FOUND:
        return Report(outcome=Outcome.RUNNING, task_id=task_id, word=answer.text[:80] or "no record")
    raise ProviderError(f"code {answer.code}: {answer.text}")


def _of(task_id: str, report: Report) -> Report:
    if report.task_id not in (None, task_id):
        raise ProviderError(f"asked for {task_id}, answered for {report.task_id}")
    return report


def _data(answer: Answer) -> Any:
    if answer.code != OK or answer.said.get("success") is False:
        raise ProviderError(f"code {answer.code}: {answer.text}")
    return answer.said.get("data")


def _address(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith(("https://", "http://")):
        raise ProviderError("no address in the answer")
    return value
