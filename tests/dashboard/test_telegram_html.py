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
    "<span class=tg-spoiler x>", "<a href='&#xD800;x.example'>", "<tg-emoji emoji-id=05>",
    "<tg-time unix=5 format=wDt>", "<tg-time format=x>", "</tg-time>", "&#xD800;", "&amp", "&#1", "&#99999999999;",
    "\0", "\r", "\u200b", "\u2028", "<b/>", "<b a='", "</b\t>",
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
        "<b onclick='alert(1)'>Sale</b> &amp; <i>more</i>: <a href=\"javascript:alert('x')\">here</a> &lt;script&gt;"
    ).shown
    assert shown == (
        '<b>Sale</b> &amp; <i>more</i>: <span class="chat-link" title="javascript:alert(&#39;x&#39;)">here</span>'
        " &lt;script&gt;"
    )


def test_characters_that_telegram_removes_do_not_count() -> None:
    assert read_message("a\r\nb\u2028c\u030a").length == 4
    assert read_message("\n\x1f&#1;a\t").length == 1


@pytest.mark.parametrize(
    "source",
    [
        "a&ltb",
        "&#\u0661;",  # a digit, but none of ASCII
        "&#" + "9" * 4000 + ";",
        "<span class='tg-spoiler' class='x'>a</span>",
        "<tg-emoji emoji-id></tg-emoji>a",
        "<tg-time unix='7' format='r'>a</tg-time>",
        "<b title = 'a > b' x>c</b\t>",
        "<i>a</>",
    ],
)
def test_what_telegram_accepts_is_accepted(source: str) -> None:
    assert read_message(source).length
    assert not refused_by_telegram(source)


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        (" \n", "empty", 1),
        ("a\n<blink>x</blink>", "unknown_tag", 2),
        ("a\n<b>b\nc", "no_end", 2),
        ("a </b>", "unexpected_end", 1),
        ("<b>a</i>", "other_end", 1),
        ("1 < 2", "unclosed", 1),
        ("a < b > c", "unknown_tag", 1),
        ("<span>x</span>", "span", 1),
        ("a\n<b =x>c</b>", "attribute", 2),
        ("<a href=https://a.example>b</a>", "value", 1),
        ("<tg-emoji emoji-id='x'>b\n</tg-emoji>", "emoji", 1),
        ("<tg-time unix='5' format='x'>b</tg-time>", "date", 1),
        ("&#xD83D;&#xDE00;", "surrogate", 1),
        ("a\n&#xD83D;\nb", "surrogate", 2),
        ("\u200b&#xA0;\u2800", "empty", 1),
        ("x" * (TEXT_MAX + 1), "long", 1),
        ("🎨" * (TEXT_MAX // 2 + 1), "long", 1),
    ],
)
def test_the_reason_and_the_line_are_named(source: str, code: str, line: int) -> None:
    with pytest.raises(InvalidMessage) as caught:
        read_message(source)
    assert (caught.value.code, caught.value.line) == (code, line)
    assert read_message("🎨" * (TEXT_MAX // 2)).length == TEXT_MAX
