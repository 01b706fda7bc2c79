"""Models of every family and kind of output, and jobs that order them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from genlock.domain.catalog import Catalog, Category, Model, Output, Status
from genlock.domain.field import Field, FieldType
from genlock.domain.job import Job
from genlock.domain.tariff import PriceRow
from genlock.domain.task import TaskOrder
from genlock.providers.kie.families import Family
from tests.rows import JOB

PROMPT = Field(name="prompt", type=FieldType.TEXT, required=True, max_length=1000)
RATIO = Field(name="aspect_ratio", type=FieldType.CHOICE, choices=("1:1", "16:9"), default="1:1")
COUNT = Field(name="max_images", type=FieldType.INTEGER, default=1, min=1, max=6)


def _model(id_: str, output: Output, **more: Any) -> Model:
    plain: dict[str, Any] = {
        "id": id_,
        "title": id_,
        "vendor": "test",
        "provider": "kie",
        "provider_credit_usd": Decimal("0.005"),
        "category": Category.TEXT_TO_IMAGE,
        "outputs": (output,),
        "fields": (PROMPT, RATIO),
        "prices": (PriceRow(credits=Decimal("0.8")),),
        "expected_seconds": 10,
        "deadline_seconds": 600,
    }
    return Model(**plain | more)


def _suno(operation: str, output: Output, count: int = 1) -> Model:
    more = {"family": Family.SUNO, "operation": operation, "count": count, "category": Category.MUSIC}
    return _model(f"suno/{operation}", output, fields=(PROMPT,), **more)


MODELS = (
    _model("z-image", Output.IMAGE),
    _model("many-images", Output.IMAGE, fields=(PROMPT, COUNT), count="max_images"),
    _model("film", Output.VIDEO),
    _model("voice", Output.AUDIO, category=Category.TEXT_TO_SPEECH),
    _model("ear", Output.TEXT, category=Category.SPEECH_TO_TEXT),
    _model("ai-music-api/generate", Output.AUDIO, category=Category.MUSIC, count=2),
    _model("sora-2", Output.VIDEO, status=Status.PAUSED),
    _model("gone", Output.VIDEO, status=Status.DEAD),
    _model("veo3_fast", Output.VIDEO, family=Family.VEO, fixed={"model": "veo3_fast"}),
    _model("runway", Output.VIDEO, family=Family.RUNWAY),
    _model("aleph", Output.VIDEO, family=Family.ALEPH),
    _model("4o", Output.IMAGE, family=Family.GPT4O),
    _model("flux-kontext-pro", Output.IMAGE, family=Family.FLUX_KONTEXT, fixed={"model": "flux-kontext-pro"}),
    _suno("generate", Output.AUDIO, 2),
    _suno("extend", Output.AUDIO, 2),
    _suno("lyrics", Output.TEXT, 2),
    _suno("wav", Output.AUDIO),
    _suno("mp4", Output.VIDEO),
    _suno("vocal-removal", Output.AUDIO, 2),
    _suno("cover", Output.IMAGE, 2),
    _suno("midi", Output.TEXT),
)
CATALOG = Catalog(models={model.id: model for model in MODELS})
#: the models that can be ordered
WORKING = [model.id for model in MODELS if model.status is Status.OFFERED]


def job(model: str = "z-image", values: Mapping[str, Any] | None = None) -> Job:
    given = {"prompt": "a fox in the snow"} if values is None else values
    return replace(JOB, model=model, input=json.dumps({**CATALOG.models[model].fixed, **given}))


def order(ordered: Job, callback_url: str | None = None) -> TaskOrder:
    """Return what Kie.ai is asked to make for a job."""
    return TaskOrder(job=ordered, offer=CATALOG.models[ordered.model].offers[0], callback_url=callback_url)
