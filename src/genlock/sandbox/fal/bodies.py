"""The JSON bodies of fal: answers to an order, states, results by kind of output, errors by type, and callbacks."""

from typing import Any

from genlock.domain.catalog import Output
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.generation import Generation
from genlock.sandbox.generations.server import ApiError

TYPES = {Output.IMAGE: "image/png", Output.VIDEO: "video/mp4", Output.AUDIO: "audio/mpeg"}
#: the key of a result with several files, and of a result with one
KEYS = {Output.IMAGE: ("images", "image"), Output.VIDEO: ("videos", "video"), Output.AUDIO: ("audios", "audio")}
CHARACTERS_PER_TOKEN = 4
RUNNER_LOST = {"detail": "Runner disconnected", "error_type": "runner_disconnected"}


def output_of(generation: Generation) -> dict[str, Any]:
    """The model's output."""
    model, results = generation.model, generation.reported_results
    if model.writes:
        return {"output": results[0], "reasoning": "", "usage": _usage(generation)} if results else {}
    if model.output is Output.TEXT:
        return {"text": results[0]} if results else {}
    files = [{"url": url, "content_type": TYPES[model.output], "file_name": url.rpartition("/")[2]} for url in results]
    many, single = KEYS[model.output]
    if model.single or model.output is not Output.IMAGE:
        return {single: files[0]} if files else {}
    return {many: files, "seed": 1, "prompt": generation.values.get("prompt", "")}


def _usage(generation: Generation) -> dict[str, float]:
    """What a language model reports of an order that is billed by tokens."""
    asked = len(str(generation.values.get("prompt", ""))) // CHARACTERS_PER_TOKEN
    written = sum(map(len, generation.results)) // CHARACTERS_PER_TOKEN
    return {
        "prompt_tokens": asked,
        "completion_tokens": written,
        "total_tokens": asked + written,
        "cost": generation.model.price_usd,
    }


def error_of(generation: Generation) -> ApiError | None:
    """The error with which the result of a generation is answered; None if there is a result."""
    if generation.cancelled:
        return ApiError(499, {"detail": "Request was cancelled"})
    if generation.problems:
        return ApiError(422, {"detail": [_problem(*problem) for problem in generation.problems]})
    if generation.failure is Fault.TASK_MODERATED:
        detail = {
            "loc": ["body", "prompt"],
            "msg": "The content could not be processed because it was flagged by a content checker.",
            "type": "content_policy_violation",
        }
        return ApiError(422, {"detail": [detail]}, {"X-Fal-Retryable": "false"})
    if generation.failure is Fault.TASK_FAIL:
        return ApiError(503, RUNNER_LOST, {"X-Fal-Error-Type": "runner_disconnected"})
    return None


def _problem(name: str, what: str) -> dict[str, Any]:
    kind = "missing" if what == "missing" else "literal_error"
    return {"loc": ["body", name], "msg": "Field required" if kind == "missing" else f"Input is {what}", "type": kind}


def status_of(generation: Generation, position: int | None, *, logs: bool) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of a status query."""
    if generation.ended is None and position is not None:
        return 202, {"status": "IN_QUEUE", "queue_position": position}
    lines = [{"message": "running", "level": "INFO", "timestamp": "2026-01-01T00:00:00Z"}] if logs else None
    if generation.ended is None:
        return 202, {"status": "IN_PROGRESS", "logs": lines}
    seconds = generation.ended - (generation.started or generation.ended)
    body: dict[str, Any] = {"status": "COMPLETED", "logs": lines, "metrics": {"inference_time": seconds}}
    if error := error_of(generation):
        detail = (error.body or {}).get("detail")
        body |= {"error": detail if isinstance(detail, str) else "Unprocessable Entity"}
        body |= {"error_type": (error.body or {}).get("error_type", "bad_request")}
    return 200, body


def callback_of(generation: Generation) -> dict[str, Any]:
    head = {"request_id": generation.id, "gateway_request_id": generation.id}
    if error := error_of(generation):
        return head | {"status": "ERROR", "error": f"Invalid status code: {error.status}", "payload": error.body}
    return head | {"status": "OK", "payload": output_of(generation), "error": None}
