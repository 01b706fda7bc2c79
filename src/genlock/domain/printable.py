"""Text from outside, made safe for a terminal, a page, and a log of one line per record."""

#: what a page shows of a text from outside; the rest is cut
SHOWN_LENGTH_MAX = 4_000
#: joiners are part of emoji and of some languages; these spaces are harmless
_KEPT = "\n\t\u200c\u200d\u00a0\u202f\u3000"


def shown(text: object, length: int = SHOWN_LENGTH_MAX) -> str:
    """Return a text from outside without control characters, cut to a length."""
    whole = str(text)
    cut = escape_unprintable(whole[: length + 1], keep=_KEPT)
    return cut if len(whole) <= length else f"{cut[:length]}…"


def escape_unprintable(text: str, keep: str = "") -> str:
    r"""Replace every character that does not print by its JSON escape, such as `\u001b`, except those in `keep`.

    These are control characters, line and paragraph separators, directions of writing, zero-width and private
    characters, unpaired surrogates, and spaces other than the ordinary one. Text in JSON stays valid JSON, because
    such characters occur only inside its strings, apart from the line breaks between them.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _escape(char) for char in text)


def _escape(character: str) -> str:
    """Return the JSON escape of a character: one for each of its UTF-16 units."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
