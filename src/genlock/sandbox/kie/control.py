"""HTTP control of the Kie.ai simulator: `GET /_control` shows its state, `POST /_control` changes it.

Keys of the POST body, all optional: clear, on, off, chances, order, task, speed, credits, expire_files.
"""

from typing import TYPE_CHECKING, Any

from aiohttp import web
from yarl import URL

from genlock.sandbox.kie.faults import Fault, read_faults
from genlock.sandbox.requests import host_error, page_origin_error

if TYPE_CHECKING:
    from genlock.sandbox.kie.simulator import KieSimulator


def add_control(app: web.Application, kie: "KieSimulator") -> None:
    async def show(request: web.Request) -> web.Response:
        return _origin_refusal(kie, request) or web.json_response(state_json(kie))

    async def change(request: web.Request) -> web.Response:
        if refusal := _origin_refusal(kie, request):
            return refusal
        if request.content_type != "application/json":  # a page of another site cannot send it without CORS approval
            return web.json_response({"error": "send application/json"}, status=415)
        try:
            apply(kie, await request.json())
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            return web.json_response({"error": str(error), "faults": list(Fault)}, status=400)
        return web.json_response(state_json(kie))

    app.router.add_get("/_control", show)
    app.router.add_post("/_control", change)


def _origin_refusal(kie: "KieSimulator", request: web.Request) -> web.Response | None:
    why = host_error(request, URL(kie.url).host or "") or page_origin_error(request)
    return web.json_response({"error": why}, status=403) if why else None


def state_json(kie: "KieSimulator") -> dict[str, Any]:
    service = kie.service
    return {
        "faults": kie.faults.as_json(),
        "speed": service.speed,
        "credits": service.credits / 1000,
        "refused": {"create": service.creates.refused, "status": service.queries.refused},
        "tasks": [
            {"id": task.id, "model": task.model.id, "state": task.state, "faults": sorted(task.faults)}
            for task in list(service.tasks.values())[-100:]
        ],
        "callbacks": [{"task": sent.task, "status": sent.status} for sent in service.callback_sender.sent[-100:]],
    }


def apply(kie: "KieSimulator", body: dict[str, Any]) -> None:
    """Apply the body of a POST. Raises ValueError, TypeError, AttributeError or KeyError for a wrong one."""
    service, faults = kie.service, kie.faults
    if body.get("clear"):
        faults.clear()
    faults.switch(*read_faults(body.get("on", ())))
    faults.switch(*read_faults(body.get("off", ())), on=False)
    for name, probability in body.get("chances", {}).items():
        faults.set_probability(Fault(name), float(probability))
    if "order" in body:
        faults.order(*read_faults(body["order"]))
    for task_id, names in body.get("task", {}).items():
        service.tasks[task_id].faults |= set(read_faults(names))
    service.speed = float(body.get("speed", service.speed))
    service.credits = round(float(body["credits"]) * 1000) if "credits" in body else service.credits
    if body.get("expire_files"):
        service.files.expire()
