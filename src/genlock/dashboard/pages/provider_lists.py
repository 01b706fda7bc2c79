"""The providers' price lists compared with the catalog: what differs, and how to take it over."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from starlette.responses import Response

from genlock.catalog import sync
from genlock.catalog.editor import CatalogEditor
from genlock.catalog.takeover import Difference, StoredLists, differences, taken_over
from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.roles import Permission
from genlock.domain.errors import InvalidEdit, ProviderError, Refusal, StaleEdit
from genlock.i18n.catalog_texts import model_title
from genlock.ports import Database, PublicLists
from genlock.ports.provider import ListsIncomplete

FetchLists = Callable[[], Awaitable[Mapping[str, PublicLists]]]

#: kv entry: the lists as an operator read them last
LISTS = "catalog:lists"
LISTS_LENGTH_MAX = 4_000_000
#: the provider's own limit is 30 s for each request
FETCH_SECONDS = 60.0
#: differences that a page lists; the rest follows when these are taken over
SHOWN_MAX = 200
PATH = "/models/provider"


class ProviderListsPage:
    def __init__(self, editor: CatalogEditor, store: Database, fetch: FetchLists) -> None:
        self._editor = editor
        self._store = store
        self._fetch = fetch

    def routes(self) -> list[PageRoute]:
        manage = Permission.MANAGE_CATALOG
        return [
            PageRoute(path=PATH, handler=self._show, permission=Permission.VIEW),
            PageRoute(path=f"{PATH}/read", handler=self._read, permission=manage, method="POST"),
            PageRoute(path=f"{PATH}/take", handler=self._take, permission=manage, method="POST"),
        ]

    async def _show(self, context: PageContext, problem: str = "") -> Response:
        await self._editor.refresh()
        stored = await self._stored()
        found = self._diff(stored) if stored else None
        rows = differences(found) if found else []
        models = self._editor.edited_catalog.models.values()
        return context.render(
            "models_provider.html",
            stored=stored,
            rows=rows[:SHOWN_MAX],
            more=len(rows) - SHOWN_MAX,
            new=found.new if found else (),
            unlisted=found.unlisted if found else (),
            offers=found.offers if found else (),
            not_compared=found.not_compared if found else (),
            titles={model.id: model_title(model.title, context.t) for model in models},
            problem=problem,
        )

    async def _stored(self) -> StoredLists | None:
        entry = await self._store.kv_get(LISTS)
        return StoredLists.load(entry.value) if entry else None

    def _diff(self, stored: StoredLists) -> sync.Diff:
        return sync.diff(self._editor.edited_catalog, stored.lists)

    async def _read(self, context: PageContext) -> Response:
        """Read the lists from the providers now. Nothing of the catalog is changed.

        A failure is answered with 200: a proxy in between may replace the page of a 5xx status by its own. The lists
        of a provider that does not answer stay as they were read before.
        """
        problem = ""
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                lists = await self._fetch()
        except ListsIncomplete as incomplete:
            before = await self._stored()
            lists = {**(before.lists if before else {}), **incomplete.lists}
            problems = (f"{context.provider_title(name)}: {why}" for name, why in incomplete.problems.items())
            problem = "; ".join(problems)[:500]
        except (ProviderError, TimeoutError) as error:
            return await self._show(context, problem=str(error)[:500] or type(error).__name__)
        if problem and not lists:
            return await self._show(context, problem=problem)
        stored = StoredLists(lists=lists, at=await self._store.read_clock(), author=context.operator.id)
        text = stored.dump()
        if len(text) > LISTS_LENGTH_MAX:
            return await self._show(context, problem=f"{len(text)} bytes")
        await self._store.kv_put(LISTS, text)
        if problem:
            return await self._show(context, problem=problem)
        return context.redirect(PATH, "dashboard.models.lists_read")

    async def _take(self, context: PageContext) -> Response:
        """Take over the chosen differences, or all of them, each as an edit of its model."""
        stored = await self._stored()
        found = {difference.key: difference for difference in differences(self._diff(stored))} if stored else {}
        wanted = (
            found
            if context.form["all"]
            else {key: found[key] for key in context.form.all("difference") if key in found}
        )
        if not wanted:
            return context.redirect(PATH, "dashboard.models.nothing_to_take", tone="bad")
        taken, refused = 0, []
        today = (await self._store.read_clock()).date().isoformat()
        for model_id, own in _by_model(wanted.values()).items():
            try:
                await self._take_model(context, model_id, own, today)
            except (Refusal, InvalidEdit, StaleEdit):
                refused.append(model_id)
            else:
                taken += len(own)
        if refused:
            models = ", ".join(refused[:5])
            return context.redirect(PATH, "dashboard.models.taken_partly", tone="bad", n=taken, models=models)
        return context.redirect(PATH, "dashboard.models.taken", n=taken)

    async def _take_model(self, context: PageContext, model_id: str, own: list[Difference], today: str) -> None:
        follows, table = await self._editor.newest(model_id)
        after = dict(table)
        for difference in own:
            after = taken_over(self._editor.base.get(model_id), after, difference, today)
        key = f"{context.request_key}:{model_id}"
        change = await self._editor.save(model_id, after, follows=follows, author=context.operator.id, request_key=key)
        await context.audit("take over from provider", model_id, before=change.before, after=change.after, once=True)


def _by_model(listed: Iterable[Difference]) -> dict[str, list[Difference]]:
    grouped: dict[str, list[Difference]] = {}
    for difference in listed:
        grouped.setdefault(difference.model, []).append(difference)
    return grouped
