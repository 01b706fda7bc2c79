"""Searching the audit log: filters, pages, and a bounded number of lines that are looked at."""

from datetime import UTC, datetime, timedelta

import pytest

from genlock.domain.audit import AuditFilter
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock


async def add(store: SqlDatabase, number: int, actor: str = "7", action: str = "ban", subject: str = "1") -> None:
    await store.add_audit(key=f"{number}", actor=actor, action=action, subject=subject, detail=f"{number}")


async def search(store: SqlDatabase, filters: AuditFilter, limit: int = 2) -> list[list[str]]:
    """Return the details of each page."""
    pages, before = [], None
    while True:
        page = await store.search_audit(filters, before=before, limit=limit)
        pages.append([line.detail for line in page.lines])
        if (before := page.before) is None:
            return pages


async def test_an_empty_audit_log_has_one_empty_page(store: SqlDatabase) -> None:
    assert await search(store, AuditFilter()) == [[]]
    assert await search(store, AuditFilter(subject="1")) == [[]]


async def test_pages_are_newest_first_and_lose_no_line(store: SqlDatabase) -> None:
    for number in range(5):
        await add(store, number)
    for filters in (AuditFilter(), AuditFilter(subject="1")):
        assert await search(store, filters) == [["4", "3"], ["2", "1"], ["0"]]


async def test_every_filter_that_is_set_must_match(store: SqlDatabase, clock: ManualClock) -> None:
    await add(store, 0, actor="7", action="ban", subject="1")
    await add(store, 1, actor="8", action="ban", subject="2")
    clock.advance(3600)
    await add(store, 2, actor="7", action="unban", subject="1")
    await add(store, 3, actor="7", action="ban", subject="2")
    now = clock.now()
    expected = {
        AuditFilter(actor="7"): ["3", "2", "0"],
        AuditFilter(actor="7", action="ban"): ["3", "0"],
        AuditFilter(subject="1"): ["2", "0"],
        AuditFilter(subject="2", actor="8"): ["1"],
        AuditFilter(since=now): ["3", "2"],
        AuditFilter(until=now): ["1", "0"],
        AuditFilter(subject="1", until=now): ["0"],
        AuditFilter(since=now + timedelta(seconds=1)): [],
        AuditFilter(actor="' OR 1=1 --"): [],
    }
    for filters, details in expected.items():
        assert await search(store, filters, limit=9) == [details], filters


async def test_one_search_looks_at_a_bounded_number_of_lines(
    store: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.stores.audit.STEP", 2)
    monkeypatch.setattr("genlock.stores.audit.STEPS_MAX", 2)
    monkeypatch.setattr("genlock.stores.audit.SUBJECT_LINES", 3)
    for number in range(6):
        await add(store, number, actor="8" if number == 0 else "7")
    for filters, looked_at in ((AuditFilter(actor="8"), 4), (AuditFilter(actor="8", subject="1"), 3)):
        first = await store.search_audit(filters, limit=5)
        assert (first.lines, first.stopped) == ((), True)
        second = await store.search_audit(filters, before=first.before, limit=5)
        assert [line.detail for line in second.lines] == ["0"]
        assert 6 - looked_at == len((await store.search_audit(AuditFilter(), before=first.before, limit=9)).lines)


async def test_audit_lines_are_listed_newest_first(store: SqlDatabase) -> None:
    await store.add_audit(key="a", actor="1", action="ban", subject="2", detail="spam")
    await store.add_audit(key="b", actor="1", action="unban", subject="2", detail="")

    await store.add_audit(key="b", actor="1", action="unban", subject="2", detail="")
    assert [(line.action, line.detail) for line in await store.audit(10)] == [("unban", ""), ("ban", "spam")]


async def test_lines_are_found_between_the_first_and_the_last_time_there_is(store: SqlDatabase) -> None:
    await store.add_audit(key="k", actor="a", action="b", subject="1", detail="")
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    found = [
        len((await store.search_audit(filters)).lines)
        for filters in (AuditFilter(since=first, until=last), AuditFilter(since=last), AuditFilter(until=first))
    ]
    assert found == [1, 0, 0]
