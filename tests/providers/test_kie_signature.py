"""Callback signatures: a known one, every place of the task id, and refused ones."""

import json

import pytest
from starlette.datastructures import Headers

from genlock.providers.kie import signature
from genlock.providers.kie.signature import SIGNATURE, TIMESTAMP, WINDOW_SECONDS, is_signed, sign

TASK = "86007839a9ca205ad3af437f7974310f"
KEY = "test-hmac-key"
THEN = 1786791210
GOOD = "jHF+kyaLhlgldHVqPi+0bOf80cA1sU2IYoYa827abqA="
MARKET = json.dumps({"code": 200, "data": {"taskId": TASK}}).encode()


def headers(timestamp: object = THEN, signature: str = GOOD) -> Headers:
    return Headers({TIMESTAMP: str(timestamp), SIGNATURE: signature})


def test_a_known_signature() -> None:
    assert sign(TASK, THEN, KEY) == GOOD


@pytest.mark.parametrize(
    "answer",
    [
        {"data": {"taskId": TASK}},
        {"data": {"task_id": TASK}},
        {"taskId": TASK, "data": None},
        {"data": json.dumps({"taskId": TASK})},
    ],
)
def test_the_task_id_of_every_family_is_found(answer: dict[str, object]) -> None:
    assert is_signed(headers(), json.dumps(answer).encode(), KEY, THEN)
    assert is_signed(headers(), json.dumps(answer, separators=(",", ":")).encode(), KEY, THEN)
    assert is_signed(headers(), json.dumps(answer, indent=4).encode(), KEY, THEN)


def test_a_prompt_may_name_the_key_of_the_task_id() -> None:
    """Kie.ai repeats the order, as JSON in a string, before the id of its task."""
    param = json.dumps({"input": {"prompt": 'Draw {"taskId": "1"}, taskId and task_id. ' * 30}})
    assert is_signed(headers(), json.dumps({"data": {"param": param, "taskId": TASK}}).encode(), KEY, THEN)


def test_a_body_without_a_valid_signature_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone can send one, and a megabyte of empty objects takes a quarter of a second to parse."""
    parsed: list[bytes] = []
    monkeypatch.setattr(signature, "load_json", parsed.append)
    assert not is_signed(headers(signature="forged"), MARKET, KEY, THEN)
    assert parsed == []


def test_the_task_of_the_callback_must_be_the_signed_one() -> None:
    other = json.dumps({"data": {"taskId": "other"}, "more": {"taskId": TASK}}).encode()
    assert not is_signed(headers(), other, KEY, THEN)


@pytest.mark.parametrize("age", [-WINDOW_SECONDS, -1, 0, 1, WINDOW_SECONDS])
def test_clocks_may_differ_by_five_minutes(age: int) -> None:
    assert is_signed(headers(), MARKET, KEY, THEN + age)


@pytest.mark.parametrize("age", [-WINDOW_SECONDS - 1, WINDOW_SECONDS + 1, 10**9])
def test_an_older_signature_is_refused(age: int) -> None:
    assert not is_signed(headers(), MARKET, KEY, THEN + age)


@pytest.mark.parametrize(
    "given",
    [
        headers(signature=""),
        headers(signature="é"),
        headers(""),
        headers("soon"),
        headers("9" * 40),
        headers("²"),
        Headers({}),
    ],
)
def test_a_missing_or_invalid_signature_is_refused(given: Headers) -> None:
    assert not is_signed(given, MARKET, KEY, THEN)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"data":{}}', b"[" * 100_000, MARKET.replace(b"8", b"9", 1)]
)
def test_a_signature_of_something_else_is_refused(body: bytes) -> None:
    assert not is_signed(headers(), body, KEY, THEN)


def test_another_key_is_refused() -> None:
    assert not is_signed(headers(), MARKET, "other", THEN)
