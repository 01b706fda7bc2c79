"""What has changed on a job since its page was shown, for an operator who acted on what was no longer true."""

from datetime import timedelta

from genlock.dashboard.job_actions import seen_state
from genlock.dashboard.page import PageContext
from genlock.domain.job import Job
from genlock.domain.printable import shown
from genlock.engine.job_timeline import audit_subjects
from genlock.i18n.audit_words import actor_in_words, seen_in_words
from genlock.ports import JobEventStore

#: an older action of an operator was known when the page was shown
_LATELY = timedelta(hours=1)


async def meanwhile(context: PageContext, store: JobEventStore, job: Job) -> dict[str, str]:
    """Return what the job was on the page, what it is now, and the last action of an operator, in words."""
    return {
        "before": seen_in_words(context.form["seen"], context.t),
        "after": seen_in_words(seen_state(job), context.t),
        "by": await _last_action(context, store, job),
    }


async def _last_action(context: PageContext, store: JobEventStore, job: Job) -> str:
    lines = await store.audit_about(audit_subjects(job.id), 1)
    if not lines or job.read_at - lines[0].at > _LATELY:
        return ""
    [line] = lines
    action = f"dashboard.job.action.{line.action.rpartition('.')[2]}"
    said = context.t.plain(
        "dashboard.job.changed_by",
        actor=actor_in_words(line.actor, context.t),
        action=context.t.plain(action) if action in context.t else shown(line.action, 60),
        time=f"{line.at.astimezone(context.zone):%H:%M:%S}",
    )
    return f" {said}"
