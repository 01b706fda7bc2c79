"""What Kie.ai says of a task, in our words: one parser for callbacks and status answers of every family.

It goes by the shape of what was said and never by the family, so a callback that nobody asked for is read as well.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from genlock.domain.result import Outcome, PartKind, Piece, Report
from genlock.providers.kie.answers import name_failure
from genlock.providers.kie.states import read_state

OK = 200
ERROR_LEAST = 400
#: asked to wait, not failed: these never end a task
_PASSING = frozenset({429, 433, 455})
_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
URL_CHARS_MAX = 4096
TEXT_CHARS_MAX = 100_000
COST_MAX = 1_000_000_000

OutgoingMessage = Mapping[str, Any]


def read_callback(body: bytes) -> Report:
    """Understand a callback. Raises ValueError if it names neither a task nor a state."""
    said = load_json(body)
    if not isinstance(said, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - the port says so
    report = read_answer(said)
    if report.task_id is None and not report.word:
        raise ValueError("neither a task nor a state in it")
    return report


def read_answer(said: OutgoingMessage) -> Report:
    """What an envelope says: `{code, msg, data}`, with the task's record in `data`."""
    record = _object(said.get("data"))
    pieces = tuple(_find_pieces(said, record))
    task_id = read_task_id(said)
    outcome, word = _read_outcome(said, record, pieces, task_id)
    report = Report(outcome=outcome, task_id=task_id, cost=_read_cost(record), word=clean(word)[:80])
    if outcome is Outcome.SUCCESS:
        return _with(report, pieces=pieces)
    if outcome is Outcome.FAILURE:
        code, text = _read_failure(said, record)
        return _with(report, error_code=name_failure(code, f"{word} {text}"), error_text=text)
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


def load_json(body: bytes | str) -> Any:
    """JSON, or ValueError: a stranger may also send too much of it inside itself."""
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def clean(text: str) -> str:
    """A text that every database can keep."""
    return _NOT_TEXT.sub("", text)


# the task


def read_task_id(said: OutgoingMessage) -> str | None:
    """In `data` for most; at the root for Aleph; in snake case for Suno and Runway."""
    for holder in (_object(said.get("data")), said):
        for key in ("taskId", "task_id", "recordId"):
            value = holder.get(key)
            if isinstance(value, str) and _TASK_ID.fullmatch(value):
                return value
    return None


# the state

#: Suno calls back three times; only the last one ends the task, and only with a good code.
_STAGES = {"text": Outcome.RUNNING, "first": Outcome.RUNNING, "complete": Outcome.SUCCESS, "error": Outcome.FAILURE}
#: places that only the callback of a finished task has, in families that name no state there
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


def _read_outcome(
    said: OutgoingMessage, record: OutgoingMessage, pieces: tuple[Piece, ...], task_id: str | None
) -> tuple[Outcome, str]:
    code = _number(said.get("code"))
    stage = record.get("callbackType")
    if isinstance(stage, str):
        outcome = _STAGES.get(stage.strip().lower(), Outcome.UNKNOWN)
        failed = outcome is Outcome.SUCCESS and code not in (None, OK)
        return (Outcome.FAILURE if failed else outcome), stage
    outcome, word = _read_words(record or said)
    if word.lower() == "callback_exception" and pieces and _all_final(said, record):
        return Outcome.SUCCESS, word  # only their call to us failed: what they made is there
    if word:
        return outcome, word
    return _read_code(code, record, pieces, task_id)


def _all_final(said: OutgoingMessage, record: OutgoingMessage) -> bool:
    """Whether every song has its file: a call to us may also fail at a stage before the end."""
    lists = [holder.get(key) for holder in _holders(said, record) for key in ("sunoData", "suno_data", "data")]
    tracks = [track for found in lists if isinstance(found, list) for track in found if isinstance(track, dict)]
    return all(_url(track.get("audio_url")) or _url(track.get("audioUrl")) for track in tracks)


def _read_words(holder: OutgoingMessage) -> tuple[Outcome, str]:
    """The first state that the table knows; else the first that it does not."""
    given = [holder[key] for key in ("state", "status", "successFlag") if holder.get(key) not in (None, "")]
    for value in given:
        outcome = read_state(value)
        if outcome is not Outcome.UNKNOWN:
            return outcome, str(value)
    return Outcome.UNKNOWN, _plain(given[0]) if given else ""


def _read_code(
    code: int | None, record: OutgoingMessage, pieces: tuple[Piece, ...], task_id: str | None
) -> tuple[Outcome, str]:
    """No state anywhere: the envelope's code tells, if the rest looks like the end of a task."""
    if code == OK and (pieces or _ENDINGS & record.keys()):
        return Outcome.SUCCESS, str(code)
    if code is not None and code >= ERROR_LEAST and code not in _PASSING and task_id:
        return Outcome.FAILURE, str(code)
    return Outcome.UNKNOWN, "" if code in (None, OK) else f"code {code}"


def _read_failure(said: OutgoingMessage, record: OutgoingMessage) -> tuple[int | None, str]:
    code = next((record[key] for key in ("failCode", "errorCode") if record.get(key) not in (None, "")), None)
    text = next((record[key] for key in ("failMsg", "errorMessage") if record.get(key)), said.get("msg"))
    number = _number(code if code is not None else said.get("code"))
    return number, clean(_plain(text))[:500] if text else ""


def _read_cost(record: OutgoingMessage) -> int | None:
    for key in ("creditsConsumed", "consumeCredits"):
        value = record.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < COST_MAX:
            return round(value * 1000)
    return None


# the results


def _find_pieces(said: OutgoingMessage, record: OutgoingMessage) -> Iterator[Piece]:
    """The best kind of result that is there, wherever it is; each address once."""
    account_summaries = list(_holders(said, record))
    for keys, read in _PLACES:
        found = [piece for holder in account_summaries for key in keys if key in holder for piece in read(holder[key])]
        if found:
            yield from dict.fromkeys([*found, *_extras(account_summaries)])
            return


def _holders(said: OutgoingMessage, record: OutgoingMessage) -> Iterator[OutgoingMessage]:
    """The objects that results have been seen in, the most telling first."""
    for key in ("resultJson", "resultInfoJson", "response", "info", "videoInfo"):
        holder = _document(record.get(key))
        if holder:
            yield holder
            inner = _object(holder.get("resultObject"))
            if inner:
                yield inner
    yield record
    yield said


def _extras(account_summaries: Iterable[OutgoingMessage]) -> Iterator[Piece]:
    """Frames that were asked for beside a film."""
    for holder in account_summaries:
        for key in ("firstFrameUrl", "lastFrameUrl"):
            yield from _read_urls(holder.get(key))


def _read_urls(value: Any) -> Iterator[Piece]:
    """An address, a list of them, a list of objects that hold one each, or any of these as JSON in a string."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _json_or_none(value)
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            item = next((item[key] for key in ("resultUrl", "url", "imageUrl", "image_url") if item.get(key)), None)  # noqa: PLW2901
        url = _url(item)
        if url:
            yield Piece(value=url)


#: the finished file before its copies and streams
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
    """Songs: of each the best address."""
    for track in value if isinstance(value, list) else []:
        if isinstance(track, dict):
            urls = (_url(track.get(key)) for key in _TRACK_KEYS)
            url = next((url for url in urls if url), None)
            if url:
                yield Piece(value=url)


_STEMS = ("vocal", "backingVocals", "instrumental", "drums", "bass", "guitar", "keyboard", "percussion", "strings")
_STEM_KEYS = tuple(f"{stem}Url" for stem in (*_STEMS, "synth", "fx", "brass", "woodwinds"))


def _read_stems(value: Any) -> Iterator[Piece]:
    """Every stem, but not the song that was taken apart."""
    for key, item in _object(value).items():
        url = _url(item)
        if url and not key.lower().startswith("origin"):
            yield Piece(value=url)


_TEXT_KEYS = ("text", "transcript", "transcription", "content", "lyrics", "result")


def _read_text(value: Any) -> Iterator[Piece]:
    """Words as the result. Nobody has written down their shape, so an unknown one is shown as it is."""
    value = _document_or_text(value)
    if isinstance(value, dict):
        lyrics = value.get("lyricsData")
        if isinstance(lyrics, list):
            yield from _read_lyrics(lyrics)
            return
        told = [value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)]
        value = next((text for text in told if text.strip()), "") if told else value
    if value:
        yield from _text(value if isinstance(value, str) else _dump(value))


def _read_lyrics(value: Any) -> Iterator[Piece]:
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict) and isinstance(item.get("text"), str) and item["text"].strip():
            title = item.get("title")
            yield from _text(f"{title}\n\n{item['text']}" if isinstance(title, str) and title else item["text"])


def _read_notes(value: Any) -> Iterator[Piece]:
    """Notes of instruments have no file: their description is the result."""
    if isinstance(value, list) and value:
        yield from _text(_dump(value))


def _text(text: str) -> Iterator[Piece]:
    kept = clean(text)[:TEXT_CHARS_MAX]
    if kept.strip():
        yield Piece(kind=PartKind.TEXT, value=kept)


#: Where results are, the best first: films before their stills, clean ones before watermarked ones, files before words.
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


# small readers


def _url(value: Any) -> str | None:
    """An address one may fetch: http or https, with a host, on one line."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if not text or len(text) > URL_CHARS_MAX or not text.isprintable() or " " in text:
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in ("http", "https") and parts.hostname else None


def _json_or_none(text: str) -> Any:
    try:
        return load_json(text)
    except ValueError:
        return None


def _object(value: Any) -> OutgoingMessage:
    """An object, also where it came as a string."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _json_or_none(value)
    return value if isinstance(value, dict) else {}


def _document(value: Any) -> OutgoingMessage:
    """`resultJson` and its like: a string of JSON, an object, a bare list or address, empty or broken."""
    if isinstance(value, str):
        inner = _json_or_none(value)
        value = value if inner is None else inner
    if isinstance(value, list) or _url(value):
        return {"resultUrls": value}
    return value if isinstance(value, dict) else {}


def _document_or_text(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        inner = _json_or_none(value)
        return value if inner is None else inner
    return value


def _number(value: Any) -> int | None:
    """A whole number, also where it came as text or with a point."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) <= 9 else None  # noqa: PLR2004
    return value if isinstance(value, int) else None


def _plain(value: Any) -> str:
    """A short text of whatever it is; what is nested deeply is not worth the stack."""
    return value if isinstance(value, str) else str(value)[:500] if isinstance(value, int | float) else "(no text)"


def _dump(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=1)
    except RecursionError:
        return ""
