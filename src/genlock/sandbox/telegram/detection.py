"""Entities that Telegram detects in plain text: links, addresses, commands, mentions, tags and phone numbers."""

import re
from typing import Any

Entity = dict[str, Any]
#: top-level domains that make a name without a scheme a link; the real server knows all of them
ENDINGS = "com|org|net|info|io|me|ai|app|dev|co|ru|de|eu|uk|us|tv|xyz|pro|рф"
HOST = r"[\w~-]+(?:\.[\w~-]+)*"
#: a path does not end with punctuation
PATH = r"""(?::\d{1,5})?(?:[/?#][^\s<>"«»]*(?<![.:;,('?!`]))?"""
DETECTED = re.compile(
    rf"""
    (?P<email>(?<![\w.+-])[\w.+-]{{1,64}}@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{{2,}}(?!\w))
    |(?P<url>(?<!\w)(?:https?|ftp|tg|ton)://{HOST}\.[\w~-]+{PATH}|(?<![\w@.~/-]){HOST}\.(?:{ENDINGS})(?![\w~-]){PATH})
    |(?P<bot_command>(?<![\w/<>])/[A-Za-z0-9_]{{1,64}}(?:@[A-Za-z0-9_]{{3,32}})?(?![\w/<>@]))
    |(?P<mention>(?<!\w)@[A-Za-z0-9_]{{4,32}}(?!\w))
    |(?P<hashtag>(?<!\w)\#(?=\w*[^\W\d_])\w{{1,256}}(?!\w*\#))
    |(?P<cashtag>(?<![\w$])\$[A-Z]{{1,8}}(?![\w$]))
    |(?P<phone_number>(?<![\w+])\+\d[\d\ ()-]{{8,16}}\d(?!\w))
    """,
    re.VERBOSE,
)


def utf16(text: str) -> int:
    """Return the length in UTF-16 units, in which Telegram measures."""
    return len(text.encode("utf-16-le")) // 2


def found_entities(text: str) -> list[Entity]:
    return [
        {
            "type": match.lastgroup,
            "offset": utf16(text[: match.start()]),
            "length": utf16(_without_bracket(match.group())),
        }
        for match in DETECTED.finditer(text)
    ]


def _without_bracket(link: str) -> str:
    """Leave out a bracket that was opened before the link."""
    return link[:-1] if link.endswith(")") and link.count(")") > link.count("(") else link
