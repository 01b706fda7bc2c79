"""Texts are split, cut and simplified within Telegram's limits."""

import time

from hypothesis import given
from hypothesis import strategies as st

from genlock.channels.telegram.text import cut, length, plain, split, without_buttons, without_links
from genlock.ports import Button, OutgoingMessage


@given(st.text(alphabet=st.sampled_from("ab 🦊\n"), max_size=300), st.integers(min_value=2, max_value=40))
def test_the_pieces_of_a_text_fit_and_only_white_space_is_lost(text: str, limit: int) -> None:
    pieces = split(text, limit)
    assert all(0 < length(piece) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert split("".join(pieces[:1]), limit) == pieces[:1], "a text within the limit is not split"


def test_a_text_is_split_at_paragraphs_then_lines_then_spaces() -> None:
    assert split("aaaa bbbb\n\ncccc dddd", 12) == ["aaaa bbbb", "cccc dddd"]
    assert split("aaaa bbbb cccc", 10) == ["aaaa bbbb", "cccc"]
    assert split("a" * 10, 4) == ["aaaa", "aaaa", "aa"]


def test_a_long_text_is_split_in_a_few_milliseconds() -> None:
    for text in ("🙂" * 100_000, "word " * 20_000):  # the event loop does it, and a result may be this long
        seconds = []
        for _ in range(3):
            started = time.thread_time()
            split(text)
            seconds.append(time.thread_time() - started)
        assert min(seconds) < 0.01


def test_an_emoji_counts_as_two_units() -> None:
    assert length("🦊a") == 3
    assert cut("🦊🦊🦊", 5) == "🦊🦊"


def test_plain_text_has_no_tags_and_keeps_its_buttons() -> None:
    buttons = ((Button(text="x", data="y"), Button(text="z", url="https://z.example")),)
    message = OutgoingMessage(text='<b>A</i> &lt;1&gt; <a href="x">b</a>', buttons=buttons)
    assert plain(message, 100) == OutgoingMessage(text="A &lt;1&gt; b", buttons=buttons)


def test_buttons_can_be_dropped_links_first() -> None:
    link, press = Button(text="z", url="https://z.example"), Button(text="x", data="y")
    message = OutgoingMessage(text="A", buttons=((press, link), (link,)))
    assert without_links(message).buttons == ((press,),)
    assert without_buttons(message).buttons == ()
