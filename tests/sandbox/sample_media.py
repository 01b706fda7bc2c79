"""Small real media files of every kind."""

import io
from collections.abc import Callable
from functools import cache

import av
from PIL import Image

from genlock.sandbox.kie.media import make_audio, make_video


@cache
def picture(width: int = 640, height: int = 480, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).convert("RGB").save(file, kind)
    return file.getvalue()


@cache
def animated_gif() -> bytes:
    frames = [Image.new("RGB", (64, 48), colour) for colour in ("red", "green", "blue")]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=100)
    return file.getvalue()


@cache
def video() -> bytes:
    return make_video("film", {"aspect_ratio": "16:9"}, 0)


def sound() -> bytes:
    return make_audio(0)


@cache
def voice() -> bytes:
    """A second of silence as OGG with Opus."""
    file = io.BytesIO()
    with av.open(file, "w", format="ogg") as ogg:
        stream = ogg.add_stream("libopus", rate=48_000, layout="mono")
        for place in range(50):
            frame = av.AudioFrame(format="s16", layout="mono", samples=960)
            frame.planes[0].update(bytes(1920))
            frame.sample_rate, frame.pts = 48_000, place * 960
            ogg.mux(stream.encode(frame))
        ogg.mux(stream.encode(None))
    return file.getvalue()


PDF = b"%PDF-1.4\n1 0 obj <<>> endobj\ntrailer <<>>\n%%EOF\n"

CONTENT: dict[str, tuple[Callable[[], bytes], str]] = {
    "photo": (picture, "picture.png"),
    "video": (video, "film.mp4"),
    "animation": (animated_gif, "moving.gif"),
    "audio": (sound, "sound.mp3"),
    "voice": (voice, "voice.ogg"),
    "document": (lambda: PDF, "paper.pdf"),
}


def sample(kind: str) -> tuple[bytes, str]:
    make, name = CONTENT[kind]
    return make(), name
