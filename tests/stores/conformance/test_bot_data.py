"""What the bot stores, on both databases, also under concurrent calls."""

import asyncio
from datetime import timedelta

import pytest

from genlock.domain.broadcast import BroadcastState, Segment
from genlock.domain.draft import SavedDraft
from genlock.domain.errors import AccountNotFound
from genlock.domain.job import Actor, State
from genlock.domain.money import EntryKind
from genlock.domain.promo import Promo, PromoVerdict
from genlock.domain.upload import Upload
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock, account_with, delivered, end, order, queued, running, submitting

CHAT = 77


async def profiled(store: SqlDatabase, external_id: str, *, name: str = "Ann", referred_by: int | None = None) -> int:
    account = await store.ensure_account("chat", "bot", external_id)
    await store.ensure_profile(
        account, language="ru", name=name, username=name.lower() + external_id, referred_by=referred_by
    )
    return account


# profiles


async def test_a_profile_is_returned_with_the_draft_of_the_chat(store: SqlDatabase) -> None:
    account = await store.ensure_account("chat", "bot", "502")
    user = {"language": "ru", "name": "Ann", "username": "ann", "referred_by": None}
    profile, draft = await store.ensure_profile_and_draft(account, chat=CHAT, **user)  # type: ignore[arg-type]
    assert (profile.fresh, profile.account_id, draft) == (True, account, None)
    saved = SavedDraft(version=0, message=5, body="{}", uploads=("https://a",))
    version = await store.save_draft(account, CHAT, saved)
    profile, draft = await store.ensure_profile_and_draft(account, chat=CHAT, **user)  # type: ignore[arg-type]
    assert draft == await store.draft(account, CHAT)
    assert draft is not None
    assert (draft.version, draft.message, draft.uploads) == (version, 5, ("https://a",))
    assert (await store.ensure_profile_and_draft(account, chat=CHAT + 1, **user))[1] is None  # type: ignore[arg-type]


async def test_the_state_of_an_order_is_its_job_and_the_balance(store: SqlDatabase) -> None:
    account = await account_with(store, 5000)
    assert await store.order_state(account, "key") == (None, 5000)
    job = await queued(store, account_id=account)
    found, available = await store.order_state(account, job.request_key)
    assert found is not None
    assert (found.id, available) == (job.id, (await store.wallet(account)).available)
    with pytest.raises(AccountNotFound):
        await store.order_state(10**9, "key")


async def test_a_profile_is_created_once_and_updated(store: SqlDatabase, clock: ManualClock) -> None:
    account = await store.ensure_account("chat", "bot", "501")
    first = await store.ensure_profile(account, language="ru", name="Ann", username="ann", referred_by=None)
    made = clock.now()
    clock.advance(1)
    again = await store.ensure_profile(account, language="en", name="Anna", username="ann", referred_by=None)

    assert first.fresh
    assert not again.fresh
    assert (again.language, again.name, again.external_id) == ("ru", "Anna", "501")
    assert again.created_at == first.created_at == made
    assert await store.profile(account) == again


async def test_a_profile_is_found_by_the_id_of_the_channel_without_creating_an_account(store: SqlDatabase) -> None:
    account_id = await store.ensure_account("chat", "bot", "7")
    assert await store.known_profile("chat", "bot", "7") is None, "the user has not written yet"
    await store.ensure_profile(account_id, language="ru", name="Ann", username="ann", referred_by=None)
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
    alone = await store.ensure_profile(itself, language="en", name="C", username="c", referred_by=itself)
    from_the_future = await profiled(store, "4", referred_by=10**6)
    late = await store.ensure_profile(host, language="en", name="Ann", username="x", referred_by=guest)

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
    await store.ensure_profile(account, language="ru", name="Аня Кузнецова", username="", referred_by=None)
    for text in ("Аня", "аня", "АНЯ", "кузнец", "аня кузнецова"):
        assert [found.account_id for found in await store.find_profiles(text, 10)] == [account], text
        assert [found.account_id for found in await store.account_summaries(text, 10)] == [account], text


async def test_the_newest_profiles_come_first(store: SqlDatabase) -> None:
    accounts = []
    for number in range(3):
        accounts.append(await store.ensure_account("telegram", "42", str(900 + number)))
        await store.ensure_profile(accounts[-1], language="en", name=f"P{number}", username="", referred_by=None)

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
    back = await store.ensure_profile(account, language="ru", name="Ann", username="ann1", referred_by=None)
    assert (back.banned_at, back.blocked_at) == (None, None)


# drafts


async def test_a_draft_overwrites_only_the_version_it_was_made_from(store: SqlDatabase) -> None:
    assert await store.draft(1, CHAT) is None
    assert await store.save_draft(1, CHAT, SavedDraft(version=0, message=None, body="{}")) == 1
    assert await store.save_draft(1, CHAT, SavedDraft(version=1, message=5, body='{"a":1}')) == 2
    assert await store.save_draft(1, CHAT, SavedDraft(version=1, message=6, body="late")) is None

    assert await store.draft(1, CHAT) == SavedDraft(version=2, message=5, body='{"a":1}')
    assert await store.draft(1, CHAT + 1) is None


async def test_one_of_two_concurrent_changes_of_a_draft_wins(store: SqlDatabase) -> None:
    await store.save_draft(1, CHAT, SavedDraft(version=0, message=None, body="{}"))
    versions = await asyncio.gather(
        *(store.save_draft(1, CHAT, SavedDraft(version=1, message=None, body=str(n))) for n in range(10))
    )

    assert sorted(version for version in versions if version) == [2]


async def test_a_draft_is_found_by_the_message_that_shows_it(store: SqlDatabase) -> None:
    await store.save_draft(1, CHAT, SavedDraft(version=0, message=None, body="{}"))
    await store.set_draft_message(1, CHAT, 42)

    assert await store.draft_owner(CHAT, 42) == 1
    assert await store.draft_owner(CHAT, 43) is None
    found = await store.draft(1, CHAT)
    assert found is not None
    assert (found.version, found.message) == (1, 42)


# files and limits


async def test_an_uploaded_file_is_found_by_its_address(store: SqlDatabase, clock: ManualClock) -> None:
    for number in range(3):
        await store.add_upload(
            Upload(address=f"https://f/{number}", account_id=1, file="id", kind="image", seconds=2.5, age_seconds=0)
        )
        clock.advance(600)

    found = await store.upload("https://f/0")
    assert found is not None
    assert (found.file, found.seconds, found.age_seconds) == ("id", 2.5, 1800.0)
    assert await store.upload("https://f/none") is None


async def test_recent_activity_of_an_account_is_counted(store: SqlDatabase, clock: ManualClock) -> None:
    account = await account_with(store, 10_000)
    clock.advance(10)
    await store.accept_job(order(account, request_key="a", price=0), None)
    clock.advance(50)
    await store.accept_job(order(account, request_key="b", price=0), None)
    done = await store.activity(account)

    assert (done.running, done.minute, done.hour) == (2, 2, 2)
    assert (done.minute_wait, done.hour_wait) == (10.0, 3550.0)
    clock.advance(30)
    later = await store.activity(account)
    assert (later.minute, later.minute_wait) == (1, 30.0)
    clock.advance(7200)
    assert (await store.activity(account)).running == 2
    unknown = await store.activity(9999)
    assert (unknown.running, unknown.hour, unknown.hour_wait) == (0, 0, 0.0)


async def test_a_payment_that_is_not_in_the_ledger_is_noticed(store: SqlDatabase) -> None:
    await store.add_payment("c1", 1, 100, 120_000)

    assert [found.subject for found in await store.violations(settled=False)] == ["c1"]


# messages of orders


async def test_every_message_of_a_job_is_recognised_however_old(store: SqlDatabase) -> None:
    account, other = await account_with(store), await account_with(store)
    job = await delivered(store, account_id=account, placeholder="41")
    for part in job.parts:
        assert part.message is not None
        assert await store.is_job_message(account, part.message)
        assert not await store.is_job_message(other, part.message)
    assert await store.is_job_message(
        account, (await queued(store, account_id=account, placeholder="42")).placeholder or ""
    )
    assert not await store.is_job_message(account, "4")


async def test_the_jobs_that_a_message_shows_are_found_newest_first_and_for_their_owner_only(
    store: SqlDatabase,
) -> None:
    account, other = await account_with(store), await account_with(store)
    jobs = [await delivered(store, account_id=account, placeholder="41") for _ in range(2)]
    await queued(store, account_id=account, placeholder="41")
    message = jobs[0].parts[0].message
    assert message is not None
    assert [job.parts[0].message for job in jobs] == [message, message], "ids repeat between chats"
    assert [job.id for job in await store.jobs_shown_by(account, message)] == [jobs[1].id, jobs[0].id]
    assert await store.jobs_shown_by(other, message) == []
    assert await store.jobs_shown_by(account, "4") == []


# free runs


async def test_a_free_run_is_taken_once_per_key_and_is_new_each_day(store: SqlDatabase, clock: ManualClock) -> None:
    account = await profiled(store, "1")

    assert [await store.take_free_run(account, key, 2) for key in ("a", "a", "b", "c")] == [True, True, True, False]
    assert (await store.free_runs(account, 2)).left == 0
    assert (await store.free_runs(account, 2, ignore_key="a")).left == 1
    clock.advance(timedelta(days=1).total_seconds())
    assert (await store.free_runs(account, 2)).today == 2
    assert await store.take_free_run(account, "d", 2)


async def test_a_free_run_whose_job_failed_does_not_count(store: SqlDatabase) -> None:
    account = await account_with(store, 0)
    await store.ensure_profile(account, language="en", name="A", username="", referred_by=None)
    assert await store.take_free_run(account, "a", 1)
    job = (await store.accept_job(order(account, request_key="a", price=0), None)).job
    assert await store.job_by_request_key(account, "b") is None
    assert (found := await store.job_by_request_key(account, "a")) is not None
    assert found.id == job.id
    assert not await store.take_free_run(account, "b", 1)
    await end(store, job, State.FAILED)

    assert (await store.free_runs(account, 1)).left == 1
    assert await store.take_free_run(account, "b", 1)


async def test_a_free_run_cancelled_after_its_submit_counts(store: SqlDatabase, clock: ManualClock) -> None:
    account = await account_with(store, 0)
    await store.ensure_profile(account, language="en", name="A", username="", referred_by=None)
    await store.create_promo(promo(code="RUNS", amount=0, runs=1), lasting=None, author="op")
    await store.use_promo("RUNS", account, "u")
    assert await store.take_free_run(account, "early", 1)
    early = await queued(store, account_id=account, request_key="early", price=0)
    await end(store, early, State.CANCELLED, cancelled_by=Actor.USER)
    assert (await store.free_runs(account, 1)).left == 2
    assert await store.late_cancels(account) == 0
    for number in (0, 1):
        assert await store.take_free_run(account, f"k{number}", 1)
        job = await submitting(store, account_id=account, request_key=f"k{number}", price=0)
        if number:
            assert await store.mark_submitted(job.id, job.lease_token, "task", 5.0)
        await end(store, job, State.CANCELLED, cancelled_by=Actor.USER)
        assert (await store.free_runs(account, 1)).left == 1 - number
        assert await store.late_cancels(account) == 1 + number

    assert not await store.take_free_run(account, "c", 1)
    clock.advance(timedelta(days=1).total_seconds() + 1)
    assert await store.late_cancels(account) == 0
    assert (await store.free_runs(account, 1)).left == 1


async def test_concurrent_orders_get_the_last_free_run_once(store: SqlDatabase) -> None:
    account = await profiled(store, "1")
    taken = await asyncio.gather(*(store.take_free_run(account, f"k{n}", 3) for n in range(20)))

    assert sum(taken) == 3


# promo codes


def promo(**more: object) -> Promo:
    return Promo(**{"code": "CAT", "amount": 5000, "runs": 0, "uses_max": None, "per_account": 1, "until": None} | more)  # type: ignore[arg-type]


async def test_a_code_is_used_within_its_limits(store: SqlDatabase) -> None:
    assert await store.create_promo(promo(uses_max=2), lasting=60.0, author="op")
    assert not await store.create_promo(promo(), lasting=None, author="op")

    assert (await store.use_promo("DOG", 1, "k")).verdict is PromoVerdict.UNKNOWN
    first = await store.use_promo("CAT", 1, "k1")
    assert (first.verdict, first.number, first.amount) == (PromoVerdict.GIVEN, 1, 5000)
    assert await store.use_promo("CAT", 1, "k1") == first
    assert [await store.is_promo_used(*use) for use in ((1, "k1"), (1, "k"), (2, "k1"))] == [True, False, False]
    assert (await store.use_promo("CAT", 1, "k2")).verdict is PromoVerdict.USED
    assert (await store.use_promo("CAT", 2, "k3")).verdict is PromoVerdict.GIVEN
    assert (await store.use_promo("CAT", 3, "k4")).verdict is PromoVerdict.OVER
    [listed] = await store.promos(10)
    assert (listed.uses, listed.closed) == (2, False)


async def test_a_code_ends_at_its_date_or_when_an_operator_closes_it(store: SqlDatabase, clock: ManualClock) -> None:
    await store.create_promo(promo(code="SHORT"), lasting=60.0, author="op")
    await store.create_promo(promo(code="SHUT"), lasting=None, author="op")
    assert await store.close_promo("SHUT")
    assert not await store.close_promo("SHUT")
    clock.advance(61)

    assert (await store.use_promo("SHORT", 1, "a")).verdict is PromoVerdict.OVER
    assert (await store.use_promo("SHUT", 1, "b")).verdict is PromoVerdict.OVER


async def test_free_runs_of_a_code_add_to_those_of_the_day(store: SqlDatabase) -> None:
    account = await profiled(store, "1")
    await store.create_promo(promo(code="RUNS", amount=0, runs=2), lasting=None, author="op")
    assert (await store.use_promo("RUNS", account, "u")).runs == 2

    runs = await store.free_runs(account, 1)
    assert (runs.today, runs.gifts, runs.left) == (1, 2, 3)
    assert [await store.take_free_run(account, f"k{n}", 1) for n in range(4)] == [True, True, True, False]
    assert (await store.free_runs(account, 1)).left == 0


async def test_concurrent_users_cannot_exceed_the_uses_of_a_code(store: SqlDatabase) -> None:
    await store.create_promo(promo(uses_max=7), lasting=None, author="op")
    uses = await asyncio.gather(*(store.use_promo("CAT", account, "k") for account in range(1, 41)))

    assert [use.verdict for use in uses].count(PromoVerdict.GIVEN) == 7
    assert (await store.promos(1))[0].uses == 7


async def test_one_account_cannot_exceed_its_uses_of_a_code(store: SqlDatabase) -> None:
    await store.create_promo(promo(per_account=2), lasting=None, author="op")
    uses = await asyncio.gather(*(store.use_promo("CAT", 1, f"k{n}") for n in range(20)))

    assert sorted(use.number for use in uses if use.verdict is PromoVerdict.GIVEN) == [1, 2]


# invitations


async def test_an_invitation_is_due_after_the_first_result_bought_with_money(store: SqlDatabase) -> None:
    host = await profiled(store, "1")
    job = await delivered(store)
    guest = job.account_id
    await store.ensure_profile(guest, language="en", name="G", username="g", referred_by=host)
    waiting = await running(store, "task")
    await store.ensure_profile(waiting.account_id, language="en", name="W", username="w", referred_by=host)

    assert await store.rewards_due("bot", 0, 10) == ([], 0)  # all of it may have been gifts
    for charge, account in (("c1", guest), ("c2", waiting.account_id)):
        assert await store.add_payment(charge, account, 1, 1000)
    assert await store.rewards_due("bot", 0, 10) == ([(guest, host)], 0)
    assert await store.rewards_due("bot", 0, 1) == ([(guest, host)], guest)  # continues after the guest
    assert await store.rewards_due("bot", guest, 1) == ([], waiting.account_id)
    assert await store.transfer(guest, EntryKind.GRANT, 1000, "enough for a refund")
    assert await store.begin_refund("c1", "op")
    assert await store.rewards_due("bot", 0, 10) == ([], 0)
    assert await store.undo_refund("c1", 1, "refused")
    assert await store.mark_rewarded(guest)
    assert not await store.mark_rewarded(guest)
    assert await store.rewards_due("bot", 0, 10) == ([], 0)


# broadcasts


async def test_a_broadcast_passes_over_many_users_of_other_bots(
    store: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.stores.broadcasts.PROFILES_AT_ONCE", 2)
    for number in range(7):
        other = await store.ensure_account("chat", "other", str(number))
        await store.ensure_profile(other, language="en", name="O", username="", referred_by=None)
    last = await profiled(store, "last")
    await store.set_account_address(last, "there")
    broadcast = await store.begin_broadcast("Hello", bot="bot", author="op", request_key="u")

    found = await store.next_recipient(broadcast.id)
    assert found is not None
    assert (found.account_id, found.address) == (last, "there")
    assert await store.next_recipient(broadcast.id) is None


async def test_concurrent_senders_of_a_broadcast_reach_every_user_once(store: SqlDatabase) -> None:
    accounts = [await profiled(store, str(number)) for number in range(100, 120)]
    await store.set_blocked(accounts[3], blocked=True)
    await store.set_ban(accounts[4], banned=True, reason="x")
    sent = await store.begin_broadcast("Hello", bot="bot", author="op", request_key="u1")
    assert await store.begin_broadcast("Hello", bot="bot", author="op", request_key="u1") == sent
    assert sent.total == await store.count_reachable("bot") == 18
    reached: list[int] = []

    async def send() -> None:
        while found := await store.next_recipient(sent.id):
            reached.append(found.account_id)
            await store.count_broadcast_message(sent.id, sent=found.account_id % 2 == 0)

    await asyncio.gather(*(send() for _ in range(5)))
    assert sorted(reached) == [account for account in accounts if account not in accounts[3:5]]
    now = await store.broadcast(sent.id)
    assert now is not None
    assert now.sent + now.failed == 18
    assert await store.end_broadcast(sent.id, BroadcastState.DONE)
    assert not await store.end_broadcast(sent.id, BroadcastState.STOPPED)


@pytest.mark.parametrize("window", [1, 1000])
async def test_a_broadcast_to_a_segment_reaches_its_users_only(
    store: SqlDatabase, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr("genlock.stores.broadcasts.PROFILES_AT_ONCE", window)
    names = {}
    for name, language in (("silent", "en"), ("silent_ru", "ru"), ("payer", "en"), ("fresh", "ru")):
        if name == "payer":
            clock.advance(10 * 86_400)
        account_id = await store.ensure_account("chat", "bot", name)
        await store.ensure_profile(account_id, language=language, name=name, username="", referred_by=None)
        names[account_id] = name
    for account_id, name in names.items():
        if name in ("payer", "silent_ru"):
            assert await store.transfer(account_id, EntryKind.TOPUP, 500, name)
            assert await store.add_payment(name, account_id, 50, 500)

    wanted = {
        Segment(): ["silent", "silent_ru", "payer", "fresh"],
        Segment(language="ru"): ["silent_ru", "fresh"],
        Segment(paid=True): ["silent_ru", "payer"],
        Segment(paid=False): ["silent", "fresh"],
        Segment(silent_days=7): ["silent", "silent_ru"],
        Segment(language="ru", paid=True, silent_days=7): ["silent_ru"],
        Segment(language="de"): [],
    }
    for segment, users in wanted.items():
        sent = await store.begin_broadcast("Hi", bot="bot", author="op", request_key=str(segment), segment=segment)
        reached = []
        while found := await store.next_recipient(sent.id):
            reached.append(names[found.account_id])
        assert (reached, sent.total, sent.segment) == (users, len(users), segment)
        assert await store.count_reachable("bot", segment) == len(users)


async def test_a_stopped_broadcast_reaches_no_further_user(store: SqlDatabase) -> None:
    await profiled(store, "1")
    sent = await store.begin_broadcast("Hello", bot="bot", author="op", request_key="u1")
    assert await store.running_broadcast() == sent
    await store.end_broadcast(sent.id, BroadcastState.STOPPED)

    assert await store.next_recipient(sent.id) is None
    assert await store.running_broadcast() is None


# operators


async def test_audit_lines_are_listed_newest_first(store: SqlDatabase) -> None:
    await store.add_audit(key="a", actor="1", action="ban", subject="2", detail="spam")
    await store.add_audit(key="b", actor="1", action="unban", subject="2", detail="")

    await store.add_audit(key="b", actor="1", action="unban", subject="2", detail="")
    assert [(line.action, line.detail) for line in await store.audit(10)] == [("unban", ""), ("ban", "spam")]


async def test_figures_count_only_the_given_period(store: SqlDatabase, clock: ManualClock) -> None:
    await delivered(store)
    clock.advance(100_000)
    job = await delivered(store)
    await profiled(store, "1")
    await store.add_payment("c", job.account_id, 50, 60_000)
    today = await store.figures("bot", 86_400)

    assert (today.orders, today.delivered, today.failed, today.users) == (1, 1, 0, 1)
    assert (today.revenue, today.newcomers, today.stars, today.topups) == (job.price, 1, 50, 60_000)
    assert (await store.figures("bot", 10**6)).orders == 2
