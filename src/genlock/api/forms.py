"""Reads `multipart/form-data` as it arrives: texts are kept in memory, the one file goes to disk."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from genlock.api.problems import Fault, Problem, bad_request, invalid
from genlock.api.reading import refused_body, sender_name, too_large
from genlock.web.requests import BodyMemory, RequestRefused, Reservation

MEDIA_TYPE = "multipart/form-data"
#: as in the chat
FILE_BYTES_MAX = 20_000_000
#: all texts of a form together
TEXT_BYTES_MAX = 250_000
PARTS_MAX = 50
SECONDS_MAX = 120.0
WRITE_BYTES = 1_000_000
NAME_LENGTH_MAX = 100


@dataclass(kw_only=True)
class Form:
    texts: dict[str, str] = field(default_factory=dict)
    #: the values of names that end with `[]`, without these brackets
    lists: dict[str, list[str]] = field(default_factory=dict)
    #: the file, if the form has one, at its beginning
    file: IO[bytes] | None = None
    file_bytes: int = 0


def is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == MEDIA_TYPE


async def receive_file(request: Request, file: IO[bytes]) -> int:
    """Write a body that is the file itself to disk and return its size. Raises Problem."""
    body = _Body(file)
    await _feed(request, body.add, body, FILE_BYTES_MAX)
    file.seek(0)
    return body.size


async def receive_form(
    request: Request, memory: BodyMemory, account_id: int, file_field: str, open_file: Callable[[], IO[bytes]]
) -> Form:
    """Read a form. Its file, if it has one, is the field `file_field` and goes to `open_file()`. Raises Problem."""
    _, options = parse_options_header(request.headers.get("content-type", ""))
    if not options.get(b"boundary"):
        raise _invalid_form("Content-Type names no boundary")
    reader = _FormReader(file_field, open_file, memory, sender_name(account_id))
    try:
        parser = MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": reader.begin_part,
                "on_header_field": reader.add_header_name,
                "on_header_value": reader.add_header_value,
                "on_header_end": reader.end_header,
                "on_headers_finished": reader.end_headers,
                "on_part_data": reader.add_data,
                "on_part_end": reader.end_part,
                "on_end": reader.end,
            },
        )
        await _feed(request, parser.write, reader.body, FILE_BYTES_MAX + TEXT_BYTES_MAX + PARTS_MAX * 10_000)
    except FormParserError as error:
        raise _invalid_form(str(error)[:200]) from None
    except RequestRefused as refused:
        raise refused_body(refused) from None
    finally:
        reader.release()
    if not reader.ended:
        raise _invalid_form("its last boundary is missing")
    if reader.form.file is not None:
        reader.form.file.seek(0)
    return reader.form


async def _feed(request: Request, write: Callable[[bytes], int], body: "_Body", bytes_max: int) -> None:
    """Pass the body of a request on in pieces, and write the file's pieces to disk outside of the event loop."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:18]) > bytes_max:
        raise too_large(FILE_BYTES_MAX)
    received = 0
    try:
        async with asyncio.timeout(SECONDS_MAX):
            async for chunk in request.stream():
                received += len(chunk)
                if received > bytes_max:
                    raise too_large(FILE_BYTES_MAX)
                write(chunk)
                if body.waiting >= WRITE_BYTES:
                    await body.flush()
    except TimeoutError:
        close = {"Connection": "close"}
        raise Problem(
            status=408, code="body_timeout", detail="the file took too long to arrive; send it again", headers=close
        ) from None
    except ClientDisconnect:
        raise bad_request("incomplete_body", "the connection ended before the body did; send it again") from None
    await body.flush()


def _invalid_form(detail: str) -> Problem:
    return bad_request("invalid_form", f"the form cannot be read: {detail}")


class _Body:
    """The pieces of a file on their way to the disk."""

    def __init__(self, file: IO[bytes] | None = None) -> None:
        self.file = file
        self.size = 0
        self.waiting = 0
        self._pieces: list[bytes] = []

    def add(self, piece: bytes) -> int:
        self.size += len(piece)
        if self.size > FILE_BYTES_MAX:
            raise too_large(FILE_BYTES_MAX)
        self._pieces.append(piece)
        self.waiting += len(piece)
        return len(piece)

    async def flush(self) -> None:
        pieces, self._pieces, self.waiting = self._pieces, [], 0
        if self.file is not None:
            await asyncio.to_thread(self.file.writelines, pieces)


class _FormReader:
    """Collects what the parser finds. Raises Problem at the first part that is not taken."""

    def __init__(self, file_field: str, open_file: Callable[[], IO[bytes]], memory: BodyMemory, sender: str) -> None:
        self.body = _Body()
        self.form = Form()
        self.ended = False
        self._file_field = file_field
        self._open_file = open_file
        self._reservation = Reservation(memory, sender)
        self._parts = 0
        self._text_bytes = 0
        self.begin_part()
        self._parts = 0

    def begin_part(self) -> None:
        self._parts += 1
        if self._parts > PARTS_MAX:
            raise _invalid_form(f"it has more than {PARTS_MAX} parts")
        self._header_name, self._header_value = b"", b""
        self._headers: dict[bytes, bytes] = {}
        self._text: list[bytes] = []
        self._name = ""
        self._in_file = False

    def add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def end_header(self) -> None:
        self._headers[self._header_name.lower()] = self._header_value
        self._header_name, self._header_value = b"", b""

    def end_headers(self) -> None:
        kind, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode(errors="replace")
        if kind != b"form-data" or not name or len(name) > NAME_LENGTH_MAX:
            raise _invalid_form(f"each part needs a name of 1 to {NAME_LENGTH_MAX} characters")
        self._name = name
        self._in_file = b"filename" in options
        if self._in_file and name != self._file_field:
            raise invalid([Fault(pointer=name, detail=f"cannot be a file; the file is `{self._file_field}`")])
        if name in self.form.texts or (name == self._file_field and self.form.file is not None):
            raise invalid([Fault(pointer=name, detail="is given more than once")])
        if self._in_file:
            self.form.file = self.body.file = self._open_file()

    def add_data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self.body.add(data[start:end])
            return
        self._text_bytes += end - start
        if self._text_bytes > TEXT_BYTES_MAX:
            raise too_large(TEXT_BYTES_MAX)
        self._reservation.hold(self._text_bytes, authenticated=True)
        self._text.append(data[start:end])

    def end_part(self) -> None:
        if self._in_file:
            self.form.file_bytes = self.body.size
            return
        try:
            text = b"".join(self._text).decode()
        except UnicodeDecodeError:
            raise invalid([Fault(pointer=self._name, detail="is not UTF-8")]) from None
        if "\x00" in text:
            raise invalid([Fault(pointer=self._name, detail="contains characters that are not text")])
        if self._name.endswith("[]"):
            self.form.lists.setdefault(self._name[:-2], []).append(text)
        else:
            self.form.texts[self._name] = text

    def end(self) -> None:
        self.ended = True

    def release(self) -> None:
        self._reservation.release()
