"""`POST /v1/files`: files for the inputs of orders, as the body itself or as a form."""

from contextlib import ExitStack
from typing import IO

from starlette.responses import Response

from genlock.api.forms import FILE_BYTES_MAX, MEDIA_TYPE, is_form, receive_file, receive_form
from genlock.api.operation import Answered, Call, Operation
from genlock.api.problems import Fault, invalid
from genlock.api.types import FileAnswer
from genlock.api.uploads import Arrival, Uploads
from genlock.domain.api_key import ApiScope
from genlock.web.requests import BodyMemory

FILE_FIELD = "file"
#: OpenAI's clients always send it; a file of ours may be used for any order
_IGNORED_FIELDS = frozenset({"purpose"})
_BINARY = {"type": "string", "format": "binary"}
_FORM = {
    "type": "object",
    "properties": {
        FILE_FIELD: _BINARY,
        # Without a type: a field of a form is a text, whatever a client means by it, and any is accepted.
        "purpose": {"description": "has no effect: a file may be used for any order"},
    },
    "required": [FILE_FIELD],
    "additionalProperties": False,
}


class FileRoutes:
    def __init__(self, uploads: Uploads, memory: BodyMemory) -> None:
        self._uploads = uploads
        self._memory = memory

    def operations(self) -> list[Operation]:
        return [
            Operation(
                name="create_file",
                method="POST",
                path="/v1/files",
                summary="Send a file for an order",
                description=f"An image, a video or a sound, up to {FILE_BYTES_MAX:,} bytes: as the body itself, or "
                f"as the field `{FILE_FIELD}` of a form. Its type is found from its content.",
                handle=self.create,
                scope=ApiScope.ORDER,
                tag="files",
                raw_bodies={"application/octet-stream": _BINARY, MEDIA_TYPE: _FORM},
                answers={201: Answered(description="The file is stored.", kind=FileAnswer)},
                problems=(400, 408, 413, 422),
            )
        ]

    async def create(self, call: Call) -> Response:
        await self._uploads.check_quota(call)
        with ExitStack() as closing:
            async with Arrival() as arrival:
                file = closing.enter_context(self._uploads.receiving(call.account_id, arrival))
                size = await self._receive(call, file)
            answer = await self._uploads.store(call, file, size)
        return Response(answer.model_dump_json(), 201, media_type="application/json")

    async def _receive(self, call: Call, file: IO[bytes]) -> int:
        """Write the file to disk and return its size. Raises Problem."""
        if not is_form(call.request):
            return await receive_file(call.request, file)
        form = await receive_form(call.request, self._memory, call.account_id, FILE_FIELD, lambda: file)
        unknown = (form.texts.keys() | form.lists.keys()) - _IGNORED_FIELDS
        _check_fields(unknown, has_file=form.file is not None)
        return form.file_bytes


def _check_fields(unknown: set[str], *, has_file: bool) -> None:
    faults = [Fault(pointer=name, detail="is not a field of this form") for name in sorted(unknown - {FILE_FIELD})]
    if not has_file:
        faults.append(Fault(pointer=FILE_FIELD, detail="is required, with a file name"))
    if faults:
        raise invalid(faults)
