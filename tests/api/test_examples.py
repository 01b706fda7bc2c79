"""The examples of the README and of the guide, run as they are printed against the running API."""

import asyncio
import inspect
import json
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

import genlock.client as client_package
from tests.api.world import ApiWorld, Client

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.process]
ROOT = Path(__file__).parents[2]
README = ROOT.joinpath("README.md").read_text().partition("## Order over HTTP\n")[2].partition("\n## ")[0]
GUIDE = ROOT.joinpath("docs/how-to/api.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


async def test_the_reference_of_the_client_names_everything_and_both_clients_have_the_same_methods() -> None:
    page = ROOT.joinpath("docs/reference/client.md").read_text()
    methods = {name for name in vars(client_package.Client) if not name.startswith("_")}

    assert methods == {name for name in vars(client_package.AsyncClient) if not name.startswith("_")}
    for method in methods:
        taken = list(inspect.signature(getattr(client_package.Client, method)).parameters)[1:]
        other = list(inspect.signature(getattr(client_package.AsyncClient, method)).parameters)[1:]
        assert taken == other, method
        assert f"`{method}({', '.join(taken)})`" in page.replace("*, ", ""), method
    assert [name for name in client_package.__all__ if name not in page] == []


async def run(client: Client, folder: Path, *command: str) -> str:
    environment = {"API_KEY": client.secret, "PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "ignore::DeprecationWarning"}
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=PIPE, stderr=PIPE, env=environment)
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-3000:]
    return output.decode()


async def printed(client: Client, folder: Path, language: str, code: str) -> str:
    code = code.replace("https://your-host", client.url).replace("glk_…", client.secret)
    command = ("bash", "-ec") if language == "bash" else (sys.executable, "-c")
    return await run(client, folder, *command, code)


async def test_the_examples_of_the_readme_order_and_are_charged(world: ApiWorld, tmp_path: Path) -> None:
    client = await world.client()
    [program], [command] = blocks(README, "python"), blocks(README, "bash")
    assert len([line for line in program.splitlines() if line]) <= 10

    output, answer = await asyncio.gather(
        printed(client, tmp_path, "python", program), printed(client, tmp_path, "bash", command)
    )
    job = json.loads(answer)

    assert "succeeded 100%\norder-17-0.png\ncharged: " in output
    assert tmp_path.joinpath("order-17-0.png").stat().st_size > 1000
    assert (job["status"], job["charged"]) == ("succeeded", True)
    assert [listed_job["charged"] for listed_job in (await client.get("/v1/jobs")).json["data"]] == [True, True]


async def test_every_example_of_the_guide_runs(world: ApiWorld, tmp_path: Path, png: bytes) -> None:
    client = await world.client()
    tmp_path.joinpath("photo.jpg").write_bytes(png)
    examples = [(language, code) for language in ("bash", "python") for code in blocks(GUIDE, language)]
    outputs = await asyncio.gather(*(printed(client, tmp_path, *example) for example in examples))

    assert [json.loads(text)["object"] for text in outputs[:2]] == ["job", "file"]
    assert outputs[2].startswith("without-background.png ")
    assert re.fullmatch(r"\d+\.\d+ True job_\w+\n\d+\.\d+ True\n", outputs[3])
    assert len(outputs) == 5
    for name in ("without-background.png", "cat.png", "cat.mp4"):
        assert tmp_path.joinpath(name).stat().st_size > 1000
