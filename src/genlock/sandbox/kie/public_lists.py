"""The lists of models and prices that Kie.ai's web site reads, from the simulator's catalog."""

import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from genlock.domain.catalog import Catalog
from genlock.sandbox.kie.endpoint import envelope
from genlock.sandbox.requests import json_object

MODELS_PATH = "/api/v1/playground/model-paths"
PRICES_PATH = "/client/v1/model-pricing/page"
PAGE_SIZE, PAGE_SIZE_MAX = 10, 100


class PublicListEndpoints:
    """Answers without a key. `catalog` returns the simulator's catalog at the time of the request."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog

    def add_to(self, router: web.UrlDispatcher) -> None:
        router.add_get(MODELS_PATH, self._models)
        router.add_post(PRICES_PATH, self._prices)

    async def _models(self, _: web.Request) -> web.Response:
        return _answer(sorted(self._catalog().models))

    async def _prices(self, request: web.Request) -> web.Response:
        body = await json_object(request) or {}
        size = min(_number(body.get("pageSize"), PAGE_SIZE), PAGE_SIZE_MAX)
        page, rows = _number(body.get("pageNum"), 1), self._rows()
        records = rows[(page - 1) * size : page * size]
        pages = -(-len(rows) // size)
        return _answer({"records": records, "total": len(rows), "size": size, "current": page, "pages": pages})

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {"modelDescription": row.label, "creditPrice": f"{row.credits:f}", "provider": model.vendor}
            for model in self._catalog().models.values()
            for row in (*model.prices, *model.extras)
            if row.label
        ]


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and value > 0 else default


def _answer(data: object) -> web.Response:
    return web.Response(text=json.dumps(envelope(200, "success", data)), content_type="application/json")
