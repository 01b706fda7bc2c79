"""Balance and ledger of the account that a key belongs to."""

from collections.abc import Sequence

from starlette.responses import Response

from genlock.api.operation import Answered, Call, Operation
from genlock.api.parts import ApiParts
from genlock.api.types import BalanceAnswer, LedgerLine, LedgerList, LedgerPageQuery
from genlock.domain.api_key import ApiScope
from genlock.domain.money import THOUSANDTHS, LedgerEntry
from genlock.domain.place import NEWEST, Place, microseconds


class AccountRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts

    def operations(self) -> list[Operation]:
        return [
            Operation(
                name="get_balance",
                method="GET",
                path="/v1/balance",
                summary="Read the balance",
                handle=self.balance,
                scope=ApiScope.READ,
                tag="account",
                answers={200: Answered(description="The balance of the account.", kind=BalanceAnswer)},
            ),
            Operation(
                name="list_ledger",
                method="GET",
                path="/v1/ledger",
                summary="List the ledger, newest first",
                handle=self.ledger,
                scope=ApiScope.READ,
                tag="account",
                query=LedgerPageQuery,
                answers={200: Answered(description="One page of the ledger.", kind=LedgerList)},
                problems=(422,),
            ),
        ]

    async def balance(self, call: Call) -> Response:
        wallet, key = await self._parts.store.wallet(call.account_id), call.key
        answer = BalanceAnswer(
            available=wallet.available / THOUSANDTHS,
            held=wallet.held / THOUSANDTHS,
            debt=wallet.debt / THOUSANDTHS,
            spend_limit=None if key.spend_limit is None else key.spend_limit / THOUSANDTHS,
            spent_today=key.spent_today / THOUSANDTHS,
        )
        return Response(answer.model_dump_json(), media_type="application/json")

    async def ledger(self, call: Call) -> Response:
        query = call.query
        assert isinstance(query, LedgerPageQuery)
        before, at, skip = _read_cursor(query.cursor)
        page = await self._parts.store.account_ledger(call.account_id, before=before, limit=skip + query.limit + 1)
        entries = page.entries[skip:]
        shown = entries[: query.limit]
        answer = LedgerList(
            data=[self._line(entry) for entry in shown],
            next_cursor=_cursor(shown, at, skip) if len(entries) > query.limit else None,
        )
        return Response(answer.model_dump_json(), media_type="application/json")

    def _line(self, entry: LedgerEntry) -> LedgerLine:
        return LedgerLine(
            at=entry.at,
            kind=entry.kind.value,
            amount=entry.amount / THOUSANDTHS,
            debit=entry.debit.value,
            credit=entry.credit.value,
            job=None if entry.job_id is None else self._parts.view.id_of(entry.job_id),
        )


def _read_cursor(cursor: str | None) -> tuple[Place, int, int]:
    """Return the place, the microsecond and the lines of it to skip. The keys of lines stay private."""
    if cursor is None:
        return NEWEST, -1, 0
    at, skip = map(int, cursor.split("."))
    return Place(microseconds=at + 1, key=""), at, skip


def _cursor(entries: Sequence[LedgerEntry], at: int, skip: int) -> str:
    last = microseconds(entries[-1].at)
    same = sum(microseconds(entry.at) == last for entry in entries)
    return f"{last}.{same + skip if last == at else same}"
