"""A film whose samples show several pictures is not measured: a program that writes all of them makes a longer one."""

import io
from itertools import pairwise

import av
import pytest

from genlock.media.budget import NotMeasured
from genlock.media.duration import duration
from genlock.media.shown_pictures import shown_in_av1, shown_in_vp9
from tests.media.samples import SECONDS, encode_video

#: the first byte of a picture of VP9: shown, only referred to, and one that was decoded before and is shown now
SHOWN, HIDDEN, AGAIN = b"\x86", b"\x84", b"\x88"


def packets(film: bytes) -> list[bytes]:
    with av.open(io.BytesIO(film), "r") as file:
        return [bytes(packet) for packet in file.demux(video=0) if packet.size]


def with_index(*pictures: bytes) -> bytes:
    """Return pictures of VP9 in one sample, with the index of their sizes."""
    mark = bytes([0b110_11_000 | len(pictures) - 1])
    return b"".join((*pictures, mark, *(len(picture).to_bytes(4, "little") for picture in pictures), mark))


def film_of(film: bytes, container: str, samples: list[bytes]) -> bytes:
    """Return a film with other samples, five in a second."""
    file = io.BytesIO()
    with av.open(io.BytesIO(film), "r") as source, av.open(file, "w", format=container) as out:
        [original] = source.streams.video
        stream = out.add_stream_from_template(original)
        assert original.time_base is not None
        step = round(1 / original.time_base / 5)
        for number, sample in enumerate(samples):
            packet = av.Packet(sample)
            packet.stream, packet.time_base, packet.duration = stream, original.time_base, step
            packet.pts = packet.dts = number * step
            out.mux(packet)
    return file.getvalue()


@pytest.mark.parametrize("container", ["mp4", "webm"])
def test_a_film_with_several_pictures_in_a_sample_is_not_measured(container: str) -> None:
    film = encode_video(container, "libvpx-vp9")
    pictures = packets(film)
    joined = [with_index(*pictures[at : at + 6]) for at in range(0, len(pictures), 6)]

    assert duration(film) == pytest.approx(SECONDS, abs=0.3)
    assert duration(film_of(film, container, pictures)) == pytest.approx(SECONDS, abs=0.3)
    assert duration(film_of(film, container, joined)) is None


def test_pictures_of_av1_are_counted() -> None:
    """FFmpeg's library in the tests writes AV1 and does not read it."""
    film = encode_video("mp4", "libsvtav1")
    pictures = packets(film)

    assert duration(film) == pytest.approx(SECONDS, abs=0.3)
    assert {shown_in_av1(picture) for picture in pictures} == {1}
    assert {shown_in_av1(first + second) for first, second in pairwise(pictures)} == {2}
    with pytest.raises(NotMeasured):
        shown_in_av1(pictures[0][:-1])
    with pytest.raises(NotMeasured):
        shown_in_av1(pictures[0] + b"\x12\x00" + pictures[1])


def test_pictures_that_are_only_referred_to_do_not_count() -> None:
    assert shown_in_vp9(SHOWN) == shown_in_vp9(AGAIN) == 1
    assert shown_in_vp9(with_index(HIDDEN + b"more", SHOWN + b"more")) == 1
    assert shown_in_vp9(with_index(HIDDEN, HIDDEN, AGAIN)) == 1
    assert shown_in_vp9(with_index(SHOWN, AGAIN)) == 2
    assert shown_in_vp9(b"") == 0
