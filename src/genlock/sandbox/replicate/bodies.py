"""The JSON bodies of Replicate: predictions, pages of them, and errors."""

from datetime import UTC, datetime
from typing import Any

from genlock.domain.catalog import Output
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.generation import Generation
from genlock.sandbox.generations.server import ApiError

FAILED = "Prediction interrupted; please retry (code: PA)"
MODERATED = "NSFW content detected. Try running it again, or try a different prompt."


def prediction(generation: Generation, base_url: str) -> dict[str, Any]:
    """The prediction object, as answers and callbacks carry it."""
    removed = generation.removed
    url = f"{base_url}/v1/predictions/{generation.id}"
    return {
        "id": generation.id,
        "model": generation.model.id,
        "version": "hidden",
        "status": _status(generation),
        "input": {} if removed else generation.values,
        "output": None if removed else _output(generation),
        "error": _error(generation),
        "logs": "",
        "created_at": _time(generation.created),
        "started_at": _time(generation.started),
        "completed_at": _time(generation.ended),
        "deadline": None,
        "data_removed": removed,
        "metrics": _metrics(generation),
        "urls": {"get": url, "cancel": f"{url}/cancel", "web": f"{base_url}/p/{generation.id}"},
    }


def _status(generation: Generation) -> str:
    if generation.ended is None:
        return "starting" if generation.started is None else "processing"
    if generation.cancelled:
        return "canceled"
    return "succeeded" if generation.succeeded else "failed"


def _output(generation: Generation) -> Any:
    results = generation.reported_results
    if not generation.succeeded:
        return None
    if generation.model.output is Output.TEXT:
        return [piece + " " for piece in results[0].split(" ")] if results else []
    return (results[0] if results else None) if generation.model.single else results


def _error(generation: Generation) -> str | None:
    if generation.ended is None or generation.failure is None:
        return None
    return MODERATED if generation.failure is Fault.TASK_MODERATED else FAILED


def _metrics(generation: Generation) -> dict[str, float]:
    if generation.ended is None or generation.started is None:
        return {}
    return {
        "predict_time": generation.ended - generation.started,
        "total_time": generation.ended - generation.created,
    }


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def error(status: int, title: str, detail: str, **more: Any) -> ApiError:
    body = {"title": title, "detail": detail, "status": status, **more}
    return ApiError(status, body)


def throttled(seconds: int) -> ApiError:
    return ApiError(429, {"detail": f"Request was throttled. Your rate limit resets in ~{seconds}s.", "status": 429})
