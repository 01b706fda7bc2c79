"""What an operator may know of the installation itself."""

from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import shipped
from tests.stores.builders import ManualClock


async def test_every_role_is_listed_with_its_holder_and_whether_it_is_held(
    store: SqlDatabase, clock: ManualClock
) -> None:
    await store.take_role("active", "one", 3.0)
    await store.take_role("doctor", "two", 3.0)
    await store.release_role("doctor", "two")
    assert [(role.name, role.holder, role.epoch, role.held) for role in await store.roles()] == [
        ("active", "one", 1, True),
        ("doctor", "two", 1, False),
    ]
    clock.advance(4)
    await store.take_role("active", "other", 3.0)
    active = (await store.roles())[0]
    assert (active.holder, active.epoch, active.held) == ("other", 2, True)
    assert (active.until - clock.now()).total_seconds() == 3.0


async def test_the_applied_migrations_are_listed_with_their_times(store: SqlDatabase) -> None:
    applied = await store.applied_migrations()
    assert [migration.label for migration in applied] == [migration.label for migration in reversed(shipped("sqlite"))]
    assert all(migration.applied_at.tzinfo is not None for migration in applied)


async def test_the_database_says_what_it_is_and_how_large(store: SqlDatabase) -> None:
    facts = await store.database_facts()
    assert facts.version.split()[0] in ("SQLite", "PostgreSQL")
    assert facts.bytes > 10_000
