"""Reading one Bot API call and answering it.

Arguments may come in the query string, as a form, as JSON or as multipart, as with the real server. Errors have the
real server's shape and wording.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from genlock.sandbox.requests import json_object

ATTACHED = "attach://"
SURROGATE = re.compile("[\ud800-\udfff]")
NOT_UNICODE = "strings must be encoded in UTF-8"
WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)


class ApiError(Exception):
    """An error answer of the Bot API."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


class UnreadableRequest(ApiError):
    """The HTTP server cannot read the request, and answers without a body: the Bot API has not seen it."""

    def __init__(self) -> None:
        super().__init__(400, "Bad Request")


def bad_request(text: str, **parameters: int) -> ApiError:
    return ApiError(400, f"Bad Request: {text}", **parameters)


def forbidden(text: str) -> ApiError:
    return ApiError(403, f"Forbidden: {text}")


@dataclass(frozen=True, kw_only=True)
class Upload:
    name: str
    type: str
    content: bytes


class CallArguments:
    """Arguments of one call. Values may be text; a JSON body also has numbers and objects."""

    def __init__(self, values: Mapping[str, Any], uploads: Mapping[str, Upload] | None = None) -> None:
        self.values = {name: value for name, value in values.items() if value is not None}
        self.uploads = dict(uploads or {})
        #: delay of an edit between its validation and its effect (fault DELAY_INSIDE)
        self.inside_seconds = 0.0

    def has(self, name: str) -> bool:
        return self.values.get(name, "") != "" or name in self.uploads

    def text(self, name: str) -> str:
        value = self.values.get(name, "")
        return value if isinstance(value, str) else json.dumps(value)

    def required(self, name: str) -> str:
        """Return a text. Raises if it is empty."""
        if not self.has(name):
            raise bad_request(f'parameter "{name}" is required')
        return self.text(name)

    def number(self, name: str, default: int = 0) -> int:
        """Return a whole number. Like the real server it reads the digits at the start, and 0 if there are none."""
        text = self.text(name).strip('"')
        if not text:
            return default
        digits = WHOLE.match(text)
        return int(digits[0]) if digits else 0

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in {"true", "yes", "1"}

    def json(self, name: str, what: str) -> Any:
        """Return an object or array, which may be JSON text; None if absent."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        if not value.strip():
            return None
        try:
            found = json.loads(value)
        except ValueError:
            raise bad_request(f"can't parse {what} JSON object") from None
        _check_unicode(found)
        return found

    def object(self, name: str, what: str) -> dict[str, Any]:
        value = self.json(name, what)
        if value is not None and not isinstance(value, dict):
            raise bad_request(f"can't parse {what} JSON object")
        return value or {}

    def objects(self, name: str, what: str) -> list[dict[str, Any]]:
        value = self.json(name, what) or []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise bad_request(f"can't parse {what} JSON object")
        return value

    def media(self, name: str) -> Upload | str:
        """Return an uploaded file (in its own field or by attach://), or a URL or file id."""
        return self.attached(self.text(name)) if name not in self.uploads else self.uploads[name]

    def attached(self, reference: str) -> Upload | str:
        if not reference.startswith(ATTACHED):
            return reference
        name = reference.removeprefix(ATTACHED)
        if name not in self.uploads:
            raise bad_request("wrong file identifier/HTTP URL specified")
        return self.uploads[name]

    def check_unicode(self) -> None:
        """Raise ApiError if a text has half of a surrogate pair, which no encoding allows but JSON can express."""
        for name, value in self.values.items():
            is_parsed = self.text("parse_mode").lower() not in {"", "none"} and name in {"text", "caption"}
            _check_unicode(value, "text must be encoded in UTF-8" if is_parsed else NOT_UNICODE)

    @property
    def uploaded_bytes(self) -> int:
        return sum(len(upload.content) for upload in self.uploads.values())

    def as_json(self) -> dict[str, Any]:
        """Arguments for the journal; files as name and size."""
        files = {name: f"{upload.name}, {len(upload.content)} bytes" for name, upload in self.uploads.items()}
        return {name: _readable(value) for name, value in self.values.items()} | files


def _check_unicode(value: Any, words: str = NOT_UNICODE) -> None:
    if SURROGATE.search(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)):
        raise bad_request(words)


def _readable(value: Any) -> Any:
    if not isinstance(value, str) or value[:1] not in {"{", "["}:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


async def read_call(request: web.Request) -> CallArguments:
    values: dict[str, Any] = dict(request.query)
    if request.method != "POST":
        return CallArguments(values)
    try:
        if request.content_type == "application/json":
            return CallArguments(await _read_json(request) | values)
        form = await request.post()
    except web.HTTPRequestEntityTooLarge:
        raise ApiError(413, "Request Entity Too Large") from None
    except ConnectionResetError:
        raise bad_request("the caller has gone") from None
    except (ValueError, HttpProcessingError):
        raise UnreadableRequest from None
    uploads: dict[str, Upload] = {}
    for name, value in form.items():
        if isinstance(value, web.FileField):
            content = await asyncio.to_thread(value.file.read)
            uploads.setdefault(name, Upload(name=value.filename, type=value.content_type, content=content))
        elif isinstance(value, bytes | bytearray):
            uploads.setdefault(name, Upload(name=name, type="application/octet-stream", content=bytes(value)))
        else:
            values.setdefault(name, value)  # the first value of a name counts, that of the URL before all
    return CallArguments(values, uploads)


async def _read_json(request: web.Request) -> dict[str, Any]:
    if not await request.read():
        return {}
    body = await json_object(request)
    if body is None:
        raise UnreadableRequest
    return {name: "null" if value is None else value for name, value in body.items()}  # the server reads it as a text


def ok_response(result: Any, description: str | None = None) -> web.Response:
    body = {"ok": True, "result": result} | ({"description": description} if description else {})
    return _json(body, 200)


def error_response(refused: ApiError) -> web.Response:
    if isinstance(refused, UnreadableRequest):
        return web.Response(status=refused.code)
    body: dict[str, Any] = {"ok": False, "error_code": refused.code, "description": refused.description}
    if refused.parameters:
        body["parameters"] = refused.parameters
    response = _json(body, refused.code)
    if "retry_after" in refused.parameters:
        response.headers["Retry-After"] = str(refused.parameters["retry_after"])
    return response


def _json(body: Any, status: int) -> web.Response:
    return web.Response(
        body=json.dumps(body, ensure_ascii=False).encode(), status=status, content_type="application/json"
    )
