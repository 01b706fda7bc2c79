"""Clean a text as Telegram does before it measures it, and recognise what it takes for an empty one."""

import re

#: line and paragraph separators, marks that change the direction of writing, and lines through letters
_REMOVED = re.compile("[\r\u2028-\u202e\u0333\u033f\u030a]")
_CONTROLS = re.compile("[\0-\x09\x0b\x0c\x0e-\x1f]")
#: spaces and characters without a picture: a text of these alone is empty
_BLANK = re.compile(
    "[ \n\xa0\u1680\u180e\u2000-\u200f\u202e\u202f\u205f\u2800\u3000\ufeff\ufffc\U000e0000-\U000e007f]*"
)


def removed_places(text: str) -> list[int]:
    """Return the places of the characters that Telegram removes."""
    return [found.start() for found in _REMOVED.finditer(text)]


def cleaned(text: str) -> str:
    """Return the text with spaces for control characters, and without what Telegram removes."""
    return _CONTROLS.sub(" ", _REMOVED.sub("", text))


def trimmed(text: str) -> str:
    """Return the text as Telegram shows it: cleaned, without white space around it; "" if nothing would be seen."""
    text = cleaned(text).strip(" \n")
    return "" if _BLANK.fullmatch(text) else text
