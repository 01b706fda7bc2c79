"""What operators do to a user: credits, bans, messages, free runs, refunds of payments, erasure."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from starlette.responses import Response

from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.pages.users import (
    RECENT,
    UsersPage,
    newest_gift,
    newest_operator_move,
    state_of_gifts,
    state_of_moves,
)
from genlock.dashboard.roles import Permission
from genlock.domain.errors import (
    ActionNotAllowed,
    AllowanceExceeded,
    ChannelBusy,
    ChannelOutcomeUnknown,
    IdempotencyKeyReused,
    InsufficientBalance,
    InvalidInput,
    Refusal,
)
from genlock.domain.money import EntryKind, read_amount, write_amount
from genlock.domain.operator import OperatorRole
from genlock.domain.payment import Payment
from genlock.domain.place import NEWEST
from genlock.domain.printable import shown
from genlock.domain.queued_message import QueuedMessage
from genlock.domain.user import User
from genlock.engine.accounts import FREE_RUNS_MAX, MESSAGE_LENGTH_MAX, AccountActions, Allowance
from genlock.engine.erasure import Erasure
from genlock.engine.refunds import NoRefund, Refunds
from genlock.ports import Database

REASON_LENGTH_MAX = 300
_CONFLICT, _BAD_REQUEST = 409, 400
_DIRECTIONS = {"credit": EntryKind.GRANT, "debit": EntryKind.DEBIT}


class UserActions:
    def __init__(
        self,
        store: Database,
        users: UsersPage,
        accounts: AccountActions,
        refunds: Refunds,
        support_credits_max: int,
        *,
        free_run_value: Callable[[], int],
    ) -> None:
        self._store = store
        self._users = users
        self._accounts = accounts
        self._refunds = refunds
        self._support_credits_max = support_credits_max
        #: what a free run may cost, in thousandths of a credit
        self._free_run_value = free_run_value

    def routes(self) -> list[PageRoute]:
        post = partial(PageRoute, method="POST")
        user = "/users/{account_id:int}"
        return [
            post(path=f"{user}/credits", handler=self._move, permission=Permission.MOVE_CREDITS),
            post(path=f"{user}/ban", handler=self._ban, permission=Permission.HANDLE_USERS),
            post(path=f"{user}/unban", handler=self._unban, permission=Permission.HANDLE_USERS),
            post(path=f"{user}/message", handler=self._preview, permission=Permission.HANDLE_USERS),
            post(path=f"{user}/message/send", handler=self._send, permission=Permission.HANDLE_USERS),
            post(path=f"{user}/free-runs", handler=self._give_runs, permission=Permission.HANDLE_USERS),
            post(path=f"{user}/refund", handler=self._refund, permission=Permission.MANAGE_MONEY),
            post(path=f"{user}/erase", handler=self._erase, permission=Permission.ERASE_USERS),
        ]

    # credits

    async def _move(self, context: PageContext) -> Response:
        """Credit or debit, once per form. A form from before another operator's move changes nothing and says so."""
        user, form = await self._users.find(context), context.form
        kind, amount, reason = _DIRECTIONS.get(form["direction"]), read_amount(form["amount"]), form["reason"]
        if kind is None or not amount:
            return await self._refuse(context, user, "bad_amount")
        if not reason or len(reason) > REASON_LENGTH_MAX:
            return await self._refuse(context, user, "bad_reason", values={"n": REASON_LENGTH_MAX})
        key = f"dashboard:{context.operator.id}:{context.request_key}"
        async with self._accounts.try_lock(user.account_id, key) as locked:
            if not locked:
                return await self._refuse(context, user, "moving", status=_CONFLICT)
            return await self._move_alone(context, user, kind, amount, reason, key)

    async def _move_alone(
        self, context: PageContext, user: User, kind: EntryKind, amount: int, reason: str, key: str
    ) -> Response:
        # The key is looked up last: the move that was seen may be that of this form, sent twice.
        if (stale := await self._changed(context, user)) and await self._store.ledger_entry(key) is None:
            return stale
        try:
            message = await self._accounts.move_credits(
                user.account_id, kind, amount, key=key, reason=reason, allowance=self._allowance(context)
            )
        except (AllowanceExceeded, InsufficientBalance, IdempotencyKeyReused) as error:
            text, figures = why_not_moved(context, error)
            return await self._refuse(context, user, text, values=figures)
        return await self._moved(context, user, kind, amount, reason, message)

    async def _changed(self, context: PageContext, user: User) -> Response | None:
        """Return the page with what changed, if another operator moved credits since the form was made."""
        entries = (await self._store.account_ledger(user.account_id, before=NEWEST, limit=RECENT)).entries
        moved = newest_operator_move(entries)
        if moved is None or context.form["state"] == state_of_moves(entries):
            return None
        text = "changed_credit" if moved.kind is EntryKind.GRANT else "changed_debit"
        values = {"credits": context.t.credits(moved.amount), "reason": shown(moved.reason, 200)}
        return await self._refuse(context, user, text, status=_CONFLICT, values=values)

    async def _moved(
        self,
        context: PageContext,
        user: User,
        kind: EntryKind,
        amount: int,
        reason: str,
        message: QueuedMessage | None,
    ) -> Response:
        available = (await self._store.wallet(user.account_id)).available
        action = "credit" if kind is EntryKind.GRANT else "debit"
        signed = amount if kind is EntryKind.GRANT else -amount
        await context.audit(
            action,
            user.account_id,
            before={"balance": write_amount(available - signed)},
            after={"balance": write_amount(available), "credits": write_amount(amount), "reason": reason},
            once=True,
        )
        if message is None:
            return self._back(context, user, "moved_before")
        reached = await self._accounts.send_queued(message)
        values = {"credits": context.t.credits(amount), "balance": context.t.credits(available)}
        return self._back(context, user, f"{action}ed" if reached else f"{action}ed_untold", reached=reached, **values)

    def _allowance(self, context: PageContext) -> Allowance | None:
        if context.operator.role is OperatorRole.OWNER:
            return None
        return Allowance(name=context.operator.id, most=self._support_credits_max)

    # bans

    async def _ban(self, context: PageContext) -> Response:
        user, reason = await self._users.find(context), context.form["reason"]
        if not reason or len(reason) > REASON_LENGTH_MAX:
            return await self._refuse(context, user, "bad_reason", values={"n": REASON_LENGTH_MAX})
        if user.banned_at is not None:
            return self._back(context, user, "banned_before", reached=False, reason=user.ban_reason)
        return await self._set_ban(context, user, reason)

    async def _unban(self, context: PageContext) -> Response:
        user = await self._users.find(context)
        if user.banned_at is None:
            return self._back(context, user, "unbanned_before", reached=False)
        return await self._set_ban(context, user, None)

    async def _set_ban(self, context: PageContext, user: User, reason: str | None) -> Response:
        """Ban with a reason, or lift the ban."""
        try:
            if reason is None:
                await self._accounts.unban(user.account_id)
            else:
                await self._accounts.ban(user.account_id, reason)
        except ActionNotAllowed:
            return await self._refuse(context, user, "no_profile")
        action = "unban" if reason is None else "ban"
        await context.audit(action, user.account_id, before={"reason": user.ban_reason}, after={"reason": reason})
        return self._back(context, user, f"{action}ned")

    # messages

    async def _preview(self, context: PageContext) -> Response:
        """Show the message as the user would see it. Nothing is sent."""
        user, text = await self._users.find(context), context.form["text"]
        try:
            await self._accounts.message(user.account_id, text)
        except InvalidInput:
            return await self._refuse(context, user, "bad_text", values={"n": MESSAGE_LENGTH_MAX})
        return context.render("user_message.html", user=user, tab="", text=text)

    async def _send(self, context: PageContext) -> Response:
        """Send a message at most once per form: the outcome of a call that was cut off is not known."""
        user, text = await self._users.find(context), context.form["text"]
        try:
            await self._accounts.message(user.account_id, text)
        except InvalidInput:
            return await self._refuse(context, user, "bad_text", values={"n": MESSAGE_LENGTH_MAX})
        if not await self._accounts.claim_message(f"{context.operator.id}:{context.request_key}"):
            return self._back(context, user, "message_before", reached=False)
        await context.audit("message", user.account_id, after={"text": text}, once=True)
        reached = await self._accounts.send(user.account_id, text)
        if not reached:
            await context.audit("message not delivered", user.account_id, once=True)
        return self._back(context, user, "message_sent" if reached else "message_not_sent", reached=reached)

    # free runs

    async def _give_runs(self, context: PageContext) -> Response:
        user, digits = await self._users.find(context), context.form["runs"]
        runs = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else 0  # noqa: PLR2004
        if not 0 < runs <= FREE_RUNS_MAX:
            return await self._refuse(context, user, "bad_runs", values={"n": FREE_RUNS_MAX})
        key = f"dashboard:{context.operator.id}:{context.request_key}"
        async with self._accounts.try_lock(user.account_id, key) as locked:
            if not locked:
                return await self._refuse(context, user, "moving", status=_CONFLICT)
            return await self._given(context, user, key) or await self._give_runs_alone(context, user, runs, key)

    async def _given(self, context: PageContext, user: User, key: str) -> Response | None:
        """Return the page with what changed, if another operator gave runs since the form was made."""
        used = await self._store.used_promos(user.account_id, RECENT)
        given = newest_gift(used)
        if given is None or context.form["gift_state"] == state_of_gifts(used):
            return None
        if await self._store.is_promo_used(user.account_id, key):  # what is new was given by this form, sent twice
            return None
        values = {"runs": context.t.plain("unit.runs", n=given.runs)}
        return await self._refuse(context, user, "changed_runs", status=_CONFLICT, values=values)

    async def _give_runs_alone(self, context: PageContext, user: User, runs: int, key: str) -> Response:
        try:
            given_now = await self._accounts.give_free_runs(
                user.account_id,
                runs,
                key=key,
                by=context.operator.id,
                value=runs * self._free_run_value(),
                allowance=self._allowance(context),
            )
        except AllowanceExceeded as error:
            text, values = why_not_moved(context, error)
            return await self._refuse(context, user, text, status=_CONFLICT, values=values)
        await context.audit("free runs", user.account_id, after={"runs": runs}, once=True)
        return self._back(
            context, user, "runs_given" if given_now else "runs_before", runs=context.t.plain("unit.runs", n=runs)
        )

    # refunds and erasure

    async def _refund(self, context: PageContext) -> Response:
        user, charge = await self._users.find(context), context.form["charge"]
        payment = await self._store.payment(charge[:300])
        if payment is None or payment.account_id != user.account_id:
            return await self._refuse(context, user, "refund_no_payment")
        await context.audit(
            "refund of stars begun", charge, before={"state": payment.state, "user": user.account_id}, once=True
        )
        try:
            done = await self._refunds.refund(charge, context.operator.id)
        except NoRefund as error:
            in_words = context.t.credits
            values = {
                name: in_words(value) if isinstance(value, int) else str(value) for name, value in error.values.items()
            }
            return await self._refuse(context, user, f"refund_{error.why}", status=_CONFLICT, values=values)
        except (ChannelBusy, ChannelOutcomeUnknown):
            return self._back(context, user, "refund_open", reached=False)
        except Refusal as error:
            return await self._refuse(context, user, "refund_impossible", values={"reason": str(error)})
        return await self._refunded(context, user, done)

    async def _refunded(self, context: PageContext, user: User, done: Payment) -> Response:
        after = {"stars": done.paid_amount, "credits taken": write_amount(done.amount)}
        await context.audit("refund of stars", done.charge, after=after, once=True)
        reached = await self._refunds.tell_refunded(done)
        values = {"stars": done.paid_amount, "credits": context.t.credits(done.amount)}
        return self._back(context, user, "refunded" if reached else "refunded_untold", reached=reached, **values)

    async def _erase(self, context: PageContext) -> Response:
        """Erase a user's personal data, if the operator typed the account's number."""
        user = await self._users.find(context)
        if context.form["number"] != str(user.account_id):
            return await self._refuse(context, user, "erase_number", values={"number": str(user.account_id)})
        key = f"dashboard:{context.request_key}:erasure:{user.account_id}"
        await Erasure(self._store).request(user.account_id, context.operator.id, key)
        return self._back(context, user, "erasing")

    # answers

    def _back(self, context: PageContext, user: User, text: str, *, reached: bool = True, **values: object) -> Response:
        tone = "good" if reached else "bad"
        return context.redirect(f"/users/{user.account_id}", f"dashboard.users.done.{text}", tone=tone, **values)

    async def _refuse(
        self,
        context: PageContext,
        user: User,
        text: str,
        *,
        status: int = _BAD_REQUEST,
        values: Mapping[str, object] = MappingProxyType({}),
    ) -> Response:
        """Show the user's page again: nothing was done, for this reason; what was typed is still there."""
        names = ("direction", "amount", "reason", "text", "runs")
        fields = {name: context.form[name] for name in names if name in context.form}
        refused = context.t.plain(f"dashboard.users.refused.{text}", **values)
        return await self._users.show(context, user, status, refused=refused, fields=fields)


def why_not_moved(context: PageContext, error: Refusal) -> tuple[str, dict[str, object]]:
    """Return the text that says why no credits were moved, and the figures that it names."""
    in_words = context.t.credits
    match error:
        case AllowanceExceeded():
            left = max(error.most - error.used, 0)
            figures = {"amount": error.amount, "used": error.used, "most": error.most, "left": left}
            return "allowance", {name: in_words(figure) for name, figure in figures.items()}
        case InsufficientBalance():
            return "too_little", {"available": in_words(error.available), "amount": in_words(error.price)}
        case _:
            return "key_reused", {}
