"""Tables as CSV files, sent while they are read."""

import csv
import io
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from time import monotonic

from starlette.responses import PlainTextResponse, Response, StreamingResponse

from genlock.dashboard.page import PageContext
from genlock.domain.money import THOUSANDTHS
from genlock.domain.printable import escape_unprintable

#: a cell of a text that begins with one of these is a formula for a spreadsheet
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - the wide forms count, too
#: A spreadsheet of a country that writes 1,5 separates cells by semicolons, and takes our quotes for text: for it, such
#: a formula begins a cell in the middle of ours.
_INNER_FORMULA = re.compile(r"([;\n\t][ \"]*)(?=[=+\-@＝＋－＠])")  # noqa: RUF001 - as above
#: spreadsheets recognise UTF-8 by it
_BYTE_ORDER_MARK = "\ufeff"
CELL_LENGTH_MAX = 30_000
Cell = str | int | float | Decimal | datetime | None


#: sessions with a running download on this instance, and when it made progress last
_running: dict[tuple[int, datetime], float] = {}
#: a download that makes no progress for this long was given up by the browser
_STALLED_SECONDS = 60.0


def csv_response(
    context: PageContext, name: str, header: Sequence[str], pages: AsyncIterator[Iterable[Sequence[Cell]]]
) -> Response:
    """Answer with a file that is written page by page. If reading fails, the download fails; it is never cut short.

    A session has one download at a time, because each reads the database for as long as it takes.
    """
    session = (context.login.session.id, context.login.session.created_at)
    if monotonic() - _running.get(session, -_STALLED_SECONDS) < _STALLED_SECONDS:
        return PlainTextResponse(context.t.plain("dashboard.error.export_running"), 429, {"Retry-After": "10"})
    _running[session] = monotonic()

    async def chunks() -> AsyncIterator[str]:
        try:
            yield _BYTE_ORDER_MARK + csv_lines([header])
            async for page in pages:
                _running[session] = monotonic()
                yield csv_lines(page)
        finally:
            _running.pop(session, None)

    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(chunks(), media_type="text/csv; charset=utf-8", headers=headers)


def credits_cell(thousandths: int) -> Decimal:
    return Decimal(thousandths) / THOUSANDTHS


def csv_lines(rows: Iterable[Sequence[Cell]]) -> str:
    """Return rows as lines of CSV in which no spreadsheet finds a formula."""
    written = io.StringIO()
    csv.writer(written).writerows([_cell(value) for value in row] for row in rows)
    return written.getvalue()


def _cell(cell: Cell) -> str | int | float | Decimal:
    """Write a cell so that no spreadsheet runs it: what looks like a formula begins with an apostrophe."""
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if not isinstance(cell, str):
        return cell
    text = _INNER_FORMULA.sub(r"\1'", escape_unprintable(cell[:CELL_LENGTH_MAX], keep="\n\t"))
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
