"""Show a message in a simpler form if Telegram refuses its text or buttons: such a bug must not stop a result."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from genlock.channels.telegram.errors import ButtonsRefused, TextRefused, is_bug_or_unknown
from genlock.channels.telegram.text import plain, without_buttons, without_links
from genlock.domain.errors import LevelRefused
from genlock.ports import OutgoingMessage

T = TypeVar("T")


async def call_with_simpler_forms(
    message: OutgoingMessage, limit: int, call: Callable[[OutgoingMessage], Awaitable[T]], *, is_html: bool = True
) -> T:
    """Call with the message and, while Telegram refuses it, with less: without links, buttons and markup.

    Raises LevelRefused if Telegram refuses the simplest form, or something other than the text and the buttons.
    """
    form = message
    while True:
        try:
            return await call(form)
        except LevelRefused as refused:
            simpler = _simpler(form, refused, limit, is_html=is_html)
            if simpler == form:
                raise
            form = simpler


def _simpler(form: OutgoingMessage, refused: LevelRefused, limit: int, *, is_html: bool) -> OutgoingMessage:
    """Return the form to try next; the same form if there is none."""
    plain_text = plain(form, limit) if is_html else form
    if isinstance(refused, ButtonsRefused) and form.buttons:
        fewer = without_links(form)
        return without_buttons(form) if fewer == form else fewer
    if isinstance(refused, TextRefused):
        return without_buttons(form) if plain_text == form else plain_text
    # The cause is not known, so it may be the text or a button.
    return without_buttons(plain_text) if is_bug_or_unknown(refused) else form
