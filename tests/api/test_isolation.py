"""What a key may reach: nothing of another account, nothing beyond its scopes, nothing when it is revoked."""

import asyncio
import io
from functools import reduce
from typing import Any

import pytest

from genlock.api import app, order_acceptance
from genlock.api.input_schema import input_schema
from genlock.api.reading import read_json
from genlock.domain.api_key import ApiScope
from genlock.domain.errors import InvalidInput
from genlock.engine.sell import make_quote
from genlock.sandbox.kie.faults import Fault
from tests.api.world import MODEL, PROMPT, ApiWorld
from tests.packaged import CATALOG
from tests.stores.builders import ensure_profile

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_route_that_names_a_job_is_404_for_another_account(world: ApiWorld) -> None:
    owner, other = await world.client(), await world.client()
    job = (await owner.order(wait=60)).json
    for operation in world.api.operations:
        if "{job_id}" not in operation.path and "{video_id}" not in operation.path:
            continue
        ids = {"{job_id}": job["id"], "{video_id}": job["id"], "{index}": "0"}
        path = reduce(lambda path, name: path.replace(name, ids[name]), ids, operation.path)
        answer = await other.request(operation.method, path)
        assert (answer.status, answer.code) == (404, "not_found"), operation.name
        unknown = await other.request(operation.method, path.replace(job["id"], "job_ZZZZZZ"))
        assert unknown.content == answer.content, operation.name
    assert (await owner.get(job["urls"]["get"])).json["status"] == "succeeded"


async def test_lists_and_figures_show_only_the_own_account(world: ApiWorld) -> None:
    owner, other = await world.client(), await world.client(credits_=5)
    job = (await owner.order(wait=60)).json

    assert (await other.get("/v1/jobs")).json == {"data": [], "next_cursor": None}
    assert (await other.get(f"/v1/jobs?cursor={job['id']}")).json["data"] == []
    assert [line["kind"] for line in (await other.get("/v1/ledger")).json["data"]] == ["grant"]
    assert (await other.get("/v1/balance")).json["available"] == 5.0
    assert [line["kind"] for line in (await owner.get("/v1/ledger")).json["data"]] == ["capture", "hold", "grant"]


async def test_two_accounts_may_use_the_same_idempotency_key(world: ApiWorld) -> None:
    first, second = await world.client(), await world.client()
    answers = [await client.order("the-same-key") for client in (first, second)]

    assert [answer.status for answer in answers] == [202, 202]
    assert answers[0].json["id"] != answers[1].json["id"]


async def test_a_file_of_another_account_is_not_usable(world: ApiWorld, png: bytes) -> None:
    owner, other = await world.client(), await world.client()
    sent = await owner.request("POST", "/v1/files", data=png)
    assert sent.status == 201, sent.json
    body = {"model": "recraft/remove-background", "input": {"image": sent.json["id"]}}

    refused = await other.post("/v1/quote", body)
    assert refused.status == 422, refused.json
    assert refused.json["errors"][0]["pointer"] == "/input/image"


async def test_an_order_goes_on_only_with_an_own_job_that_has_succeeded(world: ApiWorld) -> None:
    owner, other = await world.client(), await world.client()
    job = (await owner.order(wait=60)).json
    await world.fault_of_next_order(Fault.RESULT_EMPTY)
    failed = (await owner.order(wait=60)).json
    row = await world.store.job(world.job_id(job["id"]))
    assert row is not None
    assert (job["status"], failed["status"]) == ("succeeded", "failed")

    model, prompt = "grok-imagine/image-to-video", {"prompt": "it jumps"}
    for client, given in (
        (owner, row.task_id), (owner, failed["id"]), (owner, "job_ZZZZZZ"), (owner, [job["id"]]), (other, job["id"]),
    ):  # fmt: skip
        refused = await client.post("/v1/quote", {"model": model, "input": {**prompt, "task_id": given}})
        assert (refused.status, refused.json["errors"][0]["pointer"]) == (422, "/input/task_id"), given
    order = {**prompt, "task_id": job["id"]}
    accepted = await owner.order("next", model=model, input=order)
    assert (accepted.status, accepted.json["input"]["task_id"]) == (202, row.task_id), accepted.json
    assert (await owner.order("next", model=model, input=order)).json["id"] == accepted.json["id"]


async def test_a_client_cannot_set_what_users_are_never_shown(world: ApiWorld) -> None:
    """Such a field may switch off the content check of the provider, on the operator's account."""
    client = await world.client()
    for value in (False, True, "no"):
        refused = await client.order(input={**PROMPT, "nsfw_checker": value})
        assert (refused.status, refused.json["errors"][0]["pointer"]) == (422, "/input/nsfw_checker"), value
    for model in CATALOG.models.values():
        shown = input_schema(model)["properties"]
        for field in (field for field in model.fields if field.internal):
            assert field.name not in shown
            with pytest.raises(InvalidInput):
                make_quote(
                    model, {**model.minimal_input(), field.name: field.most()}, {}, markup=1, credit_usd=1, free_left=0
                )


async def test_every_operation_needs_a_key_and_its_scope(world: ApiWorld) -> None:
    clients = {scope: await world.client(scopes=frozenset({scope})) for scope in ApiScope}
    for operation in world.api.operations:
        path = operation.path.replace("{job_id}", "job_ZZZZZZ").replace("{index}", "0").replace("{model_id}", "none")
        path = path.replace("{video_id}", "job_ZZZZZZ")
        for scope, client in clients.items():
            if scope is operation.scope or operation.path.endswith("events"):
                continue
            answer = await client.request(operation.method, path, json={} if operation.body else None)
            assert (answer.status, answer.code) == (403, "forbidden"), (operation.name, scope)
        without_key = await clients[ApiScope.READ].request(operation.method, path, headers={"Authorization": ""})
        assert without_key.status == 401, operation.name
        assert without_key.code in {"unauthorized", "invalid_api_key"}, operation.name
        assert without_key.headers["WWW-Authenticate"].startswith("Bearer"), operation.name


async def test_wrong_and_revoked_keys_are_refused_before_the_body_is_read(world: ApiWorld) -> None:
    client = await world.client()
    assert (await client.get("/v1/balance")).status == 200
    await world.store.revoke_api_key(client.key.id)
    for value in (
        f"Bearer {client.secret}", f"Bearer {client.secret[:-1]}", "Bearer glk_", "Bearer", "Basic abc", "x" * 5000,
        f"Bearer {client.secret[:-1]}й",
    ):  # fmt: skip
        answer = await client.request(
            "POST",
            "/v1/jobs",
            headers={"Authorization": value.encode().decode("latin-1")},
            data=io.BytesIO(b"x" * 200_000),
        )
        assert answer.status == 401, value[:40]


@pytest.mark.parametrize("end", ["revoked", "banned"])
async def test_an_order_whose_key_ends_while_its_body_arrives_is_refused(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The key is read before the body: an erasure may have passed when the order would be written."""
    account = await world.store.ensure_account("telegram", "42", f"end-{end}")
    await ensure_profile(world.store, account, language="en", name="Ann", username="", referred_by=None)
    client = await world.client(account_id=account)

    async def read_and_end(*arguments: Any) -> Any:
        content = await read_json(*arguments)
        if end == "revoked":
            await world.store.revoke_api_key(client.key.id)
        else:
            await world.store.set_ban(account, banned=True, reason="spam")
        return content

    monkeypatch.setattr(app, "read_json", read_and_end)
    monkeypatch.setattr(order_acceptance, "STATE_SECONDS", 0.0)
    answer = await client.order()

    expected = (401, "unauthorized") if end == "revoked" else (403, "forbidden")
    assert (answer.status, answer.code) == expected
    assert await world.store.jobs(account_id=account) == []


async def test_a_banned_user_cannot_order_through_the_api(world: ApiWorld) -> None:
    account = await world.store.ensure_account("telegram", "42", "1001")
    await ensure_profile(world.store, account, language="en", name="Ann", username="", referred_by=None)
    client = await world.client(account_id=account)
    assert (await client.order()).status == 202
    await world.store.set_ban(account, banned=True, reason="spam")

    answer = await client.order()
    assert (answer.status, answer.json["code"]) == (403, "forbidden")


async def test_chat_orders_of_a_linked_account_are_not_jobs_of_the_api(world: ApiWorld) -> None:
    account = await world.store.ensure_account("telegram", "42", "1002")
    client = await world.client(account_id=account)
    from tests.stores.builders import ME, order  # noqa: PLC0415 - builders of another folder

    chat_job = (await world.store.accept_job(order(account, price=0), ME)).job
    public = world.api._parts.view.id_of(chat_job.id)

    assert (await client.get(f"/v1/jobs/{public}")).status == 404
    assert (await client.get("/v1/jobs")).json["data"] == []


async def test_orders_of_one_key_at_once_are_one_job(world: ApiWorld) -> None:
    client = await world.client()
    answers = await asyncio.gather(*(client.order("one") for _ in range(20)))

    assert {answer.status for answer in answers} == {202}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    bodies = [{**PROMPT, "prompt": f"cat {n}"} for n in range(8)]
    others = await asyncio.gather(*(client.order("two", input=body) for body in bodies))
    assert sorted(answer.status for answer in others) == [202] + [422] * 7
    assert others[0].json.get("model", MODEL) == MODEL
