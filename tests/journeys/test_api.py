"""The API of a real `genlock serve`: a key from the command line, an order, its bytes; a kill in between."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI

from genlock.client import AsyncClient
from genlock.sandbox.fleet import simulator_settings
from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from genlock.sandbox.telegram.simulator import running_telegram
from tests.commands import run_command
from tests.packaged import CATALOG

ORDER = {"model": "z-image", "input": {"prompt": "a cat", "aspect_ratio": "1:1"}}


class Shop:
    """An operator with a command line, and the instance that runs."""

    def __init__(self, folder: Path, settings: dict[str, str], instance: Instance, kie: KieSimulator) -> None:
        self.folder, self.settings, self.instance, self.kie = folder, settings, instance, kie

    def command(self, *arguments: str) -> Any:
        environment = {"PATH": os.environ["PATH"], **self.settings}
        done = run_command(*arguments, environment=environment, folder=self.folder)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "--json" in arguments else done.stdout


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with running_telegram() as telegram, running_kie(catalog=CATALOG, speed=5.0, same_media=True) as kie:
        url = f"sqlite:///{tmp_path}/genlock.db"
        settings = {
            **simulator_settings(telegram.url, telegram.token, kie, url),
            "GENLOCK_POLL_SECONDS": "0.2",
            "GENLOCK_MEDIA_PRIVATE_HOSTS": kie.files_url.removeprefix("http://"),
        }
        instance = Instance("instance", tmp_path, settings)
        instance.start()
        try:
            await instance.wait_until_ready()
            yield Shop(tmp_path, settings, instance, kie)
        finally:
            instance.kill()


async def test_an_order_survives_a_kill_and_its_repetition_is_the_same_job(shop: Shop) -> None:
    made = shop.command("api-keys", "create", "shop", "--spend-limit", "50", "--json")
    shop.command("wallet", "credit", str(made["account"]), "100", "--reason", "paid by invoice")
    headers = {"Authorization": f"Bearer {made['secret']}", "Idempotency-Key": "order-1"}
    async with aiohttp.ClientSession(shop.instance.url, headers=headers) as client:
        async with client.post("/v1/jobs", json=ORDER) as answer:
            first = await answer.json()
            assert (answer.status, first["status"]) == (202, "queued")
        while first["status"] == "queued":  # until then, the provider may or may not have the task
            async with client.get(first["urls"]["get"]) as answer:
                first = await answer.json()
        shop.instance.kill()
        shop.instance.start()
        await shop.instance.wait_until_ready()
        async with client.post("/v1/jobs", json=ORDER, headers={"Prefer": "wait=60"}) as answer:
            job = await answer.json()
            assert answer.headers["Idempotent-Replayed"] == "true"
        assert (job["id"], job["error"], job["status"], job["charged"]) == (first["id"], None, "succeeded", True)
        [result] = job["results"]
        async with client.get(result["url"]) as content:
            assert sha256(await content.read()).hexdigest() == result["sha256"]
        shop.command("api-keys", "revoke", str(made["id"]))
        async with client.get("/v1/balance") as refused:
            assert refused.status == 401

    [listed] = shop.command("api-keys", "ls", "--json")
    assert listed["revoked"] is not None
    assert listed["last_used"] is not None
    assert listed["spent_today"] == round(job["price"] * 1000)
    assert "secret" not in listed
    entries = shop.command("wallet", "show", str(made["account"]), "--json")["ledger_entries"]
    assert [entry["kind"] for entry in entries] == ["capture", "hold", "grant"]
    assert made["secret"] not in shop.instance.text


async def test_a_waiting_request_does_not_hold_up_a_graceful_stop(shop: Shop) -> None:
    made = shop.command("api-keys", "create", "shop", "--json")
    shop.command("wallet", "credit", str(made["account"]), "100", "--reason", "gift")
    shop.kie.service.speed = 0.01
    headers = {"Authorization": f"Bearer {made['secret']}", "Idempotency-Key": "order-1", "Prefer": "wait=60"}
    async with aiohttp.ClientSession(shop.instance.url, headers=headers) as client:
        waiting = asyncio.create_task(client.post("/v1/jobs", json=ORDER).__aenter__())
        await shop.instance.wait_for_event("JOB_CREATED")
        async with client.get("/v1/events") as stream:
            assert await shop.instance.stop(20.0) == 0
            assert (await waiting).status == 202
            await stream.read()


async def test_openais_client_and_ours_outlast_a_kill_and_each_orders_once(shop: Shop) -> None:
    made = shop.command("api-keys", "create", "shop", "--json")
    shop.command("wallet", "credit", str(made["account"]), "100", "--reason", "gift")
    shop.kie.service.speed = 10.0
    shop.kie.service.hold_tasks()
    url, secret = shop.instance.url, made["secret"]
    async with (
        AsyncOpenAI(base_url=f"{url}/v1", api_key=secret, max_retries=8) as openai,
        AsyncClient(url, secret, retries=8) as client,
    ):
        images = asyncio.create_task(openai.images.generate(model="z-image", prompt="a cat", response_format="url"))
        job = asyncio.create_task(client.run("z-image", {"prompt": "a dog", "aspect_ratio": "1:1"}))
        running: list[str] = []
        while running != ["running"] * 2:  # before, the provider may or may not have the task
            running = [listed_job.status async for listed_job in client.jobs()]
        shop.instance.kill()
        shop.kie.service.release_tasks()
        shop.instance.start()
        await shop.instance.wait_until_ready()
        answer, own = await asyncio.gather(images, job)
        jobs = {listed_job.id: listed_job async for listed_job in client.jobs()}
        balance = await client.balance()

    assert answer.model_extra is not None
    assert set(jobs) == {answer.model_extra["job"], own.id}
    assert all(listed_job.is_delivered and listed_job.charged for listed_job in jobs.values())
    assert (balance.available, balance.held) == (100 - sum(listed_job.price for listed_job in jobs.values()), 0)
