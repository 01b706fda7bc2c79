"""Bot API methods for polls. The simulated users see them but do not vote."""

import asyncio
from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request
from genlock.sandbox.telegram.chats import KINDS, Message
from genlock.sandbox.telegram.edits import editable_message
from genlock.sandbox.telegram.markup import Markup, read_inline, read_markup
from genlock.sandbox.telegram.messages import Method, chat_for_sending, input_media, post_message, reply_and_thread
from genlock.sandbox.telegram.small_messages import location_of, venue_of
from genlock.sandbox.telegram.state import TelegramState
from genlock.sandbox.telegram.text import TEXT_MAX, formatted, read_entities

QUESTION_MAX = 300
OPTION_MAX = 100
OPTIONS_MAX = 12
PERIOD_MAX = 2_628_000


async def send_poll(state: TelegramState, arguments: CallArguments) -> Any:
    question = _text(arguments, "question", QUESTION_MAX)
    if not question:
        raise bad_request("text must be non-empty")
    options = [await _option(state, option, arguments) for option in _options(arguments)]
    quiz = await _quiz(state, arguments, len(options)) if arguments.text("type") == "quiz" else {}
    markup = read_markup(arguments)
    chat = chat_for_sending(state, arguments, "poll")
    anonymous = arguments.flag("is_anonymous") or not arguments.has("is_anonymous")
    if chat.type == "channel" and not anonymous:
        raise bad_request("non-anonymous polls can't be sent to channel chats")
    reply_and_thread(state, chat, arguments)
    poll: dict[str, Any] = {
        "id": str(state.rng.randrange(10**18, 10**19)),
        **question,
        **_text(arguments, "description"),
        "options": options,
        "total_voter_count": 0,
        "is_closed": arguments.flag("is_closed"),
        "is_anonymous": anonymous,
        "type": "quiz" if quiz else "regular",
        "allows_multiple_answers": arguments.flag("allows_multiple_answers"),
        "allows_revoting": arguments.flag("allows_revoting") or not (quiz or arguments.has("allows_revoting")),
        "members_only": arguments.flag("members_only"),
        **quiz,
        **(await _media(state, arguments.object("media", "InputPollMedia"), arguments, "media")),
        **_end(state, arguments),
    }
    message = post_message(state, chat, arguments, {"poll": poll}, markup=markup)
    _close_in_time(state, message)
    return state.show(message)


def _options(arguments: CallArguments) -> list[CallArguments]:
    options = arguments.json("options", "options")
    if not isinstance(options, list):
        raise bad_request("expected an Array of String as options")
    if not options:
        raise bad_request("poll must have at least one answer option")
    if len(options) > OPTIONS_MAX:
        raise bad_request(f"poll can't have more than {OPTIONS_MAX} options")
    named = [{"text": option} if isinstance(option, str) else option for option in options]
    if not all(isinstance(option, dict) for option in named):
        raise bad_request("expected an option to be of type String")
    return [CallArguments(option, arguments.uploads) for option in named]


async def _option(state: TelegramState, option: CallArguments, arguments: CallArguments) -> dict[str, Any]:
    text = _text(option, "text", OPTION_MAX)
    if not text:
        raise bad_request("poll option must be non-empty")
    media = await _media(state, option.object("media", "InputPollMedia"), arguments, "media")
    return {"persistent_id": str(state.rng.randrange(10**9)), "voter_count": 0} | text | media


async def _quiz(state: TelegramState, arguments: CallArguments, options: int) -> dict[str, Any]:
    """Return the fields that only a quiz has."""
    given = arguments.json("correct_option_ids", "correct option identifiers")
    right = given if isinstance(given, list) else [arguments.number("correct_option_id", -1)]
    if not right:
        raise bad_request("correct quiz option list must be non-empty")
    if not all(isinstance(number, int) and 0 <= number < options for number in right):
        raise bad_request("wrong quiz correct_option_id")
    media = arguments.object("explanation_media", "InputPollMedia")
    fields: dict[str, Any] = {"correct_option_ids": right}
    fields |= {"correct_option_id": right[0]} if len(right) == 1 else {}
    fields |= _text(arguments, "explanation")
    return fields | await _media(state, media, arguments, "explanation_media")


def _text(arguments: CallArguments, name: str, limit: int = TEXT_MAX) -> dict[str, Any]:
    """Return a formatted text as the fields `name` and `name_entities`; none if it is empty."""
    entities = read_entities(arguments, f"{name}_entities")
    text, found = formatted(arguments.text(name), arguments.text(f"{name}_parse_mode"), entities)
    if len(text) > limit:
        what = "options" if name == "text" else name
        raise bad_request(f"poll {what} length must not exceed {limit}")
    return ({name: text} if text else {}) | ({f"{name}_entities": found} if found else {})


async def _media(state: TelegramState, item: dict[str, Any], arguments: CallArguments, field: str) -> dict[str, Any]:
    """Return what a poll, an option or an explanation shows."""
    if not item:
        return {}
    if item.get("type") == "location":
        return {field: {"location": location_of(CallArguments(item))}}
    if item.get("type") == "venue":
        return {field: venue_of(CallArguments(item))}
    return {field: await input_media(state.media, item, arguments)}


def _end(state: TelegramState, arguments: CallArguments) -> dict[str, int]:
    """Return when the poll closes, if the bot gave a period or a date."""
    now, date = state.now(), arguments.number("close_date")
    period = min(arguments.number("open_period"), PERIOD_MAX)
    if not period and not date:
        return {}
    return {"open_period": period or max(date - now, 0), "close_date": date or now + period}


def _close_in_time(state: TelegramState, message: Message) -> None:
    if "close_date" in message.content["poll"]:
        seconds = max(message.content["poll"]["close_date"] - state.clock(), 0)
        asyncio.get_running_loop().call_later(seconds, lambda: _close(state, message, message.markup))


def _close(state: TelegramState, message: Message, markup: Markup | None) -> None:
    if message.id in state.chats[message.chat].messages:
        state.change(message, {"poll": message.content["poll"] | {"is_closed": True}}, markup)


async def stop_poll(state: TelegramState, arguments: CallArguments) -> Any:
    markup = read_inline(arguments)
    message = editable_message(state, arguments, kinds=KINDS, name="message with poll to stop")
    if message.kind != "poll":
        raise bad_request("message is not a poll")
    if message.content["poll"]["is_closed"]:
        raise bad_request("poll has already been closed")
    _close(state, message, markup)
    return message.content["poll"]


METHODS: dict[str, Method] = {"sendPoll": send_poll, "stopPoll": stop_poll}
