"""The Kie.ai client: creates and queries tasks, uploads files, reads the credit left."""

from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from genlock.domain.errors import ProviderBusy, ProviderError, SubmitRefused, SubmitUnknown
from genlock.domain.result import Outcome, Report
from genlock.domain.task import Handle, TaskOrder
from genlock.ports.provider import Provider
from genlock.providers.http import UPLOAD_TIMEOUT, HttpAnswer, HttpClient
from genlock.providers.json_values import clean, load_json_or_none
from genlock.providers.kie import parser
from genlock.providers.kie.answers import AnswerKind, classify_answer
from genlock.providers.kie.families import ROUTES, Route
from genlock.providers.kie.parser import OK, read_task_id
from genlock.providers.kie.settings import API_URL, UPLOAD_URL

_ERROR_STATUS = 300
_GENERATION_FAILED = frozenset({501, 531})
_NOT_FOUND = frozenset({404, 422})


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer: the code that decides, the text, and the whole body where it is an envelope."""

    code: int
    text: str
    body: Mapping[str, Any]


class Kie(Provider):
    """The Provider port on Kie.ai. Also uploads files and reads the credit left on the account."""

    name = "kie"

    def __init__(
        self,
        *,
        key: str,
        api_url: str = API_URL,
        upload_url: str = UPLOAD_URL,
        timeout_seconds: float = 60.0,
    ) -> None:
        self._http = HttpClient({"Authorization": f"Bearer {key}"}, timeout_seconds)
        self._api_url = api_url.rstrip("/")
        self._upload_url = upload_url.rstrip("/")

    async def close(self) -> None:
        await self._http.close()

    # the Provider port

    async def create(self, order: TaskOrder) -> Handle:
        url, body = self.create_request(order)
        answer = await self._http.create(url, body)
        try:
            return Handle(task_id=_read_create(_read(answer)))
        except ValueError as error:
            raise SubmitUnknown(f"the answer was lost: {error}") from error

    def create_request(self, order: TaskOrder) -> tuple[str, dict[str, Any]]:
        """Return the URL and the body of the call that creates a task. Raises SubmitRefused."""
        route = _route(order)
        return f"{self._api_url}{route.create}", route.body(order.model, order.input(), order.callback_url)

    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        url = f"{self._api_url}{_route(order).query}"
        return _read_status(await self._request("GET", url, params={"taskId": handle.task_id}), handle.task_id)

    def read_callback(self, body: bytes) -> Report:
        return parser.read_callback(body)

    # credit and files

    async def credits(self) -> int:
        """Return the credit left on the account, in thousandths."""
        data = _data(await self._request("GET", f"{self._api_url}/api/v1/chat/credit"))
        if not isinstance(data, int | float):
            raise ProviderError("the balance is not a number")
        return round(data * 1000)

    async def upload(self, content: AsyncIterable[bytes], name: str, folder: str) -> str:
        """Store a file at Kie.ai, which keeps it for three days, and return its URL."""
        form = aiohttp.FormData()
        form.add_field("file", content, filename=name)
        form.add_field("uploadPath", folder)
        form.add_field("fileName", name)
        url = f"{self._upload_url}/api/file-stream-upload"
        data = _data(await self._request("POST", url, timeout=UPLOAD_TIMEOUT, data=form))
        return _url(data.get("downloadUrl") or data.get("fileUrl") if isinstance(data, dict) else None)

    # HTTP

    async def _request(self, method: str, url: str, **options: Any) -> Answer:
        """Make a call that may be repeated. Raises ProviderBusy for a temporary refusal, else ProviderError."""
        content = await self._http.request(method, url, **options)
        try:
            answer = _read(content)
        except ValueError as error:
            raise ProviderError(f"{method} {url}: {error}") from error
        row = classify_answer(answer.code, answer.text)
        if answer.code != OK and row.kind is AnswerKind.LATER:
            raise ProviderBusy(row.after, answer.text)
        return answer


def _route(order: TaskOrder) -> Route:
    try:
        return ROUTES[order.offer.family, order.offer.operation]
    except KeyError:
        raise SubmitRefused("model_unavailable", f"Kie.ai has no endpoint for {order.model!r}") from None


def _read(answer: HttpAnswer) -> Answer:
    """Read the envelope's code, or the HTTP status without one. Raises ValueError for a success without an envelope."""
    body = load_json_or_none(answer.content)
    code = body.get("code") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(code, int) or isinstance(code, bool):
        if answer.status < _ERROR_STATUS:
            raise ValueError("the answer is not an envelope")
        return Answer(code=answer.status, text=clean(answer.reason), body={})
    text = next((body[key] for key in ("msg", "message") if isinstance(body.get(key), str)), "")
    if code == OK and answer.status >= _ERROR_STATUS and read_task_id(body) is None:
        code = answer.status
    return Answer(code=code, text=clean(text)[:500], body=body)


def _read_create(answer: Answer) -> str:
    """Return the task id, or raise as the table of answers says."""
    if answer.code == OK:
        task_id = read_task_id(answer.body)
        if task_id is None:
            raise SubmitUnknown("accepted without a task id")
        return task_id
    row = classify_answer(answer.code, answer.text)
    if row.kind is AnswerKind.LATER:
        raise ProviderBusy(row.after, answer.text)
    if row.kind is AnswerKind.REFUSED:
        raise SubmitRefused(row.error_code, answer.text)
    raise SubmitUnknown(f"code {answer.code}: {answer.text}")


def _read_status(answer: Answer, task_id: str) -> Report:
    """Parse a record like a callback. A missing record, too early or too late, counts as running."""
    if answer.code == OK:
        if not isinstance(answer.body.get("data"), dict):
            return Report(outcome=Outcome.RUNNING, task_id=task_id, word="no record")
        return _check_task(task_id, parser.read_answer(answer.body))
    if answer.code in _GENERATION_FAILED:
        return _check_task(task_id, parser.read_answer({**answer.body, "taskId": task_id}))
    if answer.code in _NOT_FOUND:
        return Report(outcome=Outcome.RUNNING, task_id=task_id, word=answer.text[:80] or "no record")
    raise ProviderError(f"code {answer.code}: {answer.text}")


def _check_task(task_id: str, report: Report) -> Report:
    if report.task_id not in (None, task_id):
        raise ProviderError(f"queried task {task_id}, but the answer is for {report.task_id}")
    return report


def _data(answer: Answer) -> Any:
    if answer.code != OK or answer.body.get("success") is False:
        raise ProviderError(f"code {answer.code}: {answer.text}")
    return answer.body.get("data")


def _url(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith(("https://", "http://")):
        raise ProviderError("the answer has no URL")
    return value
