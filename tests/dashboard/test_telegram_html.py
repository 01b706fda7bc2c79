"""Messages in Telegram's HTML: what is refused here is what the simulated Bot API refuses, and the preview is safe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genlock.dashboard.telegram_html import TEXT_MAX, InvalidMessage, read_message
from genlock.sandbox.telegram.api_call import ApiError
from genlock.sandbox.telegram.detection import utf16
from genlock.sandbox.telegram.text import formatted

PIECES = (
    "<b>", "</b>", "</B>", "<i>", "</i>", "</>", "<a href='https://x.example/?a=1&amp;b'>", "</a>",
    '<code class="language-x">',
    "</code>", "<pre>", "</pre>", "<span class='tg-spoiler'>", "<span>", "</span>", "<blockquote expandable>",
    "</blockquote>", "<tg-emoji emoji-id=5>", "</tg-emoji>", "<script>", "<", ">", "&", "&lt;", "&#128512;", "&#0;",
    "&nope;", "word", " ", "\n", "🎨", "é", "<b onclick=alert(1)>", "<a href=javascript:alert(1)>",
)  # fmt: skip


def refused_by_telegram(source: str) -> bool:
    try:
        text, _ = formatted(source, "HTML", [])
    except ApiError:
        return True
    return not text or utf16(text) > TEXT_MAX


def refused_here(source: str) -> bool:
    try:
        read_message(source)
    except InvalidMessage:
        return True
    return False


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_the_same_messages_are_refused_as_by_telegram(source: str) -> None:
    assert refused_here(source) == refused_by_telegram(source)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(source: str) -> None:
    assert refused_here(source) == refused_by_telegram(source)


def test_the_preview_shows_formatting_and_nothing_else() -> None:
    shown = read_message(
        "<b onclick=alert(1)>Sale</b> &amp; <i>more</i>: <a href=\"javascript:alert('x')\">here</a> &lt;script&gt;"
    ).shown
    assert shown == (
        '<b>Sale</b> &amp; <i>more</i>: <span class="chat-link" title="javascript:alert(&#39;x&#39;)">here</span>'
        " &lt;script&gt;"
    )


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        (" \n", "empty", 1),
        ("a\n<blink>x</blink>", "unknown_tag", 2),
        ("<b>a\nb", "no_end", 2),
        ("a </b>", "unexpected_end", 1),
        ("<b>a</i>", "other_end", 1),
        ("1 < 2", "unclosed", 1),
        ("<span>x</span>", "span", 1),
        ("x" * (TEXT_MAX + 1), "long", 1),
        ("🎨" * (TEXT_MAX // 2 + 1), "long", 1),
    ],
)
def test_the_reason_and_the_line_are_named(source: str, code: str, line: int) -> None:
    with pytest.raises(InvalidMessage) as caught:
        read_message(source)
    assert (caught.value.code, caught.value.line) == (code, line)
    assert read_message("🎨" * (TEXT_MAX // 2)).length == TEXT_MAX
