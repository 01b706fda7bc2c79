"""Models on offer: what they take, what they cost, how long they need."""

from starlette.responses import Response

from genlock.api.input_schema import input_schema
from genlock.api.operation import Answered, Call, Operation
from genlock.api.parts import ApiParts
from genlock.api.problems import not_found
from genlock.api.types import ModelAnswer, ModelList
from genlock.domain.api_key import ApiScope
from genlock.domain.catalog import Catalog, Model, Status, price_from
from genlock.domain.money import THOUSANDTHS


class ModelRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        #: the list of the catalog that it was made from: writing it takes longer than sending it
        self._list: tuple[Catalog, str] | None = None

    def operations(self) -> list[Operation]:
        return [
            Operation(
                name="list_models",
                method="GET",
                path="/v1/models",
                summary="List the models on offer",
                handle=self.list,
                scope=ApiScope.READ,
                tag="models",
                answers={200: Answered(description="All models.", kind=ModelList)},
            ),
            Operation(
                name="get_model",
                method="GET",
                path="/v1/models/{model_id}",
                summary="Read one model",
                handle=self.get,
                scope=ApiScope.READ,
                tag="models",
                answers={200: Answered(description="The model.", kind=ModelAnswer)},
                problems=(404,),
            ),
        ]

    async def list(self, call: Call) -> Response:
        catalog = self._parts.catalog.get()
        if self._list is None or self._list[0] is not catalog:
            offered = [model for model_id in catalog.models if (model := offered_model(self._parts, model_id))]
            answer = ModelList(data=[self._answer(model) for model in offered])
            self._list = catalog, answer.model_dump_json()
        return Response(self._list[1], media_type="application/json")

    async def get(self, call: Call) -> Response:
        model = offered_model(self._parts, call.path("model_id"))
        if model is None:
            raise not_found("there is no such model on offer")
        return Response(self._answer(model).model_dump_json(), media_type="application/json")

    def _answer(self, model: Model) -> ModelAnswer:
        rules = self._parts.rules
        return ModelAnswer(
            id=model.id,
            title=model.title,
            vendor=model.vendor,
            owned_by=model.vendor,
            category=model.category.value,
            outputs=[output.value for output in model.outputs],
            price_from=price_from(model, rules.markup, rules.credit_usd) / THOUSANDTHS,
            expected_seconds=model.expected_seconds,
            deadline_seconds=model.deadline_seconds,
            input_schema=input_schema(model),
        )


def offered_model(parts: ApiParts, model_id: str) -> Model | None:
    """Return a model that clients can order; None if there is no such model."""
    model = parts.catalog.get().models.get(model_id)
    is_offered = model is not None and model.status is Status.OFFERED and model.made_by(parts.engine.ctx.providers)
    return model if is_offered else None
