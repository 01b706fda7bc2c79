"""What belongs to one bot stays with it when several bots share a database, on both databases alike."""

import pytest

from genlock.domain.account import Account
from genlock.domain.errors import AccountNotFound
from genlock.domain.job import Actor, AttentionCode, Delivery, State
from genlock.domain.promo import Promo, PromoVerdict
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ME, delivered, end, ended, ensure_profile, finish, queued, running, see, update


async def account_of(store: SqlDatabase, bot: str, external_id: str, referred_by: int | None = None) -> int:
    account_id = await store.ensure_account("chat", bot, external_id)
    await ensure_profile(store, account_id, language="en", name="Ann", username="ann", referred_by=referred_by)
    return account_id


async def test_an_account_keeps_the_address_its_user_is_reached_at(store: SqlDatabase) -> None:
    account_id = await store.ensure_account("chat", "bot", "501")
    fresh = Account(id=account_id, channel="chat", bot="bot", external_id="501", address="")
    assert await store.account(account_id) == fresh

    await store.set_account_address(account_id, "501/7")

    assert (await store.account(account_id)).address == "501/7"
    with pytest.raises(AccountNotFound):
        await store.account(12345)


async def test_a_job_knows_its_bot(store: SqlDatabase) -> None:
    job = await queued(store, bot="second")

    assert job.bot == "second"
    assert (await see(store, job)).bot == "second"


@pytest.mark.parametrize("actor", [*Actor, None])
async def test_a_cancelled_job_says_who_cancelled_it(store: SqlDatabase, actor: Actor | None) -> None:
    attempt = await end(store, await running(store), State.CANCELLED, cancelled_by=actor)

    assert attempt.job is not None
    assert attempt.job.cancelled_by is actor


@pytest.mark.parametrize("code", AttentionCode)
async def test_attention_has_a_code_until_an_operator_acts(store: SqlDatabase, code: AttentionCode) -> None:
    job = await ended(store)
    assert await finish(store, job, Delivery.UNDELIVERABLE, attention_reason="blocked", attention_code=code)
    assert ((await see(store, job)).attention_code, (await see(store, job)).attention_reason) == (code, "blocked")

    assert await store.resend_job(job.id, job.parts)

    assert ((await see(store, job)).attention_code, (await see(store, job)).attention_reason) == (None, None)


async def test_a_delivered_job_has_no_attention_code(store: SqlDatabase) -> None:
    assert (await delivered(store)).attention_code is None


async def test_only_the_update_queues_of_the_given_bots_are_claimed(store: SqlDatabase) -> None:
    for bot in ("first", "second", "third"):
        await store.store_update(update(1, bot=bot))

    claimed = await store.claim_update_queues(10, ME, bots=["first", "third"], urgent=False)

    assert sorted(queue.update.bot for queue in claimed if queue.update) == ["first", "third"]
    assert await store.claim_update_queues(10, ME, bots=[], urgent=False) == []


async def test_each_bot_has_its_own_key_value_entries(store: SqlDatabase) -> None:
    assert await store.kv_put_if_absent("key", "of all") == "of all"
    assert await store.kv_put_if_absent("key", "of one", "one") == "of one"
    await store.kv_put("key", "of two", "two")
    await store.kv_delete("key", "one")

    found = [await store.kv_get("key", bot) for bot in ("", "one", "two")]
    assert [entry and (entry.value, entry.bot) for entry in found] == [("of all", ""), None, ("of two", "two")]
    assert [entry.value for entry in await store.kv_list("k", "two")] == ["of two"]


async def test_bots_number_their_audit_lines_independently(store: SqlDatabase) -> None:
    for bot in ("one", "two"):
        await store.add_audit(bot=bot, key="update:1", actor="7", action="ban", subject="2", detail=bot)

    assert [line.detail for line in await store.audit(10)] == ["two", "one"]
    assert [line.detail for line in await store.audit(10, "one")] == ["one"]


async def test_a_broadcast_reaches_only_the_users_of_its_bot(store: SqlDatabase) -> None:
    mine = [await account_of(store, "one", str(number)) for number in range(3)]
    await account_of(store, "two", "9")
    broadcast = await store.begin_broadcast("Hi", bot="one", author="op", request_key="update:1")
    other = await store.begin_broadcast("Hi", bot="two", author="op", request_key="update:1")

    assert (broadcast.total, other.total) == (3, 1)
    assert await store.running_broadcast("two") == other
    reached = []
    while found := await store.next_recipient(broadcast.id):
        reached.append(found.account_id)
    assert reached == mine


async def test_a_promo_code_of_one_bot_is_unknown_to_users_of_another(store: SqlDatabase) -> None:
    code = Promo(code="CAT", amount=5, runs=0, uses_max=None, per_account=1, until=None, bot="one")
    assert await store.create_promo(code, lasting=None, author="op")
    here, there = await account_of(store, "one", "1"), await account_of(store, "two", "1")

    assert (await store.use_promo("CAT", there, "key")).verdict is PromoVerdict.UNKNOWN
    assert (await store.use_promo("CAT", here, "key")).verdict is PromoVerdict.GIVEN
    assert [len(await store.promos(10, bot)) for bot in ("one", "two", None)] == [1, 0, 1]
    assert not await store.close_promo("CAT", "two")
    assert await store.close_promo("CAT", "one")


async def test_an_invitation_counts_only_within_one_bot(store: SqlDatabase) -> None:
    host = await account_of(store, "one", "1")
    guest = await account_of(store, "one", "2", referred_by=host)
    stray = await account_of(store, "two", "2", referred_by=host)

    assert (await store.profile(guest)).referred_by == host
    assert (await store.profile(stray)).referred_by is None


async def test_rewards_are_those_of_one_bot(store: SqlDatabase) -> None:
    host = await account_of(store, "bot", "1")
    job = await delivered(store)
    await ensure_profile(store, job.account_id, language="en", name="G", username="g", referred_by=host)
    await store.add_payment("charge", job.account_id, 1, 1000)

    assert await store.rewards_due("bot", 0, 10) == ([(job.account_id, host)], 0)
    assert await store.rewards_due("two", 0, 10) == ([], 0)
