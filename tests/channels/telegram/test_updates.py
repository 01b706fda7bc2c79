"""Which fields of Telegram's updates the update queue uses."""

import json
from typing import Any

import pytest

from genlock.channels.telegram.updates import read_update


@pytest.mark.parametrize(
    ("content", "ordering_key", "kind", "dedup_key"),
    [
        ({"message": {"from": {"id": 5}, "chat": {"id": -9}}}, "5", "message", None),
        ({"channel_post": {"chat": {"id": -9}}}, "-9", "channel_post", None),
        ({"callback_query": {"from": {"id": 5}, "data": "x"}}, "5", "callback_query", None),
        (
            {"callback_query": {"from": {"id": 5}, "data": "x", "message": {"message_id": 3, "chat": {"id": 5}}}},
            "5",
            "callback_query",
            "5/3/2d711642b726b04401627ca9fbac32f5",
        ),
        ({"pre_checkout_query": {"from": {"id": 5}}}, "5/pre_checkout_query", "pre_checkout_query", None),
        ({"message": {"from": {"id": "x"}}}, "unknown", "message", None),
        ({"message": {"from": None}}, "unknown", "message", None),
        ({"poll": []}, "unknown", "nothing", None),
        ({}, "unknown", "nothing", None),
    ],
)
def test_an_update_is_queued_under_its_sender(
    content: dict[str, Any], ordering_key: str, kind: str, dedup_key: str | None
) -> None:
    update = read_update("bot", {"update_id": 1, **content}, "{}")
    assert (update.ordering_key, update.kind, update.dedup_key) == (ordering_key, kind, dedup_key)


@pytest.mark.parametrize("update", [None, [], 1, {}, {"update_id": "1"}, {"update_id": True}, {"update_id": 2**63}])
def test_a_value_without_an_id_is_not_an_update(update: Any) -> None:
    with pytest.raises(ValueError, match="no update_id"):
        read_update("bot", update, "")


def test_the_null_character_which_postgresql_does_not_store_becomes_a_space() -> None:
    for text in ("a\0b", "\0", "\\u0000", "\\\0", "\\\\u0000\0\0", "plain"):
        update = {"update_id": 1, "message": {"text": text}}
        stored = json.loads(read_update("bot", update, json.dumps(update)).body)
        assert stored["message"]["text"] == text.replace("\0", " ")
