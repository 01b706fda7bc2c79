"""Profiles of users, on both databases."""

import pytest

from genlock.domain.draft import SavedDraft
from genlock.domain.errors import AccountNotFound
from genlock.domain.money import EntryKind
from genlock.ports import OrderState
from genlock.stores.database import SqlDatabase
from tests.stores.builders import CHAT, ManualClock, account_with, ensure_profile, profiled, queued


async def test_a_profile_is_returned_with_the_draft_of_the_chat(store: SqlDatabase) -> None:
    account = await store.ensure_account("chat", "bot", "502")
    user = {"language": "ru", "name": "Ann", "username": "ann", "referred_by": None}
    profile, draft = await store.ensure_profile_and_draft(account, chat=CHAT, **user)  # type: ignore[arg-type]
    assert (profile.created, profile.account_id, draft) == (True, account, None)
    saved = SavedDraft(version=0, message=5, body="{}", uploads=("https://a",))
    version = await store.save_draft(account, CHAT, saved)
    profile, draft = await store.ensure_profile_and_draft(account, chat=CHAT, **user)  # type: ignore[arg-type]
    assert draft == await store.draft(account, CHAT)
    assert draft is not None
    assert (draft.version, draft.message, draft.uploads) == (version, 5, ("https://a",))
    assert (await store.ensure_profile_and_draft(account, chat=CHAT + 1, **user))[1] is None  # type: ignore[arg-type]


async def test_the_state_of_an_order_is_its_job_the_balance_and_the_open_jobs_of_api_keys(store: SqlDatabase) -> None:
    account = await account_with(store, 5000)
    assert await store.order_state(account, "key") == OrderState(None, 5000, 0)
    job = await queued(store, account_id=account)
    state = await store.order_state(account, job.request_key)
    assert state.job is not None
    assert (state.job.id, state.available) == (job.id, (await store.wallet(account)).available)
    assert (state.open_api_jobs, state.activity) == (0, None)
    await queued(store, account_id=account, api_key_id=1)
    available = (await store.wallet(account)).available
    assert await store.order_state(account, "key") == OrderState(None, available, 1)
    with pytest.raises(AccountNotFound):
        await store.order_state(10**9, "key")


async def test_a_profile_is_created_once_and_updated(store: SqlDatabase, clock: ManualClock) -> None:
    account = await store.ensure_account("chat", "bot", "501")
    first = await ensure_profile(store, account, language="ru", name="Ann", username="ann", referred_by=None)
    made = clock.now()
    clock.advance(1)
    again = await ensure_profile(store, account, language="en", name="Anna", username="ann", referred_by=None)

    assert first.created
    assert not again.created
    assert (again.language, again.name, again.external_id) == ("ru", "Anna", "501")
    assert again.created_at == first.created_at == made
    assert await store.profile(account) == again


async def test_a_profile_is_found_by_the_id_of_the_channel_without_creating_an_account(store: SqlDatabase) -> None:
    account_id = await store.ensure_account("chat", "bot", "7")
    assert await store.known_profile("chat", "bot", "7") is None, "the user has not written yet"
    await ensure_profile(store, account_id, language="ru", name="Ann", username="ann", referred_by=None)
    found = await store.known_profile("chat", "bot", "7")
    assert found is not None
    assert (found.account_id, found.external_id, found.language) == (account_id, "7", "ru")
    assert await store.known_profile("chat", "other", "7") is None
    assert await store.known_profile("chat", "bot", "8") is None


async def test_an_unknown_account_has_no_profile(store: SqlDatabase) -> None:
    with pytest.raises(AccountNotFound):
        await store.profile(12345)


async def test_only_an_older_account_can_be_the_inviter(store: SqlDatabase) -> None:
    host = await profiled(store, "1")
    guest = await profiled(store, "2", referred_by=host)
    itself = await store.ensure_account("chat", "bot", "3")
    alone = await ensure_profile(store, itself, language="en", name="C", username="c", referred_by=itself)
    from_the_future = await profiled(store, "4", referred_by=10**6)
    late = await ensure_profile(store, host, language="en", name="Ann", username="x", referred_by=guest)

    assert (await store.profile(guest)).referred_by == host
    assert alone.referred_by is None
    assert (await store.profile(from_the_future)).referred_by is None
    assert late.referred_by is None


async def test_profiles_are_found_by_account_id_external_id_username_and_name(store: SqlDatabase) -> None:
    ann, bob = await profiled(store, "901", name="Ann Lee"), await profiled(store, "902", name="Bob")

    for text in (str(ann), "901", "ann lee901", "Lee"):
        assert ann in {found.account_id for found in await store.find_profiles(text, 10)}, text
    assert [found.account_id for found in await store.find_profiles("902", 1)] == [bob]
    assert await store.find_profiles("no such name", 10) == []


async def test_accounts_are_listed_with_their_balances_newest_first(store: SqlDatabase, clock: ManualClock) -> None:
    ann, bob = await profiled(store, "901", name="Ann Lee"), await profiled(store, "902", name="Bob")
    silent = await store.ensure_account("web", "bot", "903")
    await store.transfer(ann, EntryKind.TOPUP, 5_000, "topup")
    await queued(store, account_id=ann, price=800)

    found = await store.account_summaries(None, 10)

    assert [holder.account_id for holder in found] == [silent, bob, ann]
    assert (found[0].channel, found[0].external_id, found[0].name, found[0].username) == ("web", "903", "", "")
    assert (found[2].name, found[2].available, found[2].held, found[2].since) == ("Ann Lee", 4_200, 800, clock.now())
    assert [holder.account_id for holder in await store.account_summaries(None, 1)] == [silent]
    for text in (str(ann), "901", "ann lee901", "Lee"):
        assert ann in {holder.account_id for holder in await store.account_summaries(text, 10)}, text
    assert [holder.account_id for holder in await store.account_summaries("903", 10)] == [silent]
    assert await store.account_summaries("no such name", 10) == []


async def test_profiles_are_found_in_any_capitalisation(store: SqlDatabase) -> None:
    account = await store.ensure_account("telegram", "42", "77")
    await ensure_profile(store, account, language="ru", name="Аня Кузнецова", username="", referred_by=None)
    for text in ("Аня", "аня", "АНЯ", "кузнец", "аня кузнецова"):
        assert [found.account_id for found in await store.find_profiles(text, 10)] == [account], text
        assert [found.account_id for found in await store.account_summaries(text, 10)] == [account], text


async def test_the_newest_profiles_come_first(store: SqlDatabase) -> None:
    accounts = []
    for number in range(3):
        accounts.append(await store.ensure_account("telegram", "42", str(900 + number)))
        await ensure_profile(store, accounts[-1], language="en", name=f"P{number}", username="", referred_by=None)

    assert [found.account_id for found in await store.newest_profiles(2)] == accounts[:0:-1]


async def test_language_model_bans_and_blocks_are_stored(store: SqlDatabase, clock: ManualClock) -> None:
    account = await profiled(store, "1")
    await store.set_language(account, "en")
    await store.set_last_model(account, "z-image")
    assert await store.set_ban(account, banned=True, reason="spam")
    await store.set_blocked(account, blocked=True)
    seen = await store.profile(account)

    assert (seen.language, seen.last_model, seen.ban_reason) == ("en", "z-image", "spam")
    assert seen.banned_at == seen.blocked_at == clock.now()
    assert await store.set_ban(account, banned=False, reason="")
    assert not await store.set_ban(9999, banned=True, reason="")
    back = await ensure_profile(store, account, language="ru", name="Ann", username="ann1", referred_by=None)
    assert (back.banned_at, back.blocked_at) == (None, None)
