"""What an operator is woken for. Pure: the pulse says how things go, an alarm says whether that is bad."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Stats = Mapping[str, float]
ORPHANS_MANY = 20
UNDELIVERED_SECONDS = 300
QUEUED_SECONDS = 300
FAILURES_LEAST = 5
FAILURES_SHARE = 0.5
#: an answer of Telegram's that was lost is asked for again several times before that
REFUND_SECONDS = 900
#: how long nobody may have been active without anybody being told
INACTIVE_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class Words:
    """The same in both languages; what stands between backticks is to be copied."""

    english: str
    russian: str


@dataclass(frozen=True, kw_only=True)
class Alarm:
    name: str
    #: what is bad about this pulse, in numbers; None if nothing
    check: Callable[[Stats], Words | None]
    says: Words
    #: what to do
    remedy: Words


def _orphans(stats: Stats) -> Words | None:
    many = stats.get("orphans_fresh", 0)
    return Words(english=f"{many:.0f} in 10 min", russian=f"{many:.0f} за 10 мин") if many >= ORPHANS_MANY else None


def _undelivered(stats: Stats) -> Words | None:
    many, age = stats.get("undelivered", 0), stats.get("undelivered_age", 0) / 60
    if age * 60 <= UNDELIVERED_SECONDS:
        return None
    return Words(
        english=f"{many:.0f}, the oldest for {age:.0f} min", russian=f"{many:.0f}, самый старый ждёт {age:.0f} мин"
    )


def _ledger(stats: Stats) -> Words | None:
    many = stats.get("ledger_violations", 0)
    return Words(english=f"findings: {many:.0f}", russian=f"расхождений: {many:.0f}") if many else None


def _provider(stats: Stats) -> Words | None:
    failed, ended, queued = (stats.get(name, 0) for name in ("lately_failed", "lately_ended", "queued_age"))
    if failed >= FAILURES_LEAST and failed >= ended * FAILURES_SHARE:
        return Words(
            english=f"{failed:.0f} of {ended:.0f} failed in 10 min",
            russian=f"за 10 мин не удалось {failed:.0f} из {ended:.0f}",
        )
    if queued <= QUEUED_SECONDS:
        return None
    return Words(
        english=f"an order has waited for {queued / 60:.0f} min", russian=f"заказ ждёт уже {queued / 60:.0f} мин"
    )


def _aside(stats: Stats) -> Words | None:
    many = stats.get("updates_dead", 0)
    return Words(english=f"{many:.0f}", russian=f"{many:.0f}") if many else None


def _refunds(stats: Stats) -> Words | None:
    many, age = stats.get("refunds_open", 0), stats.get("refund_age", 0) / 60
    if age * 60 <= REFUND_SECONDS:
        return None
    return Words(
        english=f"{many:.0f}, the oldest for {age:.0f} min", russian=f"{many:.0f}, самый старый ждёт {age:.0f} мин"
    )


ALARMS = (
    Alarm(
        name="orphan_spike",
        check=_orphans,
        says=Words(
            english="Many callbacks belong to no job we know",
            russian="Много ответов поставщика без известного заказа",
        ),
        remedy=Words(
            english="Look at `genlock orphans ls`. If their tasks are ours, somebody else uses the same key with this "
            "address, or the database was restored from a backup; if not, set `GENLOCK_KIE_WEBHOOK_KEY` so that "
            "strangers are refused.",
            russian="Посмотрите `genlock orphans ls`. Если это наши задачи, значит, кто-то ещё работает с этим ключом "
            "и адресом или база восстановлена из копии; если чужие — задайте `GENLOCK_KIE_WEBHOOK_KEY`, и посторонние "
            "будут отвергнуты.",
        ),
    ),
    Alarm(
        name="undelivered",
        check=_undelivered,
        says=Words(english="Results wait to be shown", russian="Готовые результаты ещё не в чате"),
        remedy=Words(
            english="Look at `genlock jobs attention` and at the DELIVER_FAIL lines. Usually Telegram is slow or the "
            "token was revoked: `genlock doctor` says which. Nothing is lost; deliveries go on by themselves.",
            russian="Посмотрите `genlock jobs attention` и строки DELIVER_FAIL в журнале. Обычно Телеграм отвечает "
            "медленно или токен отозван: что именно, скажет `genlock doctor`. Ничего не потеряно, доставка "
            "продолжается сама.",
        ),
    ),
    Alarm(
        name="ledger_mismatch",
        check=_ledger,
        says=Words(english="Money does not add up", russian="Деньги не сходятся"),
        remedy=Words(
            english="Run `genlock jobs check`: it names each account. Nobody but genlock may write to the tables "
            "people and ledger. Stop selling until it is understood, and keep a copy of the database.",
            russian="Запустите `genlock jobs check`: он назовёт каждый счёт. В таблицы people и ledger не должен "
            "писать никто, кроме genlock. Пока не разобрались, остановите продажи и сохраните копию базы.",
        ),
    ),
    Alarm(
        name="provider_failing",
        check=_provider,
        says=Words(
            english="The provider fails orders, or does not take them",
            russian="Поставщик не выполняет или не принимает заказы",
        ),
        remedy=Words(
            english="`genlock doctor` asks the provider who we are and what credit is left. People get their money "
            "back by themselves; hide a broken model in the catalog's overlay.",
            russian="`genlock doctor` спросит поставщика, знает ли он нас и сколько осталось на счёте. Людям деньги "
            "возвращаются сами; сломанную модель спрячьте в своём файле каталога.",
        ),
    ),
    Alarm(
        name="updates_dead",
        check=_aside,
        says=Words(
            english="Messages could not be handled and were set aside",
            russian="Часть сообщений не удалось обработать, они отложены",
        ),
        remedy=Words(
            english="`genlock updates ls` shows them with the error. After a fix, `genlock updates retry ID` works one "
            "off.",
            russian="`genlock updates ls` покажет их вместе с ошибкой. После исправления `genlock updates retry ID` "
            "обработает одно.",
        ),
    ),
    Alarm(
        name="refund_open",
        check=_refunds,
        says=Words(
            english="Telegram does not confirm refunds of stars", russian="Телеграм не подтверждает возврат звёзд"
        ),
        remedy=Words(
            english="`/admin refunds` in the chat lists them and asks Telegram at once; it is asked again every few "
            "minutes anyway. The credits are taken off already: if Telegram refuses, they come back by themselves.",
            russian="`/admin refunds` в чате покажет их и спросит Телеграм сразу; раз в несколько минут вопрос "
            "повторяется и сам. Кредиты уже списаны: если Телеграм откажет, они вернутся сами.",
        ),
    ),
)
#: who tells this one is whoever becomes active: while it lasts there is nobody
NO_ACTIVE = Alarm(
    name="no_active",
    check=lambda _: None,
    says=Words(english="There was no active instance", russian="Ни одного активного экземпляра не было"),
    remedy=Words(
        english="If it lasts, no instance runs or none reaches the database: look at the process manager and the "
        "database. Long polling, alarms and clean-up rest until an instance is active.",
        russian="Если это повторяется, посмотрите, запущены ли экземпляры и отвечает ли им база. Пока активного нет, "
        "опрос Телеграма, тревоги и уборка стоят.",
    ),
)
