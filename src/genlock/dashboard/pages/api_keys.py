"""Keys of API clients: made, listed and revoked by owners."""

import secrets

from starlette.responses import Response

from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.roles import Permission
from genlock.domain.api_key import NAME_LENGTH, ApiScope
from genlock.domain.errors import AccountNotFound, Refusal
from genlock.domain.money import read_amount, write_amount
from genlock.domain.webhook import LOST
from genlock.engine.api_keys import create_api_key, ensure_api_account
from genlock.ports import Database

PATH = "/system/api-keys"
ROWS_MAX = 50
_DIGITS_MAX = 18


class ApiKeysPage:
    def __init__(self, store: Database) -> None:
        self._store = store

    def routes(self) -> list[PageRoute]:
        manage = Permission.MANAGE_SYSTEM
        return [
            PageRoute(path=PATH, handler=self._show, permission=manage),
            PageRoute(path=PATH, handler=self._create, permission=manage, method="POST"),
            PageRoute(path=f"{PATH}/{{key_id:int}}/revoke", handler=self._revoke, permission=manage, method="POST"),
        ]

    async def _show(self, context: PageContext) -> Response:
        return await self._page(context)

    async def _page(self, context: PageContext, status: int = 200, *, problem: str = "", secret: str = "") -> Response:
        given = context.request.query_params.get("before", "")
        before = int(given) if given.isascii() and given.isdigit() and len(given) <= _DIGITS_MAX else None
        keys = await self._store.api_keys(None, before=before, limit=ROWS_MAX + 1)
        accounts = {key.account_id for key in keys[:ROWS_MAX]}
        return context.render(
            "system_api_keys.html",
            status,
            tab="api_keys",
            keys=keys[:ROWS_MAX],
            next_before=keys[ROWS_MAX - 1].id if len(keys) > ROWS_MAX else None,
            names=await self._store.account_names(accounts),
            scopes=tuple(ApiScope),
            lost_accounts=sorted({entry.value for entry in await self._store.kv_list(LOST)}, key=int)[:ROWS_MAX],
            problem=problem,
            secret=secret,
            given={name: context.form[name] if problem else "" for name in ("account", "name", "spend_limit")},
        )

    async def _create(self, context: PageContext) -> Response:
        """Make a key and show its secret, which is not stored: this page is the only one that has it."""
        form = context.form
        scopes = frozenset(scope for scope in ApiScope if form[f"scope_{scope}"])
        limit = read_amount(form["spend_limit"]) if form["spend_limit"] else None
        if not scopes:
            return await self._page(context, 422, problem="no_scope")
        if limit == 0 or len(form["name"]) > NAME_LENGTH or not form["name"].isprintable():
            return await self._page(context, 422, problem="wrong_limit" if limit == 0 else "wrong_name")
        try:
            account_id = await self._account(form["account"])
        except (AccountNotFound, Refusal):
            return await self._page(context, 422, problem="wrong_account")
        key, secret = await create_api_key(
            self._store,
            account_id,
            name=form["name"] or form["account"],
            scopes=scopes,
            spend_limit=limit,
            request_key=f"dashboard:{context.operator.id}:{context.request_key}",
            author=context.operator.id,
            random_bytes=secrets.token_bytes,
        )
        if secret is None:  # the same form, posted twice
            return context.redirect(PATH, "dashboard.api_keys.made_before", tone="bad", id=key.id)
        shown_limit = None if limit is None else write_amount(limit)
        after = {"key": key.id, "name": key.name, "scopes": sorted(key.scopes), "spend_limit": shown_limit}
        await context.audit("create_api_key", account_id, after=after, once=True)
        return await self._page(context, secret=secret)

    async def _account(self, text: str) -> int:
        """Return the account by its number, or that of an API client by its name. Raises Refusal."""
        if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX:
            return (await self._store.account(int(text))).id
        return await ensure_api_account(self._store, text)

    async def _revoke(self, context: PageContext) -> Response:
        key = await self._store.revoke_api_key(context.request.path_params["key_id"])
        if key is None:
            return context.redirect(PATH, "dashboard.api_keys.revoked_before", tone="bad")
        await context.audit("revoke_api_key", key.account_id, before={"key": key.id, "name": key.name})
        return context.redirect(PATH, "dashboard.api_keys.revoked_now", name=key.name)
