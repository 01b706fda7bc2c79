"""Broadcasts: written, shown as Telegram would show them, tried on oneself, started, watched and stopped.

The bot sends them; this page only writes the rows that say so.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

from starlette.responses import Response

from genlock.bot.admin.broadcasts import Content, read_buttons
from genlock.bot.admin.campaign_screens import segment_text
from genlock.dashboard.page import PageContext, PageNotFound, PageRoute
from genlock.dashboard.roles import Permission
from genlock.dashboard.telegram_html import TEXT_MAX, ChatMessage, InvalidMessage, read_message
from genlock.domain.broadcast import SILENT_DAYS_MAX, Broadcast, BroadcastState, Segment
from genlock.engine.tell import Tell
from genlock.ports import Database

LISTED = 20
PATH = "/campaigns/broadcasts"
#: what a page reads of a text: longer than Telegram allows, so that the message about it is right
SOURCE_LENGTH_MAX = 20_000
ID_MAX = 2**62
ID_DIGITS_MAX = 18
#: how long a page waits for the number of recipients, and how long that number is used
PAGE_WAIT_SECONDS, COUNT_SECONDS = 0.08, 10.0
#: segments whose number of recipients is remembered
COUNTS_MAX = 20
BUTTON_LINES_MAX = 4000
DAYS_DIGITS_MAX = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A broadcast as it was written into the form."""

    text: str = ""
    language: str = ""
    paid: str = ""
    silent: str = ""
    buttons: str = ""

    @classmethod
    def read(cls, form: Mapping[str, str]) -> "Draft":
        silent = form.get("silent", "").strip()
        return cls(
            text=form.get("text", "")[:SOURCE_LENGTH_MAX],
            language=form.get("language", "")[:20],
            paid=form.get("paid", "") if form.get("paid", "") in ("yes", "no") else "",
            silent=silent if silent.isascii() and silent.isdigit() and len(silent) <= DAYS_DIGITS_MAX else "",
            buttons=form.get("buttons", "")[:BUTTON_LINES_MAX],
        )

    @property
    def segment(self) -> Segment:
        days = min(int(self.silent or 0), SILENT_DAYS_MAX)
        return Segment(language=self.language, paid={"yes": True, "no": False}.get(self.paid), silent_days=days)

    def read_message(self) -> tuple[ChatMessage, tuple[tuple[str, str], ...]]:
        """Return how the message looks, and its buttons. Raises InvalidMessage."""
        message, buttons = read_message(self.text), read_buttons(self.buttons)
        if buttons is None:
            raise InvalidMessage("buttons")
        return message, buttons

    @property
    def content(self) -> str:
        """The message in the bot's own format; "" for a text alone."""
        buttons = read_buttons(self.buttons)
        return Content(text=self.text, buttons=buttons).dump() if buttons else ""


NEW = Draft()


def _draft(context: PageContext) -> Draft:
    names = ("text", "language", "paid", "silent", "buttons")
    return Draft.read({name: context.form[name] for name in names})


class RecipientCount:
    """Counts the users whom a broadcast would go to. Many users take longer than a page may, so it goes on after it."""

    def __init__(self, store: Database, bot: str) -> None:
        self._store = store
        self._bot = bot
        #: the count of each segment, and when it was begun
        self._counts: dict[Segment, tuple[asyncio.Task[int], float]] = {}

    async def read(self, segment: Segment, seconds: float | None = None) -> int | None:
        """Return the number; None if it is not known within some seconds. Raises StoreError."""
        known, begun = self._counts.get(segment, (None, 0.0))
        if known is None or (known.done() and monotonic() - begun > COUNT_SECONDS):
            known = asyncio.create_task(self._store.count_reachable(self._bot, segment))
            self._counts[segment] = (known, monotonic())
            for old in [counted for counted, (task, _) in self._counts.items() if task.done()][:-COUNTS_MAX]:
                del self._counts[old]
        await asyncio.wait([known], timeout=seconds)
        if not known.done():
            return None
        if known.cancelled() or known.exception():
            self._counts.pop(segment, None)
        return known.result()


class BroadcastsPage:
    def __init__(self, store: Database, *, bot: str, tell: Tell) -> None:
        self._store = store
        self._bot = bot
        self._tell = tell
        self._recipients = RecipientCount(store, bot)

    def routes(self) -> list[PageRoute]:
        manage, path = Permission.MANAGE_CAMPAIGNS, f"{PATH}/{{broadcast:int}}"
        return [
            PageRoute(path=PATH, handler=self._list, permission=Permission.VIEW),
            PageRoute(path=f"{PATH}/recipients", handler=self._count, permission=manage, is_data=True),
            PageRoute(path=f"{PATH}/preview", handler=self._preview, permission=manage, method="POST"),
            PageRoute(path=f"{PATH}/test", handler=self._test, permission=manage, method="POST"),
            PageRoute(path=f"{PATH}/start", handler=self._start, permission=manage, method="POST"),
            PageRoute(path=path, handler=self._show, permission=Permission.VIEW),
            PageRoute(path=f"{path}/stop", handler=self._stop, permission=manage, method="POST"),
        ]

    async def _list(
        self, context: PageContext, draft: Draft = NEW, problem: InvalidMessage | None = None, status: int = 200
    ) -> Response:
        given = context.request.query_params.get("before", "")
        before = int(given) if given.isascii() and given.isdigit() and len(given) <= ID_DIGITS_MAX else None
        broadcasts = await self._store.broadcasts(LISTED + 1, self._bot, before=before)
        return context.render(
            "campaigns_broadcasts.html",
            status,
            plain_text=_plain_text,
            broadcasts=broadcasts[:LISTED],
            older=broadcasts[LISTED - 1].id if len(broadcasts) > LISTED else None,
            at_start=before is None,
            running=await self._store.running_broadcast(self._bot),
            draft=draft,
            languages=[(code, context.t.language_name(code)) for code in context.t.languages],
            problem=problem,
            text_max=TEXT_MAX,
        )

    # writing one

    async def _preview(self, context: PageContext) -> Response:
        draft = _draft(context)
        if context.form["step"] == "change":
            return await self._list(context, draft)
        try:
            draft.read_message()
        except InvalidMessage as problem:
            return await self._list(context, draft, problem, 422)
        return await self._show_preview(context, draft)

    async def _show_preview(self, context: PageContext, draft: Draft, *, tried: bool | None = None) -> Response:
        message, buttons = draft.read_message()
        wait = None if context.form["step"] == "count" else PAGE_WAIT_SECONDS
        return context.render(
            "campaigns_preview.html",
            draft=draft,
            message=message,
            buttons=buttons,
            segment=segment_text(context.t, draft.segment),
            text_max=TEXT_MAX,
            recipients=await self._recipients.read(draft.segment, wait),
            running=await self._store.running_broadcast(self._bot),
            account=await self._own_account(context),
            tried=tried,
        )

    async def _count(self, context: PageContext) -> Response:
        segment = Draft.read(context.request.query_params).segment
        return context.render("campaigns_recipients.html", recipients=await self._recipients.read(segment))

    async def _own_account(self, context: PageContext) -> int | None:
        """Return the operator's own account with the bot; None if there is none, as after a login with the token."""
        found = await self._store.find_profiles(context.operator.id, 5)
        return next((profile.account_id for profile in found if profile.external_id == context.operator.id), None)

    async def _test(self, context: PageContext) -> Response:
        """Send the message to the operator alone."""
        draft = _draft(context)
        try:
            draft.read_message()
        except InvalidMessage as problem:
            return await self._list(context, draft, problem, 422)
        account = await self._own_account(context)
        reached = account is not None and await self._tell(account, draft.text)
        await context.audit("test broadcast", context.operator.id, after=draft.text)
        return await self._show_preview(context, draft, tried=reached)

    async def _start(self, context: PageContext) -> Response:
        draft = _draft(context)
        try:
            draft.read_message()
        except InvalidMessage as problem:
            return await self._list(context, draft, problem, 422)
        broadcast = await self._store.begin_broadcast(
            draft.text,
            bot=self._bot,
            author=context.operator.id,
            request_key=f"dashboard:{context.request_key}",
            content=draft.content,
            segment=draft.segment,
        )
        await context.audit("broadcast", broadcast.id, after=draft.text, once=True)
        return context.redirect(f"{PATH}/{broadcast.id}", "dashboard.campaigns.started", n=broadcast.total)

    # one broadcast

    async def _find(self, context: PageContext) -> Broadcast:
        number = context.request.path_params["broadcast"]
        found = await self._store.broadcast(number) if number < ID_MAX else None
        if found is None or found.bot != self._bot:
            raise PageNotFound("dashboard.error.no_broadcast")
        return found

    async def _show(self, context: PageContext) -> Response:
        broadcast = await self._find(context)
        if context.is_part:
            return context.render("campaigns_progress.html", broadcast=broadcast)
        message = _read_markup(broadcast)
        return context.render(
            "campaigns_broadcast.html",
            broadcast=broadcast,
            message=message,
            from_chat=bool(broadcast.content) and message is None,
            buttons=Content.load(broadcast).buttons,
            segment=segment_text(context.t, broadcast.segment),
        )

    async def _stop(self, context: PageContext) -> Response:
        broadcast = await self._find(context)
        path = f"{PATH}/{broadcast.id}"
        if not await self._store.end_broadcast(broadcast.id, BroadcastState.STOPPED):
            return context.redirect(path, "dashboard.campaigns.ended_before")
        await context.audit("stop broadcast", broadcast.id, after={"sent": broadcast.sent, "failed": broadcast.failed})
        return context.redirect(path, "dashboard.campaigns.stopped")


def _read_markup(broadcast: Broadcast) -> ChatMessage | None:
    """Return the message; None if its text is not markup: it was written in the chat, with formatting of its own."""
    written = Content.load(broadcast)
    if broadcast.content and (written.entities or written.file):
        return None
    try:
        return read_message(broadcast.text)
    except InvalidMessage:
        return None


def _plain_text(broadcast: Broadcast) -> str:
    """Return the text as users read it, without tags."""
    message = _read_markup(broadcast) if len(broadcast.text) <= SOURCE_LENGTH_MAX else None
    return message.text if message else broadcast.text
