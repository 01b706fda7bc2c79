"""The parser reads every documented form of callback and record, and broken ones."""

import json
from typing import Any

import pytest

from genlock.domain.result import Outcome, PartKind, settle_report
from genlock.providers.kie.parser import read_answer, read_callback

TASK = "86007839a9ca205ad3af437f7974310f"
URL = "https://tempfile.aiquickdraw.com/p/1.png"
URL2 = "https://tempfile.aiquickdraw.com/p/2.png"


def envelope(data: Any, code: int = 200, **more: Any) -> dict[str, Any]:
    return {"code": code, "msg": "text", "data": data, **more}


def urls(answer: dict[str, Any]) -> list[str]:
    report = read_callback(json.dumps(answer).encode())
    assert report.outcome is Outcome.SUCCESS
    return [piece.value for piece in report.pieces]


def market(result: Any, **more: Any) -> dict[str, Any]:
    return envelope({"taskId": TASK, "state": "success", "resultJson": result, **more})


# the task's id


@pytest.mark.parametrize(
    "answer",
    [
        envelope({"taskId": TASK, "state": "waiting"}),
        envelope({"task_id": TASK, "state": "waiting"}),
        envelope({"recordId": TASK, "state": "waiting"}),
        envelope(None, code=501, taskId=TASK),
        envelope({}, code=501, task_id=TASK),
        {"taskId": TASK, "state": "waiting"},
        envelope(json.dumps({"taskId": TASK, "state": "waiting"})),
    ],
)
def test_the_task_id_is_found_in_every_place(answer: dict[str, Any]) -> None:
    assert read_answer(answer).task_id == TASK


@pytest.mark.parametrize("value", ["", " ", "a b", "a\0", "x" * 200, 5, None, [TASK], {"a": 1}, "\ud800", "../x"])
def test_an_invalid_task_id_is_none(value: Any) -> None:
    assert read_answer(envelope({"taskId": value, "state": "success"})).task_id is None


# the state


@pytest.mark.parametrize(
    ("record", "outcome"),
    [
        ({"state": "success"}, Outcome.SUCCESS),
        ({"state": "fail"}, Outcome.FAILURE),
        ({"state": "queueing"}, Outcome.RUNNING),
        ({"status": "FIRST_SUCCESS"}, Outcome.RUNNING),
        ({"status": "SUCCESS"}, Outcome.SUCCESS),
        ({"successFlag": 0}, Outcome.RUNNING),
        ({"successFlag": 1}, Outcome.SUCCESS),
        ({"successFlag": 3}, Outcome.FAILURE),
        ({"successFlag": "GENERATE_WAV_FAILED"}, Outcome.FAILURE),
        ({"status": "GENERATING", "successFlag": 0}, Outcome.RUNNING),
        ({"status": "half done", "successFlag": 1}, Outcome.SUCCESS),
        ({"state": "pondering"}, Outcome.UNKNOWN),
        ({"state": ["success"]}, Outcome.UNKNOWN),
        ({"successFlag": True}, Outcome.UNKNOWN),
        ({}, Outcome.UNKNOWN),
    ],
)
def test_states_are_read_by_the_table(record: dict[str, Any], outcome: Outcome) -> None:
    assert read_answer(envelope({"taskId": TASK, **record})).outcome is outcome


@pytest.mark.parametrize(
    ("stage", "code", "outcome"),
    [
        ("text", 200, Outcome.RUNNING),
        ("first", 200, Outcome.RUNNING),
        ("complete", 200, Outcome.SUCCESS),
        ("complete", 400, Outcome.FAILURE),
        ("error", 501, Outcome.FAILURE),
        ("encore", 200, Outcome.UNKNOWN),
    ],
)
def test_of_three_stages_only_complete_ends_a_song(stage: str, code: int, outcome: Outcome) -> None:
    data = {"callbackType": stage, "task_id": TASK, "data": [{"audio_url": URL}]}
    assert read_answer(envelope(data, code)).outcome is outcome


def test_the_state_of_the_record_wins_over_the_code_of_the_envelope() -> None:
    assert read_answer(envelope({"taskId": TASK, "state": "success"}, code=501)).outcome is Outcome.SUCCESS


def test_a_code_alone_ends_a_task_only_with_a_task_id() -> None:
    assert read_answer(envelope({"taskId": TASK}, code=500)).outcome is Outcome.FAILURE
    assert read_answer(envelope(None, code=500)).outcome is Outcome.UNKNOWN
    for passing in (429, 433, 455):
        assert read_answer(envelope({"taskId": TASK}, code=passing)).outcome is Outcome.UNKNOWN


def test_the_answer_to_a_create_call_does_not_end_the_task() -> None:
    assert read_answer(envelope({"taskId": TASK, "recordId": TASK})).outcome is Outcome.UNKNOWN


def test_a_song_whose_callback_failed_is_a_success() -> None:
    tracks = {"sunoData": [{"audioUrl": URL}]}
    answer = envelope({"taskId": TASK, "status": "CALLBACK_EXCEPTION", "response": tracks})
    assert read_answer(answer).outcome is Outcome.SUCCESS


def test_a_callback_that_failed_before_the_songs_were_ready_does_not_end_the_task() -> None:
    tracks = {"sunoData": [{"audioUrl": URL}, {"streamAudioUrl": URL}]}
    answer = envelope({"taskId": TASK, "status": "CALLBACK_EXCEPTION", "response": tracks})
    assert read_answer(answer).outcome is Outcome.RUNNING
    assert read_answer(envelope({"taskId": TASK, "status": "CALLBACK_EXCEPTION"})).outcome is Outcome.RUNNING


# the results

SONG = {"audio_url": "", "source_audio_url": URL, "stream_audio_url": URL2, "image_url": "https://x.example/i.png"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (market(json.dumps({"resultUrls": [URL, URL2]})), [URL, URL2]),
        (market({"resultUrls": [URL]}), [URL]),
        (market(json.dumps([URL])), [URL]),
        (market(URL), [URL]),
        (market(json.dumps({"resultUrls": URL})), [URL]),
        (market(json.dumps({"resultUrls": [URL, URL]})), [URL]),
        (market(json.dumps({"resultUrls": [URL], "resultObject": None})), [URL]),
        (market(json.dumps({"resultUrls": [URL], "resultWaterMarkUrls": [URL2]})), [URL]),
        (market(json.dumps({"resultWaterMarkUrls": [URL2], "resultUrls": []})), [URL2]),
        (market(json.dumps({"resultUrls": [URL], "lastFrameUrl": [URL2], "firstFrameUrl": []})), [URL, URL2]),
        (market(json.dumps({"data": [SONG, {"audio_url": URL2}]})), [URL, URL2]),
        (market(json.dumps({"sunoData": [{"audioUrl": URL}]})), [URL]),
        (market("", response={"resultUrls": [URL]}), [URL]),
        (market("", response=json.dumps({"resultUrls": json.dumps([URL])})), [URL]),
        (market(json.dumps({"resultUrls": ["ftp://a/b", "javascript:alert(1)", "x", 5, None, URL]})), [URL]),
        (envelope({"taskId": TASK, "successFlag": 1, "response": {"resultUrls": [URL], "originUrls": [URL2]}}), [URL]),
        (envelope({"taskId": TASK, "info": {"resultUrls": [URL], "originUrls": [URL2]}}), [URL]),
        (envelope({"taskId": TASK, "info": {"resultUrls": json.dumps([URL])}}), [URL]),
        (envelope({"taskId": TASK, "info": {"result_urls": [URL]}}), [URL]),
        (envelope({"taskId": TASK, "info": {"resultUrls": [URL], "imageUrls": [URL2]}}), [URL]),
        (envelope({"taskId": TASK, "info": {"originImageUrl": URL2, "resultImageUrl": URL}}), [URL]),
        (envelope({"task_id": TASK, "video_id": "1", "video_url": URL, "image_url": URL2}), [URL]),
        (envelope({"taskId": TASK, "state": "success", "videoInfo": {"videoUrl": URL, "imageUrl": URL2}}), [URL]),
        (envelope({"result_video_url": URL, "result_image_url": URL2}, taskId=TASK), [URL]),
        (
            envelope({"taskId": TASK, "successFlag": 1, "response": {"resultVideoUrl": URL, "resultImageUrl": URL2}}),
            [URL],
        ),
        (
            envelope({"task_id": TASK, "callbackType": "complete", "data": [SONG, SONG | {"audio_url": URL2}]}),
            [URL, URL2],
        ),
        (envelope({"taskId": TASK, "status": "SUCCESS", "response": {"sunoData": [{"audioUrl": URL}]}}), [URL]),
        (envelope({"task_id": TASK, "audioWavUrl": URL}), [URL]),
        (
            envelope(
                {"task_id": TASK, "vocal_separation_info": {"origin_url": "https://o.example/", "vocal_url": URL}}
            ),
            [URL],
        ),
        (envelope({"taskId": TASK, "successFlag": "SUCCESS", "response": {"originUrl": URL2, "vocalUrl": URL}}), [URL]),
        (envelope({"taskId": TASK, "images": [URL, URL2]}), [URL, URL2]),
        (envelope({"taskId": TASK, "successFlag": 1, "resultInfoJson": {"resultUrls": [{"resultUrl": URL}]}}), [URL]),
        (envelope({"taskId": TASK, "promptJson": "{}", "resultUrls": [URL]}), [URL]),
        (envelope({"taskId": TASK, "resultUrl": URL, "state": "success"}), [URL]),
    ],
)
def test_results_are_found_in_every_place(answer: dict[str, Any], expected: list[str]) -> None:
    assert urls(answer) == expected


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"resultObject": {"text": "hello"}}, ["hello"]),
        ({"resultObject": "hello"}, ["hello"]),
        ({"resultObject": json.dumps({"transcript": "hello"})}, ["hello"]),
        ({"resultObject": {"lyricsData": [{"title": "A", "text": "la"}, {"text": "li"}]}}, ["A\n\nla", "li"]),
        ({"resultObject": {"boxes": [[1, 2]]}}, ['{\n "boxes": [\n  [\n   1,\n   2\n  ]\n ]\n}']),
        ({"resultObject": {"text": "a\0b\ud800"}}, ["ab"]),
    ],
)
def test_a_text_is_a_result(result: dict[str, Any], words: list[str]) -> None:
    report = read_answer(market(json.dumps(result)))
    assert [(piece.kind, piece.value) for piece in report.pieces] == [(PartKind.TEXT, word) for word in words]


def test_lyrics_of_the_older_family_are_texts() -> None:
    answer = envelope(
        {"task_id": TASK, "callbackType": "complete", "data": [{"text": "la", "title": "", "status": "x"}]}
    )
    assert [piece.value for piece in read_answer(answer).pieces] == ["la"]


@pytest.mark.parametrize(
    "result",
    ["", None, "{", "null", "[]", "{}", '{"resultUrls":[]}', '{"resultUrls":["ftp://x"]}', 7, "[[]]", "[" * 50_000],
)
def test_a_success_without_a_result_becomes_a_failure(result: Any) -> None:
    report = read_answer(market(result))
    assert report.outcome is Outcome.SUCCESS
    assert settle_report(report).error_code == "empty_result"


def test_the_inputs_that_a_record_repeats_are_not_its_results() -> None:
    param = json.dumps({"input": json.dumps({"image_urls": [URL]})})
    assert read_answer(market("", param=param, generateParam={"imageUrl": URL})).pieces == ()


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "https:///x",
        "http://[",
        "https://a.example/\n",
        "//a.example",
        "https://a b",
        "https://" + "a" * 5000,
    ],
)
def test_an_invalid_url_is_not_a_result(url: str) -> None:
    assert [piece.value for piece in read_answer(market({"resultUrls": [url]})).pieces] in (
        [],
        [url.strip()][: "\n" in url],
    )


# the rest


@pytest.mark.parametrize(
    ("value", "cost"),
    [(0.8, 800), (38.0, 38000), (5, 5000), (0, 0), (-1, None), (True, None), ("5", None), (1e300, None), (None, None)],
)
def test_the_cost_is_in_thousandths(value: Any, cost: int | None) -> None:
    assert read_answer(market("", creditsConsumed=value)).cost == cost


def test_a_failure_has_a_code_and_a_text() -> None:
    record = {"taskId": TASK, "state": "fail", "resultJson": None, "failCode": "500", "creditsConsumed": 0}
    report = read_answer(envelope(record | {"failMsg": "Internal Error, Please try again later."}, 501))
    assert report.error_code == "provider_failed"
    assert report.error_text == "Internal Error, Please try again later."
    assert report.cost == 0
    assert report.pieces == ()


@pytest.mark.parametrize(
    "body",
    [b"", b"x", b"null", b"[]", b"5", b'"a"', b"{}", b'{"data":null}', b"\xff\xfe", b"[" * 200_000, b'{"a":' * 90_000],
)
def test_a_body_without_a_task_or_a_state_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_callback(body)
