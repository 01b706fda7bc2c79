"""The Suno family of Kie.ai: songs, tools that process a song (WAV, MP4, stems, MIDI, cover art), and lyrics."""

import json
from typing import Any, ClassVar

from genlock.sandbox.kie.endpoint import (
    JsonObject,
    SimulatedEndpoint,
    StagedCallback,
    envelope,
    first_url,
    result_urls,
    song_json,
)
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.task import Task


class Suno(SimulatedEndpoint):
    """Songs: three callbacks (text, first, complete); only the last ends the task."""

    needs_callback = True

    def missing_record(self) -> JsonObject:
        return envelope(200, "success", None)

    def record(self, task: Task) -> JsonObject:
        code, text = task.error or (None, None)
        tracks = [song_json(task, place, camel=True) for place in range(len(result_urls(task)))]
        return {
            "taskId": task.id,
            "parentMusicId": "",
            "param": json.dumps(task.values, ensure_ascii=False),
            "response": {"taskId": task.id, "sunoData": self._tracks(task, tracks)},
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

    def _tracks(self, task: Task, tracks: list[JsonObject]) -> list[JsonObject]:
        if task.ended is not None:
            return [] if task.failed else tracks
        return tracks[:1] if task.progress >= 0.65 else []

    def callbacks(self, task: Task) -> list[StagedCallback]:
        tracks = [song_json(task, place) for place in range(len(result_urls(task)))]
        if task.error:
            code, text = task.error
            return [(0.3, self._call(task, "text", [])), (1.0, self._call(task, "error", None, code, text))]
        stages = [("text", 0.3, []), ("first", 0.65, tracks[:1]), ("complete", 1.0, tracks)]
        return [(share, self._call(task, stage, data)) for stage, share, data in stages]

    def _call(
        self, task: Task, stage: str, data: Any, code: int = 200, text: str = "All generated successfully."
    ) -> JsonObject:
        return envelope(code, text, {"callbackType": stage, "task_id": task.id, "data": data})


class SunoTool(SimulatedEndpoint):
    """Tools on an existing song: one callback, and for most a text as `successFlag`."""

    needs_callback = True
    flag_is_text: ClassVar[bool] = True

    def record(self, task: Task) -> JsonObject:
        bad = {"wav": "GENERATE_WAV_FAILED", "mp4": "GENERATE_MP4_FAILED"}.get(self.operation, "GENERATE_AUDIO_FAILED")
        status = "PENDING" if task.ended is None else bad if task.failed else "SUCCESS"
        code, text = task.error or (None, None)
        flag: JsonObject = {"successFlag": status if self.flag_is_text else task.flag}
        body = {"taskId": task.id, "response": self.result(task) if task.succeeded else None}
        return body | flag | {"errorCode": code, "errorMessage": text}

    def result(self, task: Task) -> JsonObject:
        if self.operation == "wav":
            return {"audioWavUrl": first_url(task)}
        if self.operation == "mp4":
            return {"videoUrl": first_url(task)}
        names = ("vocalUrl", "instrumentalUrl", "drumsUrl", "bassUrl")
        return {"originUrl": "https://songs.invalid/whole.mp3", **dict(zip(names, result_urls(task), strict=False))}

    def callback_data(self, task: Task) -> JsonObject:
        if self.operation == "wav":
            return {"task_id": task.id, "audioWavUrl": first_url(task)}
        if self.operation == "mp4":
            return {"task_id": task.id, "video_url": first_url(task)}
        names = ("vocal_url", "instrumental_url", "drums_url", "bass_url")
        stems = {"origin_url": "https://songs.invalid/whole.mp3", **dict(zip(names, result_urls(task), strict=False))}
        return {"task_id": task.id, "vocal_separation_info": stems}

    def callbacks(self, task: Task) -> list[StagedCallback]:
        if task.error:
            return [(1.0, envelope(*task.error, {"task_id": task.id}))]
        return [(1.0, envelope(200, "success", self.callback_data(task)))]


class Cover(SunoTool):
    flag_is_text = False

    def result(self, task: Task) -> JsonObject:
        return {"images": result_urls(task)}

    def callback_data(self, task: Task) -> JsonObject:
        return {"taskId": task.id, "images": result_urls(task)}


class Midi(SunoTool):
    flag_is_text = False

    def result(self, task: Task) -> JsonObject:
        notes = [{"pitch": 60, "start": "0.0", "end": "0.5", "velocity": 1}]
        return {
            "instruments": [] if Fault.RESULT_EMPTY in task.faults else [{"name": f"Piano {task.id}", "notes": notes}]
        }

    def callback_data(self, task: Task) -> JsonObject:
        return {"taskId": task.id, "state": "success", **self.result(task)}


class Lyrics(SimulatedEndpoint):
    needs_callback = True

    def lyrics(self, task: Task) -> list[JsonObject]:
        texts = [] if Fault.RESULT_EMPTY in task.faults else task.results
        return [{"text": text, "title": f"No. {place}", "status": "complete"} for place, text in enumerate(texts, 1)]

    def record(self, task: Task) -> JsonObject:
        status = "PENDING" if task.ended is None else "GENERATE_LYRICS_FAILED" if task.failed else "SUCCESS"
        code, text = task.error or (None, None)
        if task.failed:
            status = "SENSITIVE_WORD_ERROR" if Fault.TASK_MODERATED in task.faults else "CREATE_TASK_FAILED"
        data = self.lyrics(task) if task.succeeded else []
        body = {"taskId": task.id, "response": {"taskId": task.id, "data": data}, "status": status}
        return body | {"errorCode": code, "errorMessage": text}

    def callbacks(self, task: Task) -> list[StagedCallback]:
        """A failure is also called `complete`; only the envelope's code differs."""
        body = {"callbackType": "complete", "task_id": task.id}
        if task.error:
            return [(1.0, envelope(400, task.error[1], body | {"data": None}))]
        return [(1.0, envelope(200, "All generated successfully.", body | {"data": self.lyrics(task)}))]
