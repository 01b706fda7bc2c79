"""The Market family of Kie.ai, which has most models: `jobs/createTask` and `jobs/recordInfo`."""

import json

from genlock.domain.catalog import Output
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


class Market(SimulatedEndpoint):
    """The input is an object in the create body; the result is JSON inside a string."""

    def read_order(self, body: JsonObject) -> tuple[str | None, JsonObject]:
        values = body.get("input")
        return body.get("model", ""), values if isinstance(values, dict) else {}

    def created(self, task: Task) -> JsonObject:
        return {"taskId": task.id, "recordId": task.id}

    def missing_record(self) -> JsonObject:
        return envelope(422, "recordInfo is null", None)

    def record(self, task: Task) -> JsonObject:
        code, text = task.error or (None, None)
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
            return json.dumps({"resultObject": {"text": first_url(task)}}, ensure_ascii=False)
        if task.model.category.value == "music" and task.model.outputs[0] is Output.AUDIO:
            return json.dumps(
                {"data": [song_json(task, place) for place in range(len(result_urls(task)))]}, ensure_ascii=False
            )
        return json.dumps({"resultUrls": result_urls(task)})

    def callbacks(self, task: Task) -> list[StagedCallback]:
        record = self.record(task)
        whole = {key: _whole_seconds(record[key]) for key in ("createTime", "completeTime")}
        if task.failed:
            return [(1.0, envelope(501, "Playground task failed.", record | whole | {"resultJson": None}))]
        data = record | whole | {"updateTime": whole["completeTime"]}
        return [(1.0, envelope(200, "Playground task completed successfully.", data))]


def _whole_seconds(ms: int | None) -> int | None:
    return None if ms is None else ms // 1000 * 1000
