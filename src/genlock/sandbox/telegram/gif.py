"""Convert an animated GIF to a silent video, as Telegram does with those that bots and users send."""

import io
from fractions import Fraction
from functools import lru_cache

from PIL import Image

from genlock.sandbox.telegram.probe import AV

PIXELS_MAX = 400_000_000
TICKS_PER_SECOND = 1000


@lru_cache(maxsize=16)  # every delivery attempt sends the same bytes
def as_mp4(content: bytes) -> bytes | None:
    """Return a GIF as a video. None if it does not move or is too large, or if PyAV is not installed."""
    if AV is None:
        return None
    try:
        with Image.open(io.BytesIO(content)) as opened:
            frames = int(getattr(opened, "n_frames", 1))
            if opened.format != "GIF" or frames < 2 or frames * opened.width * opened.height > PIXELS_MAX:
                return None
            return _encoded(opened, frames)
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
        return None


def _encoded(gif: Image.Image, frames: int) -> bytes:
    # The codec halves the resolution of colours, so both sides must be even.
    size = (max(gif.width // 2 * 2, 2), max(gif.height // 2 * 2, 2))
    file, at = io.BytesIO(), 0
    with AV.open(file, "w", format="mp4") as film:
        stream = film.add_stream("libx264", rate=25, options={"preset": "ultrafast", "crf": "26"})
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.codec_context.time_base = Fraction(1, TICKS_PER_SECOND)
        for place in range(frames):
            gif.seek(place)
            frame = AV.VideoFrame.from_image(gif.convert("RGB").crop((0, 0, *size)))
            frame.pts, frame.time_base = at, Fraction(1, TICKS_PER_SECOND)
            at += int(gif.info.get("duration", 0)) or 100
            film.mux(stream.encode(frame))
        film.mux(stream.encode(None))
    return file.getvalue()
