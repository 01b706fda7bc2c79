"""Images, videos and audio files for tests, encoded by real encoders."""

import io
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import av
from PIL import Image

from genlock.sandbox.kie.media import make_video

#: how long the encoded videos and audio files play
SECONDS = 12
_FRAGMENTS = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}


def image(size: tuple[int, int] = (640, 480), form: str = "PNG", colour: str = "teal", **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, form, **options)
    return file.getvalue()


def noise_image(size: tuple[int, int], form: str = "PNG") -> bytes:
    """An image that compression does not make smaller."""
    file = io.BytesIO()
    Image.frombytes("RGB", size, Random(1).randbytes(size[0] * size[1] * 3)).save(file, form)
    return file.getvalue()


@cache
def short_video() -> bytes:
    """An MP4 file of 512 by 512 pixels and two seconds, as the simulated provider makes it."""
    return make_video("a video", {"prompt": "waves"}, 0)


@cache
def encode_video(container: str, codec: str, *, fragments: bool = False) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=container, options=_FRAGMENTS if fragments else {}) as out:
        stream: Any = out.add_stream(codec, rate=5)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for number in range(SECONDS * 5):
            frame = av.VideoFrame.from_image(Image.new("RGB", (32, 32), (number, 0, 0)))  # type: ignore[no-untyped-call]
            frame.pts, frame.time_base = number, Fraction(1, 5)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


@cache
def encode_audio(container: str, codec: str, sampling: str, rate: int = 48_000, *, fragments: bool = False) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=container, options=_FRAGMENTS if fragments else {}) as out:
        stream: Any = out.add_stream(codec, rate=rate, layout="mono")
        size = 960
        for start in range(0, SECONDS * rate, size):
            frame = av.AudioFrame(format=sampling, layout="mono", samples=size)
            frame.planes[0].update(bytes(frame.planes[0].buffer_size))
            frame.sample_rate, frame.pts = rate, start
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()
