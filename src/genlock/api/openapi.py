"""The OpenAPI 3.1 document, made from the operations and their types."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from genlock import __version__
from genlock.api.operation import Answered, Operation
from genlock.api.problems import CODES
from genlock.api.types import ProblemDocument

#: the problems that every operation may answer with
COMMON_PROBLEMS = (401, 403, 429, 503)
_PROBLEMS = {
    400: "The request cannot be read, or has no idempotency key.",
    401: "The API key is missing, unknown or revoked.",
    402: "The balance or the key's limit of the day does not cover the price; `price` and `available` say both.",
    403: "The API key may not do this.",
    404: "This account has no such thing, or the model is not on offer.",
    405: "The address does not take this method.",
    408: "The body took too long.",
    409: "The state does not allow it, or the price is above `max_price`.",
    410: "The result was deleted, after the time that the operator keeps it or at the user's wish.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    416: "The range is outside the content.",
    422: "A value is wrong, or the idempotency key was used for another request; `errors` names each.",
    429: "Too many requests; `Retry-After` says when to try again.",
    500: "The model made no result; nothing was charged.",
    503: "Nothing was done; try again after `Retry-After` seconds.",
}
_PARAMETER = re.compile(r"{(\w+)}")
_PATH_PATTERNS = {
    "webhook_id": {"type": "string", "pattern": "^we_[0-9a-f]+$", "maxLength": 60},
    "delivery_id": {"type": "string", "pattern": "^msg_[0-9a-f]+$", "maxLength": 60},
    "job_id": {"type": "string", "pattern": "^job_[0-9A-Za-z]+$", "maxLength": 30},
    "video_id": {"type": "string", "pattern": "^job_[0-9A-Za-z]+$", "maxLength": 30},
    "index": {"type": "integer", "minimum": 0, "maximum": 99},
    "model_id": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^\\x00-\\x20]+$"},
}
_INFO = """Orders are made under an idempotency key of yours, so repeating a request is always safe. The price is held
when an order is accepted and charged only when the result is there. Errors are problem documents (RFC 9457)
with a `code`. Times are UTC; amounts are credits."""


def make_document(operations: Sequence[Operation]) -> dict[str, Any]:
    schemas, components = _schemas(operations)
    components[ProblemDocument.__name__]["properties"]["code"]["enum"] = sorted(CODES)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "genlock", "version": __version__, "description": _INFO},
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "your API key, `glk_…`"}},
            "schemas": components,
        },
    }


_Schemas = dict[tuple[type[BaseModel], str], dict[str, Any]]


def _schemas(operations: Iterable[Operation]) -> tuple[_Schemas, dict[str, Any]]:
    wanted: dict[tuple[type[BaseModel], str], None] = {(ProblemDocument, "serialization"): None}
    for operation in operations:
        wanted[operation.refusal, "serialization"] = None
        for kind in (operation.body, operation.query, *operation.raw_bodies.values()):
            if isinstance(kind, type):
                wanted[kind, "validation"] = None
        for answer in operation.answers.values():
            if answer.kind is not None:
                wanted[answer.kind, "serialization"] = None
    found, definitions = models_json_schema(
        list(wanted),  # type: ignore[arg-type]  # the modes are literals
        ref_template="#/components/schemas/{model}",
    )
    return dict(found), definitions.get("$defs", {})  # type: ignore[arg-type]


def _operation(operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": f"{operation.description}\n\nThe key needs the scope `{operation.scope}`.".strip(),
        "parameters": [*_path_parameters(operation), *_query_parameters(operation), *_header_parameters(operation)],
        "responses": _responses(operation, schemas),
    }
    if operation.body is not None:
        schema = schemas[operation.body, "validation"]
        content["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if operation.raw_bodies:
        bodies = {
            media_type: {"schema": schemas[kind, "validation"] if isinstance(kind, type) else dict(kind)}
            for media_type, kind in operation.raw_bodies.items()
        }
        content["requestBody"] = {"required": True, "content": bodies}
    return content


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _PATH_PATTERNS[name]}
        for name in _PARAMETER.findall(operation.path)
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    found = []
    for name, schema in operation.query.model_json_schema()["properties"].items():
        plain = {key: value for key, value in schema.items() if key not in ("title", "description")}
        plain = _without_null(plain)
        parameter = {"name": name, "in": "query", "required": False, "schema": plain}
        found.append(parameter | ({"description": schema["description"]} if "description" in schema else {}))
    return found


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter that may be absent cannot be null: it is simply not sent."""
    choices = [variant for variant in schema.get("anyOf", []) if variant != {"type": "null"}]
    return choices[0] if len(choices) == 1 else schema


def _header_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": header.name,
            "in": "header",
            "required": header.required,
            "description": header.description,
            "schema": dict(header.schema),
        }
        for header in operation.headers
    ]


def _responses(operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    found = {str(status): _answer(answer, schemas) for status, answer in operation.answers.items()}
    problem = {operation.refusal_media_type: {"schema": schemas[operation.refusal, "serialization"]}}
    for status in sorted({*COMMON_PROBLEMS, *operation.problems}):
        found[str(status)] = {"description": _PROBLEMS[status], "content": problem}
    return found


def _answer(answer: Answered, schemas: _Schemas) -> dict[str, Any]:
    if answer.kind is not None:
        schema = schemas[answer.kind, "serialization"]
        return {"description": answer.description, "content": {answer.media_type: {"schema": schema}}}
    if not answer.media_type:
        return {"description": answer.description}
    return {"description": answer.description, "content": {answer.media_type: {}}}
