"""The fields of a posted form, bounded in size and number."""

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

FORM_BYTES_MAX = 200_000
#: of all texts on the page that refuses a form: a whole broadcast fits
PROSE_LENGTH_MAX = 25_000
FIELDS_MAX = 2_000
#: fields that operators write prose into
_PROSE = ("text", "buttons", "reason", "title", "name", "code")


class InvalidForm(Exception):
    """The body is not a form that a page of ours sends."""


class Form:
    """Fields by name. A field that is missing is an empty text, as a browser leaves out empty boxes."""

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self._fields = fields

    @classmethod
    def parse(cls, body: bytes) -> "Form":
        """Raises InvalidForm."""
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
        except ValueError as error:
            raise InvalidForm(str(error)) from None
        fields: dict[str, list[str]] = {}
        for name, text in pairs:
            fields.setdefault(name, []).append(text.replace("\r\n", "\n").replace("\0", ""))
        return cls(fields)

    def __getitem__(self, name: str) -> str:
        return self._fields.get(name, [""])[0].strip()

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def all(self, name: str) -> Sequence[str]:
        """Return every value of a field, such as of check boxes with the same name."""
        return self._fields.get(name, [])

    def prose(self) -> list[str]:
        """Return what the operator wrote, for a page that refuses the whole form: it must not be lost.

        Any visitor can post a form without a session, so the page must not become large.
        """
        texts: list[str] = []
        for name in _PROSE:
            texts.append(self[name][: PROSE_LENGTH_MAX - sum(map(len, texts))])
        return [text for text in texts if text]

    def raw(self, name: str) -> str:
        """Return a field with its outer spaces."""
        return self._fields.get(name, [""])[0]
