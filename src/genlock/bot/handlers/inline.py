"""Inline mode: `@bot a cat in space` in any chat offers the user's own results to share, and a button to order.

Telegram sends a query for every keystroke and drops it after seconds. So queries are not stored: an instance answers
the newest one of a user, at most a few a second, from results that it reads once in a while.
"""

import asyncio
import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from time import monotonic

from telegram import (
    InlineQuery,
    InlineQueryResult,
    InlineQueryResultCachedAudio,
    InlineQueryResultCachedDocument,
    InlineQueryResultCachedMpeg4Gif,
    InlineQueryResultCachedPhoto,
    InlineQueryResultCachedVideo,
    InlineQueryResultsButton,
    Update,
)

from genlock.bot.access import Access
from genlock.bot.bundle import BotBundle
from genlock.bot.context import CHANNEL
from genlock.bot.order.results import file_id, is_sent_to_chat
from genlock.bot.screen_context import model_label, own_prompt, shorten
from genlock.bot.storefront.storefront import Storefront
from genlock.channels.telegram.caller import Priority
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.domain.update import NewUpdate
from genlock.i18n.translator import Translator
from genlock.ports import Database, Observer

#: users whose queries one instance answers at the same time; further ones get no answer until they type on
USERS_MAX = 50
#: between two answers to one user: what is typed meanwhile is answered once
PAUSE_SECONDS = 0.3
#: how long an instance uses the results it has read, and Telegram the answer to the same text
CACHE_SECONDS = 5.0
USERS_CACHED = 1000
JOBS_READ = 30
FILES_CACHED = 60
RESULTS_SHOWN = 20
TITLE_LENGTH = 60
#: characters of a prompt that are searched for the typed words
PROMPT_LENGTH = 500
#: the payload of /start that carries a text: Telegram allows 64 characters of base64
TEXT_PAYLOAD, CUT_PAYLOAD = "t_", "c_"
PAYLOAD_BYTES = 45
#: each letter of Russian is one byte there
ENCODINGS = {"1": "cp1251", "8": "utf-8"}


def text_payload(text: str) -> str:
    """Return a payload of /start with the text, or with as many whole words of it as fit."""
    words = " ".join(text.split())
    name, content = next((name, words.encode(code)) for name, code in ENCODINGS.items() if _fits_encoding(words, code))
    prefix = TEXT_PAYLOAD
    if len(content) > PAYLOAD_BYTES:
        prefix, content = CUT_PAYLOAD, _cut(words, ENCODINGS[name])
    return f"{prefix}{name}{base64.urlsafe_b64encode(content).decode().rstrip('=')}"


def read_payload(payload: str) -> tuple[str, bool] | None:
    """Return the text of a payload, and whether it was cut; None if it carries none."""
    prefix, name, content = payload[:2], payload[2:3], payload[3:]
    if prefix not in (TEXT_PAYLOAD, CUT_PAYLOAD) or name not in ENCODINGS:
        return None
    try:
        text = base64.b64decode(content + "=" * (-len(content) % 4), altchars=b"-_", validate=True)
        words = text.decode(ENCODINGS[name]).strip()
    except ValueError:
        return None
    return (words, prefix == CUT_PAYLOAD) if words.isprintable() and words else None


def _fits_encoding(text: str, code: str) -> bool:
    try:
        text.encode(code)
    except UnicodeEncodeError:
        return code == "utf-8"
    return True


def _cut(words: str, code: str) -> bytes:
    kept = words.encode(code, "ignore")[:PAYLOAD_BYTES].decode(code, "ignore")
    whole = kept.rpartition(" ")[0] or kept
    return whole.encode(code)


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file of a result, as the channel has it. An order's whole row may have hundreds of kilobytes."""

    key: str
    #: its kind and its id
    file: str
    title: str
    #: the beginning of the prompt, in lower case
    prompt: str


@dataclass(frozen=True, slots=True)
class Shared:
    """What an instance knows of a user who types: until when, in which language, and what can be shared."""

    until: float
    translator: Translator
    files: tuple[SharedFile, ...]


class InlineQueries:
    def __init__(
        self, *, bundle: BotBundle, store: Database, storefront: Storefront, access: Access, observer: Observer
    ) -> None:
        self._bundle = bundle
        self._store = store
        self._storefront = storefront
        self._access = access
        self._observer = observer
        #: the newest unanswered query of each user
        self._waiting: dict[str, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._shared: dict[int, Shared] = {}

    def take(self, update: NewUpdate) -> None:
        """Answer a query soon, unless the same user types on before that."""
        user = update.ordering_key
        if user not in self._tasks and len(self._tasks) >= USERS_MAX:
            return
        self._waiting[user] = update.body
        if user not in self._tasks:
            self._tasks[user] = asyncio.get_running_loop().create_task(self._answer_user(user))

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer_user(self, user: str) -> None:
        try:
            while (body := self._waiting.pop(user, None)) is not None:
                await self._answer_body(body)
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            self._waiting.pop(user, None)
            del self._tasks[user]

    async def _answer_body(self, body: str) -> None:
        try:
            query = Update.de_json(json.loads(body), self._bundle.caller.bot).inline_query
            if query is not None:
                await self._answer(query)
        except Exception as error:  # noqa: BLE001 - the next keystroke asks again
            self._observer.event(Event.UPDATE_FAIL, kind="inline_query", error=repr(error)[:200])

    async def _answer(self, query: InlineQuery) -> None:
        await self._bundle.introduce()
        shared = await self._shared_by(query.from_user.id, query.from_user.language_code)
        await self._bundle.caller.call(
            self._bundle.caller.bot.answer_inline_query,
            chat=None,
            priority=Priority.SCREEN,
            inline_query_id=query.id,
            results=self._results(shared, query.query),
            cache_time=round(CACHE_SECONDS),
            is_personal=True,
            button=_order_button(query.query, shared.translator),
        )

    async def _shared_by(self, user: int, language: str | None) -> Shared:
        now = monotonic()
        for other in [other for other, shared in self._shared.items() if shared.until < now]:
            del self._shared[other]
        if user not in self._shared:
            if len(self._shared) >= USERS_CACHED:
                self._shared.clear()
            self._shared[user] = await self._read(user, language)
        return self._shared[user]

    async def _read(self, user: int, language: str | None) -> Shared:
        """Read what a user can share: nothing for users who have never written to the bot, or may not use it."""
        t, jobs = self._bundle.translator_for(language), []
        profile = await self._store.known_profile(CHANNEL, self._bundle.id, str(user))
        if profile is not None:
            t = self._bundle.texts.translator(profile.language)
            if await self._access.denial(user, profile, t) is None:
                jobs = await self._store.jobs(account_id=profile.account_id, limit=JOBS_READ)
        files = (file for job in jobs if job.is_received and is_sent_to_chat(job) for file in self._files_of(job, t))
        return Shared(monotonic() + CACHE_SECONDS, t, tuple(islice(files, FILES_CACHED)))

    def _files_of(self, job: Job, t: Translator) -> Iterator[SharedFile]:
        model, prompt = self._storefront.catalog.models.get(job.model), own_prompt(job, self._storefront.catalog)
        title = shorten(prompt or (model_label(model, t) if model else job.model), TITLE_LENGTH)
        for index, part in enumerate(job.parts):
            if part.file is not None and file_id(part) is not None:
                key = f"{t.numbers.order(job.id)}-{index}"
                yield SharedFile(key, part.file, title, prompt[:PROMPT_LENGTH].lower())

    def _results(self, shared: Shared, text: str) -> list[InlineQueryResult]:
        """Return the user's newest results; those whose prompt has a word of the text come first."""
        words = [word for word in text.lower().split() if len(word) > 2]  # noqa: PLR2004 - shorter ones say nothing
        caption = shared.translator.plain("inline.caption", bot=self._bundle.username)
        files = sorted(shared.files, key=lambda file: not any(word in file.prompt for word in words))
        return [_result(file, caption) for file in files[:RESULTS_SHOWN]]


def _result(shared: SharedFile, caption: str) -> InlineQueryResult:
    kind, _, file = shared.file.partition(":")
    match kind:
        case "photo":
            return InlineQueryResultCachedPhoto(shared.key, file, title=shared.title, caption=caption)
        case "video":
            return InlineQueryResultCachedVideo(shared.key, file, shared.title, caption=caption)
        case "animation":
            return InlineQueryResultCachedMpeg4Gif(shared.key, file, title=shared.title, caption=caption)
        case "audio":
            return InlineQueryResultCachedAudio(shared.key, file, caption=caption)
        case _:
            return InlineQueryResultCachedDocument(shared.key, shared.title, file, caption=caption)


def _order_button(text: str, t: Translator) -> InlineQueryResultsButton:
    if not text.strip():
        return InlineQueryResultsButton(t.plain("inline.open"), start_parameter="inline")
    return InlineQueryResultsButton(t.plain("inline.order", text=shorten(text, 40)), start_parameter=text_payload(text))
