"""Kie.ai's older families with dedicated endpoints: Veo, Runway, Aleph, 4o image and Flux Kontext."""

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from genlock.sandbox.kie.endpoint import JsonObject, SimulatedEndpoint, StagedCallback, envelope, first_url, result_urls
from genlock.sandbox.kie.task import Task


class Flagged(SimulatedEndpoint):
    """Families whose status record has a numeric `successFlag`."""

    good: ClassVar[str] = "success"

    def record(self, task: Task) -> JsonObject:
        code, text = task.error or (None, None)
        return {
            "taskId": task.id,
            "paramJson": json.dumps(task.values, ensure_ascii=False),
            "successFlag": task.flag,
            "completeTime": task.ended_ms,
            "createTime": task.created_ms,
            "response": self.response(task) if task.succeeded else None,
            "errorCode": code,
            "errorMessage": text,
        }

    @abstractmethod
    def response(self, task: Task) -> JsonObject: ...

    def callbacks(self, task: Task) -> list[StagedCallback]:
        if task.error:
            return [(1.0, self.failed(task, *task.error))]
        return [(1.0, self.finished(task))]

    @abstractmethod
    def finished(self, task: Task) -> JsonObject: ...

    @abstractmethod
    def failed(self, task: Task, code: int, text: str) -> JsonObject: ...


class Veo(Flagged):
    def response(self, task: Task) -> JsonObject:
        body = {"taskId": task.id, "resultUrls": result_urls(task), "originUrls": None, "resolution": "720p"}
        return body | {"fullResultUrls": None, "hasAudioList": [True], "seeds": [10000]}

    def finished(self, task: Task) -> JsonObject:
        info = {"resultUrls": result_urls(task), "originUrls": [], "resolution": "720p"}
        prompt = json.dumps(task.values, ensure_ascii=False)
        data = {"taskId": task.id, "promptJson": prompt, "info": info, "fallbackFlag": False}
        return envelope(200, "Veo3.1 video generated successfully.", data)

    def failed(self, task: Task, code: int, text: str) -> JsonObject:
        return envelope(code, text, {"taskId": task.id, "promptJson": "{}", "fallbackFlag": False})


class Aleph(Flagged):
    """The callback has the task id at the root of its body."""

    def response(self, task: Task) -> JsonObject:
        return {
            "taskId": task.id,
            "resultVideoUrl": first_url(task),
            "resultImageUrl": first_url(task).replace(".mp4", ".png"),
        }

    def finished(self, task: Task) -> JsonObject:
        data = {"result_video_url": first_url(task), "result_image_url": first_url(task).replace(".mp4", ".png")}
        return envelope(200, "success", data) | {"taskId": task.id}

    def failed(self, task: Task, code: int, text: str) -> JsonObject:
        return envelope(501, text, None) | {"taskId": task.id}


class FourO(Flagged):
    def record(self, task: Task) -> JsonObject:
        status = "GENERATING" if task.ended is None else "GENERATE_FAILED" if task.failed else "SUCCESS"
        flag = {3: 2}.get(task.flag, task.flag)
        return super().record(task) | {"status": status, "successFlag": flag, "progress": f"{task.progress:.2f}"}

    def response(self, task: Task) -> JsonObject:
        return {"resultUrls": result_urls(task)}

    def finished(self, task: Task) -> JsonObject:
        return envelope(200, "success", {"taskId": task.id, "info": {"result_urls": result_urls(task)}})

    def failed(self, task: Task, code: int, text: str) -> JsonObject:
        return envelope(code, text, {"taskId": task.id, "info": None})


class Flux(Flagged):
    def response(self, task: Task) -> JsonObject:
        return {"originImageUrl": first_url(task) and first_url(task) + "?origin", "resultImageUrl": first_url(task)}

    def finished(self, task: Task) -> JsonObject:
        data = {"taskId": task.id, "info": self.response(task)}
        return envelope(200, "BFL image generated successfully.", data)

    def failed(self, task: Task, code: int, text: str) -> JsonObject:
        return envelope(code, text, {"taskId": task.id, "info": {"originImageUrl": "", "resultImageUrl": ""}})


class Runway(SimulatedEndpoint):
    state_names: ClassVar[Mapping[str, str]] = {"waiting": "wait", "queuing": "queueing"}

    def record(self, task: Task) -> JsonObject:
        code, text = task.error or (0, "")
        video = {"videoId": task.id, "taskId": task.id, "videoUrl": first_url(task), "imageUrl": _still_url(task)}
        return {
            "taskId": task.id,
            "generateParam": {"prompt": task.values.get("prompt", ""), "imageUrl": task.values.get("imageUrl", "")},
            "state": self.state_names.get(task.state, task.state),
            "generateTime": "2026-10-01 00:00:00",
            "videoInfo": video if task.succeeded else None,
            "failCode": code,
            "failMsg": text,
            "expireFlag": 0,
        }

    def callbacks(self, task: Task) -> list[StagedCallback]:
        empty = {"task_id": task.id, "video_id": "", "video_url": "", "image_url": ""}
        if task.error:
            return [(1.0, envelope(*task.error, empty))]
        data = {"task_id": task.id, "video_id": task.id, "video_url": first_url(task), "image_url": _still_url(task)}
        return [(1.0, envelope(200, "All generated successfully.", data))]


def _still_url(task: Task) -> str:
    return first_url(task).replace(".mp4", ".png")
