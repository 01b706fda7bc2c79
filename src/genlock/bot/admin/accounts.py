"""`/admin find`, `user`, `credit`, `debit`, `ban`, `unban`, `erase`: accounts of this bot's users."""

import re
from collections.abc import Mapping, Sequence

from genlock.bot.admin import questions, screens
from genlock.bot.admin.audit import AuditLog
from genlock.bot.admin.command import AdminCommand, Declined, NotUnderstood, Question, argument
from genlock.bot.bundle import BotBundle
from genlock.bot.context import UpdateContext
from genlock.domain.errors import InsufficientBalance
from genlock.domain.money import EntryKind, read_amount, write_amount
from genlock.domain.profile import Profile
from genlock.engine.accounts import AccountActions
from genlock.engine.erasure import Erasure
from genlock.i18n.translator import Html
from genlock.ports import Database, OutgoingMessage

LISTED = 10
#: how many profiles a search reads, because those of other bots are left out
READ = 200
#: `1 000 for the trouble` may be a thousand, or one for the reason "000 for the trouble"
_GROUPED = re.compile(r"\d{1,3} \d{3}(?![\w-])")
#: the audited action and the operator's text
MOVES = {EntryKind.GRANT: ("credit", "admin.credited"), EntryKind.DEBIT: ("debit", "admin.debited")}


class AccountCommands:
    def __init__(self, *, bundle: BotBundle, store: Database, audit: AuditLog, actions: AccountActions) -> None:
        self._bundle = bundle
        self._store = store
        self._audit = audit
        self._actions = actions

    @property
    def commands(self) -> Mapping[str, AdminCommand]:
        return {
            "find": AdminCommand(run=self._find, usage="find"),
            "user": AdminCommand(run=self._account, usage="user"),
            "person": AdminCommand(run=self._account, usage="user"),  # its earlier name, and that of its buttons
            "credit": AdminCommand(run=self._credit, usage="credit"),
            "debit": AdminCommand(run=self._debit, usage="debit", ask=self._ask_debit),
            "ban": AdminCommand(run=self._ban, usage="ban", ask=self._ask_ban),
            "unban": AdminCommand(run=self._unban, usage="unban"),
            "erase": AdminCommand(run=self._erase, usage="erase", ask=self._ask_erase),
        }

    async def profile(self, name: str) -> Profile:
        """Return the user of this bot with this account number, Telegram id or @name. Raises Declined."""
        wanted = name.lstrip("@").lower()
        found = await self._store.find_profiles(wanted, READ)
        exact = await self._of_this_bot(
            [profile for profile in found if wanted in (str(profile.account_id), profile.external_id, profile.username)]
        )
        if not exact:
            raise Declined("no_user", word=name)
        if len(exact) > 1:
            raise Declined("many_people", word=name)
        return exact[0]

    async def _of_this_bot(self, profiles: Sequence[Profile], limit: int = LISTED) -> list[Profile]:
        """The first profiles, up to the limit, that belong to this bot."""
        ours: list[Profile] = []
        for profile in profiles:
            if len(ours) == limit:
                break
            if (await self._store.account(profile.account_id)).bot == self._bundle.id:
                ours.append(profile)
        return ours

    async def _find(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        text = " ".join(args).lstrip("@")
        if not text:
            newest = await self._of_this_bot(await self._store.newest_profiles(READ))
            return screens.profiles(ctx.translator, text, newest, more=False)
        found = await self._of_this_bot(await self._store.find_profiles(text, READ), LISTED + 1)
        if len(found) == 1:
            return await self._card(ctx, found[0].account_id)
        return screens.profiles(ctx.translator, text, found[:LISTED], more=len(found) > LISTED)

    async def _account(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        return await self._card(ctx, (await self.profile(argument(args))).account_id)

    async def _card(self, ctx: UpdateContext, account_id: int, note: Html | None = None) -> OutgoingMessage:
        profile, wallet = await self._store.profile(account_id), await self._store.wallet(account_id)
        return screens.with_note(note, screens.account(ctx.translator, profile, wallet))

    # money

    async def _credit(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        return await self._move(ctx, args, EntryKind.GRANT)

    async def _debit(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        return await self._move(ctx, args, EntryKind.DEBIT)

    async def _move(self, ctx: UpdateContext, args: Sequence[str], kind: EntryKind) -> OutgoingMessage:
        """Credit or debit an account once per command, with a reason, and tell its user."""
        (profile, amount, reason), t = await self._read_move(args), ctx.translator
        action, operator_text = MOVES[kind]
        key = f"admin:{self._bundle.id}:{ctx.update}"  # ids of updates are unique within a bot only
        message = await self._actions.move_credits(profile.account_id, kind, amount, key=key, reason=reason)
        await self._audit.write(ctx, action, profile.account_id, f"{write_amount(amount)}: {reason}")
        if message is None:
            return await self._card(ctx, profile.account_id, t.html("admin.moved_before"))
        reached = await self._actions.send_queued(message)
        note = t.html(operator_text, credits=t.credits(amount), reached=screens.reached(t, reached=reached))
        return await self._card(ctx, profile.account_id, note)

    async def _read_move(self, args: Sequence[str]) -> tuple[Profile, int, str]:
        """Read `USER CREDITS REASON`. Raises NotUnderstood and Declined."""
        name, amount, reason = argument(args), read_amount(argument(args, 1)), " ".join(args[2:])
        if not amount or not reason or _GROUPED.match(" ".join(args[1:])):
            raise NotUnderstood
        return await self.profile(name), amount, reason

    async def _ask_debit(self, ctx: UpdateContext, args: Sequence[str]) -> Question:
        profile, amount, reason = await self._read_move(args)
        wallet = await self._store.wallet(profile.account_id)
        if wallet.available < amount:
            raise InsufficientBalance(price=amount, available=wallet.available)
        return questions.debit(ctx.translator, profile, wallet, amount, reason)

    # bans

    async def _ban(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        profile, reason = await self.profile(argument(args)), " ".join(args[1:])
        await self._actions.ban(profile.account_id, reason)
        await self._audit.write(ctx, "ban", profile.account_id, reason)
        return await self._card(ctx, profile.account_id, ctx.translator.html("admin.ban_done"))

    async def _ask_ban(self, ctx: UpdateContext, args: Sequence[str]) -> Question:
        profile = await self.profile(argument(args))
        wallet = await self._store.wallet(profile.account_id)
        return questions.ban(ctx.translator, profile, wallet, " ".join(args[1:]))

    async def _unban(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        profile = await self.profile(argument(args))
        await self._actions.unban(profile.account_id)
        await self._audit.write(ctx, "unban", profile.account_id)
        return await self._card(ctx, profile.account_id, ctx.translator.html("admin.unban_done"))

    # erasure

    async def _erase(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        """Have a user's personal data erased."""
        profile = await self._profile_by_number(args)
        await Erasure(self._store).request(profile.account_id, ctx.profile.external_id, f"update:{ctx.update}")
        return screens.message(ctx.translator, ctx.translator.html("admin.erase_done", user=str(profile.account_id)))

    async def _ask_erase(self, ctx: UpdateContext, args: Sequence[str]) -> Question:
        profile = await self._profile_by_number(args)
        return questions.erase(ctx.translator, profile, await self._store.wallet(profile.account_id))

    async def _profile_by_number(self, args: Sequence[str]) -> Profile:
        """Return the user with an account number or Telegram id; a name could be mistaken. Raises Declined."""
        profile = await self.profile(argument(args))
        if argument(args).lstrip("@") not in (str(profile.account_id), profile.external_id):
            raise Declined("erase_by_number", user=str(profile.account_id))
        return profile
