"""Inline and reply keyboards, validated as Telegram does."""

from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request
from genlock.sandbox.telegram.links import LinkRefused, checked_link, user_of

BUTTONS_MAX = 100
#: further buttons of a row are dropped
ROW_MAX = 12
DATA_BYTES_MAX = 64
#: what a button may do; the server takes the first one that is given
ACTIONS = (
    "url",
    "callback_data",
    "callback_game",
    "pay",
    "switch_inline_query",
    "switch_inline_query_chosen_chat",
    "switch_inline_query_current_chat",
    "login_url",
    "web_app",
    "copy_text",
)
#: an empty one counts as not given
NOT_EMPTY = ("url", "callback_data")
#: buttons of a reply keyboard that ask for the user's data, and the beginning of the refusal in other chats
PRIVATE_ONLY = {
    "request_contact": "phone number can be requested",
    "request_location": "location can be requested",
    "request_poll": "poll can be requested",
    "request_users": "users can be requested",
    "request_chat": "chats can be requested",
    "request_managed_bot": "managed bots can be requested",
    "web_app": "Web App buttons can be used",
}
Markup = dict[str, Any]


def read_markup(arguments: CallArguments) -> Markup | None:
    """Return the keyboard of a new message: inline, a reply keyboard, its removal, or a forced reply."""
    markup = arguments.json("reply_markup", "reply keyboard markup")
    if markup == {} or not arguments.has("reply_markup"):
        return None
    if not isinstance(markup, dict):
        raise bad_request("object expected as reply markup")
    if "inline_keyboard" in markup:
        return _inline(_rows(markup, "inline_keyboard"))
    if "keyboard" in markup:
        rows = _kept([[_named(button) for button in row] for row in _rows(markup, "keyboard")])
        return markup | {"keyboard": rows} if rows else None
    if markup.get("remove_keyboard") or markup.get("force_reply"):
        return markup
    return None


def read_inline(arguments: CallArguments) -> Markup | None:
    """Return the keyboard of an edit, which can only be inline."""
    markup = read_markup(arguments)
    if markup is not None and "inline_keyboard" not in markup:
        raise bad_request("inline keyboard expected")
    return markup


def is_inline(markup: Markup | None) -> bool:
    return markup is None or "inline_keyboard" in markup


def check_public(markup: Markup | None) -> None:
    """Raise ApiError for a keyboard that only a private chat may have: it asks for data or opens a Mini App."""
    if any(button.get("web_app") for row in (markup or {}).get("inline_keyboard", ()) for button in row):
        raise bad_request("BUTTON_TYPE_INVALID")
    for row in (markup or {}).get("keyboard", ()):
        for button in row:
            if what := next((words for name, words in PRIVATE_ONLY.items() if button.get(name)), None):
                raise bad_request(f"{what} in private chats only")


def _rows(markup: Markup, name: str) -> list[list[Any]]:
    rows = markup[name]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        what = "" if name == "keyboard" else " of the InlineKeyboardMarkup"
        raise bad_request(f'field "{name}"{what} must be an Array of Arrays')
    return rows


def _named(button: Any) -> dict[str, Any]:
    named = {"text": button} if isinstance(button, str) else button
    if not isinstance(named, dict) or not isinstance(named.get("text"), str):
        raise bad_request("can't parse keyboard button: KeyboardButton must be a String or an Object")
    return named


def _kept(rows: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """Drop buttons without a text, those beyond the longest row, and empty rows."""
    named = [[button for button in row if button["text"]][:ROW_MAX] for row in rows]
    return [row for row in named if row]


def _inline(rows: list[list[Any]]) -> Markup | None:
    kept = _kept([[_checked(button) for button in row] for row in rows])
    if sum(map(len, kept)) > BUTTONS_MAX:
        raise bad_request("reply markup is too long")
    return {"inline_keyboard": kept} if kept else None


def _checked(button: Any) -> dict[str, Any]:
    """Return a valid button with one action. One without a text is dropped later, as by the real server."""
    if not isinstance(button, dict):
        raise bad_request("can't parse inline keyboard button: InlineKeyboardButton must be an Object")
    if not isinstance(button.get("text"), str):
        raise bad_request("can't parse inline keyboard button: Can't find field \"text\"")
    given = (name for name in ACTIONS if button.get(name) or (name in button and name not in NOT_EMPTY))
    action = next(given, None)
    if action is None:
        raise bad_request("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
    if button["text"] and action == "callback_data" and len(str(button[action]).encode()) > DATA_BYTES_MAX:
        raise bad_request("BUTTON_DATA_INVALID")
    if action == "login_url":
        button, action = button | {"url": _login_url(button)}, "url"
    if button["text"] and action == "url":
        button = button | {action: _accepted(str(button[action]))}
    return {name: value for name, value in button.items() if name not in ACTIONS or name == action}


def _login_url(button: dict[str, Any]) -> str:
    """Return the address of a button that logs users in: it comes back as a link."""
    login = button["login_url"]
    if not isinstance(login, dict):
        raise bad_request('can\'t parse inline keyboard button: Field "login_url" must be of type Object')
    if "url" not in login:
        raise bad_request("can't parse inline keyboard button: Can't find field \"url\"")
    return str(login["url"])


def _accepted(url: str) -> str:
    """Return the URL of a button in the server's own form."""
    if user_of(url) is not None:
        return url
    try:
        return checked_link(url)
    except LinkRefused as refused:
        raise bad_request(f"inline keyboard button URL '{url}' is invalid: {refused}") from None
