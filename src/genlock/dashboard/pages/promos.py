"""The Campaigns page: promo codes, and the settings for gifts and limits."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from starlette.responses import Response

from genlock.dashboard.forms import Form
from genlock.dashboard.page import PageContext, PageNotFound, PageRoute
from genlock.dashboard.roles import Permission
from genlock.domain.money import read_amount, read_decimal
from genlock.domain.promo import Promo, promo_problems, promo_terms
from genlock.ports import Database

LISTED = 25
PATH = "/campaigns"
DAY_SECONDS = 86_400.0
_CODE_LENGTH_MAX = 60
_WHOLE = re.compile(r"\d{1,9}")


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignSetting:
    """A setting of the environment that decides about gifts and limits."""

    #: the last part of the key of its text
    key: str
    #: the variable of the environment
    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class PromoForm:
    boxes: Mapping[str, str] = field(default_factory=dict)
    #: kinds of problems by box
    problems: Mapping[str, str] = field(default_factory=dict)


class PromosPage:
    def __init__(
        self,
        store: Database,
        *,
        bot: str,
        has_free_models: Callable[[], bool],
        settings: Sequence[CampaignSetting],
    ) -> None:
        self._store = store
        self._bot = bot
        self._has_free_models = has_free_models
        self._settings = settings

    def routes(self) -> list[PageRoute]:
        manage = Permission.MANAGE_CAMPAIGNS
        return [
            PageRoute(path=PATH, handler=self._list, permission=Permission.VIEW),
            PageRoute(path=f"{PATH}/promos", handler=self._create, permission=manage, method="POST"),
            PageRoute(path=f"{PATH}/promos/{{code}}/close", handler=self._close, permission=manage, method="POST"),
            PageRoute(path=f"{PATH}/rules", handler=self._rules, permission=Permission.VIEW),
        ]

    async def _list(self, context: PageContext, form: PromoForm | None = None, status: int = 200) -> Response:
        before = context.request.query_params.get("before", "").replace("\0", "")[:_CODE_LENGTH_MAX] or None
        promos = await self._store.promos(LISTED + 1, self._bot, before=before)
        return context.render(
            "campaigns.html",
            status,
            promos=promos[:LISTED],
            older=promos[LISTED - 1].code if len(promos) > LISTED else None,
            at_start=before is None,
            now=await self._store.read_clock(),
            form=form or PromoForm(boxes={"each": "1"}),
        )

    async def _create(self, context: PageContext) -> Response:
        promo, days, problems = _read(context.form)
        if not problems and promo.runs and not self._has_free_models():
            problems = {"runs": "no_free_model"}
        if problems:
            return await self._list(context, PromoForm(boxes=_boxes(context.form), problems=problems), 422)
        promo = replace(promo, bot=self._bot)
        lasting = days * DAY_SECONDS if days else None
        made = await self._store.create_promo(promo, lasting=lasting, author=context.operator.id)
        if not made and not await self._is_same(promo, context.operator.id):
            form = PromoForm(boxes=_boxes(context.form), problems={"code": "exists"})
            return await self._list(context, form, 409)
        await context.audit("create promo", promo.code, after=promo_terms(promo, days), once=True)
        return context.redirect(PATH, "dashboard.campaigns.created", code=promo.code)

    async def _is_same(self, promo: Promo, author: str) -> bool:
        """Whether the stored code is the one that this form created before: a form that was posted twice."""
        stored = await self._store.promo(promo.code)
        if stored is None or stored.author != author or stored.closed or stored.uses:
            return False
        compared = ("amount", "runs", "uses_max", "per_account", "bot")
        return all(getattr(stored, name) == getattr(promo, name) for name in compared)

    async def _close(self, context: PageContext) -> Response:
        code = context.request.path_params["code"].replace("\0", "")[:_CODE_LENGTH_MAX]
        if await self._store.close_promo(code, self._bot):
            await context.audit("close promo", code)
            return context.redirect(PATH, "dashboard.campaigns.closed", code=code)
        if await self._store.promo(code) is None:
            raise PageNotFound("dashboard.error.no_promo")
        return context.redirect(PATH, "dashboard.campaigns.closed_before", code=code)

    async def _rules(self, context: PageContext) -> Response:
        return context.render("campaigns_rules.html", settings=self._settings)


def _boxes(form: Form) -> dict[str, str]:
    return {name: form[name][:_CODE_LENGTH_MAX] for name in ("code", "amount", "runs", "uses", "each", "days")}


def _read(form: Form) -> tuple[Promo, int | None, dict[str, str]]:
    """Return the code, its days, and kinds of problems by box."""
    boxes = _boxes(form)
    wrong = {name: "count" for name in ("runs", "uses", "each") if boxes[name] and not _WHOLE.fullmatch(boxes[name])}
    if boxes["days"] and not _WHOLE.fullmatch(boxes["days"]):
        wrong["days"] = "days"
    amount = read_amount(boxes["amount"])
    if boxes["amount"] and not amount and read_decimal(boxes["amount"]) != 0:
        wrong["amount"] = "amount"
    numbers = {name: int(boxes[name]) if boxes[name] and name not in wrong else None for name in _NUMBERS}
    promo = Promo(
        code=boxes["code"].upper(),
        amount=amount,
        runs=numbers["runs"] or 0,
        uses_max=numbers["uses"],
        per_account=1 if numbers["each"] is None else numbers["each"],
        until=None,
    )
    return promo, numbers["days"], {**promo_problems(promo, numbers["days"]), **wrong}


_NUMBERS = ("runs", "uses", "each", "days")
