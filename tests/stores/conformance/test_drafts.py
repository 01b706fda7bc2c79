"""Drafts, uploaded files and the messages of orders, on both databases."""

import asyncio

from genlock.domain.draft import SavedDraft
from genlock.domain.upload import Upload, UploadCopy
from genlock.stores.database import SqlDatabase
from tests.stores.builders import CHAT, ManualClock, account_with, delivered, queued

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
    assert await store.set_draft_message(1, CHAT, 42, version=1)

    assert await store.draft_owner(CHAT, 42) == 1
    assert await store.draft_owner(CHAT, 43) is None
    found = await store.draft(1, CHAT)
    assert found is not None
    assert (found.version, found.message) == (1, 42)


async def test_the_message_of_a_draft_is_recorded_only_for_the_version_that_it_shows(store: SqlDatabase) -> None:
    await store.save_draft(1, CHAT, SavedDraft(version=0, message=42, body="{}"))
    await store.save_draft(1, CHAT, SavedDraft(version=1, message=None, body="{}"))

    assert not await store.set_draft_message(1, CHAT, 42, version=1)
    assert not await store.set_draft_message(1, CHAT + 1, 42, version=2)
    assert (await store.draft(1, CHAT)) == SavedDraft(version=2, message=None, body="{}")


# uploaded files


async def test_an_uploaded_file_is_found_by_its_address(store: SqlDatabase, clock: ManualClock) -> None:
    for number in range(3):
        await store.add_upload(
            Upload(key=f"https://f/{number}", account_id=1, file="id", kind="image", seconds=2.5, age_seconds=0)
        )
        clock.advance(600)

    found = await store.upload("https://f/0")
    assert found is not None
    assert (found.file, found.seconds, found.age_seconds) == ("id", 2.5, 1800.0)
    assert await store.upload("https://f/none") is None


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


def copy(provider: str, url: str, left: float = 3600.0) -> UploadCopy:
    return UploadCopy(key="https://f/0", provider=provider, url=url, left_seconds=left)


async def test_each_provider_has_one_copy_of_a_file_until_it_expires(store: SqlDatabase, clock: ManualClock) -> None:
    await store.add_upload(
        Upload(key="https://f/0", account_id=1, file="id", kind="image", seconds=None, age_seconds=0)
    )
    await store.save_upload_copy(copy("one", "https://one/old", 60.0))
    await store.save_upload_copy(copy("two", "https://two/0", 100.0))
    clock.advance(70)
    await store.save_upload_copy(copy("one", "https://one/new"))
    kept = [
        (copied.provider, copied.url, round(copied.left_seconds)) for copied in await store.upload_copies("https://f/0")
    ]
    files = [
        await store.input_file(url)
        for url in ("https://f/0", "https://one/new", "https://two/0", "https://one/old", "https://f/none")
    ]

    assert kept == [("one", "https://one/new", 3600), ("two", "https://two/0", 30)]
    assert await store.upload_copies("https://one/new") == []
    assert [file.key if file else None for file in files] == ["https://f/0"] * 3 + [None, None]


async def test_a_copy_that_lasts_as_long_as_needed_stays(store: SqlDatabase) -> None:
    first, second, third = (copy("one", f"https://one/{number}", 100.0 + number) for number in range(3))
    saved = [
        await store.save_upload_copy(first, needed_seconds=60.0),
        await store.save_upload_copy(second, needed_seconds=90.0),
        await store.save_upload_copy(third, needed_seconds=101.5),
    ]

    assert saved == ["https://one/0", "https://one/0", "https://one/2"]
    assert [(copied.url, round(copied.left_seconds)) for copied in await store.upload_copies("https://f/0")] == [
        (third.url, 102)
    ]
    assert await store.save_upload_copy(first) == first.url, "without a need, the newer copy replaces the other"


async def test_copies_are_pruned_after_their_provider_deleted_them(store: SqlDatabase, clock: ManualClock) -> None:
    for number in range(3):
        await store.save_upload_copy(copy(str(number), f"https://{number}", 60.0))
    await store.save_upload_copy(copy("later", "https://later", 9000.0))
    clock.advance(3600)
    role = await store.take_role("active", "me", 3.0)
    assert role is not None
    assert await store.prune("upload_copies", 3550.0, 2, role) == 0, "not old enough"
    assert [await store.prune("upload_copies", 3500.0, 2, role) for _ in range(3)] == [2, 1, 0]
    assert [copied.provider for copied in await store.upload_copies("https://f/0")] == ["later"]
