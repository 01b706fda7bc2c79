"""Base class for the endpoint families of the Kie.ai simulator.

Kie.ai grew by adding model families with their own paths, field names and callback bodies. Each family is a
subclass: `market` (most models), `dedicated` (Veo, Runway, Aleph, 4o image, Flux Kontext) and `suno` (music).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from genlock.providers.kie.families import Family
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.task import Task

JsonObject = dict[str, Any]
#: fraction of the task's running time at which it is sent, and the body
StagedCallback = tuple[float, JsonObject]


@dataclass(frozen=True)
class SimulatedEndpoint(ABC):
    """One create path and its status path. Defaults suit a family whose create body is flat."""

    family: Family
    operation: str
    create: str
    query: str
    needs_callback: ClassVar[bool] = False

    def read_order(self, body: JsonObject) -> tuple[str | None, JsonObject]:
        """Read a create body: the model name, if the body has one, and the input values."""
        return None, {key: value for key, value in body.items() if key != "callBackUrl"}

    def created(self, task: Task) -> JsonObject:
        return {"taskId": task.id}

    def missing_record(self) -> JsonObject:
        return envelope(422, "The record does not exist", None)

    @abstractmethod
    def record(self, task: Task) -> JsonObject: ...

    @abstractmethod
    def callbacks(self, task: Task) -> list[StagedCallback]: ...


def envelope(code: int, text: str, data: Any) -> JsonObject:
    return {"code": code, "msg": text, "data": data}


def result_urls(task: Task) -> list[str]:
    """Return the result URLs that a finished task reports."""
    if Fault.RESULT_EMPTY in task.faults:
        return []
    if Fault.RESULT_BAD_URLS in task.faults:
        return ["ftp://files.invalid/a.png", "javascript:alert(1)", "data:image/png;base64,AAAA", "not an address"]
    return task.results


def first_url(task: Task) -> str:
    urls = result_urls(task)
    return urls[0] if urls else ""


def song_json(task: Task, place: int, *, camel: bool = False) -> JsonObject:
    url = result_urls(task)[place]
    title = str(task.values.get("title") or "A song")
    snake = {"audio_url": url, "stream_audio_url": f"{url}?stream", "image_url": url.replace(".mp3", ".png")}
    snake |= {"prompt": str(task.values.get("prompt", "")), "model_name": "chirp-v6"}
    names = {"audio_url": "audioUrl", "stream_audio_url": "streamAudioUrl", "image_url": "imageUrl"}
    names["model_name"] = "modelName"
    body = {names.get(key, key): value for key, value in snake.items()} if camel else dict(snake)
    more = {"id": f"{task.id[:8]}-{place}", "title": title, "tags": "sandbox", "createTime": task.created_ms}
    return body | more | {"duration": 3.0}
