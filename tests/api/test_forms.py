"""Files as forms: stored like bodies that are the file itself, streamed, with every wrong part named."""

import io
from typing import Any

import aiohttp
import pytest

from genlock.api.forms import PARTS_MAX
from tests.api.world import ApiWorld, Client

pytestmark = pytest.mark.asyncio(loop_scope="module")
BOUNDARY = "b0undary"
FILE_HEAD = 'form-data; name="file"; filename="cat.png"'


def part(disposition: str, content: bytes) -> bytes:
    return f"--{BOUNDARY}\r\nContent-Disposition: {disposition}\r\n\r\n".encode() + content + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()


async def send(client: Client, body: Any, content_type: str = f"multipart/form-data; boundary={BOUNDARY}") -> Any:
    return await client.request("POST", "/v1/files", data=io.BytesIO(body), headers={"Content-Type": content_type})


async def test_a_file_in_a_form_is_stored_like_one_that_is_the_body(world: ApiWorld, png: bytes) -> None:
    client = await world.client()
    form = aiohttp.FormData()
    form.add_field("purpose", "vision")
    form.add_field("file", png, filename='../котик".png', content_type="text/plain")
    sent = await client.request("POST", "/v1/files", data=form)

    assert sent.status == 201, sent.json
    assert (sent.json["kind"], sent.json["content_type"], sent.json["bytes"]) == ("image", "image/png", len(png))
    quote = await client.post("/v1/quote", {"model": "recraft/remove-background", "input": {"image": sent.json["id"]}})
    assert quote.status == 200, quote.json
    copies = [path.read_bytes() for path in world.media_folder.rglob(f"{client.key.account_id}/*")]
    assert copies == [png]


async def test_every_wrong_part_of_a_form_is_named_and_nothing_is_stored(world: ApiWorld, png: bytes) -> None:
    client = await world.client()
    file = part(FILE_HEAD, png)
    cases: dict[str, tuple[Any, int, str, str]] = {
        "no file": (part('form-data; name="purpose"', b"x") + END, 422, "invalid_request", "file: is required"),
        "a text": (part('form-data; name="file"', png[:4].replace(b"\x89", b"")) + END, 422, "invalid_request", "file"),
        "two files": (file + file + END, 422, "invalid_request", "file: is given more than once"),
        "another field": (file + part('form-data; name="size"', b"1") + END, 422, "invalid_request", "size: is not"),
        "another file": (part('form-data; name="a"; filename="b"', b"x") + END, 422, "invalid_request", "a: cannot be"),
        "not UTF-8": (
            part('form-data; name="purpose"', b"\xff") + END,
            422,
            "invalid_request",
            "is not UTF-8",
        ),
        "NUL": (part('form-data; name="purpose"', b"\0") + END, 422, "invalid_request", "purpose"),
        "no name": (part("form-data", b"x") + END, 400, "invalid_form", "needs a name"),
        "cut off": (file[:-30], 400, "invalid_form", "last boundary"),
        "not a form": (b"{}", 400, "invalid_form", "cannot be read"),
        "empty": (b"", 400, "invalid_form", "last boundary"),
        "many parts": (part('form-data; name="x[]"', b"") * (PARTS_MAX + 1) + END, 400, "invalid_form", "parts"),
        "long text": (part('form-data; name="purpose"', b"x" * 300_000) + END, 413, "too_large", "250000"),
        "long header": (part(f'form-data; name="{"x" * 9000}"', b"x") + END, 400, "invalid_form", "cannot be read"),
        "no media": (part(FILE_HEAD, b"hello") + END, 422, "not_media", "body"),
        "large file": (part(FILE_HEAD, b"x" * 20_000_001) + END, 413, "too_large", "20000000"),
    }
    wrong = {}
    for name, (body, status, code, words) in cases.items():
        answer = await send(client, body)
        if (answer.status, answer.json["code"]) != (status, code) or words not in answer.json["detail"]:
            wrong[name] = answer.json
    without_boundary = await send(client, file + END, "multipart/form-data")
    assert (without_boundary.status, without_boundary.json["code"]) == (400, "invalid_form")
    assert wrong == {}
    assert list(world.media_folder.rglob(f"{client.key.account_id}/*")) == []


async def test_a_model_whose_id_has_a_slash_can_be_read(world: ApiWorld) -> None:
    client = await world.client()
    for model in (await client.get("/v1/models")).json["data"]:
        if "/" in model["id"]:
            answer = await client.get(f"/v1/models/{model['id']}")
            assert (answer.status, answer.json["id"]) == (200, model["id"])
            break
    assert (await client.get("/v1/models/no/such")).status == 404
