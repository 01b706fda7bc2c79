"""One idempotency key, one key's limit and one account's number of jobs, used at once through two instances."""

import asyncio
from pathlib import Path

from genlock.sandbox.postgres import Postgres
from tests.api.world import MODEL, PROMPT, Client, running_api
from tests.unlimited_kie import unlimited_kie


async def test_two_instances_accept_one_job_per_idempotency_key_and_keep_the_limit_together(
    postgres_server: Postgres, tmp_path: Path
) -> None:
    url = postgres_server.create_database()
    async with (
        unlimited_kie(speed=0.05) as kie,  # one for both: two would give out the same task ids
        running_api(url, tmp_path / "media", api_running_max=20, kie=kie) as one,
        running_api(url, tmp_path / "media", api_running_max=20, kie=kie) as two,
    ):
        client = await one.client()
        other = Client(url=two.url, session=two.session, secret=client.secret, key=client.key)
        answers = await asyncio.gather(*((client, other)[n % 2].order(f"key-{n // 6}") for n in range(48)))

        assert {answer.status for answer in answers} == {202}
        ids = [answer.json["id"] for answer in answers]
        assert [len(set(ids[start : start + 6])) for start in range(0, 48, 6)] == [1] * 8
        assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 8
        bodies = [{**PROMPT, "prompt": f"cat {n}"} for n in range(10)]
        different = await asyncio.gather(
            *((client, other)[n % 2].order("one", input=body) for n, body in enumerate(bodies))
        )
        assert sorted(answer.status for answer in different) == [202] + [422] * 9

        price = round((await client.post("/v1/quote", {"model": MODEL, "input": PROMPT})).json["price"] * 1000)
        limited = await one.client(spend_limit=price * 5)
        far = Client(url=two.url, session=two.session, secret=limited.secret, key=limited.key)
        spent = await asyncio.gather(*((limited, far)[n % 2].order() for n in range(16)))
        assert sorted(answer.status for answer in spent) == [202] * 5 + [402] * 11
        wallet = await one.store.wallet(limited.key.account_id)
        assert 1_000_000 - wallet.available == price * 5

        flooding = await one.client()
        far = Client(url=two.url, session=two.session, secret=flooding.secret, key=flooding.key)
        flood = await asyncio.gather(*((flooding, far)[n % 2].order() for n in range(60)))
        refused = [answer for answer in flood if answer.status != 202]
        assert len(refused) == 40, "as many as may run, neither more nor fewer"
        assert {(answer.status, answer.code) for answer in refused} == {(429, "too_many_running")}
        assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
        assert 1_000_000 - (await one.store.wallet(flooding.key.account_id)).available == price * 20
        ended = next(answer for answer in flood if answer.status == 202).json["id"]
        assert (await far.post(f"/v1/jobs/{ended}/cancel")).status in (200, 202)
        assert (await flooding.order()).status == 202, "an end makes room at once, on every instance"
    postgres_server.drop_database(url)
