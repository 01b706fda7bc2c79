"""Answers to inline queries that the simulated Telegram refuses, with the real server's texts."""

from typing import Any

import aiohttp
import pytest

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.sample_media import picture

PARSE = "can't parse inline query result"


async def refusal(telegram: TelegramSimulator, **given: Any) -> str:
    async with aiohttp.ClientSession() as http:
        answer = await (await http.post(f"{telegram.url}/bot{telegram.token}/answerInlineQuery", json=given)).json()
    return str(answer["description"]).removeprefix("Bad Request: ")


@pytest.mark.parametrize(
    ("results", "error"),
    [
        ([{"type": "photo", "id": "1"}] * 51, "too many inline query results specified"),
        ([{"type": "photo"}], f'{PARSE}: Can\'t find field "id"'),
        ([{"type": "video", "id": "1"}], f'{PARSE}: Can\'t find field "title"'),
        ([{"type": "song", "id": "1"}], f'{PARSE}: type "song" is unsupported for the inline query result'),
        ([{"type": "photo", "id": "x" * 65}], "RESULT_ID_INVALID"),
        ([], "query is too old and response timeout expired or query ID is invalid"),
    ],
)
async def test_results_are_checked_before_the_query(
    telegram: TelegramSimulator, results: list[dict[str, str]], error: str
) -> None:
    assert await refusal(telegram, inline_query_id="1", results=results) == error


@pytest.mark.parametrize(
    ("button", "error"),
    [
        ({"start_parameter": "a"}, "can't parse inline query results button: Can't find field \"text\""),
        (
            {"text": "x"},
            "can't parse inline query results button: InlineQueryResultsButton must have exactly one optional field",
        ),
        ({"text": "x", "start_parameter": ""}, "can't use empty start_parameter"),
        ({"text": "x", "start_parameter": "a" * 65}, "too long start_parameter specified"),
        ({"text": "x", "start_parameter": "a b"}, "unallowed characters in start_parameter are used"),
    ],
)
async def test_the_button_above_the_results_is_checked(
    telegram: TelegramSimulator, button: dict[str, str], error: str
) -> None:
    assert await refusal(telegram, inline_query_id="1", results=[], button=button) == error


async def test_a_query_is_answered_once(telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    file_id = (await ann.send_photo(picture())).file_id
    query = ann.type_inline("cat")
    results = [{"type": "photo", "id": "1", "photo_file_id": file_id}]
    async with aiohttp.ClientSession() as http:
        given = {"inline_query_id": query.id, "results": results}
        answer = await (await http.post(f"{telegram.url}/bot{telegram.token}/answerInlineQuery", json=given)).json()
    assert answer["result"] is True
    assert (await ann.share(query, "1")).kind == "photo"
    assert (await refusal(telegram, inline_query_id=query.id, results=results)).startswith("query is too old")
