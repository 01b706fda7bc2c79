"""Call every method of the port, and with it every statement, at least once."""

from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock
from tests.stores.every_method.api import use_api
from tests.stores.every_method.engine import use_jobs, use_updates
from tests.stores.every_method.upkeep import use_figures, use_kv_and_retention

#: run once when a connection is opened, and needed by SQLite only: PostgreSQL's statements hold their items themselves
SQLITE_ONLY = {"temporary"}


async def use_everything(store: SqlDatabase, clock: ManualClock) -> None:
    await use_jobs(store, clock)
    await use_updates(store)
    await use_kv_and_retention(store)
    await use_figures(store)
    await use_api(store)
    await store.clear_figures()
    await store.violations(settled=False)
