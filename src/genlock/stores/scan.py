"""Lists without an index: read newest first, in steps of a bounded number of ids."""

from typing import Any

from genlock.stores.rows import Row
from genlock.stores.session import Session

#: above every id
NEWEST = 2**63 - 1
#: ids that one statement reads: tens of milliseconds on either database
STEP = 20_000


async def newest_between(
    session: Session, name: str, range_name: str, *, limit: int, before: int = NEWEST, **params: Any
) -> list[Row]:
    """Return up to `limit` rows of a statement that takes a range of ids, newest first.

    A rare state may be thousands of rows back. No single statement takes long, so others run in between.
    """
    [ids] = await session.one(range_name)
    found: list[Row] = []
    upper = min(before, (ids["last"] or 0) + 1)
    while upper > (ids["first"] or 0) and len(found) < limit:
        floor = upper - STEP
        found += await session.one(name, floor=floor, before=upper, limit=limit - len(found), **params)
        upper = floor
    return found
