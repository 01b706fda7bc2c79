"""Requests that are wrong are refused with a problem that names what is wrong; none of them is a server error."""

import asyncio
import json
from typing import IO, Any

import pytest

from genlock.domain.stored_file import StoredFile
from tests.api.world import MODEL, PROMPT, ApiWorld, Client
from tests.changes import PATIENCE_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="module")
ORDER = {"model": MODEL, "input": PROMPT}
CUT = {"model": "recraft/remove-background"}

#: body → status, code, and a pointer that must be named
BODIES: list[tuple[Any, int, str, str]] = [
    (b"", 400, "invalid_json", ""),
    (b"{", 400, "invalid_json", ""),
    (b"\xff\xfe", 400, "invalid_json", ""),
    (b"[" * 100_000, 400, "invalid_json", ""),
    (b'{"model": NaN, "input": {}}', 400, "invalid_json", ""),
    (b'{"model": "a", "model": "b", "input": {}}', 400, "invalid_json", ""),
    (b'{"model": "z-image", "input": {"prompt": "\\ud800"}}', 400, "invalid_json", ""),
    (b'{"model": "a", "input": ' + b"9" * 10_000 + b"}", 400, "invalid_json", ""),
    (b"[]", 422, "invalid_request", "body"),
    (b"null", 422, "invalid_request", "body"),
    (b"{}", 422, "invalid_request", "/model"),
    ({**ORDER, "modle": "x"}, 422, "invalid_request", "/modle"),
    ({**ORDER, "model": 5}, 422, "invalid_request", "/model"),
    ({**ORDER, "model": ""}, 422, "invalid_request", "/model"),
    ({**ORDER, "model": "x" * 201}, 422, "invalid_request", "/model"),
    ({**ORDER, "input": []}, 422, "invalid_request", "/input"),
    ({**ORDER, "input": {str(n): n for n in range(101)}}, 422, "invalid_request", "/input"),
    ({**ORDER, "metadata": {"a": 5}}, 422, "invalid_request", "/metadata/a"),
    ({**ORDER, "metadata": {"a": "\x00"}}, 422, "invalid_request", "/metadata/a"),
    ({**ORDER, "metadata": {str(n): "" for n in range(17)}}, 422, "invalid_request", "/metadata"),
    ({**ORDER, "metadata": {"a" * 41: ""}}, 422, "invalid_request", "/metadata/"),
    ({**ORDER, "max_price": -1}, 422, "invalid_request", "/max_price"),
    ({**ORDER, "model": "no/such"}, 404, "model_unavailable", ""),
    ({**ORDER, "model": "a\x00b"}, 404, "model_unavailable", ""),
    ({**ORDER, "input": {}}, 422, "invalid_input", "/input/prompt"),
    ({**ORDER, "input": {**PROMPT, "colour": 1}}, 422, "invalid_input", "/input/colour"),
    ({**ORDER, "input": {**PROMPT, "aspect_ratio": "7:13"}}, 422, "invalid_input", "/input/aspect_ratio"),
    ({**ORDER, "input": {"prompt": {"a": 1}}}, 422, "invalid_input", "/input/prompt"),
    ({**ORDER, "input": {"prompt": "\x00"}}, 422, "invalid_input", "/input/prompt"),
    ({**CUT, "input": {"image": "file_none"}}, 422, "invalid_input", "/input/image"),
    ({**CUT, "input": {"image": "file_" + "x" * 999}}, 422, "invalid_input", "/input/image"),
    ({**CUT, "input": {"image": "ftp://x"}}, 422, "invalid_input", "/input/image"),
]  # fmt: skip


async def test_every_wrong_body_of_an_order_is_named_and_orders_nothing(world: ApiWorld) -> None:
    client = await world.client()
    failures = []
    for number, (body, status, code, pointer) in enumerate(BODIES):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Idempotency-Key": f"k{number}", "Content-Type": "application/json"}
        answer = await client.request("POST", "/v1/jobs", headers=headers, data=data)
        pointers = [error["pointer"] for error in (answer.json or {}).get("errors", [])]
        wanted = not pointer or any(found.startswith(pointer) for found in pointers)
        if (answer.status, (answer.json or {}).get("code")) != (status, code) or not wanted:
            failures.append((data[:80], answer.status, answer.json))
    assert failures == []
    assert (await client.get("/v1/jobs")).json["data"] == []
    assert await world.available(client) == 1_000_000


async def test_other_content_types_and_large_bodies_are_refused(world: ApiWorld) -> None:
    client = await world.client()
    key = {"Idempotency-Key": "k"}
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json"):
        answer = await client.request(
            "POST", "/v1/jobs", headers={**key, "Content-Type": content_type}, data=json.dumps(ORDER)
        )
        assert (answer.status, answer.json["code"]) == (415, "unsupported_media_type"), content_type
    large = json.dumps({**ORDER, "input": {"prompt": "x" * 1_000_000}})
    answer = await client.request("POST", "/v1/jobs", headers={**key, "Content-Type": "application/json"}, data=large)
    assert (answer.status, answer.json["code"]) == (413, "too_large")


async def test_wrong_queries_cursors_ids_and_addresses_are_named(world: ApiWorld) -> None:
    client = await world.client()
    failures = []
    for path, status, pointer in (
        ("/v1/jobs?limit=0", 422, "?limit"), ("/v1/jobs?limit=101", 422, "?limit"), ("/v1/jobs?limit=x", 422, "?limit"),
        ("/v1/jobs?limit=1&limit=2", 422, "limit"), ("/v1/jobs?foo=1", 422, "?foo"),
        ("/v1/jobs?cursor=x", 422, "?cursor"),
        ("/v1/jobs?cursor=job_123", 404, ""), ("/v1/jobs?cursor=" + "j" * 101, 422, "?cursor"),
        ("/v1/ledger?cursor=x", 422, "?cursor"), ("/v1/ledger?cursor=1.99999", 422, "?cursor"),
        ("/v1/ledger?cursor=9999999999999999.0", 422, "?cursor"), ("/v1/ledger?cursor=%D9%A3.1", 422, "?cursor"),
        ("/v1/jobs/1", 404, ""), ("/v1/jobs/job_1", 404, ""), ("/v1/jobs/job_%00", 404, ""),
        ("/v1/jobs/job_abcdef", 404, ""),
        ("/v1/jobs/" + "j" * 3000, 404, ""), ("/v1/models/none", 404, ""), ("/v1", 404, ""), ("/v1/", 404, ""),
        ("/v1/jobs/", 404, ""), ("/v1/unknown", 404, ""), ("/v1/jobs/job_ZZZZZZ/results/0/x", 404, ""),
    ):  # fmt: skip
        answer = await client.get(path)
        pointers = [error["pointer"] for error in (answer.json or {}).get("errors", [])]
        if answer.status != status or (pointer and pointer not in pointers):
            failures.append((path[:60], answer.status, answer.json))
    assert failures == []


async def test_methods_that_an_address_does_not_take_are_405_with_those_it_takes(world: ApiWorld) -> None:
    client = await world.client()
    for path, allowed in (("/v1/jobs", "GET, HEAD, POST"), ("/v1/balance", "GET, HEAD"), ("/v1/quote", "POST")):
        answer = await client.request("DELETE", path)
        assert (answer.status, answer.headers["Allow"], answer.json["code"]) == (405, allowed, "method_not_allowed")


async def test_an_address_with_a_slash_at_its_end_is_404_that_says_so(world: ApiWorld) -> None:
    client = await world.client()
    for path, is_slash in (
        ("/v1/jobs/", True),
        ("/v1/balance//", True),
        ("/v1/nothing/", False),
        ("/v1/nothing", False),
    ):
        answer = await client.get(path)
        assert (answer.status, "slash" in answer.json["detail"]) == (404, is_slash), path


async def test_pages_of_jobs_and_ledger_show_everything_once(world: ApiWorld) -> None:
    client = await world.client()
    ordered = [(await client.order(wait=60)).json["id"] for _ in range(5)]

    for path, key, wanted in (("/v1/jobs", "id", ordered[::-1]), ("/v1/ledger", "kind", None)):
        seen, cursor, pages = [], "", 0
        while pages < 20:
            page = (await client.get(f"{path}?limit=2{cursor}")).json
            seen += [row[key] for row in page["data"]]
            pages += 1
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        whole = [row[key] for row in (await client.get(f"{path}?limit=100")).json["data"]]
        assert seen == whole
        assert wanted is None or seen == wanted


async def test_models_have_a_schema_a_price_and_a_time(world: ApiWorld) -> None:
    client = await world.client()
    models = (await client.get("/v1/models")).json["data"]
    assert len(models) > 50
    one = (await client.get(f"/v1/models/{MODEL}")).json
    assert one in models
    assert one["input_schema"]["required"] == ["prompt"]
    assert one["input_schema"]["additionalProperties"] is False
    assert one["expected_seconds"] > 0
    quote = (await client.post("/v1/quote", ORDER)).json
    assert quote["price"] >= one["price_from"] > 0
    assert (quote["charged"], quote["sufficient"], quote["available"]) == (False, True, 1000.0)
    assert await world.available(client) == 1_000_000


async def test_metadata_and_input_come_back_with_the_job(world: ApiWorld) -> None:
    client = await world.client()
    job = (await client.order(metadata={"order": "17", "ключ": "значение 🐈"})).json

    assert job["metadata"] == {"order": "17", "ключ": "значение 🐈"}
    assert job["input"]["prompt"] == PROMPT["prompt"]
    assert (await client.get(job["urls"]["get"])).json["metadata"] == job["metadata"]


async def test_a_file_is_stored_uploaded_once_and_used_by_its_id(world: ApiWorld, png: bytes) -> None:
    client = await world.client()
    sent = await client.request("POST", "/v1/files", data=png, headers={"Content-Type": "video/mp4"})
    assert (sent.status, sent.json["kind"], sent.json["content_type"]) == (201, "image", "image/png")
    body = {"model": "recraft/remove-background", "input": {"image": sent.json["id"]}}
    first = await client.request("POST", "/v1/jobs", headers={"Idempotency-Key": "f", "Prefer": "wait=60"}, json=body)
    again = await client.request("POST", "/v1/jobs", headers={"Idempotency-Key": "f"}, json=body)

    assert (first.status, first.json["status"]) == (202, "succeeded"), first.json
    assert again.json["id"] == first.json["id"]
    video = {"model": "wan/2-7-image-to-video", "input": {"prompt": "x", "first_clip_url": sent.json["id"]}}
    wrong_kind = await client.post("/v1/quote", video)
    assert wrong_kind.status == 422
    for content, status in ((b"", 422), (b"<html>", 422), (b"{}", 422), (b"plain words", 422), (png[:8], 201)):
        answer = await client.request("POST", "/v1/files", data=content)
        assert answer.status == status, (content, answer.json)


async def test_a_file_larger_than_the_limit_is_refused_and_one_just_below_is_taken(world: ApiWorld, png: bytes) -> None:
    client = await world.client()

    async def body(size: int) -> Any:
        yield png
        for _ in range((size - len(png)) // 100_000):
            yield b"\0" * 100_000

    assert (await client.request("POST", "/v1/files", data=body(19_900_000))).status == 201
    refused = await client.request("POST", "/v1/files", data=body(21_000_000))
    assert (refused.status, refused.json["code"]) == (413, "too_large")


async def test_a_flooding_key_gets_429_with_the_time_to_wait_and_others_go_on(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = world.api._parts.limits
    for name, value in (("_interval", 30.0), ("_burst", 4), ("_block_size", 2)):
        monkeypatch.setattr(limits, name, value)
    client, other = await world.client(), await world.client()
    answers = [await client.get("/v1/balance") for _ in range(6)]

    assert [answer.status for answer in answers] == [200] * 4 + [429] * 2
    assert [answer.headers["RateLimit"].partition(";t")[0] for answer in answers[:4]] == [
        f'"requests";r={left}' for left in (3, 2, 1, 0)
    ]
    assert answers[4].json["code"] == "too_many_requests"
    assert 1 <= int(answers[4].headers["Retry-After"]) <= 30
    assert answers[4].headers["RateLimit-Policy"] == '"requests";q=4;w=120'
    assert (await other.get("/v1/balance")).status == 200
    assert "Connection" not in answers[5].headers
    monkeypatch.setattr("genlock.api.app.DELAYED_MAX", 3)  # answers that wait at the same time
    refused = await asyncio.gather(*(client.get("/v1/balance") for _ in range(8)))
    assert sorted(answer.headers.get("Connection", "") for answer in refused) == [""] * 3 + ["close"] * 5


async def test_a_large_body_takes_permits_by_its_size_before_it_is_parsed(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = world.api._parts.limits
    for name, value in (("_interval", 30.0), ("_burst", 20), ("_block_size", 1)):
        monkeypatch.setattr(limits, name, value)
    client = await world.client()
    large = {**ORDER, "metadata": {"a": "x" * 240_000}}
    headers = {"Idempotency-Key": "large"}
    answers = [await client.request("POST", "/v1/jobs", headers=headers, json=large) for _ in range(2)]

    assert [answer.status for answer in answers] == [422, 429]
    assert [(await client.order()).status for _ in range(3)] == [202] * 3, "small ones go on"


async def test_events_of_a_job_end_with_its_end_and_those_of_all_go_on(world: ApiWorld) -> None:
    client = await world.client()
    headers = {"Authorization": f"Bearer {client.secret}"}
    async with client.session.get(f"{world.url}/v1/events", headers=headers) as every:
        assert every.content_type == "text/event-stream"
        job = (await client.order()).json
        async with client.session.get(job["urls"]["events"], headers=headers) as one:
            events = [json.loads(line[6:]) async for line in one.content if line.startswith(b"data: ")]
        assert [event["id"] for event in events] == [job["id"]] * len(events)
        assert (events[-1]["status"], events[-1]["charged"]) == ("succeeded", True)
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for line in every.content:
                if line.startswith(b"data: ") and json.loads(line[6:])["status"] == "succeeded":
                    assert json.loads(line[6:])["id"] == job["id"]
                    break


async def test_a_stream_that_begins_during_the_delivery_tells_of_the_end(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await world.client()
    delivering, go_on, put = asyncio.Event(), asyncio.Event(), world.media.put

    async def held_put(file: StoredFile, content: IO[bytes]) -> None:
        if f"/{client.key.account_id}/" in file.key:
            delivering.set()
            await go_on.wait()
        await put(file, content)

    monkeypatch.setattr(world.media, "put", held_put)
    job = (await client.order()).json
    async with asyncio.timeout(PATIENCE_SECONDS):
        await delivering.wait()
        headers = {"Authorization": f"Bearer {client.secret}"}
        async with client.session.get(f"{world.url}/v1/events", headers=headers) as stream:
            lines = (json.loads(line[6:]) async for line in stream.content if line.startswith(b"data: "))
            first = await anext(lines)
            go_on.set()
            last = await anext(lines)

    assert [(event["id"], event["status"]) for event in (first, last)] == [
        (job["id"], "running"),
        (job["id"], "succeeded"),
    ]


async def test_too_many_streams_of_a_key_are_refused(world: ApiWorld) -> None:
    client = await world.client()
    headers = {"Authorization": f"Bearer {client.secret}"}
    streams = [await client.session.get(f"{world.url}/v1/events", headers=headers) for _ in range(10)]
    refused = await client.get("/v1/events")
    for stream in streams:
        stream.close()

    assert {stream.status for stream in streams} == {200}
    assert (refused.status, refused.json["code"]) == (429, "too_many_streams")


async def test_a_wait_that_ends_first_returns_the_job_as_it_is(world: ApiWorld) -> None:
    client: Client = await world.client()
    world.kie.service.speed, before = 0.001, world.kie.service.speed
    try:
        job = await client.order(wait=1)
    finally:
        world.kie.service.speed = before
    assert job.json["status"] in ("queued", "running")
    assert (job.json["charged"], job.headers["Preference-Applied"]) == (False, "wait=1")


async def test_requests_that_take_long_to_read_are_refused_before(world: ApiWorld) -> None:
    """One request must not stop the event loop: with thousands of names or values it took seconds."""
    client = await world.client()
    names = "&".join(f"p{number}=1" for number in range(1000))
    for path in ("/v1/jobs", "/v1/ledger"):
        refused = await client.get(f"{path}?{names}")
        assert (refused.status, refused.json["detail"]) == (422, "?: has more than 50 parameters")
    many = b",".join([b"{}"] * 30_000)
    extra = b",".join(b'"%d":1' % number for number in range(25_000))
    for body in (b'{"model": "z-image", "input": {"prompt": [' + many + b"]}}", b"{" + extra + b"}"):
        answer = await client.request("POST", "/v1/quote", data=body, headers={"Content-Type": "application/json"})
        assert (answer.status, answer.json["code"]) in {(400, "invalid_json"), (413, "too_large")}, answer.json
    text = {"model": MODEL, "input": {**PROMPT, "prompt": "a, [b] {c} " * 50}}
    assert (await client.post("/v1/quote", text)).status == 200


async def test_a_request_that_accepts_no_json_is_answered_in_the_only_form_there_is(world: ApiWorld) -> None:
    client = await world.client()
    for accept in ("application/xml", "text/html;q=0.9", "application/json;q=0", "image/*", ";;,,", "x" * 5000):
        found = await client.get("/v1/balance", Accept=accept)
        assert (found.status, found.headers["Content-Type"]) == (200, "application/json"), accept
        missing = await client.get("/v1/jobs/job_0", Accept=accept)
        assert (missing.status, missing.headers["Content-Type"]) == (404, "application/problem+json"), accept
