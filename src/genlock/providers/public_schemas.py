"""Fetches what a provider publishes about many models, a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from genlock.domain.errors import ProviderError
from genlock.domain.model_schema import ModelSchema
from genlock.providers.http import HttpAnswer
from genlock.providers.json_values import load_object

AT_ONCE = 5
_NOT_FOUND = 404


async def fetch_each(
    ids: Collection[str], fetch: Callable[[str], Awaitable[ModelSchema | None]]
) -> dict[str, ModelSchema | None]:
    """Return the schema of every model; None: the provider does not have it. Raises ProviderError.

    If not a single model is found, the schemas have moved rather than the models: that is an error, too.
    """
    slots = asyncio.Semaphore(AT_ONCE)

    async def fetch_one(model: str) -> ModelSchema | None:
        async with slots:
            return await fetch(model)

    wanted = list(dict.fromkeys(ids))
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(fetch_one(model)) for model in wanted]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    found = {model: task.result() for model, task in zip(wanted, tasks, strict=True)}
    if found and all(schema is None for schema in found.values()):
        raise ProviderError(f"none of {len(found)} models was found, so their schemas must be published elsewhere now")
    return found


def published(answer: HttpAnswer, what: str) -> Mapping[str, Any] | None:
    """Return a published document; None if there is none. Raises ProviderError that says what cannot be read."""
    if answer.status == _NOT_FOUND:
        return None
    if not answer.is_ok:
        raise ProviderError(f"{what} cannot be read: status {answer.status}")
    try:
        return load_object(answer.content)
    except ValueError as error:
        raise ProviderError(f"{what} cannot be read: {error}") from None
