"""Formatted texts and links that are easy to get wrong, as the real server reads them."""

from typing import Any

import pytest

from genlock.sandbox.telegram.api_call import ApiError
from genlock.sandbox.telegram.html import parse_html
from genlock.sandbox.telegram.links import LinkRefused, checked_link
from genlock.sandbox.telegram.markdown import parse_markdown
from genlock.sandbox.telegram.old_markdown import parse_old_markdown

CAT = "🐈"  # one code point, two UTF-16 units
Shape = tuple[str, int, int]


def shapes(entities: list[dict[str, Any]]) -> list[Shape]:
    return [(entity["type"], entity["offset"], entity["length"]) for entity in entities]


@pytest.mark.parametrize(
    ("source", "text", "found"),
    [
        ("&lt&gt;&amp &copy; &#65 &#x42;&#12345678;", "<>& &copy; A B&#12345678;", []),
        ('<a href="https://x.example/?a>b">c</a>', "c", [("text_link", 0, 1)]),
        ("<a href=x.example>c</a>", "c", [("text_link", 0, 1)]),
        ("<a>no link</a>", "no link", []),
        (f"<B>{CAT}</b> <i  x = 'y'>i</>", f"{CAT} i", [("bold", 0, 2), ("italic", 3, 1)]),
        ("<pre><code>a</code></pre>", "a", [("pre", 0, 1), ("code", 0, 1)]),
        ("<blockquote expandable><b>a</b></blockquote>", "a", [("expandable_blockquote", 0, 1), ("bold", 0, 1)]),
        ("<tg-time unix=5 format='wDt'>a</tg-time>", "a", [("date_time", 0, 1)]),
    ],
)
def test_html_is_read_as_by_the_server(source: str, text: str, found: list[Shape]) -> None:
    parsed, entities = parse_html(source)
    assert (parsed, shapes(entities)) == (text, found)


def test_html_has_the_values_of_its_attributes() -> None:
    _, [link] = parse_html('<a href="X.example?a=1&amp;b=&quot;">c</a>')
    assert link["url"] == 'http://x.example/?a=1&b="'
    _, [block] = parse_html('<code class="language-c"><pre>a</pre></code>')
    assert (block["type"], block["language"]) == ("pre", "c")
    _, [date] = parse_html('<tg-time unix="5" format="TtwD">a</tg-time>')
    assert (date["unix_time"], date["date_time_format"]) == (5, "wDt")


@pytest.mark.parametrize(
    ("source", "text", "found"),
    [
        (f"[{CAT}](tg://user?id=5)", CAT, [("text_link", 0, 2)]),
        (r"[x\.example]", "x.example", [("text_link", 0, 9)]),
        (r"[a](x.example/\))b", "ab", [("text_link", 0, 1)]),
        ("```c a```", " a", [("pre", 0, 2)]),
        ("```\r\na```", "a", [("pre", 0, 1)]),
        ("`a_*\\`b`", "a_*`b", [("code", 0, 5)]),
        (">a||\r\nb", "a\r\nb", [("expandable_blockquote", 0, 3)]),
        (">a\n\r>b", "a\n\rb", [("blockquote", 0, 2), ("blockquote", 3, 1)]),
        ("*>a\n*b", "a\nb", [("blockquote", 0, 2), ("bold", 0, 2)]),
        ("___a_ b__", "a b", [("underline", 0, 3), ("italic", 0, 1)]),
    ],
)
def test_markdown_v2_is_read_as_by_the_server(source: str, text: str, found: list[Shape]) -> None:
    parsed, entities = parse_markdown(source)
    assert (parsed, shapes(entities)) == (text, found)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("_a * b _", "Can't find end of Italic entity at byte offset 7"),
        (">*a\nb*", "Can't find end of Bold entity at byte offset 1"),
        (">a||b\nc", "Can't find end of Spoiler entity at byte offset 2"),
        ("[a](b", "Can't find end of a URL at byte offset 4"),
        (r"[a](b\)", "Can't find end of a URL at byte offset 4"),
        ("![a]", "The entity must contain a tg://emoji or tg://time URL"),
        ("![a](tg://emoji?id=05)", "Invalid tg://emoji or tg://time URL specified"),
        ("a|b", "Character '|' is reserved"),
    ],
)
def test_markdown_v2_is_refused_with_the_texts_of_the_server(source: str, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_markdown(source)
    assert why in refused.value.description


@pytest.mark.parametrize(
    ("source", "text", "found"),
    [
        ("*a _b* c_", "a _b c_", None),
        ("*a _b* c", "a _b c", [("bold", 0, 4)]),
        (r"*a\* b", "a\\ b", [("bold", 0, 2)]),
        ("[x.example] [a](no)", "x.example a", [("text_link", 0, 9)]),
        ("```c\na`b```", "a`b", [("pre", 0, 3)]),
    ],
)
def test_the_older_markdown_is_read_as_by_the_server(source: str, text: str, found: list[Shape] | None) -> None:
    if found is None:
        with pytest.raises(ApiError, match="Can't find end of the entity starting at byte offset 8"):
            parse_old_markdown(source)
        return
    parsed, entities = parse_old_markdown(source)
    assert (parsed, shapes(entities)) == (text, found)


@pytest.mark.parametrize(
    ("link", "accepted"),
    [
        ("X.Example", "http://x.example/"),
        ("https://a@x.example:0443?b c#d", "https://a@x.example:443/?b%20c#d"),
        ("http://[::1]/a", "http://[::1]/a"),
        ("TG:resolve?domain=a", "tg://resolve?domain=a"),
        ("https://пример.рф", "https://пример.рф/"),
    ],
)
def test_a_link_is_shown_in_the_form_of_the_server(link: str, accepted: str) -> None:
    assert checked_link(link) == accepted


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ("http://", "URL host is empty"),
        ("localhost/a.b", "Wrong HTTP URL"),
        ("ftp://x.example", "Unsupported URL protocol"),
        ("x.example:99999", "Wrong port number specified in the URL"),
        ("a b.example", "Disallowed character in URL host"),
        ("a%2.example", "Wrong percent-encoded symbol in URL host"),
        ("http://[::g]", "Wrong IPv6 address specified in the URL"),
        ("tg://a.b", "Unallowed characters in URL host"),
        ("tg:https://x.example", "Wrong tg URL"),
    ],
)
def test_a_link_is_refused_with_the_reason_of_the_server(link: str, why: str) -> None:
    with pytest.raises(LinkRefused, match=why):
        checked_link(link)
