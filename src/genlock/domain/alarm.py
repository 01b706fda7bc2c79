"""What an operator is woken for. Pure: the pulse says how things go, an alarm says whether that is bad."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Pulse = Mapping[str, float]
ORPHANS_MANY = 20
UNDELIVERED_SECONDS = 300
QUEUED_SECONDS = 300
FAILURES_LEAST = 5
FAILURES_SHARE = 0.5
#: how long nobody may have been active without anybody being told
INACTIVE_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class Alarm:
    name: str
    #: what is bad about this pulse, in numbers; None if nothing
    check: Callable[[Pulse], str | None]
    english: str
    russian: str
    #: what to do, for the docs and the operator
    remedy: str


def _orphans(pulse: Pulse) -> str | None:
    many = pulse.get("orphans_fresh", 0)
    return f"{many:.0f} in 10 min" if many >= ORPHANS_MANY else None


def _undelivered(pulse: Pulse) -> str | None:
    age = pulse.get("undelivered_age", 0)
    if age <= UNDELIVERED_SECONDS:
        return None
    return f"{pulse.get('undelivered', 0):.0f}, the oldest for {age / 60:.0f} min"


def _ledger(pulse: Pulse) -> str | None:
    many = pulse.get("ledger_violations", 0)
    return f"{many:.0f}" if many else None


def _provider(pulse: Pulse) -> str | None:
    failed, ended, queued = (pulse.get(name, 0) for name in ("lately_failed", "lately_ended", "queued_age"))
    if failed >= FAILURES_LEAST and failed >= ended * FAILURES_SHARE:
        return f"{failed:.0f} of {ended:.0f} in 10 min"
    return f"an order waits for {queued / 60:.0f} min" if queued > QUEUED_SECONDS else None


def _aside(pulse: Pulse) -> str | None:
    many = pulse.get("updates_aside", 0)
    return f"{many:.0f}" if many else None


ALARMS = (
    Alarm(
        name="orphan_spike",
        check=_orphans,
        english="Many callbacks belong to no job we know",
        russian="Много обратных вызовов без известной задачи",
        remedy="Look at `genlock orphans ls`. If their tasks are ours, somebody else uses the same key with this "
        "address, or the database was restored from a backup; if not, set GENLOCK_KIE_WEBHOOK_KEY so that strangers "
        "are refused.",
    ),
    Alarm(
        name="undelivered",
        check=_undelivered,
        english="Results wait to be shown",
        russian="Готовые результаты не доставлены",
        remedy="Look at `genlock jobs attention` and at the DELIVER_FAIL lines. Usually Telegram is slow or the token "
        "was revoked: `genlock doctor` says which. Nothing is lost; deliveries go on by themselves.",
    ),
    Alarm(
        name="ledger_mismatch",
        check=_ledger,
        english="Money does not add up",
        russian="Деньги не сходятся",
        remedy="Run `genlock jobs check`: it names each account. Nobody but genlock may write to the tables people and "
        "ledger. Stop selling until it is understood, and keep a copy of the database.",
    ),
    Alarm(
        name="provider_failing",
        check=_provider,
        english="The provider fails orders, or does not take them",
        russian="Провайдер не выполняет или не принимает заказы",
        remedy="`genlock doctor` asks the provider who we are and what credit is left. People get their money back by "
        "themselves; hide a broken model in the catalog's overlay.",
    ),
    Alarm(
        name="updates_aside",
        check=_aside,
        english="Messages could not be handled and were set aside",
        russian="Сообщения не удалось обработать, они отложены",
        remedy="`genlock updates ls` shows them with the error. After a fix, `genlock updates retry ID` works one off.",
    ),
)
#: who tells this one is whoever becomes active: while it lasts there is nobody
NO_ACTIVE = Alarm(
    name="no_active",
    check=lambda _: None,
    english="There was no active instance",
    russian="Активного экземпляра не было",
    remedy="If it lasts, no instance runs or none reaches the database: look at the process manager and the database. "
    "Long polling, alarms and clean-up rest until an instance is active.",
)
