"""Addresses of Telegram chats are formatted and parsed."""

import pytest

from genlock.channels.telegram.address import Address


@pytest.mark.parametrize("text", ["123456/ru", "-100123.77/en", "-5/pt-BR"])
def test_an_address_is_read_as_it_was_written(text: str) -> None:
    assert str(Address.parse(text)) == text


def test_a_parsed_address_has_named_parts() -> None:
    assert Address.parse("-100123.77/en") == Address(chat=-100123, thread=77, language="en")
    assert Address.parse("-100123.77/en").group
    assert not Address.parse("5/ru").group


@pytest.mark.parametrize("text", ["", "5", "5/", "/ru", "a/ru", "5.b/ru", "5/ru/x", "5 /ru", "5/ru\n"])
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the address"):
        Address.parse(text)


def test_a_migrated_group_keeps_its_language() -> None:
    assert str(Address.parse("-5.7/en").migrated_to(-1005)) == "-1005/en"


def test_only_groups_that_may_become_supergroups_are_basic() -> None:
    found = {chat: Address.parse(f"{chat}/en").basic_group for chat in (5, -5, -999_999_999_999, -1_000_000_000_001)}
    assert found == {5: False, -5: True, -999_999_999_999: True, -1_000_000_000_001: False}
