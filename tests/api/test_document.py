"""The OpenAPI document: true for every answer, readable by programs and people, without requests to other hosts."""

import os
import re
import sys
from collections.abc import Iterator
from subprocess import PIPE, STDOUT

import pytest

from tests.api.world import ApiWorld, Client

pytestmark = pytest.mark.asyncio(loop_scope="module")
#: cases for each operation; by hand: GENLOCK_TEST_API_CASES=300
CASES = os.environ.get("GENLOCK_TEST_API_CASES", "8")
#: what the simulator's speed and the account's limits decide, not the document
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,negative_data_rejection,missing_required_header,unsupported_method,ignored_auth"
)


@pytest.mark.process
async def test_random_requests_find_no_server_error_and_no_answer_that_the_document_does_not_describe(
    world: ApiWorld,
) -> None:
    import asyncio  # noqa: PLC0415

    client = await world.client()
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{world.url}/v1/openapi.json",
        "-H", f"Authorization: Bearer {client.secret}", "--checks", CHECKS, "--max-examples", CASES,
        "--exclude-operation-id-regex", "watch_jobs?", "--phases", "examples,coverage,fuzzing", "--seed", "1",
        "--generation-database", "none", "--no-color", "--request-timeout", "20", "--workers", "1",
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT)
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-6000:]


def refs(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from refs(value)


async def test_the_document_is_whole_and_served_without_a_key(world: ApiWorld) -> None:
    nobody = Client(url=world.url, session=world.session, secret="", key=(await world.client()).key)
    document = (await nobody.request("GET", "/v1/openapi.json", headers={"Authorization": ""})).json

    assert document["openapi"] == "3.1.0"
    names = set(document["components"]["schemas"])
    assert {ref.rpartition("/")[2] for ref in refs(document)} <= names
    operations = [one for path in document["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations) == len(world.api.operations)
    for one in operations:
        assert {"401", "429", "503"} <= set(one["responses"]), one["operationId"]


async def test_the_reference_page_names_every_operation_and_loads_nothing_from_elsewhere(world: ApiWorld) -> None:
    client = await world.client()
    answer = await client.request("GET", "/v1/docs", headers={"Authorization": ""})
    page = answer.content.decode()

    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    for operation in world.api.operations:
        assert f'id="{operation.name}"' in page
    assert re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page) == []
    assert "<script" not in page
