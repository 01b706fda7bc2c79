"""Suno at the simulated Kie.ai: songs, what is made of songs, and lyrics."""

import json
from typing import Any, ClassVar

from genlock.sandbox.kie.face import Call, Face, OutgoingMessage, envelope, first, shown, song
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.task import Task


class Suno(Face):
    """Songs: three callbacks, of which only the last ends the task."""

    needs_callback = True

    def missing(self) -> OutgoingMessage:
        return envelope(200, "success", None)

    def record(self, task: Task) -> OutgoingMessage:
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

    def _made(self, task: Task, tracks: list[OutgoingMessage]) -> list[OutgoingMessage]:
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
    ) -> OutgoingMessage:
        return envelope(code, text, {"callbackType": stage, "task_id": task.id, "data": data})


class SunoTool(Face):
    """What Suno does with a song that exists: a string for a flag, one callback."""

    needs_callback = True
    worded: ClassVar[bool] = True

    def record(self, task: Task) -> OutgoingMessage:
        bad = {"wav": "GENERATE_WAV_FAILED", "mp4": "GENERATE_MP4_FAILED"}.get(self.operation, "GENERATE_AUDIO_FAILED")
        word = "PENDING" if task.ended is None else bad if task.failed else "SUCCESS"
        code, text = task.failure if task.failed and task.failure else (None, None)
        flag: OutgoingMessage = {"successFlag": word if self.worded else task.flag}
        said = {"taskId": task.id, "response": self.made(task) if task.succeeded else None}
        return said | flag | {"errorCode": code, "errorMessage": text}

    def made(self, task: Task) -> OutgoingMessage:
        if self.operation == "wav":
            return {"audioWavUrl": first(task)}
        if self.operation == "mp4":
            return {"videoUrl": first(task)}
        names = ("vocalUrl", "instrumentalUrl", "drumsUrl", "bassUrl")
        return {"originUrl": "https://songs.invalid/whole.mp3", **dict(zip(names, shown(task), strict=False))}

    def told(self, task: Task) -> OutgoingMessage:
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

    def made(self, task: Task) -> OutgoingMessage:
        return {"images": shown(task)}

    def told(self, task: Task) -> OutgoingMessage:
        return {"taskId": task.id, "images": shown(task)}


class Midi(SunoTool):
    worded = False

    def made(self, task: Task) -> OutgoingMessage:
        notes = [{"pitch": 60, "start": "0.0", "end": "0.5", "velocity": 1}]
        return {
            "instruments": [] if Fault.RESULT_EMPTY in task.faults else [{"name": f"Piano {task.id}", "notes": notes}]
        }

    def told(self, task: Task) -> OutgoingMessage:
        return {"taskId": task.id, "state": "success", **self.made(task)}


class Lyrics(Face):
    needs_callback = True

    def texts(self, task: Task) -> list[OutgoingMessage]:
        words = [] if Fault.RESULT_EMPTY in task.faults else task.results
        return [{"text": text, "title": f"No. {place}", "status": "complete"} for place, text in enumerate(words, 1)]

    def record(self, task: Task) -> OutgoingMessage:
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
