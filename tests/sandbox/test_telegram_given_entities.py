"""Entities that a bot gives with a text, and arguments that are null or no Unicode, as the real server takes them."""

import json
from typing import Any

import aiohttp
import pytest

from genlock.sandbox.telegram.api_call import ApiError, CallArguments
from genlock.sandbox.telegram.given_entities import read_given
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from genlock.sandbox.telegram.text import read_text

CAT = "🐈"  # one code point, two UTF-16 units
BOLD = {"type": "bold", "offset": 0, "length": 1}
MESSAGE_ENTITY = "can't parse MessageEntity"


@pytest.mark.parametrize(
    ("text", "entity", "words"),
    [
        ("ab", 5, f"{MESSAGE_ENTITY}: expected an Object"),
        ("ab", {"type": "bold", "length": 1}, f'{MESSAGE_ENTITY}: Can\'t find field "offset"'),
        ("ab", BOLD | {"offset": [1]}, f'{MESSAGE_ENTITY}: Field "offset" must be a Number'),
        ("ab", BOLD | {"offset": "x"}, f'{MESSAGE_ENTITY}: Field "offset" must be a valid Number'),
        ("ab", BOLD | {"length": 2**31}, f'{MESSAGE_ENTITY}: Field "length" must be a valid Number'),
        ("ab", BOLD | {"length": "9" * 5000}, f'{MESSAGE_ENTITY}: Field "length" must be a valid Number'),
        ("ab", {"offset": 0, "length": 1}, f'{MESSAGE_ENTITY}: Can\'t find field "type"'),
        ("ab", BOLD | {"type": ""}, f"{MESSAGE_ENTITY}: Type is not specified"),
        ("ab", BOLD | {"type": "blink"}, f"{MESSAGE_ENTITY}: Unsupported type specified"),
        ("ab", BOLD | {"type": "text_link"}, f'{MESSAGE_ENTITY}: Can\'t find field "url"'),
        ("ab", BOLD | {"type": "text_mention"}, f'{MESSAGE_ENTITY}: Can\'t find field "user"'),
        ("ab", BOLD | {"type": "text_link", "url": "no"}, "entity URL 'no' is invalid: Wrong HTTP URL"),
        ("ab", BOLD | {"type": "custom_emoji", "custom_emoji_id": "0"}, "invalid custom emoji identifier specified"),
        ("ab", BOLD | {"type": "date_time", "unix_time": 0}, "invalid date specified"),
        (
            "ab",
            BOLD | {"type": "date_time", "unix_time": 5, "date_time_format": "x"},
            f"{MESSAGE_ENTITY}: Invalid date-time format specified",
        ),
        ("ab", BOLD | {"offset": -1}, "receive an entity with incorrect offset -1"),
        ("ab", BOLD | {"length": 1_000_001}, "receive an entity with incorrect length 1000001"),
        ("ab", BOLD | {"offset": 3}, "entity begins after the end of the text at UTF-16 offset 3"),
        ("ab", BOLD | {"length": 3}, "entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 of"),
        (f"{CAT}b", BOLD | {"offset": 1}, "entity begins in a middle of a UTF-16 symbol at byte offset 4"),
        (f"{CAT}b", BOLD, "entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol at byte offset 4"),
    ],
)
def test_wrong_entities_are_refused_with_the_words_of_the_server(text: str, entity: Any, words: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_given(text, [entity])
    assert refused.value.description.startswith(f"Bad Request: {words}")


def test_entities_are_kept_if_telegram_keeps_them() -> None:
    link = {"type": "text_link", "offset": 0, "length": "2", "url": "X.example"}
    given = [BOLD | {"length": 0}, {"type": "mention", "offset": 9, "length": 9}, BOLD, link]
    assert read_given("ab", given) == [link | {"length": 2, "url": "http://x.example/"}, BOLD]
    assert read_given("ab", [BOLD | {"length": 2}])[0]["length"] == 2


def test_entities_count_only_without_a_parse_mode_and_only_as_a_list() -> None:
    assert "entities" not in read_text(CallArguments({"text": "a", "parse_mode": "HTML", "entities": [5]}))
    for other in ("x", '{"type": "bold"}', {"type": "bold"}, "[", 5):
        assert "entities" not in read_text(CallArguments({"text": "a", "entities": other}))


def test_removed_characters_move_the_entities_behind_them() -> None:
    given = [BOLD | {"offset": 3}, BOLD | {"type": "italic", "length": 4}]
    read = read_text(CallArguments({"text": "a\r\nb\u2028c ", "entities": given}))
    assert read["text"] == "a\nbc"
    assert [(entity["offset"], entity["length"]) for entity in read["entities"]] == [(0, 3), (2, 1)]


async def refusal(telegram: TelegramSimulator, method: str, body: str) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{telegram.url}/bot{telegram.token}/{method}", data=body, headers={"Content-Type": "application/json"}
        ) as response,
    ):
        answer = await response.json()
    return str(answer.get("description", "")).removeprefix("Bad Request: ")


async def test_null_in_json_is_a_text_and_half_a_character_is_refused(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    wrong = []
    for fields, words in (
        ('"text": "a", "parse_mode": null', "unsupported parse_mode"),
        ('"text": "a", "reply_markup": null', "object expected as reply markup"),
        ('"text": "a", "reply_parameters": null', "object expected as reply parameters"),
        ('"text": "a", "reply_parameters": []', "object expected as reply parameters"),
        ('"text": "a", "entities": null', ""),
        ('"text": null', ""),
        ('"text": "\\ud83d\\ude00"', ""),
        ('"text": "\\ud800"', "strings must be encoded in UTF-8"),
        ('"text": "\\ud800", "parse_mode": "HTML"', "text must be encoded in UTF-8"),
        (
            '"text": "a", "reply_markup": "{\\"inline_keyboard\\": [[\\"\\\\ud800\\"]]}"',
            "strings must be encoded in UTF",
        ),
    ):
        found = await refusal(telegram, "sendMessage", f'{{"chat_id": {ann.id}, {fields}}}')
        if not found.startswith(words) or bool(found) != bool(words):
            wrong.append(f"{fields}: {found}")
    assert not wrong, "\n".join(wrong)
    assert [message.text for message in ann.messages] == ["a", "null", "😀"]
    assert await refusal(telegram, "sendMessage", "") == "message text is empty"


async def test_media_that_cannot_be_read_are_refused_with_the_words_of_the_server(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    wrong = []
    for media, words in (
        ("", 'parameter "media" is required'),
        ("x", "can't parse input media JSON object"),
        ([], "can't parse InputMedia: expected an Object"),
        ({}, "can't parse InputMedia: Can't find field \"type\""),
        ({"type": "photo"}, "can't parse InputMedia: media not found"),
        (
            {"type": "photo", "media": "x", "caption": "<x>", "parse_mode": "HTML"},
            "can't parse InputMedia: Can't parse entities: Unsupported start tag \"x\" at byte offset 0",
        ),
        (
            {"type": "photo", "media": "x", "caption": "a" * 32_769},
            "can't parse InputMedia: Text is too long",
        ),
    ):
        found = await refusal(telegram, "editMessageMedia", json.dumps({"chat_id": ann.id, "media": media}))
        if found != words:
            wrong.append(f"{media}: {found}")
    assert not wrong, "\n".join(wrong)


async def test_numbers_and_charges_are_read_as_by_the_server(telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    for numbers, words in (
        (["x"], "can't parse message identifier as a Number"),
        ([[]], "message identifier must be a Number"),
        ([0], "invalid message identifier specified"),
        ([], "message identifiers are not specified"),
    ):
        body = json.dumps({"chat_id": ann.id, "message_ids": numbers})
        assert await refusal(telegram, "deleteMessages", body) == words
    for fields, words in (
        ({}, "invalid user_id specified"),
        ({"user_id": ann.id}, 'parameter "telegram_payment_charge_id" is required'),
        ({"user_id": 5, "telegram_payment_charge_id": "x"}, "user not found"),
        ({"user_id": ann.id, "telegram_payment_charge_id": "x"}, "CHARGE_NOT_FOUND"),
    ):
        assert await refusal(telegram, "refundStarPayment", json.dumps(fields)) == words


async def test_a_webhook_whose_url_cannot_be_read_is_refused(telegram: TelegramSimulator) -> None:
    for url in ("https://[::1", "http://[zz]/a", "https://", "https://a b/", "https://x.example:0/a"):
        assert await refusal(telegram, "setWebhook", json.dumps({"url": url})) == "invalid webhook URL specified", url
    assert await refusal(telegram, "setWebhook", json.dumps({"url": "http://[::1]:9/a"})) == "Webhook was set"
