"""One idempotency key and one key's limit, used at once through two instances on PostgreSQL."""

import asyncio
from pathlib import Path

from genlock.sandbox.postgres import Postgres
from tests.api.world import MODEL, PROMPT, Client, running_api


async def test_two_instances_accept_one_job_per_idempotency_key_and_keep_the_limit_together(
    postgres_server: Postgres, tmp_path: Path
) -> None:
    url = postgres_server.create_database()
    async with running_api(url, tmp_path / "media") as one, running_api(url, tmp_path / "media") as two:
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
    postgres_server.drop_database(url)
