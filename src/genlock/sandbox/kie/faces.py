"""How each family of the simulated Kie.ai speaks: its paths, its records, its callbacks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from genlock.domain.catalog import Family, Output
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.task import Task

Said = dict[str, Any]
#: a share of the task's time, and what is called back then
Call = tuple[float, Said]


@dataclass(frozen=True)
class Face:
    """A family with a flat body. Says what most of them say; the others say otherwise."""

    family: Family
    operation: str
    create: str
    query: str
    needs_callback: ClassVar[bool] = False

    def order(self, body: Said) -> tuple[str | None, Said]:
        """The model, if the order names one, and its input."""
        return None, {key: value for key, value in body.items() if key != "callBackUrl"}

    def created(self, task: Task) -> Said:
        return {"taskId": task.id}

    def missing(self) -> Said:
        return envelope(422, "The record does not exist", None)

    def record(self, task: Task) -> Said:
        raise NotImplementedError

    def calls(self, task: Task) -> list[Call]:
        raise NotImplementedError


def envelope(code: int, text: str, data: Any) -> Said:
    return {"code": code, "msg": text, "data": data}


def shown(task: Task) -> list[str]:
    """The addresses a finished task tells."""
    if Fault.RESULT_EMPTY in task.faults:
        return []
    if Fault.RESULT_FOREIGN in task.faults:
        return ["ftp://files.invalid/a.png", "javascript:alert(1)", "data:image/png;base64,AAAA", "not an address"]
    return task.results


def first(task: Task) -> str:
    urls = shown(task)
    return urls[0] if urls else ""


class Market(Face):
    """createTask and recordInfo: the input in an object, the result as JSON in a string."""

    def order(self, body: Said) -> tuple[str | None, Said]:
        values = body.get("input")
        return body.get("model", ""), values if isinstance(values, dict) else {}

    def created(self, task: Task) -> Said:
        return {"taskId": task.id, "recordId": task.id}

    def missing(self) -> Said:
        return envelope(422, "recordInfo is null", None)

    def record(self, task: Task) -> Said:
        code, text = task.failure if task.failed and task.failure else (None, None)
        return {
            "taskId": task.id,
            "model": task.model.id,
            "state": task.state,
            "param": self._param(task),
            "resultJson": self._result(task) if task.succeeded else "",
            "failCode": str(code) if code else None,
            "failMsg": text,
            "costTime": round(task.seconds) if task.ended else None,
            "completeTime": task.ended_ms,
            "createTime": task.created_ms,
            "creditsConsumed": task.credits,
        }

    def _param(self, task: Task) -> str:
        param = {"input": json.dumps(task.values, ensure_ascii=False)}
        if task.callback_url:
            param["callBackUrl"] = task.callback_url
        return json.dumps(param | {"model": task.model.id}, ensure_ascii=False)

    def _result(self, task: Task) -> str:
        if Fault.RESULT_BROKEN in task.faults:
            return '{"resultUrls":["https://'
        if task.model.outputs[0] is Output.TEXT:
            return json.dumps({"resultObject": {"text": first(task)}}, ensure_ascii=False)
        if task.model.category.value == "music" and task.model.outputs[0] is Output.AUDIO:
            return json.dumps({"data": [song(task, place) for place in range(len(shown(task)))]}, ensure_ascii=False)
        return json.dumps({"resultUrls": shown(task)})

    def calls(self, task: Task) -> list[Call]:
        record = self.record(task)
        whole = {key: _whole_seconds(record[key]) for key in ("createTime", "completeTime")}
        if task.failed:
            return [(1.0, envelope(501, "Playground task failed.", record | whole | {"resultJson": None}))]
        data = record | whole | {"updateTime": whole["completeTime"]}
        return [(1.0, envelope(200, "Playground task completed successfully.", data))]


def _whole_seconds(ms: int | None) -> int | None:
    return None if ms is None else ms // 1000 * 1000


class Flagged(Face):
    """What the older families with a `successFlag` share."""

    good: ClassVar[str] = "success"

    def record(self, task: Task) -> Said:
        code, text = task.failure if task.failed and task.failure else (None, None)
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

    def response(self, task: Task) -> Said:
        raise NotImplementedError

    def calls(self, task: Task) -> list[Call]:
        if task.failed and task.failure:
            return [(1.0, self.failed(task, *task.failure))]
        return [(1.0, self.finished(task))]

    def finished(self, task: Task) -> Said:
        raise NotImplementedError

    def failed(self, task: Task, code: int, text: str) -> Said:
        raise NotImplementedError


class Veo(Flagged):
    def response(self, task: Task) -> Said:
        said = {"taskId": task.id, "resultUrls": shown(task), "originUrls": None, "resolution": "720p"}
        return said | {"fullResultUrls": None, "hasAudioList": [True], "seeds": [10000]}

    def finished(self, task: Task) -> Said:
        info = {"resultUrls": shown(task), "originUrls": [], "resolution": "720p"}
        prompt = json.dumps(task.values, ensure_ascii=False)
        data = {"taskId": task.id, "promptJson": prompt, "info": info, "fallbackFlag": False}
        return envelope(200, "Veo3.1 video generated successfully.", data)

    def failed(self, task: Task, code: int, text: str) -> Said:
        return envelope(code, text, {"taskId": task.id, "promptJson": "{}", "fallbackFlag": False})


class Aleph(Flagged):
    """Names its task at the root of a callback."""

    def response(self, task: Task) -> Said:
        return {"taskId": task.id, "resultVideoUrl": first(task), "resultImageUrl": first(task).replace(".mp4", ".png")}

    def finished(self, task: Task) -> Said:
        data = {"result_video_url": first(task), "result_image_url": first(task).replace(".mp4", ".png")}
        return envelope(200, "success", data) | {"taskId": task.id}

    def failed(self, task: Task, code: int, text: str) -> Said:
        return envelope(501, text, None) | {"taskId": task.id}


class FourO(Flagged):
    def record(self, task: Task) -> Said:
        word = "GENERATING" if task.ended is None else "GENERATE_FAILED" if task.failed else "SUCCESS"
        flag = {3: 2}.get(task.flag, task.flag)
        return super().record(task) | {"status": word, "successFlag": flag, "progress": f"{task.progress:.2f}"}

    def response(self, task: Task) -> Said:
        return {"resultUrls": shown(task)}

    def finished(self, task: Task) -> Said:
        return envelope(200, "success", {"taskId": task.id, "info": {"result_urls": shown(task)}})

    def failed(self, task: Task, code: int, text: str) -> Said:
        return envelope(code, text, {"taskId": task.id, "info": None})


class Flux(Flagged):
    def response(self, task: Task) -> Said:
        return {"originImageUrl": first(task) and first(task) + "?origin", "resultImageUrl": first(task)}

    def finished(self, task: Task) -> Said:
        data = {"taskId": task.id, "info": self.response(task)}
        return envelope(200, "BFL image generated successfully.", data)

    def failed(self, task: Task, code: int, text: str) -> Said:
        return envelope(code, text, {"taskId": task.id, "info": {"originImageUrl": "", "resultImageUrl": ""}})


class Runway(Face):
    words: ClassVar[Mapping[str, str]] = {"waiting": "wait", "queuing": "queueing"}

    def record(self, task: Task) -> Said:
        code, text = task.failure if task.failed and task.failure else (0, "")
        video = {"videoId": task.id, "taskId": task.id, "videoUrl": first(task), "imageUrl": _still(task)}
        return {
            "taskId": task.id,
            "generateParam": {"prompt": task.values.get("prompt", ""), "imageUrl": task.values.get("imageUrl", "")},
            "state": self.words.get(task.state, task.state),
            "generateTime": "2026-10-01 00:00:00",
            "videoInfo": video if task.succeeded else None,
            "failCode": code,
            "failMsg": text,
            "expireFlag": 0,
        }

    def calls(self, task: Task) -> list[Call]:
        empty = {"task_id": task.id, "video_id": "", "video_url": "", "image_url": ""}
        if task.failed and task.failure:
            return [(1.0, envelope(task.failure[0], task.failure[1], empty))]
        data = {"task_id": task.id, "video_id": task.id, "video_url": first(task), "image_url": _still(task)}
        return [(1.0, envelope(200, "All generated successfully.", data))]


def _still(task: Task) -> str:
    return first(task).replace(".mp4", ".png")


def song(task: Task, place: int, *, camel: bool = False) -> Said:
    url = shown(task)[place]
    title = str(task.values.get("title") or "A song")
    snake = {"audio_url": url, "stream_audio_url": f"{url}?stream", "image_url": url.replace(".mp3", ".png")}
    snake |= {"prompt": str(task.values.get("prompt", "")), "model_name": "chirp-v6"}
    names = {"audio_url": "audioUrl", "stream_audio_url": "streamAudioUrl", "image_url": "imageUrl"}
    names["model_name"] = "modelName"
    said = {names.get(key, key): value for key, value in snake.items()} if camel else dict(snake)
    more = {"id": f"{task.id[:8]}-{place}", "title": title, "tags": "sandbox", "createTime": task.created_ms}
    return said | more | {"duration": 3.0}


class Suno(Face):
    """Songs: three callbacks, of which only the last ends the task."""

    needs_callback = True

    def missing(self) -> Said:
        return envelope(200, "success", None)

    def record(self, task: Task) -> Said:
        code, text = task.failure if task.failed and task.failure else (None, None)
        tracks = [song(task, place, camel=True) for place in range(len(shown(task)))]
        return {
            "taskId": task.id,
            "parentMusicId": "",
            "param": json.dumps(task.values, ensure_ascii=False),
            "response": {"taskId": task.id, "sunoData": self._made(task, tracks)},
            "status": self._status(task),
            "type": task.model.operation,
            "errorCode": code,
            "errorMessage": text,
        }

    def _status(self, task: Task) -> str:
        if task.failed:
            return "SENSITIVE_WORD_ERROR" if Fault.TASK_MODERATED in task.faults else "GENERATE_AUDIO_FAILED"
        if task.ended is not None:
            return "SUCCESS"
        return "FIRST_SUCCESS" if task.progress >= 0.65 else "TEXT_SUCCESS" if task.progress >= 0.3 else "PENDING"

    def _made(self, task: Task, tracks: list[Said]) -> list[Said]:
        if task.ended is not None:
            return [] if task.failed else tracks
        return tracks[:1] if task.progress >= 0.65 else []

    def calls(self, task: Task) -> list[Call]:
        tracks = [song(task, place) for place in range(len(shown(task)))]
        if task.failed and task.failure:
            code, text = task.failure
            return [(0.3, self._call(task, "text", [])), (1.0, self._call(task, "error", None, code, text))]
        stages = [("text", 0.3, []), ("first", 0.65, tracks[:1]), ("complete", 1.0, tracks)]
        return [(share, self._call(task, stage, data)) for stage, share, data in stages]

    def _call(
        self, task: Task, stage: str, data: Any, code: int = 200, text: str = "All generated successfully."
    ) -> Said:
        return envelope(code, text, {"callbackType": stage, "task_id": task.id, "data": data})


class SunoTool(Face):
    """What Suno does with a song that exists: a string for a flag, one callback."""

    needs_callback = True
    worded: ClassVar[bool] = True

    def record(self, task: Task) -> Said:
        bad = {"wav": "GENERATE_WAV_FAILED", "mp4": "GENERATE_MP4_FAILED"}.get(self.operation, "GENERATE_AUDIO_FAILED")
        word = "PENDING" if task.ended is None else bad if task.failed else "SUCCESS"
        code, text = task.failure if task.failed and task.failure else (None, None)
        flag: Said = {"successFlag": word if self.worded else task.flag}
        said = {"taskId": task.id, "response": self.made(task) if task.succeeded else None}
        return said | flag | {"errorCode": code, "errorMessage": text}

    def made(self, task: Task) -> Said:
        if self.operation == "wav":
            return {"audioWavUrl": first(task)}
        if self.operation == "mp4":
            return {"videoUrl": first(task)}
        names = ("vocalUrl", "instrumentalUrl", "drumsUrl", "bassUrl")
        return {"originUrl": "https://songs.invalid/whole.mp3", **dict(zip(names, shown(task), strict=False))}

    def told(self, task: Task) -> Said:
        if self.operation == "wav":
            return {"task_id": task.id, "audioWavUrl": first(task)}
        if self.operation == "mp4":
            return {"task_id": task.id, "video_url": first(task)}
        names = ("vocal_url", "instrumental_url", "drums_url", "bass_url")
        stems = {"origin_url": "https://songs.invalid/whole.mp3", **dict(zip(names, shown(task), strict=False))}
        return {"task_id": task.id, "vocal_separation_info": stems}

    def calls(self, task: Task) -> list[Call]:
        if task.failed and task.failure:
            return [(1.0, envelope(*task.failure, {"task_id": task.id}))]
        return [(1.0, envelope(200, "success", self.told(task)))]


class Cover(SunoTool):
    worded = False

    def made(self, task: Task) -> Said:
        return {"images": shown(task)}

    def told(self, task: Task) -> Said:
        return {"taskId": task.id, "images": shown(task)}


class Midi(SunoTool):
    worded = False

    def made(self, task: Task) -> Said:
        notes = [{"pitch": 60, "start": "0.0", "end": "0.5", "velocity": 1}]
        return {
            "instruments": [] if Fault.RESULT_EMPTY in task.faults else [{"name": f"Piano {task.id}", "notes": notes}]
        }

    def told(self, task: Task) -> Said:
        return {"taskId": task.id, "state": "success", **self.made(task)}


class Lyrics(Face):
    needs_callback = True

    def texts(self, task: Task) -> list[Said]:
        words = [] if Fault.RESULT_EMPTY in task.faults else task.results
        return [{"text": text, "title": f"No. {place}", "status": "complete"} for place, text in enumerate(words, 1)]

    def record(self, task: Task) -> Said:
        word = "PENDING" if task.ended is None else "GENERATE_LYRICS_FAILED" if task.failed else "SUCCESS"
        code, text = task.failure if task.failed and task.failure else (None, None)
        if task.failed:
            word = "SENSITIVE_WORD_ERROR" if Fault.TASK_MODERATED in task.faults else "CREATE_TASK_FAILED"
        data = self.texts(task) if task.succeeded else []
        said = {"taskId": task.id, "response": {"taskId": task.id, "data": data}, "status": word}
        return said | {"errorCode": code, "errorMessage": text}

    def calls(self, task: Task) -> list[Call]:
        """Also a failure is called complete: only its code tells."""
        said = {"callbackType": "complete", "task_id": task.id}
        if task.failed and task.failure:
            return [(1.0, envelope(400, task.failure[1], said | {"data": None}))]
        return [(1.0, envelope(200, "All generated successfully.", said | {"data": self.texts(task)}))]


def _face(kind: type[Face], family: Family, operation: str, create: str, query: str) -> Face:
    return kind(family, operation, f"/api/v1/{create}", f"/api/v1/{query}")


_SONGS = ("extend", "upload-cover", "upload-extend", "add-instrumental", "add-vocals", "replace-section", "mashup")
FACES: tuple[Face, ...] = (
    _face(Market, Family.MARKET, "generate", "jobs/createTask", "jobs/recordInfo"),
    _face(Veo, Family.VEO, "generate", "veo/generate", "veo/record-info"),
    _face(Veo, Family.VEO, "extend", "veo/extend", "veo/record-info"),
    _face(Veo, Family.VEO, "4k", "veo/get-4k-video", "veo/record-info"),
    _face(Runway, Family.RUNWAY, "generate", "runway/generate", "runway/record-detail"),
    _face(Runway, Family.RUNWAY, "extend", "runway/extend", "runway/record-detail"),
    _face(Aleph, Family.ALEPH, "generate", "aleph/generate", "aleph/record-info"),
    _face(FourO, Family.GPT4O, "generate", "gpt4o-image/generate", "gpt4o-image/record-info"),
    _face(Flux, Family.FLUX_KONTEXT, "generate", "flux/kontext/generate", "flux/kontext/record-info"),
    _face(Suno, Family.SUNO, "generate", "generate", "generate/record-info"),
    *(_face(Suno, Family.SUNO, name, f"generate/{name}", "generate/record-info") for name in (*_SONGS, "sounds")),
    _face(Lyrics, Family.SUNO, "lyrics", "lyrics", "lyrics/record-info"),
    *(
        _face(SunoTool, Family.SUNO, name, f"{name}/generate", f"{name}/record-info")
        for name in ("wav", "mp4", "vocal-removal")
    ),
    _face(Midi, Family.SUNO, "midi", "midi/generate", "midi/record-info"),
    _face(Cover, Family.SUNO, "cover", "suno/cover/generate", "suno/cover/record-info"),
)
