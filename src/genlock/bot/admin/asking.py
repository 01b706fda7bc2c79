"""Asks before a command takes money or access away, and runs it once when the operator confirms."""

import json
from collections.abc import Sequence
from dataclasses import replace

from genlock.bot.admin.command import Question
from genlock.bot.bundle import BotBundle
from genlock.bot.buttons import button
from genlock.bot.context import UpdateContext
from genlock.ports import KvStore, OutgoingMessage

#: prefix of the bot's kv entries with the typed command that an operator has to confirm; one per operator
ASKED = "chat:asked:"
#: the button that runs the typed command that waits
YES = "yes"
#: buttons with this prefix ask before they run the command that follows
PREFIX = "ask"


class Asking:
    def __init__(self, bundle: BotBundle, store: KvStore) -> None:
        self._bundle = bundle
        self._store = store

    async def ask(
        self, ctx: UpdateContext, name: str, args: Sequence[str], answer: Question | OutgoingMessage, *, typed: bool
    ) -> OutgoingMessage:
        """Return the answer; a question with its buttons.

        The words of a typed command may be too long for the data of a button, so they are stored.
        """
        if not isinstance(answer, Question):
            return answer
        if not typed:
            return _screen(answer, name, *args)
        waiting = {"update": ctx.update, "name": name, "args": list(args)}
        await self._store.kv_put(_key(ctx), json.dumps(waiting), self._bundle.id)
        return _screen(answer, YES, ctx.update)

    async def waiting(self, ctx: UpdateContext, args: Sequence[str]) -> tuple[UpdateContext, str, Sequence[str]] | None:
        """Return the command that a yes means, with the context of its update; None if a newer one waits.

        A second yes runs it for the same update again, and no command changes anything twice for one update.
        """
        entry = await self._store.kv_get(_key(ctx), self._bundle.id)
        waiting = json.loads(entry.value) if entry else {}
        if not args or str(waiting.get("update")) != args[0]:
            return None
        return replace(ctx, update=waiting["update"]), waiting["name"], waiting["args"]


def _screen(question: Question, *data: object) -> OutgoingMessage:
    return OutgoingMessage(text=question.text, buttons=((button(question.yes, "adm", *data),), (question.back,)))


def _key(ctx: UpdateContext) -> str:
    return f"{ASKED}{ctx.profile.account_id}"
