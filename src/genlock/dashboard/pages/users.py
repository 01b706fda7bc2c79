"""Users: the list, and one user with balance, ledger, payments, gifts and limits."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from starlette.responses import Response

from genlock.dashboard.ledger_view import last_place, ledger_lines
from genlock.dashboard.page import PageContext, PageNotFound, PageRoute
from genlock.dashboard.query import Query
from genlock.dashboard.roles import Permission
from genlock.domain.money import EntryKind, LedgerEntry
from genlock.domain.operator import OperatorRole
from genlock.domain.place import NEWEST, Place
from genlock.domain.user import UsedPromo, User, UserFilter
from genlock.engine.accounts import GIFT_CODE
from genlock.engine.erasure import Erasure
from genlock.i18n.translator import Translator
from genlock.ports import Database

PAGE = 50
#: rows of each list on the first page of a user
RECENT = 10
#: accounts that a search shows
FOUND_MAX = 100
#: keys of ledger entries that operators made, in the chat and here
OPERATOR_KEYS = ("admin:", "dashboard:")


@dataclass(frozen=True, kw_only=True)
class UserLimits:
    """The operator's limits per user, from the settings."""

    running_max: int
    #: for a client of the API, which has no limit per minute or hour
    api_running_max: int
    per_minute: int
    per_hour: int
    late_cancels_per_day: int
    free_per_day: int
    #: what support may move in a day, in thousandths of a credit
    support_credits_max: int


class UsersPage:
    def __init__(self, store: Database, limits: UserLimits, titles: Callable[[Translator], Mapping[str, str]]) -> None:
        self._store = store
        self._limits = limits
        #: titles of models by id
        self._titles = titles

    def routes(self) -> list[PageRoute]:
        route = partial(PageRoute, permission=Permission.VIEW)
        return [
            route(path="/users", handler=self._list),
            route(path="/users/{account_id:int}", handler=self._show),
            route(path="/users/{account_id:int}/ledger", handler=self._ledger),
            route(path="/users/{account_id:int}/payments", handler=self._payments),
            route(path="/users/{account_id:int}/gifts", handler=self._gifts),
        ]

    async def _list(self, context: PageContext) -> Response:
        query = Query(context, ("q", "which", "before"))
        text, which = query.text("q").lstrip("@"), query.choice("which", UserFilter, UserFilter.ALL)
        before = query.number("before")
        if text:
            found = await self._store.account_summaries(text, FOUND_MAX)
            users = await self._store.users_by_id([user.account_id for user in found])
            users = [user for user in users if _is_selected(user, which)]
            older = None
        else:
            users = await self._store.users(which, before=before, limit=PAGE)
            older = users[-1].account_id if len(users) == PAGE else None
        return context.render(
            "users.html",
            users=users,
            text=text,
            which=which,
            filters=[*UserFilter],
            older=older,
            at_start=before is None,
            is_cut=bool(text) and len(users) == FOUND_MAX,
            problems=query.problems,
        )

    async def _show(self, context: PageContext) -> Response:
        return await self.show(context, await self.find(context))

    async def show(self, context: PageContext, user: User, status: int = 200, **values: object) -> Response:
        """Answer with the first page of a user; a refused form comes back with its values and the reason."""
        store, account_id = self._store, user.account_id
        ledger = await store.account_ledger(account_id, before=NEWEST, limit=RECENT)
        return context.render(
            "user.html",
            status,
            user=user,
            tab="",
            lines=list(ledger_lines(ledger.entries, ledger.available)),
            jobs=await store.jobs(account_id=account_id, limit=RECENT),
            payments=await store.account_payments(account_id, before=NEWEST, limit=RECENT),
            inviter=next(iter(await store.users_by_id([user.referred_by])), None) if user.referred_by else None,
            activity=await store.activity(account_id),
            late_cancels=await store.late_cancels(account_id),
            free_runs=await store.free_runs(account_id, self._limits.free_per_day),
            erasing=await Erasure(store).is_requested(account_id, user.bot),
            limits=self._limits,
            titles=self._titles(context.t),
            allowance=await self.allowance_left(context),
            state=state_of_moves(ledger.entries),
            gift_state=state_of_gifts(await store.used_promos(account_id, RECENT)),
            **{"refused": "", "fields": {}, **values},
        )

    async def find(self, context: PageContext) -> User:
        """Return the user in the address. Raises PageNotFound."""
        account_id = context.request.path_params["account_id"]
        found = await self._store.users_by_id([account_id]) if account_id < 2**62 else []
        if not found:
            raise PageNotFound("dashboard.error.no_user", number=str(account_id)[:20])
        return found[0]

    async def allowance_left(self, context: PageContext) -> int | None:
        """Return what the operator may still move today, in thousandths of a credit; None if there is no limit."""
        if context.operator.role is OperatorRole.OWNER:
            return None
        return max(self._limits.support_credits_max - await self._store.allowance_used(context.operator.id), 0)

    async def _ledger(self, context: PageContext) -> Response:
        user, query = await self.find(context), Query(context, ("before",))
        before = query.place("before")
        page = await self._store.account_ledger(user.account_id, before=before, limit=PAGE)
        # Further back, the balance after a line is known only by adding up all newer lines.
        balance = page.available if before == NEWEST else None
        return context.render(
            "user_ledger.html",
            user=user,
            tab="ledger",
            lines=list(ledger_lines(page.entries, balance)),
            older=last_place(page.entries, PAGE),
            at_start=before == NEWEST,
            problems=query.problems,
        )

    async def _payments(self, context: PageContext) -> Response:
        user, query = await self.find(context), Query(context, ("before",))
        before = query.place("before")
        payments = await self._store.account_payments(user.account_id, before=before, limit=PAGE)
        return context.render(
            "user_payments.html",
            user=user,
            tab="payments",
            payments=payments,
            older=Place.of(payments[-1].at, payments[-1].charge) if len(payments) == PAGE else None,
            at_start=before == NEWEST,
            problems=query.problems,
        )

    async def _gifts(self, context: PageContext) -> Response:
        user, query = await self.find(context), Query(context, ("before",))
        before = query.number("before")
        invited = await self._store.invited_users(user.account_id, before=before, limit=PAGE)
        return context.render(
            "user_gifts.html",
            user=user,
            tab="gifts",
            promos=await self._store.used_promos(user.account_id, PAGE),
            invited=invited,
            older=invited[-1].account_id if len(invited) == PAGE else None,
            at_start=before is None,
            problems=query.problems,
        )


def state_of_moves(entries: Sequence[LedgerEntry]) -> str:
    """Return what a form about credits was made from: the newest entry that an operator made."""
    moved = newest_operator_move(entries)
    return "" if moved is None else hashlib.sha256(moved.key.encode()).hexdigest()[:16]


def state_of_gifts(used: Sequence[UsedPromo]) -> str:
    """Return what a form about free runs was made from: the newest runs that an operator gave."""
    given = newest_gift(used)
    return "" if given is None else hashlib.sha256(given.code.encode()).hexdigest()[:16]


def newest_gift(used: Sequence[UsedPromo]) -> UsedPromo | None:
    return next((promo for promo in used if promo.code.startswith(GIFT_CODE)), None)


def newest_operator_move(entries: Sequence[LedgerEntry]) -> LedgerEntry | None:
    kinds = (EntryKind.GRANT, EntryKind.DEBIT)
    return next((entry for entry in entries if entry.kind in kinds and entry.key.startswith(OPERATOR_KEYS)), None)


def _is_selected(user: User, which: UserFilter) -> bool:
    """Whether a user whom a search found also fits the filter. Who has paid is not known here: all fit."""
    match which:
        case UserFilter.BANNED:
            return user.banned_at is not None
        case UserFilter.OWING:
            return user.debt > 0
        case _:
            return True
