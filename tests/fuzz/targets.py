"""The parsers of what users, providers and unauthenticated senders send, and the promise each keeps for any bytes."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

from genlock.channels.telegram.updates import read_update
from genlock.dashboard.telegram_html import InvalidMessage, read_message
from genlock.media.image_head import read_image_head
from genlock.providers.fal.client import Fal
from genlock.providers.kie.parser import read_callback
from genlock.providers.replicate.client import Replicate
from tests.fuzz.guided import Target
from tests.media.every_reader import read_media
from tests.media.mutations import image_seeds, media_seeds, mutate
from tests.providers.mutated_answers import real_answers
from tests.providers.sound_reports import assert_sound

_TOKENS = (
    b'"', b"{", b"}", b"[", b"]", b":", b",", b"null", b"true", b"-1", b"1e999", b"1" * 400, b'"\\u0000"', b'"\\ud800"',
    b'""', b"[[[[[[[[", b'"https://[::1"', b'"http://a b/"', b"\xff", b"\xf0\x9f\x98\x80", b"<b>", b"</b>", b"<a href=",
    b"&#0;", b"&lt;", b"'", b"<tg-time unix='5' format=", b"<span class=tg-spoiler>", b"&#xD800;",
)  # fmt: skip


def mutate_text(content: bytearray, inputs: Sequence[bytes], rng: Random) -> None:
    """Change, insert or delete a few bytes, or take over a piece of another input."""
    place = rng.randrange(len(content) + 1)
    match rng.randrange(5):
        case 0:
            content[place : place + 1] = bytes([rng.randrange(256)])
        case 1:
            content[place:place] = rng.choice(_TOKENS)
        case 2:
            del content[place : place + rng.choice((1, 2, 8, 40))]
        case 3:
            token = rng.choice(_TOKENS)
            content[place : place + len(token)] = token
        case _:
            other = rng.choice(inputs)
            start = rng.randrange(len(other) + 1)
            content[place : place + rng.choice((0, 16))] = other[start : start + rng.choice((8, 40, 200))]


def _read_fal(content: bytes) -> None:
    with suppress(ValueError):
        assert_sound(Fal.read_callback(object.__new__(Fal), content))


def _read_replicate(content: bytes) -> None:
    with suppress(ValueError):
        assert_sound(Replicate.read_callback(object.__new__(Replicate), content))


def _read_kie(content: bytes) -> None:
    with suppress(ValueError):
        assert_sound(read_callback(content))


def _read_update(content: bytes) -> None:
    with suppress(ValueError, RecursionError):
        update = json.loads(content)
        stored = read_update("42", update, content.decode())
        assert "\\u0000" not in stored.body.replace("\\\\", "")
        assert len(stored.kind) <= 64


def _read_message(content: bytes) -> None:
    with suppress(InvalidMessage, UnicodeDecodeError):
        shown = str(read_message(content.decode()).shown)
        assert "<script" not in shown


def _json(*values: object) -> list[bytes]:
    return [json.dumps(value).encode() for value in values]


_FAL = (
    {"request_id": "r-1", "status": "OK", "payload": {"images": [{"url": "https://a.example/1.png"}], "seed": 1}},
    {"request_id": "r-1", "status": "OK", "payload": {"video": {"url": "https://a.example/1.mp4"}, "text": "a"}},
    {
        "request_id": "r-1",
        "status": "ERROR",
        "error": "Invalid status code: 422",
        "payload": {"detail": [{"msg": "x"}]},
    },
    {"request_id": "r-1", "status": "OK", "payload": None, "payload_error": "too large"},
)
_REPLICATE = (
    {"id": "p1", "status": "succeeded", "output": ["https://a.example/1.png"], "metrics": {"predict_time": 1.5}},
    {"id": "p1", "status": "failed", "error": "NSFW content detected", "output": None},
    {"id": "p1", "status": "succeeded", "output": {"audio": "https://a.example/a.mp3", "text": "b"}},
    {"id": "p1", "status": "processing", "output": None, "logs": "10%"},
)
_UPDATES = (
    {"update_id": 1, "message": {"message_id": 2, "from": {"id": 3}, "chat": {"id": 3}, "text": "a \u0000 b"}},
    {"update_id": 1, "callback_query": {"id": "9", "from": {"id": 3}, "data": "w:go", "message": {"message_id": 2}}},
    {"update_id": 1, "pre_checkout_query": {"id": "9", "from": {"id": 3}, "invoice_payload": "x"}},
)
_MESSAGES = (
    b"<b>Hello</b> &lt;you&gt; &#128512;",
    b'<a href="https://a.example">a</a>\n<pre><code class="x">y</code></pre>',
)


def _provider(name: str, seeds: Sequence[object], read: Callable[[bytes], None]) -> Target:
    return Target(name=name, seeds=lambda: _json(*seeds), read=read, mutate=mutate_text, sources=("providers/",))


_HEADS, _HTML = ("media/image_head.py",), ("channels/telegram/html.py",)
TARGETS = (
    Target(name="media", seeds=media_seeds, read=read_media, mutate=mutate, sources=("media/",)),
    Target(name="image heads", seeds=image_seeds, read=read_image_head, mutate=mutate, sources=_HEADS),
    _provider("kie", real_answers(), _read_kie),
    _provider("fal", _FAL, _read_fal),
    _provider("replicate", _REPLICATE, _read_replicate),
    Target(name="updates", seeds=lambda: _json(*_UPDATES), read=_read_update, mutate=mutate_text),
    Target(name="broadcasts", seeds=lambda: _MESSAGES, read=_read_message, mutate=mutate_text, sources=_HTML),
)
