"""The OpenAPI document: true for every answer, readable by programs and humans, without requests to other hosts."""

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest

from genlock.api.openapi import make_document
from genlock.api.problems import CODES
from genlock.api.reference_page import render_reference
from tests.api.world import ApiWorld, Client
from tests.random_examples import examples

pytestmark = pytest.mark.asyncio(loop_scope="module")
#: cases for each operation; by hand, with all phases: GENLOCK_TEST_API_CASES=100
CASES = os.environ.get("GENLOCK_TEST_API_CASES", "")
CASES_BY_DEFAULT = 3
#: all but the one that expects every request that the document allows to succeed: files must be media, models on offer
EXCLUDED = "positive_data_acceptance"


@pytest.mark.process
@pytest.mark.timeout(300)
async def test_random_requests_find_no_server_error_and_no_answer_that_the_document_does_not_describe(
    world: ApiWorld, tmp_path: Path, first_seed: int
) -> None:
    client = await world.client()
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{world.url}/v1/openapi.json",
        "--header", f"Authorization: Bearer {client.secret}", "--exclude-checks", EXCLUDED,
        "--max-examples", CASES or str(examples(CASES_BY_DEFAULT)),
        "--phases", "examples,coverage,fuzzing,stateful" if CASES else "fuzzing",
        "--exclude-operation-id", "watch_jobs", "--seed", str(first_seed + 1), "--no-color", "--request-timeout", "20",
        "--generation-database", "none",
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT, cwd=tmp_path)
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
    without_key = Client(url=world.url, session=world.session, secret="", key=(await world.client()).key)
    document = (await without_key.request("GET", "/v1/openapi.json", headers={"Authorization": ""})).json

    assert document["openapi"] == "3.1.0"
    names = set(document["components"]["schemas"])
    assert {ref.rpartition("/")[2] for ref in refs(document)} <= names
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations) == len(world.api.operations)
    for operation in operations:
        assert {"401", "429", "503"} <= set(operation["responses"]), operation["operationId"]


async def test_the_reference_page_names_every_operation_and_loads_nothing_from_elsewhere(world: ApiWorld) -> None:
    client = await world.client()
    answer = await client.request("GET", "/v1/docs", headers={"Authorization": ""})
    page = answer.content.decode()

    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    for operation in world.api.operations:
        assert f'id="{operation.name}"' in page
    for code in CODES:
        assert f'id="problem-{code}"' in page
    assert re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page) == []
    assert "<script" not in page


@pytest.mark.parametrize(
    ("public_url", "base"), [(None, "https://YOUR-HOST"), ("https://shop.example", "https://shop.example")]
)
async def test_the_example_of_the_reference_page_is_safe_to_repeat_and_goes_to_the_known_host(
    public_url: str | None, base: str
) -> None:
    page = unescape(render_reference(make_document([]), public_url))
    assert f"curl -sS {base}/v1/jobs " in page
    assert '"Idempotency-Key: order-1"' in page
