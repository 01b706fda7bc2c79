"""What operators read about an alarm, in their language."""

from genlock.domain.alarm import AlarmNotice, Finding
from genlock.i18n.translator import MINUTE, Translator

#: shorter times are written in seconds
SECONDS_MAX = 100


def alarm_text(notice: AlarmNotice, t: Translator) -> str:
    """Plain text; what stands between backticks is meant to be copied."""
    title = t.plain(f"alarm.{notice.name}.title")
    if notice.finding is None:
        return t.plain("alarm.ended", title=title, time=_duration(notice.seconds, t))
    return t.plain(
        "alarm.noticed_late" if notice.late else "alarm.started",
        title=title,
        found=found_text(notice.name, notice.finding, t),
        remedy=t.plain(f"alarm.{notice.name}.remedy"),
    )


def found_text(name: str, finding: Finding, t: Translator) -> str:
    """Return what is wrong, in figures."""
    return t.plain(f"alarm.{name}.{finding.text}", **finding.numbers, time=_duration(finding.seconds, t))


def _duration(seconds: float, t: Translator) -> str:
    if seconds < SECONDS_MAX:
        return t.plain("alarm.seconds", n=round(seconds))
    return t.plain("alarm.minutes", n=round(seconds / MINUTE))
