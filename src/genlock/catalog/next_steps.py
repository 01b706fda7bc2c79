"""Loads the next steps: what can be done with a result, and by which models."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from genlock.catalog.reader import check, parse
from genlock.catalog.schema import StepsFile, StepTable
from genlock.domain.catalog import Model
from genlock.domain.errors import InvalidCatalog, InvalidInput
from genlock.domain.field import FieldType
from genlock.domain.next_step import NextStep

STEPS = "steps.toml"


def load_next_steps(path: Path, models: Mapping[str, Model]) -> tuple[NextStep, ...]:
    """Load the steps of a folder of models; none if it has no such file. Raises InvalidCatalog."""
    if not path.exists():
        return ()
    file = check(StepsFile, parse(path), path.name)
    by_kind = {
        FieldType.IMAGE: file.image, FieldType.VIDEO: file.video, FieldType.AUDIO: file.audio, FieldType.TEXT: file.text
    }  # fmt: skip
    steps = tuple(_step(kind, name, table) for kind, tables in by_kind.items() for name, table in tables.items())
    for problem in _problems(steps, models):
        raise InvalidCatalog(f"{path.name}: {problem}")
    return steps


def _step(kind: FieldType, name: str, table: StepTable) -> NextStep:
    return NextStep(
        kind=kind,
        name=name,
        category=table.category.value,
        prompt=table.prompt,
        reply=table.reply,
        of=tuple(category.value for category in table.of),
        values=table.values,
        models=table.models,
    )


def _problems(steps: tuple[NextStep, ...], models: Mapping[str, Model]) -> Iterator[str]:
    for step in steps:
        where = f"{step.kind.value}.{step.name}"
        for model_id, name in step.models.items():
            model = models.get(model_id)
            field = model.field(name) if model else None
            if model is None:
                yield f"{where}: there is no model {model_id!r}"
            elif field is None or field.type is not step.kind:
                yield f"{where}: {model_id} has no field {name!r} for {step.kind.value}"
            else:
                yield from (f"{where}: {model_id}: {problem}" for problem in _value_problems(step, model))


def _value_problems(step: NextStep, model: Model) -> Iterator[str]:
    for name, value in step.values.items():
        try:
            if (field := model.field(name)) is not None:
                field.clean(value)
        except InvalidInput as refused:
            yield f"{name} {refused.message}"
