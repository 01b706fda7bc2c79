"""Orders through the API: accepted once under their key, charged when the copy of the result is there."""

import asyncio
import hashlib

import pytest

from genlock.sandbox.kie.faults import Fault
from tests.api.world import MODEL, PROMPT, ApiWorld

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_order_is_delivered_charged_and_its_bytes_are_ours(world: ApiWorld) -> None:
    client = await world.client()
    accepted = await client.order(wait=60)

    job = accepted.json
    assert (accepted.status, job["status"], job["charged"]) == (202, "succeeded", True), job
    assert accepted.headers["Location"] == job["urls"]["get"]
    assert accepted.headers["Preference-Applied"] == "wait=60"
    [result] = job["results"]
    assert result["kind"] == "image"
    content = await client.get(result["url"])
    assert content.status == 200
    assert len(content.content) == result["bytes"]
    assert hashlib.sha256(content.content).hexdigest() == result["sha256"]
    assert await world.available(client) == 1_000_000 - round(job["price"] * 1000)
    copies = [path.read_bytes() for path in world.media_folder.rglob(f"{client.key.account_id}/*")]
    assert copies == [content.content]
    read = (await client.get(job["urls"]["get"])).json
    assert {**read, "results": []} == {**job, "results": []}


async def test_a_repeated_request_returns_the_same_job_and_says_so(world: ApiWorld) -> None:
    client = await world.client()
    first = await client.order("same")
    again = await client.order('"same"')

    assert (first.status, again.status) == (202, 202)
    assert first.json["id"] == again.json["id"]
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len((await client.get("/v1/jobs")).json["data"]) == 1


async def test_the_same_key_with_another_body_is_refused_and_orders_nothing(world: ApiWorld) -> None:
    client = await world.client()
    await client.order("key")
    other = await client.order("key", input={**PROMPT, "prompt": "a dog"})

    assert (other.status, other.json["code"]) == (422, "idempotency_key_reused")
    assert other.headers["Content-Type"] == "application/problem+json"
    assert len((await client.get("/v1/jobs")).json["data"]) == 1


async def test_an_order_without_a_key_is_refused(world: ApiWorld) -> None:
    client = await world.client()
    answer = await client.post("/v1/jobs", {"model": MODEL, "input": PROMPT})

    assert (answer.status, answer.json["code"]) == (400, "idempotency_key_missing")
    for key in ("", "ключ", "a b", "x" * 256, '""'):
        answer = await client.request(
            "POST", "/v1/jobs", headers={"Idempotency-Key": key or " "}, json={"model": MODEL, "input": PROMPT}
        )
        assert answer.status == 400, key
        assert answer.json["charged"] is False


async def test_an_order_that_the_balance_does_not_cover_holds_nothing_and_says_both_figures(world: ApiWorld) -> None:
    client = await world.client(credits_=0)
    answer = await client.order()

    assert (answer.status, answer.json["code"], answer.json["available"]) == (402, "no_credits", 0)
    assert answer.json["price"] > 0
    assert (await client.get("/v1/balance")).json == {
        "available": 0.0, "held": 0.0, "debt": 0.0, "spend_limit": None, "spent_today": 0.0,
    }  # fmt: skip


async def test_a_key_that_has_spent_its_limit_is_refused_while_another_of_the_account_is_not(world: ApiWorld) -> None:
    price = round(
        (await (await world.client()).post("/v1/quote", {"model": MODEL, "input": PROMPT})).json["price"] * 1000
    )
    client = await world.client(spend_limit=price)
    other = await world.client(account_id=client.key.account_id)

    answers = await asyncio.gather(*(client.order() for _ in range(4)))
    refused = [answer for answer in answers if answer.status == 402]
    assert [answer.json["code"] for answer in refused] == ["spend_limit"] * 3
    assert (await other.order()).status == 202


async def test_a_price_above_the_agreed_one_is_refused(world: ApiWorld) -> None:
    client = await world.client()
    answer = await client.order(max_price=0.001)

    assert (answer.status, answer.json["code"]) == (409, "dearer")
    assert answer.json["price"] > 0.001


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/quote", "/v1/images/generations"])
async def test_a_refusal_of_a_model_that_is_not_on_offer_names_it(world: ApiWorld, path: str) -> None:
    """So that a typo is seen. What is not printable is escaped, and a long name is cut."""
    client = await world.client()
    shown = {"flux-9": '"flux-9"', "a\x1b[2J\u2028b": '"a\\u001b[2J\\u2028b"', "x" * 150: f'"{"x" * 100}…"'}
    for name, named in shown.items():
        body = {"model": name, **({"prompt": "a cat"} if "images" in path else {"input": PROMPT})}
        answer = await client.request("POST", path, headers={"Idempotency-Key": "key"}, json=body)
        assert answer.status == 404
        text = answer.json["error"]["message"] if "images" in path else answer.json["detail"]
        assert text.startswith(f"the model {named} is not on offer; GET /v1/models lists what is")


async def test_a_failure_costs_nothing_and_names_its_reason(world: ApiWorld) -> None:
    client = await world.client()
    await world.fault_of_next_order(Fault.TASK_MODERATED)
    answer = await client.order(wait=60)

    assert (answer.json["status"], answer.json["charged"]) == ("failed", False)
    assert answer.json["error"]["code"] == "moderation"
    assert await world.available(client) == 1_000_000


async def test_cancelling_an_ended_order_says_what_became_of_the_money(world: ApiWorld) -> None:
    client = await world.client()
    paid = (await client.order(wait=60)).json
    await world.fault_of_next_order(Fault.TASK_MODERATED)
    failed = (await client.order(wait=60)).json
    details = []
    for job in (paid, failed):
        answer = await client.post(job["urls"]["cancel"])
        assert (answer.status, answer.code) == (409, "already_ended")
        details.append((answer.json["detail"], answer.json["charged"]))
    assert details == [
        ("the job has already ended: succeeded; its price was charged", True),
        ("the job has already ended: failed; it was not charged", False),
    ]


async def test_a_cancelled_order_is_not_charged_and_cancelling_twice_changes_nothing(world: ApiWorld) -> None:
    client = await world.client()
    job = (await client.order()).json
    first, second = await client.post(f"{job['urls']['cancel']}"), await client.post(job["urls"]["cancel"])

    if first.status == 409:  # it had ended before
        assert first.json["code"] == "already_ended"
        return
    assert (first.status, second.status) == (202, 202)
    assert second.json["status"] == "canceled"
    assert second.json["charged"] is False
    assert await world.available(client) == 1_000_000
