"""The Models page: prices, margins and figures of every model, and the edits of operators."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from starlette.responses import Response

from genlock.catalog.editor import CatalogEditor
from genlock.catalog.edits import FieldChange, differences, rebased
from genlock.catalog.margins import PriceRules, row_margins
from genlock.dashboard.model_inputs import model_inputs
from genlock.dashboard.page import PageContext, PageNotFound, PageRoute
from genlock.dashboard.pages.model_form import STATUSES, ModelForm, unique_rows, value_of
from genlock.dashboard.pages.model_rows import PERIODS, SORTS, ModelFilter, ModelRows, PeriodFigures, by_model
from genlock.dashboard.roles import Permission
from genlock.domain.catalog import Category, Model, Status
from genlock.domain.catalog_change import CatalogChange, Table
from genlock.domain.errors import InvalidEdit, ModelNotFound, Refusal, StaleEdit
from genlock.domain.figures import hour_number
from genlock.i18n.catalog_texts import category_title, model_title
from genlock.i18n.translator import Translator
from genlock.ports import Database

LISTED = 20
PAGE_ROWS = 50
HOURS_A_DAY = 24
ID_MAX = 2**62


@dataclass(frozen=True, kw_only=True)
class EditState:
    """What the edit form of a model shows."""

    form: ModelForm
    #: the newest change that the form was made from
    follows: int
    #: kinds of problems by box
    problems: dict[str, str]
    #: what would be saved; None before it was checked
    preview: Sequence[FieldChange] | None = None
    #: changes of others since the form was opened
    meanwhile: Sequence[CatalogChange] = ()


class ModelsPage:
    def __init__(self, editor: CatalogEditor, store: Database, rules: PriceRules) -> None:
        self._editor = editor
        self._store = store
        self._rows = ModelRows(rules)

    def routes(self) -> list[PageRoute]:
        edit = Permission.MANAGE_CATALOG
        return [
            PageRoute(path="/models", handler=self._list, permission=Permission.VIEW),
            PageRoute(path="/models/changes", handler=self._changes, permission=Permission.VIEW),
            PageRoute(path="/models/clear/{model:path}", handler=self._clear, permission=edit, method="POST"),
            PageRoute(path="/models/undo/{change:int}", handler=self._undo, permission=edit, method="POST"),
            # Last, because ids of models contain slashes.
            PageRoute(path="/models/{model:path}", handler=self._model, permission=Permission.VIEW),
            PageRoute(path="/models/{model:path}", handler=self._edit, permission=edit, method="POST"),
        ]

    # lists

    async def _list(self, context: PageContext) -> Response:
        await self._editor.refresh()
        chosen = ModelFilter.read(dict(context.request.query_params))
        catalog = self._editor.current.get()
        models = [model for model in catalog.models.values() if chosen.accepts(model)]
        figures = await self._figures(chosen.days)
        rows = chosen.sorted(self._rows.rows(models, figures, self._editor.edited_models))
        pages = max(1, -(-len(rows) // PAGE_ROWS))
        page = min(chosen.page, pages)
        return context.render(
            "models.html",
            rows=rows[(page - 1) * PAGE_ROWS : page * PAGE_ROWS],
            page=page,
            pages=pages,
            matching=len(rows),
            without_menu=sum(not row.model.listed for row in rows),
            filter=chosen,
            total=len(catalog.models),
            categories={category: category_title(category, context.t) for category in Category},
            labels={name: context.t.plain(f"dashboard.models.column.{name}") for name in SORTS[1:]},
            statuses=list(Status),
            periods=PERIODS,
            left_out=self._left_out(context),
        )

    def _left_out(self, context: PageContext) -> dict[str, str]:
        gone = context.t.plain("dashboard.models.gone")
        found = self._editor.left_out
        return {model: why if model in self._editor.base.models else gone for model, why in found.items()}

    async def _figures(self, days: int) -> dict[str, PeriodFigures]:
        until = hour_number(await self._store.read_clock()) + 1
        period = (until - days * HOURS_A_DAY, until)
        return by_model(await self._store.model_figures(*period), await self._store.model_durations(*period))

    async def _changes(self, context: PageContext) -> Response:
        before = _cursor(context)
        changes = await self._store.catalog_changes(LISTED + 1, before=before)
        return context.render(
            "models_changes.html",
            changes=changes[:LISTED],
            older=changes[LISTED - 1].id if len(changes) > LISTED else None,
            at_start=before is None,
            differences=differences,
            titles=self._titles(context.t),
        )

    def _titles(self, t: Translator) -> dict[str, str]:
        return {model.id: model_title(model.title, t) for model in self._editor.edited_catalog.models.values()}

    # one model

    async def _model(self, context: PageContext) -> Response:
        base = self._find(context)
        follows, table = await self._editor.newest(base.id)
        return await self._show(context, base, EditState(form=ModelForm.of(table), follows=follows, problems={}))

    def _find(self, context: PageContext) -> Model:
        try:
            return self._editor.base.get(context.request.path_params["model"])
        except ModelNotFound:
            raise PageNotFound("dashboard.error.no_model") from None

    async def _show(self, context: PageContext, base: Model, state: EditState, status: int = 200) -> Response:
        await self._editor.refresh()
        before = _cursor(context)
        model = self._editor.current.get().models[base.id]
        figures = await self._figures(PERIODS[-1])
        changes = await self._store.catalog_changes(LISTED + 1, model=base.id, before=before)
        [row] = self._rows.rows([model], figures, self._editor.edited_models)
        failed = await self._store.job(row.figures.last_failed_job) if row.figures.last_failed_job else None
        return context.render(
            "models_model.html",
            status,
            model=model,
            base=base,
            row=row,
            failed=failed,
            margins=list(row_margins(model, self._rows.rules)),
            price_rows=unique_rows(base),
            inputs=model_inputs(model, context.t),
            state=state,
            statuses=STATUSES,
            changes=changes[:LISTED],
            older=changes[LISTED - 1].id if len(changes) > LISTED else None,
            at_start=before is None,
            differences=differences,
            value_of=value_of,
            left_out=self._left_out(context).get(base.id),
            days=PERIODS[-1],
        )

    async def _edit(self, context: PageContext) -> Response:
        """Check the form and show what it would change; with `step=save`, save it."""
        base, form = self._find(context), ModelForm.read(context.form)
        follows, saved = await self._editor.newest(base.id)
        seen = int(context.form["follows"]) if context.form["follows"].isdecimal() else 0
        table, problems = form.table()
        problems = {**problems, **self._problems(base, table)}
        if problems:
            return await self._show(context, base, EditState(form=form, follows=seen, problems=problems), 422)
        if seen != follows and not await self._store.catalog_change_of_request(context.request_key):
            return await self._show_stale(context, base, table, seen, saved)
        if context.form["step"] != "save":
            preview = differences(saved, table)
            state = EditState(form=form, follows=follows, problems={}, preview=preview)
            return await self._show(context, base, state)
        return await self._save(context, base, table, seen)

    def _problems(self, base: Model, table: Table) -> dict[str, str]:
        try:
            self._editor.edited(base.id, table)
        except InvalidEdit as error:
            return {key: problem.code for key, problem in error.problems.items()}
        return {}

    async def _show_stale(self, context: PageContext, base: Model, table: Table, seen: int, saved: Table) -> Response:
        """Show what changed meanwhile, with the operator's own changes put on top of it."""
        mine_from = await self._store.catalog_change(seen) if 0 < seen < ID_MAX else None
        began: Table = mine_from.after if mine_from and mine_from.model == base.id else {}
        newer = [change for change in await self._store.catalog_changes(LISTED, model=base.id) if change.id > seen]
        form = ModelForm.of(rebased(began, table, saved))
        state = EditState(form=form, follows=newer[0].id if newer else 0, problems={}, meanwhile=newer)
        return await self._show(context, base, state, 409)

    async def _save(self, context: PageContext, base: Model, table: Table, follows: int) -> Response:
        path = model_path(base.id)
        try:
            change = await self._editor.save(
                base.id, table, follows=follows, author=context.operator.id, request_key=context.request_key
            )
        except StaleEdit:
            _, saved = await self._editor.newest(base.id)
            return await self._show_stale(context, base, table, follows, saved)
        await context.audit("edit model", base.id, before=change.before, after=change.after, once=True)
        return context.redirect(path, "dashboard.models.saved")

    async def _clear(self, context: PageContext) -> Response:
        """Remove all edits of a model, also of one that is gone."""
        model_id = context.request.path_params["model"]
        follows, table = await self._editor.newest(model_id)
        if table:
            try:
                change = await self._editor.save(
                    model_id, {}, follows=follows, author=context.operator.id, request_key=context.request_key
                )
            except StaleEdit:
                return context.redirect("/models", "dashboard.models.stale", tone="bad")
            await context.audit("edit model", model_id, before=change.before, after=change.after, once=True)
        return context.redirect("/models", "dashboard.models.cleared", model=model_id[:100])

    async def _undo(self, context: PageContext) -> Response:
        change_id = context.request.path_params["change"]
        change = await self._store.catalog_change(change_id) if change_id < ID_MAX else None
        if change is None:
            raise PageNotFound("dashboard.error.no_change")
        path = model_path(change.model) if change.model in self._editor.base.models else "/models"
        try:
            undo = await self._editor.undo(change.id, author=context.operator.id, request_key=context.request_key)
        except StaleEdit as error:
            return context.redirect(path, "dashboard.models.undo_stale", tone="bad", fields=str(error)[:200])
        except Refusal as error:
            return context.redirect(path, "dashboard.models.undo_refused", tone="bad", reason=str(error)[:200])
        await context.audit("undo model edit", change.model, before=undo.before, after=undo.after, once=True)
        return context.redirect(path, "dashboard.models.undone")


def model_path(model_id: str) -> str:
    return f"/models/{quote(model_id)}"


def _cursor(context: PageContext) -> int | None:
    before = context.request.query_params.get("before", "")
    return int(before) if before.isdecimal() and int(before) < ID_MAX else None
