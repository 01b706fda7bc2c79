"""Lists the periodic tasks that the service runs beside those of the engine."""

from collections.abc import Awaitable, Callable
from functools import partial

from genlock.app.bot import CommandRegistration
from genlock.bot.router import BotRouter
from genlock.engine import alarms as alarm_rules
from genlock.engine import bulk, money_check, retention
from genlock.engine.alarms import Alarms
from genlock.engine.bulk import BulkWork
from genlock.engine.engine import Engine
from genlock.engine.money_check import MoneyCheck
from genlock.engine.periodic import PeriodicTask
from genlock.engine.retention import Retention
from genlock.ports import Database, Observer
from genlock.settings import ServiceSettings

#: payments that Telegram lists and we missed
RECONCILE_SECONDS = 180.0
BOT_TASK_SECONDS = 5.0


def periodic_tasks(
    settings: ServiceSettings,
    engine: Engine,
    store: Database,
    alarms: Alarms,
    router: BotRouter,
    receive_updates: Callable[[], Awaitable[None]],
    observer: Observer,
) -> list[PeriodicTask]:
    """Return the periodic tasks of the service. Those of the engine are in `Engine.periodic_tasks`."""
    task = PeriodicTask
    leader_task = partial(PeriodicTask, leader_only=True)
    keep = retention.keep_seconds(
        {
            "ordered_uploads": settings.keep_uploads_days,
            "drafts": settings.keep_drafts_days,
            "audit": settings.keep_audit_days,
            "promo_uses": settings.keep_promo_uses_days,
        }
    )
    keep["job_events"] = settings.keep_events_days * retention.DAY  # 0: those of an earlier setting are deleted
    prune = Retention(engine.ctx, engine.leader, store, keep).prune
    check_money = MoneyCheck(engine.ctx, engine.leader, store).round
    return [
        task(name="receive_updates", period_seconds=BOT_TASK_SECONDS, run=receive_updates),
        task(name="register_commands", period_seconds=BOT_TASK_SECONDS, run=CommandRegistration(router, observer).run),
        leader_task(name="check_alarms", period_seconds=alarm_rules.PERIOD_SECONDS, run=alarms.check),
        leader_task(name="check_money", period_seconds=money_check.PERIOD_SECONDS, run=check_money),
        leader_task(name="prune_rows", period_seconds=retention.PERIOD_SECONDS, run=prune),
        leader_task(name="reconcile_payments", period_seconds=RECONCILE_SECONDS, run=router.reconcile),
        leader_task(name="pay_rewards", period_seconds=BOT_TASK_SECONDS, run=router.reward),
        leader_task(name="erase_data", period_seconds=BOT_TASK_SECONDS, run=router.erase),
        leader_task(
            name="act_in_bulk", period_seconds=bulk.PERIOD_SECONDS, run=BulkWork(engine.ctx, engine.leader, store).round
        ),
        leader_task(name="send_broadcasts", period_seconds=BOT_TASK_SECONDS, run=router.broadcast),
    ]
