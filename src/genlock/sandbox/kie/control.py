"""The hand on the simulated Kie.ai from outside: `GET /_control` looks, `POST /_control` changes."""

from typing import TYPE_CHECKING, Any

from aiohttp import web
from yarl import URL

from genlock.sandbox.foreign import foreign_host, foreign_page
from genlock.sandbox.kie.faults import Fault, read_faults

if TYPE_CHECKING:
    from genlock.sandbox.kie.simulator import KieSimulator


def add_control(app: web.Application, kie: "KieSimulator") -> None:
    async def look(request: web.Request) -> web.Response:
        return _refusal(kie, request) or web.json_response(told(kie))

    async def change(request: web.Request) -> web.Response:
        if refusal := _refusal(kie, request):
            return refusal
        if request.content_type != "application/json":  # which another site's page cannot send unasked
            return web.json_response({"error": "send application/json"}, status=415)
        try:
            apply(kie, await request.json())
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            return web.json_response({"error": str(error), "faults": list(Fault)}, status=400)
        return web.json_response(told(kie))

    app.router.add_get("/_control", look)
    app.router.add_post("/_control", change)


def _refusal(kie: "KieSimulator", request: web.Request) -> web.Response | None:
    why = foreign_host(request, URL(kie.url).host or "") or foreign_page(request)
    return web.json_response({"error": why}, status=403) if why else None


def told(kie: "KieSimulator") -> dict[str, Any]:
    shop = kie.shop
    return {
        "faults": kie.faults.told(),
        "speed": shop.speed,
        "credits": shop.credits / 1000,
        "refused": {"create": shop.creates.refused, "status": shop.queries.refused},
        "tasks": [
            {"id": task.id, "model": task.model.id, "state": task.state, "faults": sorted(task.faults)}
            for task in list(shop.tasks.values())[-100:]
        ],
        "callbacks": [{"task": sent.task, "status": sent.status} for sent in shop.caller.sent[-100:]],
    }


def apply(kie: "KieSimulator", said: dict[str, Any]) -> None:
    """What may be said, each optional: clear, on, off, chances, order, task, speed, credits, expire_files."""
    shop, faults = kie.shop, kie.faults
    if said.get("clear"):
        faults.clear()
    faults.switch(*read_faults(said.get("on", ())))
    faults.switch(*read_faults(said.get("off", ())), on=False)
    for word, probability in said.get("chances", {}).items():
        faults.rng(Fault(word), float(probability))
    if "order" in said:
        faults.order(*read_faults(said["order"]))
    for task_id, words in said.get("task", {}).items():
        shop.tasks[task_id].faults |= set(read_faults(words))
    shop.speed = float(said.get("speed", shop.speed))
    shop.credits = round(float(said["credits"]) * 1000) if "credits" in said else shop.credits
    if said.get("expire_files"):
        shop.files.expire()
