"""Telegram's HTML: every refusal of the server's own parser, in its words, and what it reads instead of refusing."""

import pytest

from genlock.channels.telegram.cleaning import cleaned, trimmed
from genlock.channels.telegram.html import HtmlRefused, StartTag, read_html

NO_END = "Can't find end tag corresponding to start tag"
SPAN = 'Tag "span" must have class "tg-spoiler" at byte offset 0'


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("é<b", "Unclosed start tag at byte offset 2"),
        ("<b a", 'Unclosed start tag "b" at byte offset 0'),
        ("<b a =", 'Unclosed start tag "b" at byte offset 0'),
        ("<b a='x", "Unclosed start tag at byte offset 0"),
        ("<b a=x", "Unclosed start tag at byte offset 0"),
        ("<b ", 'Empty attribute name in the tag "b" at byte offset 0'),
        ("<b/>a</b>", 'Unsupported start tag "b/" at byte offset 0'),
        ("<b />a</b>", 'Empty attribute name in the tag "b" at byte offset 0'),
        ("1 < 2 > 1", 'Unsupported start tag "" at byte offset 2'),
        ("<STRI\u212aE>a</>", 'Unsupported start tag "stri\u212ae" at byte offset 0'),
        ("<b onclick=alert(1)></b>>", "Unexpected end of name token at byte offset 11"),
        ("<a href=https://a.example>b</a>", "Unexpected end of name token at byte offset 8"),
        ("<span class='spoiler'>a</span>", SPAN),
        ("<span CLASS='tg-spoiler'>a</span>", SPAN),
        ("<span class>a</span>", SPAN),
        ("a</b>", "Unexpected end tag at byte offset 1"),
        ("<b>a</b", "Unclosed end tag at byte offset 4"),
        ("<b>a</b x>", "Unclosed end tag at byte offset 4"),
        ("<b>a</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("<b><i>a</i>", f'{NO_END} "b"'),
        ("<tg-emoji>a</tg-emoji>", "Invalid custom emoji identifier specified"),
        ("<tg-emoji emoji-id=0>a</tg-emoji>", "Invalid custom emoji identifier specified"),
        ("<tg-emoji emoji-id='9223372036854775808'>a</tg-emoji>", "Invalid custom emoji identifier specified"),
        ("<tg-time format=x>a</tg-time>", "Invalid date format used"),
        ("<tg-time format=rr>a</tg-time>", "Invalid date format used"),
        ("<b\0>a</b>", "Unclosed start tag at byte offset 0"),
        ("&#xDFFF;", "Text contains invalid Unicode characters after decoding HTML entities, check for unmatched"),
        ("&#xD83D;&#xDE00;", "Text contains invalid Unicode characters after decoding HTML entities"),
        ("<a href='x.example/&#xD800;'>a</a>", "Strings must be encoded in UTF-8"),
    ],
)
def test_refusals_have_the_words_of_the_server(source: str, words: str) -> None:
    with pytest.raises(HtmlRefused) as refused:
        read_html(source)
    assert str(refused.value).startswith(words)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("&lt&gt;&amp&quot;&nbsp;&LT;&lta", '<>&"&nbsp;&LT;&lta'),
        ("&#65&#066;&#x43&#X44;&#;&#0;&#x;", "ABC&#X44;&#;&#0;&#x;"),
        ("&#x10FFFE;&#x10FFFF;&#1114110;&#12345678;&#0000065;", "\U0010fffe&#x10FFFF;\U0010fffe&#12345678;A"),
        ("&#x000041;&#x0000041;", "A&#x0000041;"),
        ("&#\u0661;", "&#\u0661;"),
        (f"&#{'9' * 5000};", f"&#{'9' * 5000};"),
        ("<b>a</><tg-emoji></tg-emoji><tg-time format=x></tg-time>", "a"),
        ("a > b &", "a > b &"),
        ("a\0b", "a\0b"),
    ],
)
def test_other_texts_are_read_as_by_the_server(source: str, text: str) -> None:
    assert "".join(token for token in read_html(source) if isinstance(token, str)) == text


@pytest.mark.parametrize(
    ("source", "argument", "date"),
    [
        ("<a HREF='x' href = \"a&amp;b>c\" href>", "a&b>c", 0),
        ("<a href=X.Example>", "x.example", 0),
        ("<code class=language-C class=other>", "c", 0),
        ("<span class='tg-spoiler' class='x'>", "spoiler", 0),
        ("<blockquote expandable=''>", "1", 0),
        ("<tg-time unix='12x' format=wDt>", "wdt", 12),
        ("<tg-time unix>", "", 0),
        ("<tg-time unix='-5'>", "", -5),
        ("<tg-time unix='4294967301'>", "", 5),
        (f"<tg-time unix='{'9' * 5000}'>", "", (10**5000 - 1) % 2**32 - 2**32),
    ],
)
def test_the_one_attribute_of_each_tag_is_read(source: str, argument: str, date: int) -> None:
    [start, *_] = read_html(f"{source}</>")
    assert isinstance(start, StartTag)
    assert (start.argument, start.date) == (argument, date)


def test_a_text_is_cleaned_and_trimmed_as_by_telegram() -> None:
    assert cleaned("a\r\nb\tc\0d\u2028e\u202ef\u030ag") == "a\nb c defg"
    assert trimmed("\n \x1f a\u3000 \t") == "a\u3000"
    for blank in ("", "\r\n", "\u200b \u200f", "\u2800\u3000\xa0", "\ufeff\u180e", "\U000e0001"):
        assert trimmed(blank) == ""
    assert trimmed("\u2060") == "\u2060"
