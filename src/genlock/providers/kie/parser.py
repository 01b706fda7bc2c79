"""The parser of Kie.ai's callbacks and status answers, one for every family.

It goes by the shape of the body and never by the family, so it can also read a callback whose job is unknown.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from genlock.domain.result import Outcome, PartKind, Piece, Report
from genlock.providers.json_values import (
    PIECES_MAX,
    PLACES_MAX,
    TEXT_CHARS_MAX,
    clean,
    load_json_or_none,
    load_object,
    read_url,
)
from genlock.providers.kie.answers import failure_code
from genlock.providers.kie.states import read_state

OK = 200
ERROR_LEAST = 400
#: codes of temporary refusals, which never end a task
_TEMPORARY = frozenset({429, 433, 455})
TASK_ID_KEYS = ("taskId", "task_id", "recordId")
_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
COST_MAX = 1_000_000_000

Json = Mapping[str, Any]


def read_callback(content: bytes) -> Report:
    """Parse a callback. Raises ValueError if it names neither a task nor a state."""
    report = read_answer(load_object(content))
    if report.task_id is None and not report.word:
        raise ValueError("the body names neither a task nor a state")
    return report


def read_answer(body: Json) -> Report:
    """Parse an envelope `{code, msg, data}` with the task's record in `data`."""
    record = _object(body.get("data"))
    pieces = tuple(_find_pieces(body, record))
    task_id = read_task_id(body)
    outcome, word = _read_outcome(body, record, pieces, task_id)
    report = Report(outcome=outcome, task_id=task_id, cost=_read_cost(record), word=clean(word)[:80])
    if outcome is Outcome.SUCCESS:
        return _with(report, pieces=pieces)
    if outcome is Outcome.FAILURE:
        code, text = _read_failure(body, record)
        return _with(report, error_code=failure_code(code, f"{word} {text}"), error_text=text)
    return report


def _with(report: Report, *, pieces: tuple[Piece, ...] = (), error_code: str = "", error_text: str = "") -> Report:
    return Report(
        outcome=report.outcome,
        task_id=report.task_id,
        cost=report.cost,
        word=report.word,
        pieces=pieces,
        error_code=error_code,
        error_text=error_text,
    )


# the task id


def read_task_id(body: Json) -> str | None:
    """Return the task id: in `data` for most families, at the root for Aleph, in snake case for Suno and Runway."""
    for holder in (_object(body.get("data")), body):
        for key in TASK_ID_KEYS:
            value = holder.get(key)
            if isinstance(value, str) and _TASK_ID.fullmatch(value):
                return value
    return None


# the state

#: Suno calls back three times. Only the last callback ends the task, and only with a success code.
_STAGES = {"text": Outcome.RUNNING, "first": Outcome.RUNNING, "complete": Outcome.SUCCESS, "error": Outcome.FAILURE}
#: keys that occur only in the callback of a finished task, in families whose callbacks name no state
_ENDINGS = frozenset(
    {
        "info",
        "video_url",
        "result_video_url",
        "audioWavUrl",
        "audio_wav_url",
        "vocal_separation_info",
        "images",
        "resultUrls",
    }
)


def _read_outcome(body: Json, record: Json, pieces: tuple[Piece, ...], task_id: str | None) -> tuple[Outcome, str]:
    code = _number(body.get("code"))
    stage = record.get("callbackType")
    if isinstance(stage, str):
        outcome = _STAGES.get(stage.strip().lower(), Outcome.UNKNOWN)
        failed = outcome is Outcome.SUCCESS and code not in (None, OK)
        return (Outcome.FAILURE if failed else outcome), stage
    outcome, word = _read_words(record or body)
    if word.lower() == "callback_exception" and pieces and _all_final(body, record):
        return Outcome.SUCCESS, word  # only Kie's callback failed; the result exists
    if word:
        return outcome, word
    return _read_code(code, record, pieces, task_id)


def _all_final(body: Json, record: Json) -> bool:
    """Tell whether every song has its file: a callback may also fail at an earlier stage."""
    lists = [holder.get(key) for holder in _holders(body, record) for key in ("sunoData", "suno_data", "data")]
    tracks = [
        track for found in lists if isinstance(found, list) for track in found[:PLACES_MAX] if isinstance(track, dict)
    ]
    return all(read_url(track.get("audio_url")) or read_url(track.get("audioUrl")) for track in tracks)


def _read_words(holder: Json) -> tuple[Outcome, str]:
    """Return the first state that the table knows, or else the first unknown one."""
    given = [holder[key] for key in ("state", "status", "successFlag") if holder.get(key) not in (None, "")]
    for value in given:
        outcome = read_state(value)
        if outcome is not Outcome.UNKNOWN:
            return outcome, str(value)
    return Outcome.UNKNOWN, _plain(given[0]) if given else ""


def _read_code(code: int | None, record: Json, pieces: tuple[Piece, ...], task_id: str | None) -> tuple[Outcome, str]:
    """Derive the outcome from the envelope's code when the body names no state."""
    if code == OK and (pieces or _ENDINGS & record.keys()):
        return Outcome.SUCCESS, str(code)
    if code is not None and code >= ERROR_LEAST and code not in _TEMPORARY and task_id:
        return Outcome.FAILURE, str(code)
    return Outcome.UNKNOWN, "" if code in (None, OK) else f"code {code}"


def _read_failure(body: Json, record: Json) -> tuple[int | None, str]:
    code = next((record[key] for key in ("failCode", "errorCode") if record.get(key) not in (None, "")), None)
    text = next((record[key] for key in ("failMsg", "errorMessage") if record.get(key)), body.get("msg"))
    number = _number(code if code is not None else body.get("code"))
    return number, clean(_plain(text))[:500] if text else ""


def _read_cost(record: Json) -> int | None:
    for key in ("creditsConsumed", "consumeCredits"):
        value = record.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < COST_MAX:
            return round(value * 1000)
    return None


# the results


def _find_pieces(body: Json, record: Json) -> Iterator[Piece]:
    """Yield the best kind of result in the body; each URL once."""
    holders = list(_holders(body, record))
    for keys, read in _PLACES:
        found = [piece for holder in holders for key in keys if key in holder for piece in read(holder[key])]
        if found:
            yield from islice(dict.fromkeys([*found, *_extras(holders)]), PIECES_MAX)
            return


def _holders(body: Json, record: Json) -> Iterator[Json]:
    """Yield the objects that may contain results, the most specific first."""
    for key in ("resultJson", "resultInfoJson", "response", "info", "videoInfo"):
        holder = _document(record.get(key))
        if holder:
            yield holder
            inner = _object(holder.get("resultObject"))
            if inner:
                yield inner
    yield record
    yield body


def _extras(holders: Iterable[Json]) -> Iterator[Piece]:
    """Yield the first and last frames that were ordered with a video."""
    for holder in holders:
        for key in ("firstFrameUrl", "lastFrameUrl"):
            yield from _read_urls(holder.get(key))


def _read_urls(value: Any) -> Iterator[Piece]:
    """Read a URL, a list of URLs, a list of objects with one URL each, or any of these as JSON in a string."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = load_json_or_none(value)
    for item in value[:PLACES_MAX] if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            item = next((item[key] for key in ("resultUrl", "url", "imageUrl", "image_url") if item.get(key)), None)  # noqa: PLW2901
        url = read_url(item)
        if url:
            yield Piece(value=url)


#: the finished file first, then its copies and streams
_TRACK_KEYS = (
    "audio_url",
    "audioUrl",
    "source_audio_url",
    "sourceAudioUrl",
    "stream_audio_url",
    "streamAudioUrl",
    "source_stream_audio_url",
    "sourceStreamAudioUrl",
)


def _read_tracks(value: Any) -> Iterator[Piece]:
    """Yield the best URL of each song."""
    for track in value[:PLACES_MAX] if isinstance(value, list) else []:
        if isinstance(track, dict):
            urls = (read_url(track.get(key)) for key in _TRACK_KEYS)
            url = next((url for url in urls if url), None)
            if url:
                yield Piece(value=url)


_STEMS = ("vocal", "backingVocals", "instrumental", "drums", "bass", "guitar", "keyboard", "percussion", "strings")
_STEM_KEYS = tuple(f"{stem}Url" for stem in (*_STEMS, "synth", "fx", "brass", "woodwinds"))


def _read_stems(value: Any) -> Iterator[Piece]:
    """Yield every stem, but not the original song."""
    for key, item in islice(_object(value).items(), PLACES_MAX):
        url = read_url(item)
        if url and not key.lower().startswith("origin"):
            yield Piece(value=url)


_TEXT_KEYS = ("text", "transcript", "transcription", "content", "lyrics", "result")


def _read_text(value: Any) -> Iterator[Piece]:
    """Read a text result. Its shape is not documented, so an unknown shape is shown as it is."""
    value = _document_or_text(value)
    if isinstance(value, dict):
        lyrics = value.get("lyricsData")
        if isinstance(lyrics, list):
            yield from _read_lyrics(lyrics)
            return
        texts = [value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)]
        value = next((text for text in texts if text.strip()), "") if texts else value
    if value:
        yield from _text(value if isinstance(value, str) else _dump(value))


def _read_lyrics(value: Any) -> Iterator[Piece]:
    for item in value[:PLACES_MAX] if isinstance(value, list) else []:
        if isinstance(item, dict) and isinstance(item.get("text"), str) and item["text"].strip():
            title = item.get("title")
            yield from _text(f"{title}\n\n{item['text']}" if isinstance(title, str) and title else item["text"])


def _read_notes(value: Any) -> Iterator[Piece]:
    """Read the notes of instruments: there is no file, their description is the result."""
    if isinstance(value, list) and value:
        yield from _text(_dump(value))


def _text(text: str) -> Iterator[Piece]:
    cleaned = clean(text)[:TEXT_CHARS_MAX]
    if cleaned.strip():
        yield Piece(kind=PartKind.TEXT, value=cleaned)


#: Where results are, the best first: videos before still images, clean before watermarked, files before text.
_PLACES: tuple[tuple[tuple[str, ...], Callable[[Any], Iterator[Piece]]], ...] = (
    (("resultUrls", "result_urls"), _read_urls),
    (("sunoData", "suno_data", "data"), _read_tracks),
    (("resultVideoUrl", "result_video_url", "videoUrl", "video_url"), _read_urls),
    (("resultUrl", "result_url"), _read_urls),
    (("audioWavUrl", "audio_wav_url", "audioUrl", "audio_url"), _read_urls),
    (("vocal_separation_info", "vocalSeparationInfo"), _read_stems),
    (_STEM_KEYS, _read_urls),
    (("resultImageUrl", "result_image_url"), _read_urls),
    (("images", "imageUrls"), _read_urls),
    (("fullResultUrls", "originUrls", "originImageUrl", "imageUrl", "image_url"), _read_urls),
    (("resultWaterMarkUrls", "resultWatermarkUrls", "waterMarkVideoUrl"), _read_urls),
    (("lyricsData", "data"), _read_lyrics),
    (("resultObject",), _read_text),
    (("instruments",), _read_notes),
)


# values


def _object(value: Any) -> Json:
    """Return an object, also one that arrived as JSON in a string, or else {}."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = load_json_or_none(value)
    return value if isinstance(value, dict) else {}


def _document(value: Any) -> Json:
    """Read `resultJson` and similar keys: JSON in a string, an object, a bare list or URL, or something broken."""
    if isinstance(value, str):
        inner = load_json_or_none(value)
        value = value if inner is None else inner
    if isinstance(value, list) or read_url(value):
        return {"resultUrls": value}
    return value if isinstance(value, dict) else {}


def _document_or_text(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        inner = load_json_or_none(value)
        return value if inner is None else inner
    return value


def _number(value: Any) -> int | None:
    """Return a whole number, also one that arrived as text or as a float."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) <= 9 else None  # noqa: PLR2004
    return value if isinstance(value, int) else None


def _plain(value: Any) -> str:
    """Return a short text of a scalar. Other values are not rendered: they may be nested too deeply."""
    return value if isinstance(value, str) else str(value)[:500] if isinstance(value, int | float) else "(no text)"


def _dump(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=1)
    except RecursionError:
        return ""
