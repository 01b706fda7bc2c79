"""Ids of jobs in the inputs of orders: a model that goes on with an earlier result needs the provider's task."""

from collections.abc import Mapping
from typing import Any

from genlock.api.parts import ApiParts
from genlock.api.problems import Fault, invalid
from genlock.domain.catalog import Model
from genlock.domain.field import Field, FieldType
from genlock.domain.offer import NOTHING


def has_jobs(model: Model, values: Mapping[str, Any]) -> bool:
    return bool(_fields(model, values))


async def with_tasks(parts: ApiParts, account_id: int, model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with the provider's tasks in place of the account's own jobs. Raises Problem.

    Only a job whose result the client has got may be used: tasks of others and unpaid results are not its own.
    """
    resolved = dict(values)
    for field in _fields(model, values):
        given = values[field.name]
        job_id = parts.view.job_id(given) if isinstance(given, str) else None
        job = None if job_id is None else await parts.store.job(job_id)
        if job is None or job.account_id != account_id or not job.is_received or not job.task_id:
            detail = "must be the id of a job of this account that has succeeded"
            raise invalid([Fault(pointer=f"/input/{field.name}", detail=detail, code="task")], "invalid_input")
        resolved[field.name] = job.task_id
    return resolved


def _fields(model: Model, values: Mapping[str, Any]) -> list[Field]:
    return [field for field in model.fields if field.type is FieldType.TASK and values.get(field.name) not in NOTHING]
