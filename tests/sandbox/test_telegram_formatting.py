"""MarkdownV2, the older Markdown, lengths and link previews of the simulated Telegram, as the real server has them."""

import pytest

from genlock.sandbox.telegram.api_call import ApiError, CallArguments
from genlock.sandbox.telegram.detection import found_entities
from genlock.sandbox.telegram.markdown import parse_markdown
from genlock.sandbox.telegram.old_markdown import parse_old_markdown
from genlock.sandbox.telegram.text import Use, check_edited, read_caption, read_text

CAT = "🐈"  # one code point, two UTF-16 units


def shapes(source: str, *, strict: bool = True) -> tuple[str, list[tuple[str, int, int]]]:
    text, entities = parse_markdown(source) if strict else parse_old_markdown(source)
    return text, [(entity["type"], entity["offset"], entity["length"]) for entity in entities]


def refusal(given: dict[str, object], use: Use = "send") -> str:
    with pytest.raises(ApiError) as refused:
        check_edited(read_text(CallArguments(given), use))
    return refused.value.description.removeprefix("Bad Request: ")


def test_markdown_v2_has_all_marks_and_they_can_be_nested() -> None:
    assert shapes("*b* _i_ __u__ ~s~ ||p|| `c`") == (
        "b i u s p c",
        [
            *(("bold", 0, 1), ("italic", 2, 1), ("underline", 4, 1)),
            *(("strikethrough", 6, 1), ("spoiler", 8, 1), ("code", 10, 1)),
        ],
    )
    assert shapes(f"*{CAT} _in_*") == (f"{CAT} in", [("bold", 0, 5), ("italic", 3, 2)])
    assert shapes(">one\n>two\nafter") == ("one\ntwo\nafter", [("blockquote", 0, 8)])
    assert shapes(r"1\.5 \* 2") == ("1.5 * 2", [])


def test_markdown_links_code_blocks_and_custom_emoji_have_their_values() -> None:
    text, [link, emoji] = parse_markdown("[a](https://x.example) ![b](tg://emoji?id=5)")
    assert (text, link["url"], emoji["custom_emoji_id"]) == ("a b", "https://x.example/", "5")
    text, [block] = parse_markdown("```python\nx = 1\n```")
    assert (text, block["type"], block["language"]) == ("x = 1\n", "pre", "python")


def test_the_older_markdown_needs_no_escapes_and_has_fewer_marks() -> None:
    assert shapes("*b* - __x__ ~y~.", strict=False) == ("b - x ~y~.", [("bold", 0, 1)])
    assert shapes(r"\*no\* _i_", strict=False) == ("*no* i", [("italic", 5, 1)])


def test_markdown_errors_have_the_real_texts() -> None:
    wrong = []
    for source, mode, text in (
        ("a.", "MarkdownV2", "Character '.' is reserved and must be escaped with the preceding '\\'"),
        ("ab *c", "MarkdownV2", "Can't find end of Bold entity at byte offset 3"),
        ("```x", "MarkdownV2", "Can't find end of Pre entity at byte offset 0"),
        ("```x y", "MarkdownV2", "Can't find end of PreCode entity at byte offset 0"),
        ("ab *c", "Markdown", "Can't find end of the entity starting at byte offset 3"),
    ):
        found = refusal({"text": source, "parse_mode": mode})
        if found != f"can't parse entities: {text}":
            wrong.append(f"{source}: {found}")
    assert not wrong, "\n".join(wrong)


def test_telegram_counts_utf_16_units_and_the_code_it_answers_is_put_into_words_for_a_send_only() -> None:
    assert read_text(CallArguments({"text": CAT * 2048}))["text"] == CAT * 2048
    assert refusal({"text": "x" * 4097}) == "message is too long"
    assert refusal({"text": CAT * 2049}) == "message is too long"
    assert refusal({"text": "x" * 4097}, "edit") == "MESSAGE_TOO_LONG"
    assert refusal({"text": "x" * 32_769}, "edit") == "text is too long"
    assert refusal({"text": ""}) == "message text is empty"
    assert refusal({"text": " "}) == "text must be non-empty"


@pytest.mark.parametrize(
    ("caption", "use", "text"),
    [
        ("x" * 1025, "send", "message caption is too long"),
        (CAT * 513, "send", "message caption is too long"),
        ("x" * 1025, "edit", "MEDIA_CAPTION_TOO_LONG"),
        ("x" * 1025, "media edit", "message caption is too long"),
        (CAT * 513, "media edit", "MEDIA_CAPTION_TOO_LONG"),
    ],
)
def test_a_caption_is_measured_likewise_and_that_of_new_media_in_code_points_too(
    caption: str, use: Use, text: str
) -> None:
    with pytest.raises(ApiError, match=text):
        check_edited(read_caption(caption, "", [], use))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://x.example/a. (http://y.org/b)", [("url", "https://x.example/a"), ("url", "http://y.org/b")]),
        ("kie.ai, t.me/x?start=1! file.py 1.5", [("url", "kie.ai"), ("url", "t.me/x?start=1")]),
        ("me@x.org @bob_the_cat @abc a@b", [("email", "me@x.org"), ("mention", "@bob_the_cat")]),
        ("(/start) /gen@my_bot a/b", [("bot_command", "/start"), ("bot_command", "/gen@my_bot")]),
        (f"{CAT} #tag #1 $USD $5", [("hashtag", "#tag"), ("cashtag", "$USD")]),
        ("+12125550123", [("phone_number", "+12125550123")]),
    ],
)
def test_links_mentions_commands_tags_and_numbers_are_detected(text: str, found: list[tuple[str, str]]) -> None:
    units = text.encode("utf-16-le")
    assert found == [
        (entity["type"], units[entity["offset"] * 2 :][: entity["length"] * 2].decode("utf-16-le"))
        for entity in found_entities(text)
    ]


def test_a_link_is_detected_in_styled_text_but_not_in_code() -> None:
    def kinds(text: str) -> list[str]:
        given = CallArguments({"text": text, "parse_mode": "HTML"})
        return [entity["type"] for entity in read_text(given).get("entities", [])]

    assert kinds("<b>x.org</b>") == ["url", "bold"]
    assert kinds("<code>x.org</code>") == ["code"]


def test_a_number_is_read_up_to_its_first_other_character() -> None:
    given = CallArguments({"a": "17.9", "b": "-5x", "c": "none", "d": "", "e": 3})
    assert [given.number(name, 7) for name in "abcde"] == [17, -5, 0, 7, 3]


def test_a_text_with_a_link_has_the_options_of_its_preview() -> None:
    def preview(**options: object) -> object:
        given = CallArguments({"text": "see https://x.example", "link_preview_options": options})
        return read_text(given)["link_preview_options"]

    assert preview() == {"url": "https://x.example"}
    assert preview(is_disabled=True) == {"is_disabled": True}
    assert preview(url="https://y.example", prefer_large_media=True, show_above_text=True) == {
        "url": "https://y.example",
        "prefer_large_media": True,
        "show_above_text": True,
    }
    assert "link_preview_options" not in read_text(CallArguments({"text": "none"}))
