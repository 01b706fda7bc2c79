"""Who may use the dashboard with which role, and the open sessions."""

from collections.abc import Collection, Sequence

from starlette.responses import Response

from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.roles import Permission
from genlock.domain.operator import DashboardSession, Operator, OperatorRole
from genlock.ports import Database

PATH = "/system/operators"
SESSIONS_MAX = 200
_ID_DIGITS_MAX = 20
_NAME_LENGTH_MAX = 60


class OperatorsPage:
    def __init__(self, store: Database, owners: Collection[int]) -> None:
        self._store = store
        #: ids of GENLOCK_ADMIN_IDS, whose role cannot be changed here
        self._owners = tuple(map(str, owners))

    def routes(self) -> list[PageRoute]:
        view, manage = Permission.VIEW, Permission.MANAGE_SYSTEM
        end = f"{PATH}/sessions/{{session_id:int}}/end"
        return [
            PageRoute(path=PATH, handler=self._show, permission=view),
            PageRoute(path=PATH, handler=self._set, permission=manage, method="POST"),
            PageRoute(path=f"{PATH}/remove", handler=self._remove, permission=manage, method="POST"),
            # Every operator may end their own sessions; the handler checks whose session it is.
            PageRoute(path=end, handler=self._end_session, permission=view, method="POST"),
        ]

    async def _show(self, context: PageContext) -> Response:
        return await self._page(context)

    async def _page(self, context: PageContext, status: int = 200, problem: str = "") -> Response:
        manages = context.can(Permission.MANAGE_SYSTEM)
        operators = await self._store.operators() if manages else []
        return context.render(
            "system_operators.html",
            status,
            tab="operators",
            manages=manages,
            owners=self._owners,
            operators=operators,
            names={operator.id: operator.name for operator in (*operators, context.operator) if operator.name},
            roles=tuple(OperatorRole),
            sessions=await self._sessions(context),
            own_session=context.login.session.id,
            problem=problem,
            given={name: context.form[name] for name in ("id", "name", "role")},
        )

    async def _sessions(self, context: PageContext) -> Sequence[DashboardSession]:
        sessions = await self._store.sessions(SESSIONS_MAX)
        if context.can(Permission.MANAGE_SYSTEM):
            return sessions
        return [session for session in sessions if session.operator == context.operator.id]

    async def _set(self, context: PageContext) -> Response:
        """Add an operator, or change the name and role of one. The form says which role it was made from."""
        form = context.form
        operator_id, name = form["id"], form["name"]
        if problem := self._problem(context, operator_id, name, form["role"]):
            return await self._page(context, 422, problem)
        wanted = Operator(id=operator_id, role=OperatorRole(form["role"]), name=name)
        before = await self._store.operator(operator_id)
        if before == wanted:
            return context.redirect(PATH, "dashboard.system.operator_unchanged", id=operator_id)
        if (before.role.value if before else "") != form["expected"]:
            return self._changed_meanwhile(context, operator_id, before)
        replaced = await self._store.set_operator(wanted, context.operator.id)
        if replaced != wanted:  # the same form, posted twice at once, changes nothing the second time
            await context.audit("set_operator", operator_id, before=_fields(replaced), after=_fields(wanted))
        role = context.t.plain(f"dashboard.role.{wanted.role}")
        return context.redirect(PATH, "dashboard.system.operator_set", id=operator_id, role=role)

    def _problem(self, context: PageContext, operator_id: str, name: str, role: str) -> str:
        """Return the key of the text that says why an operator cannot be set."""
        if not (operator_id.isascii() and operator_id.isdigit()) or len(operator_id) > _ID_DIGITS_MAX:
            return "wrong_id"
        if operator_id in self._owners:
            return "owner_of_settings"
        if operator_id == context.operator.id:
            return "own_role"
        if role not in set(OperatorRole):
            return "wrong_role"
        return "" if len(name) <= _NAME_LENGTH_MAX and name.isprintable() else "wrong_name"

    async def _remove(self, context: PageContext) -> Response:
        operator_id, expected = context.form["id"], context.form["expected"]
        if operator_id == context.operator.id:
            return await self._page(context, 422, "own_role")
        before = await self._store.operator(operator_id)
        if before is None:
            return context.redirect(PATH, "dashboard.system.operator_gone", tone="bad", id=operator_id[:_ID_DIGITS_MAX])
        if before.role.value != expected:
            return self._changed_meanwhile(context, operator_id, before)
        removed = await self._store.remove_operator(operator_id)
        # A statement that was repeated after a lost connection finds no row: what it removed is what we read before.
        await context.audit("remove_operator", operator_id, before=_fields(removed or before))
        return context.redirect(PATH, "dashboard.system.operator_removed", id=operator_id)

    def _changed_meanwhile(self, context: PageContext, operator_id: str, now: Operator | None) -> Response:
        if now is None:
            return context.redirect(PATH, "dashboard.system.operator_gone", tone="bad", id=operator_id)
        role = context.t.plain(f"dashboard.role.{now.role}")
        return context.redirect(PATH, "dashboard.system.operator_changed", tone="bad", id=operator_id, role=role)

    async def _end_session(self, context: PageContext) -> Response:
        session_id = context.request.path_params["session_id"]
        session = next((candidate for candidate in await self._sessions(context) if candidate.id == session_id), None)
        if session is None or not await self._store.end_session(session_id):
            return context.redirect(PATH, "dashboard.system.session_gone", tone="bad")
        await context.audit("end_session", session.operator, before={"session": session.id})
        return context.redirect(PATH, "dashboard.system.session_ended")


def _fields(operator: Operator | None) -> dict[str, str] | None:
    return None if operator is None else {"role": operator.role.value, "name": operator.name}
