"""Ids of files in the inputs of orders."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from genlock.api.parts import ApiParts
from genlock.api.problems import Fault, Problem, invalid
from genlock.api.task_inputs import has_jobs, with_tasks
from genlock.api.uploads import ID_PREFIX, to_provider
from genlock.domain.catalog import Model
from genlock.domain.errors import MediaNotFound
from genlock.domain.field import FILES, Field
from genlock.domain.stored_file import StoredFile
from genlock.domain.upload import Upload

ID_LENGTH_MAX = 60


class FileInputs:
    """Replaces ids of files in an order's input by URLs that the provider can read, and ids of jobs by tasks."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts

    async def resolve(
        self, account_id: int, model_id: str, values: Mapping[str, Any], request_key: str | None
    ) -> tuple[Mapping[str, Any], dict[str, float]]:
        """Return the values with URLs, and the measured lengths of the files by URL. Raises Problem.

        With a request key that was used before, nothing is looked up: the order exists.
        """
        model = self._parts.catalog.get().models.get(model_id)
        if model is None or not (has_jobs(model, values) or any(_ids(field, values) for field in model.fields)):
            return values, {}
        store = self._parts.store
        if request_key is not None and await store.job_by_request_key(account_id, request_key) is not None:
            return values, {}
        resolved, seconds = await with_tasks(self._parts, account_id, model, values), {}
        for field in model.fields:
            for file_id in _ids(field, values):
                url, length = await self._url(account_id, field, file_id)
                resolved[field.name] = _replaced(resolved[field.name], file_id, url)
                if length is not None:
                    seconds[url] = length
                if request_key is not None:
                    await store.mark_upload_used(file_id)
        _check_lengths(model, resolved, seconds)
        return resolved, seconds

    async def _url(self, account_id: int, field: Field, file_id: str) -> tuple[str, float | None]:
        upload = await self._parts.store.upload(file_id) if len(file_id) <= ID_LENGTH_MAX else None
        if upload is None or upload.account_id != account_id:
            raise _wrong_input(
                field, "file_unknown", f"there is no file {file_id[:ID_LENGTH_MAX]} in this account, or not any more"
            )
        if upload.kind != field.type.value:
            detail = f"must be of type {field.type.value}, and {file_id} is of type {upload.kind}"
            raise _wrong_input(field, "file_kind", detail)
        url, _, reference = upload.file.partition(" ")
        if self._parts.storage.is_old(upload.age_seconds):
            url = await self._renew(upload, StoredFile.parse(reference), field)
        return url, upload.seconds

    async def _renew(self, upload: Upload, stored: StoredFile, field: Field) -> str:
        """Upload a file to the provider again, from our copy."""
        parts = self._parts
        try:
            copy = await to_provider(
                parts, lambda: parts.media.read(stored.key, 0, stored.size), stored.key.rpartition("/")[2]
            )
        except MediaNotFound:
            raise _wrong_input(field, "file_expired", f"the file {upload.key} has expired; send it again") from None
        await parts.store.add_upload(replace(upload, file=f"{copy.url} {stored}"))
        await parts.store.save_upload_copy(replace(copy, key=upload.key))
        return copy.url


def _wrong_input(field: Field, code: str, detail: str, **limits: float) -> Problem:
    return invalid([Fault(pointer=f"/input/{field.name}", detail=detail, code=code, limits=limits)], "invalid_input")


def _ids(field: Field, values: Mapping[str, Any]) -> list[str]:
    if field.type not in FILES:
        return []
    value = values.get(field.name)
    given = value[: (field.max_count or 1) + 1] if isinstance(value, list) else [value]
    return [item for item in given if isinstance(item, str) and item.startswith(ID_PREFIX)]


def _replaced(value: Any, file_id: str, url: str) -> Any:
    return [url if item == file_id else item for item in value] if isinstance(value, list) else url


def _check_lengths(model: Model, values: Mapping[str, Any], seconds: Mapping[str, float]) -> None:
    """Raise Problem if a file plays longer than the model allows."""
    for field in model.fields:
        if field.type not in FILES or field.max_seconds is None:
            continue
        value = values.get(field.name)
        for url in value if isinstance(value, list) else [value]:
            length = seconds.get(url) if isinstance(url, str) else None
            if length is not None and length > field.max_seconds + 1:
                detail = f"plays {length:g} seconds; at most {field.max_seconds:g} are allowed"
                raise _wrong_input(field, "file_length", detail, max=float(field.max_seconds), given=length)
