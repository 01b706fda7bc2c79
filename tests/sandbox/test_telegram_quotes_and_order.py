"""Quotations of MarkdownV2, and the order of messages that are forwarded together, as the real server has them."""

import pytest
from telegram.error import BadRequest

from genlock.channels.telegram.caller import make_bot
from genlock.sandbox.telegram.markdown import parse_markdown
from genlock.sandbox.telegram.simulator import running_telegram


def quotes(source: str) -> list[tuple[str, int, int]]:
    _, entities = parse_markdown(source)
    return [(entity["type"], entity["offset"], entity["length"]) for entity in entities]


def test_two_bars_at_the_end_of_a_quotation_make_it_expandable() -> None:
    assert quotes(">a\n>b||") == [("expandable_blockquote", 0, 3)]
    assert quotes(">a||\nb") == [("expandable_blockquote", 0, 2)]
    assert quotes(">a ||s|| b") == [("blockquote", 0, 5), ("spoiler", 2, 1)]


def test_an_empty_bold_text_separates_two_quotations() -> None:
    assert quotes(">a\n**>b||") == [("blockquote", 0, 2), ("expandable_blockquote", 2, 1)]


async def test_messages_are_forwarded_and_copied_in_increasing_order_only() -> None:
    async with running_telegram() as telegram:
        ann = telegram.add_user("Ann")
        first, second = await ann.say("one"), await ann.say("two")
        bot = make_bot(telegram.token, telegram.url)
        async with bot:
            for call in (bot.forward_messages, bot.copy_messages):
                for wrong in ((second.id, first.id), (first.id, first.id)):
                    with pytest.raises(BadRequest, match="strictly increasing order"):
                        await call(ann.id, ann.id, wrong)
                assert len(await call(ann.id, ann.id, (first.id, second.id))) == 2
