"""The first page: how the business goes, and what happens now."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from decimal import Decimal

from starlette.responses import HTMLResponse, Response, StreamingResponse

from genlock.dashboard.charts import Chart, Series, lines, stacked_bars
from genlock.dashboard.live import LiveFeed, LiveFigures, LiveReader
from genlock.dashboard.overview_figures import Line, Overview, OverviewReader
from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.periods import Period, read_period
from genlock.dashboard.query import Query
from genlock.dashboard.rendering import release, render
from genlock.dashboard.roles import Permission
from genlock.domain.current_catalog import CurrentCatalog
from genlock.i18n.alarms import found_text
from genlock.i18n.catalog_texts import category_title, model_title
from genlock.i18n.translator import Texts, Translator
from genlock.ports import Database, Observer

#: lines of the table by model; the others are on the page of the models
MODELS_SHOWN = 12
_TEXT = "dashboard.overview."
_PARAMETERS = ("period", "from", "to")
EVENT_STREAM = "text/event-stream"
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, kw_only=True)
class Card:
    label: str
    value: str
    note: str = ""
    tone: str = ""


@dataclass(frozen=True)
class _Language:
    """What the templates need of a page's context, for a part that all viewers of a language share."""

    t: Translator
    provider_title: Callable[[str], str]


class OverviewPage:
    def __init__(
        self,
        store: Database,
        catalog: CurrentCatalog,
        figures: OverviewReader,
        live: LiveReader,
        texts: Texts,
        observer: Observer,
        is_open: Callable[[], bool],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._figures = figures
        self._live = live
        self._texts = texts
        self._is_open = is_open
        self._feed = LiveFeed(live, self._render_live, observer, release())

    def routes(self) -> list[PageRoute]:
        return [
            PageRoute(path="", handler=self._show, permission=Permission.VIEW),
            PageRoute(path="/live", handler=self._stream, permission=Permission.VIEW, is_data=True),
        ]

    async def _show(self, context: PageContext) -> Response:
        period = read_period(context.request.query_params, context.zone, await self._store.read_clock())
        live = await self._live.read()
        is_new = live is not None and live.progress.newest_job == 0
        overview = await self._figures.read(period)
        return context.render(
            "overview.html",
            period=period,
            problems=Query(context, _PARAMETERS).problems,
            is_new=is_new,
            live=live,
            groups=_card_groups(context.t, overview),
            charts=_charts(context, overview),
            funnel=_funnel(context.t, overview),
            models=[(self._model_name(line, context.t), line) for line in overview.models[:MODELS_SHOWN]],
            models_left=max(0, len(overview.models) - MODELS_SHOWN),
            categories=[(_category_name(line, context.t), line) for line in overview.categories],
            usd=context.t.dollars_of_sum,
            percent=lambda part, whole: context.t.aligned_percent(part / whole) if whole else "—",
            found=found_text,
        )

    def _model_name(self, line: Line, t: Translator) -> str:
        model = self._catalog.get().models.get(line.name)
        return model_title(model.title, t) if model else line.name

    async def _stream(self, context: PageContext) -> Response:
        """Send the live part for as long as the tab listens; once, to a client that does not ask for events."""
        if EVENT_STREAM not in context.request.headers.get("Accept", ""):
            return HTMLResponse(self._render_live(await self._live.read(), context.t.language))
        session = context.login.session.id
        if not self._feed.has_room(session):
            return Response(status_code=429)  # the page tries again later, less and less often
        events = self._feed.listen(context.t.language, session, self._is_open, context.is_logged_in)
        return StreamingResponse(events, media_type=EVENT_STREAM, headers={"X-Accel-Buffering": "no"})

    def _render_live(self, live: LiveFigures | None, language: str) -> str:
        context = _Language(self._texts.translator(language), self._catalog.get().provider_title)
        return render("overview_live.html", context=context, live=live, found=found_text)


def _category_name(line: Line, t: Translator) -> str:
    return category_title(line.name, t) if line.name else t.plain("dashboard.overview.no_category")


def _card_groups(t: Translator, overview: Overview) -> list[tuple[str, list[Card]]]:
    return [
        (t.plain("dashboard.overview.orders"), _order_cards(t, overview)),
        (t.plain("dashboard.overview.money"), _money_cards(t, overview)),
        (t.plain("dashboard.overview.users"), _user_cards(t, overview)),
    ]


def _order_cards(t: Translator, overview: Overview) -> list[Card]:
    now, before = overview.now.jobs, overview.before.jobs
    shares = {"delivered": "good", "failed": "bad", "cancelled": "", "refunded": ""}
    cards = [_card(t, "orders", t.number(now.orders), _change(t, now.orders, before.orders))]
    for name, tone in shares.items():
        count, earlier = getattr(now, name), getattr(before, name)
        notes = (_percent(t, count, now.orders) if now.orders else "", _change(t, count, earlier))
        cards.append(_card(t, name, t.number(count), *notes, tone=tone if count else ""))
    return cards


def _money_cards(t: Translator, overview: Overview) -> list[Card]:
    now, before = overview.now, overview.before
    money, earlier = now.money, before.money
    share = money.margin_share
    margin_notes = [t.percent(share) if share is not None else "", _change(t, money.margin, earlier.margin)]
    tone = "bad" if money.margin < 0 else "good" if money.margin else ""
    topups, topups_before = now.topups, before.topups
    revenue, cost, margin = t.dollars_of_sum(money.revenue, money.cost, money.margin)
    return [
        _card(
            t,
            "revenue",
            revenue,
            t.credits(now.jobs.revenue),
            _change(t, money.revenue, earlier.revenue),
        ),
        _card(t, "cost", cost, _loss(t, overview), _change(t, money.cost, earlier.cost)),
        _card(t, "margin", margin, *margin_notes, tone=tone),
        _card(
            t,
            "topups",
            t.number(topups.topups),
            t.credits(topups.credits),
            _change(t, topups.topups, topups_before.topups),
        ),
        _card(
            t,
            "stars",
            t.number(topups.paid_amount),
            _refunds(t, overview),
            _change(t, topups.paid_amount, topups_before.paid_amount),
        ),
    ]


def _user_cards(t: Translator, overview: Overview) -> list[Card]:
    now, before = overview.now, overview.before
    cards = [
        _card(t, name, t.number(getattr(now, name)), _change(t, getattr(now, name), getattr(before, name)))
        for name in ("started", "active", "first_orders")
    ]
    repeated = _change(t, now.topups.repeated, before.topups.repeated)
    return [*cards, _card(t, "repeated", t.number(now.topups.repeated), repeated)]


def _loss(t: Translator, overview: Overview) -> str:
    loss, cost = overview.now.jobs.loss, overview.now.jobs.cost
    share = _percent(t, loss, cost)
    return t.plain("dashboard.overview.loss", share=share) if loss else ""


def _refunds(t: Translator, overview: Overview) -> str:
    refunds = overview.now.topups.refunds
    return t.plain("dashboard.overview.star_refunds", n=overview.now.topups.refunded_amount) if refunds else ""


def _card(t: Translator, name: str, value: str, *notes: str, tone: str = "") -> Card:
    note = " · ".join(note for note in notes if note)
    return Card(label=t.plain(f"{_TEXT}card.{name}"), value=value, note=note, tone=tone)


def _change(t: Translator, now: Decimal | int, before: Decimal | int) -> str:
    """Return the change to the period before: a percentage, or a word where there is none."""
    if before == now:
        return t.plain("dashboard.overview.same") if now else ""
    if before <= 0:
        return t.plain("dashboard.overview.from_nothing") if now > 0 else ""
    share = Decimal(now - before) / Decimal(before)
    sign = "+" if share > 0 else MINUS
    return t.plain("dashboard.overview.change", percent=f"{sign}{t.percent(abs(share))}")


def _percent(t: Translator, part: int, whole: int) -> str:
    return t.percent(Decimal(part) / whole) if whole else "—"


def _funnel(t: Translator, overview: Overview) -> list[tuple[str, int, str, int]]:
    """Return name, number, share of the step before, and width in percent of the first."""
    found, last = [], overview.funnel.started
    for name in ("started", "ordered", "topped_up", "topped_up_again"):
        number = getattr(overview.funnel, name)
        width = round(100 * number / overview.funnel.started) if overview.funnel.started else 0
        found.append((t.plain(f"{_TEXT}funnel.{name}"), number, _percent(t, number, last), width))
        last = number
    return found


def _charts(context: PageContext, overview: Overview) -> list[Chart]:
    t, labels = context.t, _labels(context, overview.period)

    def series(name: str, values: Sequence[float], style: int, written: Callable[[float], str] = t.number) -> Series:
        tick = t.number if written == t.number else whole_dollars
        return Series(name=t.plain(f"{_TEXT}series.{name}"), values=values, style=style, written=written, tick=tick)

    def dollars(amount: float) -> str:
        return t.dollars(Decimal(str(amount)))

    def whole_dollars(amount: float) -> str:
        if amount != round(amount) and amount == round(amount, 2):
            return dollars(amount)
        sign = MINUS if amount < 0 else ""
        return sign + t.plain("dashboard.overview.usd", amount=t.number(round(abs(amount), 3)))

    jobs = overview.jobs
    open_ = [max(0, figures.orders - figures.delivered - figures.failed - figures.cancelled) for figures in jobs]
    return [
        stacked_bars(t.plain("dashboard.overview.chart.orders"), labels, [
            series("delivered", [figures.delivered for figures in jobs], 2),
            series("failed", [figures.failed for figures in jobs], 4),
            series("cancelled", [figures.cancelled for figures in jobs], 3),
            series("other", open_, 1),
        ]),
        lines(t.plain("dashboard.overview.chart.money"), labels, [
            series("revenue", [float(money.revenue) for money in overview.money], 1, dollars),
            series("cost", [float(money.cost) for money in overview.money], 4, dollars),
            series("margin", [float(money.margin) for money in overview.money], 2, dollars),
        ]),
        stacked_bars(t.plain("dashboard.overview.chart.users"), labels, [
            series("started", overview.started, 1),
        ]),
        stacked_bars(t.plain("dashboard.overview.chart.stars"), labels, [
            series("stars", [topup.paid_amount for topup in overview.topups], 3),
        ]),
    ]  # fmt: skip


def _labels(context: PageContext, period: Period) -> list[str]:
    starts = [start.astimezone(context.zone) for start in period.starts()]
    if period.unit == "hour":
        return [f"{start:%H:%M}" for start in starts]
    # A week begins an hour beside midnight after the clocks have changed.
    return [context.t.day((start + timedelta(hours=12)).replace(tzinfo=UTC)) for start in starts]
