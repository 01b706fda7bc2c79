"""The installation itself: instances, roles, migrations, retention, settings, the log of one correlation id."""

import json

from starlette.responses import Response

from genlock.dashboard.installation import Installation
from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.roles import Permission
from genlock.engine.retention import LAST_PRUNE
from genlock.ports import Database

EVENTS_MAX = 500
_CORRELATION_ID_LENGTH_MAX = 100


class SystemPage:
    def __init__(self, store: Database, installation: Installation) -> None:
        self._store = store
        self._installation = installation

    def routes(self) -> list[PageRoute]:
        view, manage = Permission.VIEW, Permission.MANAGE_SYSTEM
        return [
            PageRoute(path="/system", handler=self._show, permission=view),
            PageRoute(path="/system/settings", handler=self._settings, permission=manage),
            PageRoute(path="/system/log", handler=self._log, permission=view),
            PageRoute(path="/system/providers/reset", handler=self._reset, permission=manage, method="POST"),
        ]

    async def _show(self, context: PageContext) -> Response:
        store = self._store
        last_prune = await store.kv_get(LAST_PRUNE)
        return context.render(
            "system.html",
            tab="",
            instances=await store.instances(),
            roles=await store.roles(),
            breakers=await store.breakers(),
            database=await store.database_facts(),
            migrations=await store.applied_migrations(),
            now=await store.read_clock(),
            keep_seconds=self._installation.keep_seconds,
            last_prune_age=None if last_prune is None else last_prune.age,
            last_prune=json.loads(last_prune.value) if last_prune else {},
            installation=self._installation,
        )

    async def _reset(self, context: PageContext) -> Response:
        """Reset the failures of a provider, or of one model there: orders go there again."""
        provider, model = context.form["provider"][:200], context.form["model"][:200]
        if not await self._store.reset_breakers(provider, model):
            return context.redirect("/system", "dashboard.breakers.reset_before", tone="bad")
        await context.audit("reset_provider", f"provider {provider}", before=model or None)
        return context.redirect("/system", "dashboard.breakers.reset_done")

    async def _settings(self, context: PageContext) -> Response:
        return context.render("system_settings.html", tab="settings", settings=self._installation.settings)

    async def _log(self, context: PageContext) -> Response:
        wanted = context.request.query_params.get("correlation_id", "").replace("\0", "").strip()
        is_readable = len(wanted) <= _CORRELATION_ID_LENGTH_MAX and wanted.isprintable()
        events = await self._store.job_events(wanted, EVENTS_MAX) if wanted and is_readable else []
        return context.render(
            "system_log.html",
            tab="log",
            wanted=wanted,
            is_readable=is_readable,
            events=list(reversed(events)),
            is_cut=len(events) >= EVENTS_MAX,
            is_kept=bool(self._installation.keep_seconds.get("job_events")),
            kept_seconds=self._installation.keep_seconds.get("job_events", 0.0),
            see_fields=context.can(Permission.SEE_PROMPTS),
        )
