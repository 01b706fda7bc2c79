"""Text from outside, made safe for a terminal and for a log of one line per record."""


def escape_unprintable(text: str, keep: str = "") -> str:
    r"""Replace every character that does not print by its JSON escape, such as `\u001b`, except those in `keep`.

    These are control characters, line and paragraph separators, directions of writing, zero-width and private
    characters, unpaired surrogates, and spaces other than the ordinary one. Text in JSON stays valid JSON, because
    such characters occur only inside its strings, apart from the line breaks between them.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in keep else _escape(one) for one in text)


def _escape(character: str) -> str:
    """Return the JSON escape of a character: one for each of its UTF-16 units."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
