"""Inline mode: users type the bot's name in any chat, the bot answers with results to share."""

import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request
from genlock.sandbox.telegram.chats import Message, User
from genlock.sandbox.telegram.detection import found_entities
from genlock.sandbox.telegram.media import content_of
from genlock.sandbox.telegram.messages import Method
from genlock.sandbox.telegram.state import TelegramState

QUERY_SECONDS = 10
PREPARED_SECONDS = 86_400
QUERY_LENGTH_MAX = 256
RESULTS_MAX = 50
ID_BYTES_MAX = 64
QUERY_EXPIRED = "query is too old and response timeout expired or query ID is invalid"
PARAMETER_MAX = 64
START_PARAMETER = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: kinds of results that need a title
TITLED = ("video", "document", "voice")
#: fields with the file id of a result that Telegram already has
FILE_IDS = {
    "photo": "photo_file_id",
    "video": "video_file_id",
    "mpeg4_gif": "mpeg4_file_id",
    "audio": "audio_file_id",
    "document": "document_file_id",
    "voice": "voice_file_id",
}


@dataclass(kw_only=True)
class InlineQuery:
    """A query and the bot's answer to it."""

    id: str
    user_id: int
    text: str
    at: float
    answered: bool = False
    results: list[dict[str, Any]] = field(default_factory=list)
    button: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "query": self.text, "results": self.results, "button": self.button}


def ask(state: TelegramState, user: User, text: str, chat: int) -> InlineQuery:
    """Send the bot a query, as a client does after each keystroke."""
    query = InlineQuery(
        id=str(state.rng.randrange(10**17, 10**18)), user_id=user.id, text=text[:QUERY_LENGTH_MAX], at=state.clock()
    )
    state.inline_queries[query.id] = query
    place = state.chats[chat]
    kind = "sender" if place.private else place.type
    payload = {"id": query.id, "from": user.as_json(), "query": query.text, "offset": "", "chat_type": kind}
    state.updates.add("inline_query", payload, f"user {user.id}")
    return query


def share(state: TelegramState, user: User, query: InlineQuery, result_id: str, chat: int) -> Message:
    """Send a result of an answered query to a chat in the name of the user."""
    result = next(candidate for candidate in query.results if candidate["id"] == result_id)
    stored = state.files.known[result[FILE_IDS[result["type"]]]]
    caption = str(result.get("caption", ""))
    content = content_of(stored) | {"via_bot": state.bot}
    if caption:
        content |= {"caption": caption, "caption_entities": found_entities(caption)}
    return state.post(state.chats[chat], user.id, content)


async def answer_inline_query(state: TelegramState, arguments: CallArguments) -> bool:
    """Answer a query. The server checks the answer before it looks for the query."""
    button = _button(arguments)
    results = arguments.objects("results", "results")
    if len(results) > RESULTS_MAX:
        raise bad_request("too many inline query results specified")
    for result in results:
        _check_result(state, result)
    query = state.inline_queries.get(arguments.text("inline_query_id"))
    if query is None or query.answered or state.clock() - query.at > QUERY_SECONDS / state.speed:
        raise bad_request(QUERY_EXPIRED)
    if len({result["id"] for result in results}) < len(results):
        raise bad_request("RESULT_ID_DUPLICATE")
    query.answered, query.results, query.button = True, results, button
    state.events.add("inline", person=query.user_id, **query.as_json())
    return True


def _button(arguments: CallArguments) -> dict[str, Any] | None:
    """Return the button above the results, which opens the chat with the bot or a Mini App."""
    button = arguments.object("button", "inline query results button")
    if not button:
        return None
    if not isinstance(button.get("text"), str):
        raise bad_request("can't parse inline query results button: Can't find field \"text\"")
    if "start_parameter" not in button and "web_app" not in button:
        why = "InlineQueryResultsButton must have exactly one optional field"
        raise bad_request(f"can't parse inline query results button: {why}")
    parameter = str(button.get("start_parameter", ""))
    if "start_parameter" in button and not START_PARAMETER.fullmatch(parameter):
        raise bad_request(_wrong_parameter(parameter))
    return button


def _wrong_parameter(parameter: str) -> str:
    if not parameter:
        return "can't use empty start_parameter"
    if len(parameter) > PARAMETER_MAX:
        return "too long start_parameter specified"
    return "unallowed characters in start_parameter are used"


def _check_result(state: TelegramState, result: dict[str, Any]) -> None:
    """Raise unless it is a result that shows a file of Telegram; other kinds are not simulated."""
    for name in ("type", "id", *(("title",) if result.get("type") in TITLED else ())):
        if not isinstance(result.get(name), str):
            raise bad_request(f"can't parse inline query result: Can't find field \"{name}\"")
    kind = result["type"]
    if kind not in FILE_IDS:
        why = f'type "{kind}" is unsupported for the inline query result'
        raise bad_request(f"can't parse inline query result: {why}")
    if not 1 <= len(result["id"].encode()) <= ID_BYTES_MAX:
        raise bad_request("RESULT_ID_INVALID")
    if str(result.get(FILE_IDS[kind])) not in state.files.known:
        raise bad_request("FILE_REFERENCE_INVALID")


async def save_prepared(state: TelegramState, arguments: CallArguments) -> Any:
    """Accept a message for a Mini App to share. There are no Mini Apps here, so nothing is stored."""
    if arguments.number("user_id") not in state.users:
        raise bad_request("user not found")
    if not arguments.object("result", "result"):
        raise bad_request("RESULT_INVALID")
    return {"id": secrets.token_urlsafe(12), "expiration_date": state.now() + PREPARED_SECONDS}


METHODS: dict[str, Method] = {
    "answerInlineQuery": answer_inline_query,
    "savePreparedInlineMessage": save_prepared,
}
