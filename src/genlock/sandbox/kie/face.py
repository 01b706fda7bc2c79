"""How a family of the simulated Kie.ai speaks: what all of them share."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from genlock.providers.kie.families import Family
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.task import Task

OutgoingMessage = dict[str, Any]
#: a share of the task's time, and what is called back then
Call = tuple[float, OutgoingMessage]


@dataclass(frozen=True)
class Face(ABC):
    """A family with a flat body. Says what most of them say; the others say otherwise."""

    family: Family
    operation: str
    create: str
    query: str
    needs_callback: ClassVar[bool] = False

    def order(self, body: OutgoingMessage) -> tuple[str | None, OutgoingMessage]:
        """The model, if the order names one, and its input."""
        return None, {key: value for key, value in body.items() if key != "callBackUrl"}

    def created(self, task: Task) -> OutgoingMessage:
        return {"taskId": task.id}

    def missing(self) -> OutgoingMessage:
        return envelope(422, "The record does not exist", None)

    @abstractmethod
    def record(self, task: Task) -> OutgoingMessage: ...

    @abstractmethod
    def calls(self, task: Task) -> list[Call]: ...


def envelope(code: int, text: str, data: Any) -> OutgoingMessage:
    return {"code": code, "msg": text, "data": data}


def shown(task: Task) -> list[str]:
    """The addresses a finished task tells."""
    if Fault.RESULT_EMPTY in task.faults:
        return []
    if Fault.RESULT_WRONG_TASK in task.faults:
        return ["ftp://files.invalid/a.png", "javascript:alert(1)", "data:image/png;base64,AAAA", "not an address"]
    return task.results


def first(task: Task) -> str:
    urls = shown(task)
    return urls[0] if urls else ""


def song(task: Task, place: int, *, camel: bool = False) -> OutgoingMessage:
    url = shown(task)[place]
    title = str(task.values.get("title") or "A song")
    snake = {"audio_url": url, "stream_audio_url": f"{url}?stream", "image_url": url.replace(".mp3", ".png")}
    snake |= {"prompt": str(task.values.get("prompt", "")), "model_name": "chirp-v6"}
    names = {"audio_url": "audioUrl", "stream_audio_url": "streamAudioUrl", "image_url": "imageUrl"}
    names["model_name"] = "modelName"
    said = {names.get(key, key): value for key, value in snake.items()} if camel else dict(snake)
    more = {"id": f"{task.id[:8]}-{place}", "title": title, "tags": "sandbox", "createTime": task.created_ms}
    return said | more | {"duration": 3.0}
