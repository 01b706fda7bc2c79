"""Text formatting: parse HTML into entities, with the real server's errors."""

from dataclasses import dataclass, field
from typing import Any

from genlock.channels.telegram.html import TAGS, EndTag, HtmlRefused, StartTag, read_html
from genlock.sandbox.telegram.detection import utf16
from genlock.sandbox.telegram.formats import Entity, date_time, in_order, link, unparsable


@dataclass(frozen=True, kw_only=True)
class _Open:
    offset: int
    #: how many pieces of text came before it
    pieces: int


@dataclass(kw_only=True)
class _Builder:
    text: list[str] = field(default_factory=list)
    offset: int = 0
    opened: list[_Open] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)

    def add(self, token: str | StartTag | EndTag) -> None:
        if isinstance(token, str):
            self.text.append(token)
            self.offset += utf16(token)
        elif isinstance(token, StartTag):
            self.opened.append(_Open(offset=self.offset, pieces=len(self.text)))
        else:
            self._close(token.start, self.opened.pop())

    def _close(self, tag: StartTag, mark: _Open) -> None:
        if self.offset == mark.offset:
            return
        entity: Entity = {"type": TAGS[tag.name], "offset": mark.offset, "length": self.offset - mark.offset}
        same_place = self.entities and _place(self.entities[-1]) == _place(entity)
        inner = self.entities[-1] if same_place else {"type": ""}
        if tag.name == "pre" and inner["type"] == "code" and inner.get("language"):
            inner["type"] = "pre"
        elif tag.name == "code" and inner["type"] == "pre" and tag.argument and "language" not in inner:
            inner["language"] = tag.argument
        elif (more := self._values(tag, mark)) is not None:
            self.entities.append(entity | more)

    def _values(self, tag: StartTag, mark: _Open) -> dict[str, Any] | None:
        """Return the further fields of an entity; None if the server leaves it out."""
        match tag.name:
            case "a":
                return link(tag.argument or "".join(self.text[mark.pieces :]))
            case "code" if tag.argument:
                return {"language": tag.argument}
            case "tg-emoji":
                return {"custom_emoji_id": tag.argument}
            case "tg-time":
                return date_time(tag.date, tag.argument)
            case "blockquote" if tag.argument:
                return {"type": "expandable_blockquote"}
            case _:
                return {}


def parse_html(source: str) -> tuple[str, list[Entity]]:
    try:
        tokens = read_html(source)
    except HtmlRefused as refused:
        raise unparsable(str(refused)) from None
    builder = _Builder()
    for token in tokens:
        builder.add(token)
    for entity in builder.entities:
        if entity["type"] == "code":
            entity.pop("language", None)
    return "".join(builder.text), in_order(builder.entities)


def _place(entity: Entity) -> tuple[int, int]:
    return entity["offset"], entity["length"]
