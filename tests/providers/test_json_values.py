"""JSON of providers that is made to take long to parse is refused; the largest honest documents are parsed."""

import json

import pytest

from genlock.providers.json_values import PIECES_MAX, load_json
from genlock.providers.kie.parser import read_callback
from genlock.providers.outputs import read_output

#: an hour of speech: each word and each space between two words has its times
WORDS = [{"text": "word", "start": 1.25, "end": 1.5, "type": "word", "speaker_id": "speaker_0"}] * 20_000


def test_the_words_of_an_hour_of_speech_are_parsed() -> None:
    assert len(load_json(json.dumps({"text": "word " * 10_000, "words": WORDS}))["words"]) == 20_000


@pytest.mark.parametrize("item", ["{}", "[]", "1"])
def test_a_megabyte_of_tiny_values_is_not_parsed(item: str) -> None:
    text = f"[{','.join([item] * 600_000)}]"
    for content in (text, text.encode()):
        with pytest.raises(ValueError, match="too many values"):
            load_json(content)


def test_a_task_has_a_limited_number_of_results() -> None:
    urls = [f"http://a.example/{number}" for number in range(3000)]
    songs = [{"audio_url": url} for url in urls]
    for record in ({"resultUrls": urls}, {"resultJson": json.dumps({"resultUrls": urls})}, {"data": songs}):
        body = json.dumps({"code": 200, "data": {"taskId": "a", "state": "success", **record}}).encode()
        assert [piece.value for piece in read_callback(body).pieces] == urls[:PIECES_MAX]
    assert [piece.value for piece in read_output({"images": urls})] == urls[:PIECES_MAX]
