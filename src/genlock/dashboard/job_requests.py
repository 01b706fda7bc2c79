"""What an operator asks for on the pages about orders: filters, the user they name, and the chips that show them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode

from genlock.dashboard.job_filters import NAMES, JobQuery, read_query
from genlock.dashboard.page import ROOT, PageContext
from genlock.dashboard.roles import Permission
from genlock.domain.job_search import CountKind, JobCount, JobFilter
from genlock.domain.profile import AccountSummary
from genlock.ports import Database

PATH = "/jobs"
USERS_SHOWN = 6
QUERY_FIELDS_MAX = 50
#: no account has this id
NO_ACCOUNT = 0
_SIGNIFICANT_DIGITS = 2


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    query: JobQuery
    #: the users that the text for a user may mean, where it is not clear
    users: tuple[AccountSummary, ...] = ()
    user_name: str = ""

    def url(self, path: str = PATH, **changes: str) -> str:
        """Return the URL of a page with these filters, some of them changed."""
        return _url(path, {**self.query.written, **changes})

    def without(self, name: str) -> str:
        """Return the URL of the list without a filter."""
        return _url(PATH, {key: text for key, text in self.query.written.items() if key != name})

    @property
    def text(self) -> str:
        """The filters as a form carries them."""
        return urlencode(list(self.query.written.items()))


@dataclass(frozen=True, kw_only=True)
class Chip:
    label: str
    text: str
    #: the URL without this filter
    without: str
    is_known: bool


def _url(path: str, filters: Mapping[str, str]) -> str:
    text = urlencode([(name, value) for name, value in filters.items() if value])
    return f"{ROOT}{path}?{text}" if text else f"{ROOT}{path}"


async def read_request(store: Database, context: PageContext, pairs: Iterable[tuple[str, str]]) -> JobRequest:
    query = read_query(
        pairs, zone=context.zone, now=await store.read_clock(), see_prompts=context.can(Permission.SEE_PROMPTS)
    )
    return await _with_user(store, query)


async def read_form_request(store: Database, context: PageContext) -> JobRequest:
    """Return the filters that a form carries as the text of an address."""
    try:
        pairs = parse_qsl(context.form["query"], max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        pairs = [("query", context.form["query"])]  # not of ours: named as an unknown filter
    return await read_request(store, context, pairs)


async def _with_user(store: Database, query: JobQuery) -> JobRequest:
    """Find the account that the text for a user means. Where it is not clear, nothing matches: never everything."""
    if not query.user:
        return JobRequest(query=query)
    account_id = _account_id(query.user)
    if account_id is not None:
        names = await store.account_names([account_id])
        found = replace(query, filters=replace(query.filters, account_id=account_id))
        return JobRequest(query=found, user_name=names.get(account_id, ""))
    users = await store.account_summaries(query.user.removeprefix("@"), USERS_SHOWN)
    if len(users) == 1:
        found = replace(query, filters=replace(query.filters, account_id=users[0].account_id))
        return JobRequest(query=found, user_name=users[0].name or users[0].external_id)
    none = replace(query, filters=replace(query.filters, account_id=NO_ACCOUNT))
    problem = "several_users" if users else "no_user"
    return JobRequest(query=none.with_problem(problem, "user", query.user), users=tuple(users))


def _account_id(text: str) -> int | None:
    """Return the account id of `#12`; other texts are searched for."""
    digits = text.removeprefix("#")
    is_id = text.startswith("#") and digits.isascii() and digits.isdigit() and len(digits) < len(str(2**63))
    return int(digits) if is_id else None


def chips(context: PageContext, request: JobRequest, titles: Mapping[str, str]) -> list[Chip]:
    """Return the filters that are set, each with the URL without it."""
    given = request.query.written
    ordered = [name for name in NAMES if name in given] + [name for name in given if name not in NAMES]
    return [
        Chip(
            label=context.t.plain(f"dashboard.jobs.filter.{name}") if name in NAMES else name,
            text=_chip_text(context, request, name, titles),
            without=request.without(name),
            is_known=name in NAMES,
        )
        for name in ordered
    ]


def _chip_text(context: PageContext, request: JobRequest, name: str, titles: Mapping[str, str]) -> str:
    text = request.query.written[name]
    if name == "user":
        return request.user_name or text
    if name == "model":
        return titles.get(text, text)
    if name == "attention":
        return ""
    if name in ("state", "delivery", "hold", "period"):
        keys = {word: f"dashboard.jobs.{name}.{word}" for word in text.split(",")}
        return ", ".join(context.t.plain(key) if key in context.t else word for word, key in keys.items())
    if name in ("since", "until"):
        at = getattr(request.query.filters, name)
        return text if at is None else f"{at.astimezone(context.zone):%Y-%m-%d %H:%M}"
    return text


_LABELS = {
    "states": "state",
    "deliveries": "delivery",
    "holds": "hold",
    "account_id": "user",
    "error_code": "error",
    "task_id": "task",
}


def describe(context: PageContext, filters: JobFilter) -> str:
    """Say which orders filters mean, in one line. Texts of prompts are left out where the viewer may not read them."""
    words = []
    for attribute, stored in filters.dump().items():
        name = _LABELS.get(attribute, attribute)
        if name == "text" and not context.can(Permission.SEE_PROMPTS):
            continue
        label = context.t.plain(f"dashboard.jobs.filter.{name}")
        words.append(label if name == "attention" else f"{label}: {_described(context, filters, name, stored)}")
    return "; ".join(words) or context.t.plain("dashboard.jobs.about_everything")


def _described(context: PageContext, filters: JobFilter, name: str, stored: object) -> str:
    if isinstance(stored, list):
        return ", ".join(context.t.plain(f"dashboard.jobs.{name}.{word}") for word in stored)
    if name in ("since", "until"):
        return f"{getattr(filters, name).astimezone(context.zone):%Y-%m-%d %H:%M}"
    return f"#{stored}" if name == "user" else str(stored)


def count_text(context: PageContext, count: JobCount) -> str:
    """Say how many orders match, and how sure that is."""
    if count.kind is CountKind.AT_LEAST and not count.number:
        return context.t.plain("dashboard.jobs.count_unknown")
    number = count.number if count.kind in (CountKind.EXACT, CountKind.AT_LEAST) else _rounded(count.number)
    return context.t.plain(f"dashboard.jobs.count.{count.kind}", n=number)


def _rounded(number: int) -> int:
    """Return an estimate without digits that it does not have."""
    surplus = max(len(str(number)) - _SIGNIFICANT_DIGITS, 0)
    return round(number, -surplus)
