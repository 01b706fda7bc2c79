"""A film whose tracks begin at different times plays longer than each of its tracks."""

import io
import struct
from fractions import Fraction
from functools import cache
from typing import Any

import av
import pytest
from PIL import Image

from genlock.media.duration import duration
from tests.media.boxes import box, edit, split
from tests.media.forged_fragments import without_index
from tests.media.forged_pictures import encode, with_times

SECONDS = 4
#: of Matroska: the language of a track, and a delay of the same length
_LANGUAGE, _DELAY = b"\x22\xb5\x9c\x83und", b"\x56\xaa\x84"


@cache
def film(container: str, video: str, audio: str, flags: str = "") -> bytes:
    """Return a film of four seconds with a picture and sound."""
    file = io.BytesIO()
    with av.open(file, "w", format=container, options={"movflags": flags} if flags else {}) as out:
        pictures: Any = out.add_stream(video, rate=5)
        pictures.width, pictures.height, pictures.pix_fmt = 32, 32, "yuv420p"
        sound: Any = out.add_stream(audio, rate=48_000, layout="mono")
        for number in range(SECONDS * 5):
            frame: Any = av.VideoFrame.from_image(Image.new("RGB", (32, 32)))  # type: ignore[no-untyped-call]
            frame.pts, frame.time_base = number, Fraction(1, 5)
            out.mux(pictures.encode(frame))
        for start in range(0, SECONDS * 48_000, 960):
            part = av.AudioFrame(format=sound.format.name, layout="mono", samples=960)
            part.planes[0].update(bytes(part.planes[0].buffer_size))
            part.sample_rate, part.pts = 48_000, start
            out.mux(sound.encode(part))
        for stream in (pictures, sound):
            out.mux(stream.encode(None))
    return file.getvalue()


def played_together(content: bytes, **options: str) -> float:
    """Return the time between the first and the last frame of all tracks."""
    times = []
    with av.open(io.BytesIO(content), "r", options=options) as file:
        for packet in file.demux():
            times += [frame.time for frame in packet.decode() if frame.time is not None]  # type: ignore[union-attr]
    return max(times) - min(times)


def test_a_track_that_begins_earlier_by_its_delay_is_not_measured() -> None:
    content = film("webm", "libvpx", "libopus")
    assert duration(content) == pytest.approx(SECONDS, abs=0.1)  # with the delay of the encoder of its sound
    delayed = content.replace(_LANGUAGE, _DELAY + (4 * 10**9).to_bytes(4), 1)
    assert played_together(delayed) == pytest.approx(4 + SECONDS, abs=0.3)
    assert duration(delayed) is None


def skipping(content: bytes, seconds: int) -> bytes:
    """Return a film in MPEG-4 of whose first track the edit list skips the beginning."""
    tracks = 0

    def change(track: bytes) -> bytes:
        nonlocal tracks
        tracks += 1
        table = box(b"elst", struct.pack(">IIIiI", 0, 1, 0, seconds * 10_240, 1 << 16))
        inside = [each for each in split(track) if each[0] != b"edts"]
        return b"".join(box(*each) for each in ([*inside, (b"edts", table)] if tracks == 1 else split(track)))

    return edit(content, (b"moov", b"trak"), change)


@pytest.mark.parametrize("flags", ["", "frag_keyframe+empty_moov+default_base_moof"])
def test_tracks_that_an_edit_list_moves_apart_are_measured_together(flags: str) -> None:
    content = without_index(film("mp4", "libx264", "aac", flags))
    apart = skipping(content, 3)
    assert duration(content) == pytest.approx(SECONDS, abs=0.5)
    assert played_together(apart, advanced_editlist="0") == pytest.approx(3 + SECONDS, abs=0.5)
    assert duration(apart) == pytest.approx(3 + SECONDS, abs=0.5)
    assert duration(skipping(content, 60)) is None


def test_fragments_of_tracks_that_begin_apart_are_measured_as_players_state_it() -> None:
    content = film("mp4", "libx264", "aac", "frag_keyframe+empty_moov+default_base_moof")
    seen = 0

    def change(time: bytes) -> bytes:
        nonlocal seen
        seen += 1
        return time[:4] + struct.pack(">Q", 60 * 10_240) if seen == 1 else time

    late = edit(without_index(content), (b"moof", b"traf", b"tfdt"), change)
    with av.open(io.BytesIO(late), "r") as file:
        stated = (file.duration or 0) / 1e6
    found = duration(late)
    assert found is not None
    assert found >= stated - 0.5 > 100


@pytest.mark.parametrize("times", [[100_000, 0], [100_000] * 3 + [0]])
@pytest.mark.parametrize("codec", ["libx265", "libvpx-vp9"])
def test_the_last_picture_of_a_slow_film_is_shown_as_long_as_the_others(codec: str, times: list[int]) -> None:
    """Players do so if no time is stated for it."""
    content = with_times(encode(codec, "mp4", "bframes=0", count=len(times)), times)
    assert duration(content) == pytest.approx(10 * len(times))
