"""The pages of the dashboard. A new page is added here."""

from dataclasses import replace
from decimal import Decimal
from functools import partial

from genlock import __version__
from genlock.api.webhook_secret_check import is_lost
from genlock.app.dashboard_parts import DashboardParts
from genlock.app.engine import retention_periods
from genlock.app.installation import effective_settings, shown_plugins
from genlock.app.webhook_secrets import make_webhook_secrets
from genlock.catalog.margins import PriceRules
from genlock.dashboard.day_edges import DayEdges
from genlock.dashboard.doctor_runs import DoctorRuns
from genlock.dashboard.installation import Installation
from genlock.dashboard.job_view import provider_credit
from genlock.dashboard.live import LiveReader
from genlock.dashboard.money_days import MoneyDays
from genlock.dashboard.overview_figures import OverviewReader
from genlock.dashboard.page import PageRoute
from genlock.dashboard.pages.api_keys import ApiKeysPage
from genlock.dashboard.pages.attention import AttentionPage
from genlock.dashboard.pages.audit import AuditLogPage
from genlock.dashboard.pages.broadcasts import BroadcastsPage
from genlock.dashboard.pages.bulk import BulkPages
from genlock.dashboard.pages.doctor import DoctorPage
from genlock.dashboard.pages.job import JobPage, JobPageParts
from genlock.dashboard.pages.jobs import JobsPage
from genlock.dashboard.pages.models import ModelsPage
from genlock.dashboard.pages.money import MoneyPage
from genlock.dashboard.pages.money_files import MoneyFiles
from genlock.dashboard.pages.operators import OperatorsPage
from genlock.dashboard.pages.overview import OverviewPage
from genlock.dashboard.pages.promos import CampaignSetting, PromosPage
from genlock.dashboard.pages.provider_lists import ProviderListsPage
from genlock.dashboard.pages.system import SystemPage
from genlock.dashboard.pages.user_actions import UserActions
from genlock.dashboard.pages.users import UserLimits, UsersPage
from genlock.dashboard.pages.webhooks import WebhooksPage
from genlock.dashboard.previews import Previews
from genlock.domain.catalog import price_from
from genlock.domain.margin import Rates
from genlock.domain.money import THOUSANDTHS
from genlock.engine.tell import tell
from genlock.i18n.translator import package_texts

#: the settings that decide about gifts and limits
CAMPAIGN_SETTINGS = (
    "welcome_credits", "free_per_day", "reward_inviter_credits", "reward_invited_credits", "running_max",
    "per_minute", "per_hour", "uploads_per_hour", "late_cancels_per_day", "markup", "credit_usd",
)  # fmt: skip


def make_pages(parts: DashboardParts) -> list[PageRoute]:
    """Return the routes of every page."""
    edges = DayEdges(parts.store)
    return [
        *_overview(parts, edges),
        *JobsPage(parts.store, parts.model_titles, partial(_credit_usd, parts)).routes(),
        *BulkPages(parts.store, parts.model_titles).routes(),
        *_job_pages(parts),
        *_user_pages(parts),
        *_money_pages(parts, edges),
        *_catalog_pages(parts),
        *_campaign_pages(parts),
        *_system_pages(parts),
        *AuditLogPage(parts.store).routes(),
    ]


def _rates(parts: DashboardParts) -> Rates:
    return Rates(parts.settings.credit_usd, parts.catalog.get().provider_credit_usd)


def _credit_usd(parts: DashboardParts, provider: str) -> Decimal | None:
    """Return the US dollars per credit of a provider, if known."""
    return provider_credit(parts.providers, parts.catalog.get(), provider)


def _overview(parts: DashboardParts, edges: DayEdges) -> list[PageRoute]:
    return OverviewPage(
        store=parts.store,
        catalog=parts.catalog,
        figures=OverviewReader(parts.store, parts.catalog, _rates(parts), edges),
        live=LiveReader(parts.store, parts.stats),
        texts=package_texts(),
        observer=parts.engine.ctx.observer,
        is_open=parts.is_open,
    ).routes()


def _job_pages(parts: DashboardParts) -> list[PageRoute]:
    job = JobPage(
        JobPageParts(
            engine=parts.engine,
            store=parts.store,
            catalog=parts.catalog.get,
            providers=parts.providers,
            previews=Previews(parts.downloads, parts.media),
            texts=parts.texts,
            credit_usd=parts.settings.credit_usd,
            credit_of=partial(_credit_usd, parts),
            support_credits_max=round(parts.settings.support_credits_max * THOUSANDTHS),
            keeps_events=parts.settings.keep_events_days > 0,
        )
    )
    attention = AttentionPage(
        ctx=parts.engine.ctx,
        store=parts.store,
        counts=parts.attention,
        catalog=parts.catalog.get,
        credit_of=partial(_credit_usd, parts),
        resume_refunds=parts.tools.reconcile,
    )
    return [*job.routes(), *attention.routes()]


def _user_pages(parts: DashboardParts) -> list[PageRoute]:
    settings, tools = parts.settings, parts.tools
    limits = UserLimits(
        running_max=settings.running_max,
        api_running_max=settings.api_running_max,
        per_minute=settings.per_minute,
        per_hour=settings.per_hour,
        late_cancels_per_day=settings.late_cancels_per_day,
        free_per_day=settings.free_per_day,
        support_credits_max=round(settings.support_credits_max * THOUSANDTHS),
    )
    users = UsersPage(parts.store, limits, parts.model_titles)
    actions = UserActions(
        parts.store,
        users,
        tools.accounts,
        tools.refunds,
        limits.support_credits_max,
        free_run_value=partial(_free_run_value, parts),
    )
    webhooks = WebhooksPage(parts.store, users, partial(is_lost, make_webhook_secrets(settings)))
    return [*users.routes(), *actions.routes(), *webhooks.routes()]


def _free_run_value(parts: DashboardParts) -> int:
    """Return the highest price of an order for which free runs count, in thousandths of a credit."""
    settings = parts.settings
    free = [replace(model, free=False) for model in parts.catalog.get().offered() if model.free]
    return max((price_from(model, settings.markup, settings.credit_usd) for model in free), default=0)


def _money_pages(parts: DashboardParts, edges: DayEdges) -> list[PageRoute]:
    days = MoneyDays(parts.store, _rates(parts), edges)
    money = MoneyPage(parts.store, parts.tools, days)
    return [*money.routes(), *MoneyFiles(parts.store, money, days).routes()]


def _catalog_pages(parts: DashboardParts) -> list[PageRoute]:
    settings = parts.settings
    rules = PriceRules(markup=settings.markup, credit_usd=settings.credit_usd)
    lists = ProviderListsPage(parts.editor, parts.store, parts.fetch_lists)
    return [*lists.routes(), *ModelsPage(parts.editor, parts.store, rules).routes()]


def _campaign_pages(parts: DashboardParts) -> list[PageRoute]:
    settings, store = parts.settings, parts.store
    shown = [
        CampaignSetting(key=name, name=f"GENLOCK_{name.upper()}", value=getattr(settings, name))
        for name in CAMPAIGN_SETTINGS
    ]
    promos = PromosPage(
        store,
        bot=settings.bot_id,
        has_free_models=lambda: any(model.free for model in parts.catalog.get().offered()),
        settings=shown,
    )
    broadcasts = BroadcastsPage(store, bot=settings.bot_id, tell=partial(tell, parts.engine.ctx))
    return [*promos.routes(), *broadcasts.routes()]


def _system_pages(parts: DashboardParts) -> list[PageRoute]:
    store, ctx = parts.store, parts.engine.ctx
    installation = Installation(
        version=__version__,
        instance=ctx.instance,
        settings=effective_settings(parts.settings, parts.plugins),
        plugins=shown_plugins(parts.plugins, parts.engine.ctx.mask),
        keep_seconds=retention_periods(parts.settings),
    )
    return [
        *SystemPage(store, installation).routes(),
        *OperatorsPage(store, parts.settings.admin_ids).routes(),
        *ApiKeysPage(store).routes(),
        *DoctorPage(DoctorRuns(store, ctx.observer, parts.examine)).routes(),
    ]
