"""The chat page's list of simulated providers: which are up, which orders each was asked to make.

`GET /sim/providers` lists them, `POST /sim/providers` with `{"name": …, "up": false}` takes one down.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

from genlock.sandbox.serving import Listener

if TYPE_CHECKING:
    from genlock.sandbox.telegram.simulator import TelegramSimulator

ORDERS_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class SimulatedProvider:
    """A provider that the chat page can take down and bring up again."""

    name: str
    title: str
    listener: Listener
    count_tasks: Callable[[], int]

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "title": self.title, "up": self.listener.is_open, "tasks": self.count_tasks()}


def add_provider_switches(app: web.Application, telegram: "TelegramSimulator") -> None:
    def answer() -> web.Response:
        lines = [event.data["line"] for event in telegram.state.events.since(0) if event.kind == "log"]
        providers = [provider.as_json() for provider in telegram.providers.values()]
        return web.json_response({"providers": providers, "orders": recent_orders(lines)})

    async def show(_: web.Request) -> web.Response:
        return answer()

    async def switch(request: web.Request) -> web.Response:
        try:
            body = await request.json()
            listener, up = telegram.providers[body["name"]].listener, body["up"]
        except (ValueError, TypeError, KeyError):
            error = f'send {{"name": …, "up": true or false}}; providers: {", ".join(telegram.providers)}'
            return web.json_response({"error": error}, status=400)
        try:
            await (listener.open() if up is True else listener.close())
        except OSError as problem:
            return web.json_response({"error": f"the port cannot be opened: {problem}"}, status=409)
        return answer()

    app.router.add_get("/sim/providers", show)
    app.router.add_post("/sim/providers", switch)


def recent_orders(lines: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the newest orders with the providers that were asked to make each, in turn, from the service's log."""
    orders: dict[Any, dict[str, Any]] = {}
    for line in lines:
        if isinstance(line, Mapping) and isinstance(job := line.get("job"), int):
            _note(orders, job, line)
    return list(reversed(orders.values()))[:ORDERS_SHOWN]


def _note(orders: dict[Any, dict[str, Any]], job: int, line: Mapping[str, Any]) -> None:
    match line.get("event"):
        case "SUBMIT_START":
            asked = orders.setdefault(job, {"job": job, "attempts": [], "delivered": False})["attempts"]
            again = asked and asked[-1]["code"] is None and asked[-1]["provider"] == line.get("provider")
            if not again:  # the same attempt is submitted again after a provider was busy
                asked.append({"provider": line.get("provider"), "code": None})
        case "FAILED_OVER" if job in orders:
            orders[job]["attempts"][-1]["code"] = line.get("code") or "failed"
        case "MARK_DELIVERED" if job in orders:
            orders[job]["delivered"] = True
