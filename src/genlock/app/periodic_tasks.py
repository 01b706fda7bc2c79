"""Lists the periodic tasks that the service runs beside those of the engine."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from genlock import __version__
from genlock.api import webhook_secret_check, webhook_sender
from genlock.app.bot import CommandRegistration
from genlock.app.channels import receive_tasks
from genlock.app.clock import SystemClock
from genlock.app.engine import retention_periods
from genlock.app.instance_parts import InstanceParts
from genlock.app.webhook_secrets import make_webhook_secret_check
from genlock.bot.admin import daily_report
from genlock.catalog import editor as catalog_editor
from genlock.domain.money import THOUSANDTHS
from genlock.engine import alarms as alarm_rules
from genlock.engine import (
    bulk,
    hourly_figures,
    job_events,
    media_erasure,
    media_retention,
    money_check,
    offer_order,
    provider_credit,
    retention,
    tell,
)
from genlock.engine.bulk import BulkWork
from genlock.engine.hourly_figures import HourlyFigureKeeper
from genlock.engine.job_events import JobEventRecorder
from genlock.engine.media_erasure import MediaErasure
from genlock.engine.media_retention import MediaRetention
from genlock.engine.money_check import MoneyCheck
from genlock.engine.periodic import PeriodicTask
from genlock.engine.provider_credit import ProviderCreditReader
from genlock.engine.retention import Retention
from genlock.ports import Database

#: payments that Telegram lists and we missed
RECONCILE_SECONDS = 180.0
BOT_TASK_SECONDS = 5.0
#: another instance that took this one for dead has deleted its row, which comes back with the next heartbeat
DESCRIBE_SECONDS = 30.0


def periodic_tasks(parts: InstanceParts, receive_updates: Callable[[], Awaitable[None]]) -> list[PeriodicTask]:
    """Return the periodic tasks of the service. Those of the engine are in `Engine.periodic_tasks`."""
    leader_tasks = [*_money_tasks(parts), *_upkeep_tasks(parts), *_chat_tasks(parts)]
    return [
        *_instance_tasks(parts, receive_updates),
        *(replace(task, leader_only=True) for task in leader_tasks),
        *_job_event_tasks(parts.process.job_events, parts.store),
        *receive_tasks(parts.more_channels, parts.orders),
    ]


def _instance_tasks(parts: InstanceParts, receive_updates: Callable[[], Awaitable[None]]) -> list[PeriodicTask]:
    """Return what every instance does."""
    engine, store = parts.engine, parts.store
    describe = partial(store.describe_instance, engine.ctx.instance, __version__)
    registration = CommandRegistration(parts.router, engine.ctx.observer)
    read_medians = partial(parts.offers.read_medians, store)
    task = PeriodicTask
    return [
        task(name="describe_instance", period_seconds=DESCRIBE_SECONDS, run=describe),
        task(name="receive_updates", period_seconds=BOT_TASK_SECONDS, run=receive_updates),
        task(name="register_commands", period_seconds=BOT_TASK_SECONDS, run=registration.run),
        task(name="read_medians", period_seconds=offer_order.PERIOD_SECONDS, run=read_medians),
        task(name="refresh_catalog", period_seconds=catalog_editor.PERIOD_SECONDS, run=parts.editor.refresh),
        task(name="send_webhooks", period_seconds=webhook_sender.PERIOD_SECONDS, run=parts.webhook_sender.round),
    ]


def _money_tasks(parts: InstanceParts) -> list[PeriodicTask]:
    """Return what the leader does about money and figures."""
    engine, store, router = parts.engine, parts.store, parts.router
    check_money = MoneyCheck(engine.ctx, engine.leader, store).round
    keep_figures = HourlyFigureKeeper(engine.ctx, engine.leader, store).round
    read_credit = ProviderCreditReader(engine.ctx, engine.leader, store, parts.providers).read
    task = PeriodicTask
    return [
        task(name="check_money", period_seconds=money_check.PERIOD_SECONDS, run=check_money),
        task(name="keep_figures", period_seconds=hourly_figures.PERIOD_SECONDS, run=keep_figures),
        task(name="read_provider_credit", period_seconds=provider_credit.PERIOD_SECONDS, run=read_credit),
        task(name="reconcile_payments", period_seconds=RECONCILE_SECONDS, run=router.reconcile),
        task(name="pay_rewards", period_seconds=BOT_TASK_SECONDS, run=router.reward),
    ]


def _upkeep_tasks(parts: InstanceParts) -> list[PeriodicTask]:
    """Return what the leader does to find what is wrong and to delete what is old."""
    settings, engine, store = parts.settings, parts.engine, parts.store
    check_secrets = make_webhook_secret_check(settings, store, engine).round
    prune = Retention(engine.ctx, engine.leader, store, retention_periods(settings)).prune
    prune_media = MediaRetention(parts.media, engine.ctx.observer, SystemClock().now, settings.keep_media_days).prune
    erase_media = MediaErasure(store, parts.media, engine.ctx.observer).round
    task = PeriodicTask
    return [
        task(name="check_alarms", period_seconds=alarm_rules.PERIOD_SECONDS, run=parts.alarms.check),
        task(name="check_webhook_secrets", period_seconds=webhook_secret_check.PERIOD_SECONDS, run=check_secrets),
        task(name="prune_rows", period_seconds=retention.PERIOD_SECONDS, run=prune),
        task(name="prune_media", period_seconds=media_retention.PERIOD_SECONDS, run=prune_media),
        task(name="erase_data", period_seconds=BOT_TASK_SECONDS, run=parts.router.erase),
        task(name="erase_media", period_seconds=media_erasure.PERIOD_SECONDS, run=erase_media),
    ]


def _chat_tasks(parts: InstanceParts) -> list[PeriodicTask]:
    """Return what the leader does that many users, or operators, read in their chats."""
    engine, router = parts.engine, parts.router
    act_in_bulk = BulkWork(
        engine.ctx,
        engine.leader,
        parts.store,
        texts=router.texts,
        role_of=parts.logins.role_of,
        support_credits_max=round(parts.settings.support_credits_max * THOUSANDTHS),
    ).round
    task = PeriodicTask
    return [
        task(name="act_in_bulk", period_seconds=bulk.PERIOD_SECONDS, run=act_in_bulk),
        task(name="send_waiting", period_seconds=tell.PERIOD_SECONDS, run=partial(tell.send_waiting, engine.ctx)),
        task(name="send_broadcasts", period_seconds=BOT_TASK_SECONDS, run=router.broadcast),
        task(name="send_daily_report", period_seconds=daily_report.PERIOD_SECONDS, run=router.report),
    ]


def _job_event_tasks(recorder: JobEventRecorder | None, store: Database) -> list[PeriodicTask]:
    if recorder is None:
        return []
    return [
        PeriodicTask(
            name="write_job_events", period_seconds=job_events.PERIOD_SECONDS, run=partial(recorder.write, store)
        )
    ]
