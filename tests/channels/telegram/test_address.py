"""Addresses are written and read back as they are."""

import pytest

from genlock.channels.telegram.address import Address


@pytest.mark.parametrize("text", ["123456/ru", "-100123.77/en", "-5/pt-BR"])
def test_an_address_is_read_as_it_was_written(text: str) -> None:
    assert str(Address.parse(text)) == text


def test_its_parts_have_names() -> None:
    assert Address.parse("-100123.77/en") == Address(chat=-100123, thread=77, language="en")
    assert Address.parse("-100123.77/en").group
    assert not Address.parse("5/ru").group


@pytest.mark.parametrize("text", ["", "5", "5/", "/ru", "a/ru", "5.b/ru", "5/ru/x", "5 /ru", "5/ru\n"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the address"):
        Address.parse(text)


def test_a_group_that_moved_keeps_its_language() -> None:
    assert str(Address.parse("-5.7/en").moved(-1005)) == "-1005/en"
