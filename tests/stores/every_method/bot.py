"""Call every method that only the bot uses."""

from genlock.domain.broadcast import BroadcastOutcome, BroadcastState, Recipient, Segment
from genlock.domain.draft import SavedDraft
from genlock.domain.promo import Promo
from genlock.domain.upload import Upload, UploadCopy
from genlock.ports import Database
from tests.stores.builders import delivered, ensure_profile
from tests.stores.history import HEAVY


async def use_what_users_keep(store: Database) -> None:
    """The gallery of the account with most jobs, favourites and settings."""
    for models in (["model"], ["none", "model"], ["none"]):
        newest = await store.result_before(HEAVY, models)
        if newest is not None:
            await store.result_after(HEAVY, models, newest.id)
            await store.result_before(HEAVY, models, newest.id // 2)
            await store.result_after(HEAVY, models, newest.id // 2)
    shown = await delivered(store)
    assert await store.set_result_hidden(shown.account_id, shown.id, hidden=True)
    await store.result_after(HEAVY, ["model"], 0)
    assert await store.add_favourite(HEAVY, "model")
    assert await store.favourites(HEAVY)
    await store.wallet_and_favourites(shown.account_id)
    await store.remove_favourite(HEAVY, "model")
    await store.save_model_settings(HEAVY, "model", "{}")
    assert await store.model_settings(HEAVY, "model")
    await store.delete_model_settings(HEAVY, "model")


async def use_the_bot_data(store: Database) -> None:
    await use_profiles(store)
    await use_drafts_and_files(store)
    await use_payments_and_gifts(store)
    await use_broadcasts(store)


async def use_profiles(store: Database) -> None:
    await ensure_profile(store, 1, language="en", name="Ann", username="ann", referred_by=None)
    await store.known_profile("telegram", "bot", "1")
    await store.profile(1)
    await store.find_profiles("ann", 1)
    await store.account_summaries(None, 1)
    await store.account_summaries("ann", 1)
    await store.newest_profiles(1)
    await store.debtors(1)
    await store.set_language(1, "ru")
    await store.set_last_model(1, "z-image")
    await store.set_ban(1, banned=False, reason="")
    await store.set_blocked(1, blocked=False)


async def use_drafts_and_files(store: Database) -> None:
    assert await store.save_draft(1, 7, SavedDraft(version=0, message=None, body="{}"))
    await store.set_draft_message(1, 7, 5, version=1)
    await store.draft(1, 7)
    await store.draft_owner(7, 5)
    await store.is_job_message(1, "5")
    await store.jobs_shown_by(1, "5")
    await store.add_upload(Upload(key="a", account_id=1, file="f", kind="image", seconds=None, age_seconds=0))
    await store.mark_upload_used("a")
    await store.upload("a")
    await store.save_upload_copy(UploadCopy(key="a", provider="p", url="https://p/a", left_seconds=1.0))
    await store.upload_copies("a")
    await store.input_file("https://p/a")


async def use_payments_and_gifts(store: Database) -> None:
    await store.activity(1)
    await store.late_cancels(1)
    await store.add_payment("charge", 1, 1, 1)
    await store.payment("charge")
    await store.payments(1, 1)
    await store.begin_refund("charge", "why")
    await store.undo_refund("charge", 1, "why")
    await store.finish_refund("charge")
    await store.book_external_refund("charge", "why")
    await store.ledger_entry("key")
    await store.take_free_run(1, "key", 1)
    await store.return_free_run(1, "key")
    await store.free_runs(1, 1)
    promo = Promo(code="C", amount=1, runs=0, uses_max=None, per_account=1, until=None)
    await store.create_promo(promo, lasting=None, author="me")
    await store.use_promo("C", 1, "key")
    await store.is_promo_used(1, "key")
    await store.close_promo("C")
    await store.promos(1)
    await store.rewards_due("bot", 0, 1)
    await store.mark_rewarded(1)


async def use_broadcasts(store: Database) -> None:
    await store.count_reachable("bot")
    broadcast = await store.begin_broadcast("text", bot="bot", author="me", request_key="key")
    await store.broadcast(broadcast.id)
    await store.running_broadcast()
    found = await store.next_recipient(broadcast.id) or Recipient(account_id=1, language="en", address="", token=1)
    await store.begin_broadcast_message(broadcast.id, found)
    await store.return_recipient(broadcast.id, found, 0.0)
    await store.next_recipient(broadcast.id)
    await store.count_broadcast_message(broadcast.id, found, BroadcastOutcome.SENT)
    await store.expire_recipients()
    await store.end_broadcast(broadcast.id, BroadcastState.DONE)
    payers = Segment(paid=True)
    await store.count_reachable("bot", payers)
    to_payers = await store.begin_broadcast("text", bot="bot", author="me", request_key="payers", segment=payers)
    await store.next_recipient(to_payers.id)
    await store.end_broadcast(to_payers.id, BroadcastState.STOPPED)
