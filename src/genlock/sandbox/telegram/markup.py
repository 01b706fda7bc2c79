"""Inline and reply keyboards, validated as Telegram does."""

from typing import Any
from urllib.parse import urlsplit

from genlock.sandbox.telegram.api_call import CallArguments, bad_request

BUTTONS_MAX = 100
DATA_BYTES_MAX = 64
ACTIONS = {
    "callback_data",
    "url",
    "pay",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
}
Markup = dict[str, Any]


def read_markup(arguments: CallArguments) -> Markup | None:
    """Return the keyboard of a new message: inline, a reply keyboard, its removal, or a forced reply."""
    markup = arguments.json("reply_markup", "reply keyboard markup")
    if markup is None or markup == {}:
        return None
    if not isinstance(markup, dict):
        raise bad_request("object expected as reply markup")
    if "inline_keyboard" in markup:
        return _inline(_rows(markup, "inline_keyboard"))
    if "keyboard" in markup:
        return markup | {"keyboard": [[_named(button) for button in row] for row in _rows(markup, "keyboard")]}
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


def _inline(rows: list[list[Any]]) -> Markup | None:
    checked = [[_checked(button) for button in row] for row in rows]
    kept = [row for row in ([button for button in row if button["text"]] for row in checked) if row]
    if sum(map(len, kept)) > BUTTONS_MAX:
        raise bad_request("reply markup is too long")
    return {"inline_keyboard": kept} if kept else None


def _checked(button: Any) -> dict[str, Any]:
    """Return a valid button. One without a text is dropped later, as by the real server."""
    if not isinstance(button, dict):
        raise bad_request("can't parse inline keyboard button: InlineKeyboardButton must be an Object")
    if not isinstance(button.get("text"), str):
        raise bad_request("can't parse inline keyboard button: Can't find field \"text\"")
    if not ACTIONS & button.keys():
        raise bad_request("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
    if not button["text"]:
        return button
    if "callback_data" in button and not 1 <= len(str(button["callback_data"]).encode()) <= DATA_BYTES_MAX:
        raise bad_request("BUTTON_DATA_INVALID")
    if "url" in button:
        _check_url(str(button["url"]))
    return button


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
    except ValueError:
        raise bad_request(f"inline keyboard button URL '{url}' is invalid: Wrong HTTP URL") from None
    if parts.scheme == "tg":
        return
    if parts.scheme not in {"http", "https", "ton", "tonsite"}:
        raise bad_request(f"inline keyboard button URL '{url}' is invalid: Unsupported URL protocol")
    if "." not in (parts.hostname or "") or " " in url:
        raise bad_request(f"inline keyboard button URL '{url}' is invalid: Wrong HTTP URL")
