"""A file of AAC whose frames have headers of their own is measured by its frames."""

from collections.abc import Callable

import pytest

from genlock.media.duration import duration
from tests.media.forgeries import adts_frames as frames_of
from tests.media.forgeries import played_seconds
from tests.media.samples import SECONDS, encode_audio


def encoded(rate: int = 48_000) -> bytes:
    return encode_audio("adts", "aac", "fltp", rate)


@pytest.mark.parametrize("rate", [8000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000])
def test_the_duration_is_that_of_all_frames(rate: int) -> None:
    content = encoded(rate)
    assert duration(content) == pytest.approx(SECONDS, abs=0.3)
    assert duration(b"ID3\4\0\0\0\0\0\x0a" + bytes(10) + content + b"TAG".ljust(128)) == duration(content)


def with_size(header: bytes, size: int) -> bytes:
    return header[:3] + bytes(
        [header[3] & 0xFC | size >> 11, size >> 3 & 255, header[5] & 31 | (size & 7) << 5, header[6]]
    )


def joined(frames: list[bytes]) -> bytes:
    """Return frames with one header for each two of them."""
    pairs = (first[7:] + second[7:] for first, second in zip(frames[::2], frames[1::2], strict=False))
    return b"".join(with_size(frames[0], 7 + len(pair)) + pair for pair in pairs)


def each(change: Callable[[bytes], bytes]) -> Callable[[list[bytes]], bytes]:
    return lambda frames: b"".join(map(change, frames))


FORGED: dict[str, Callable[[list[bytes]], bytes]] = {
    "two frames in each": joined,
    "two frames in some": lambda frames: b"".join(frames[:300]) + joined(frames),
    "two frames stated": each(lambda frame: frame[:6] + bytes([frame[6] | 1]) + frame[7:]),
    "cut off": lambda frames: b"".join(frames)[:-1],
    "another byte": lambda frames: b"".join(frames) + b"\0",
    "two rates": lambda frames: b"".join(frames) + encoded(8000),
    "no content": each(lambda frame: with_size(frame, 7) + frame[7:]),
    "an unknown rate": each(lambda frame: frame[:2] + bytes([frame[2] | 0x3C]) + frame[3:]),
    "no channels": each(lambda frame: frame[:2] + bytes([frame[2] & 0xFE, frame[3] & 0x3F]) + frame[4:]),
    "another type": each(lambda frame: frame[:2] + bytes([frame[2] & 0x3F]) + frame[3:]),
}


@pytest.mark.parametrize("name", FORGED)
def test_frames_that_are_not_understood_are_not_measured(name: str) -> None:
    assert duration(FORGED[name](frames_of(encoded()))) is None


def test_a_file_of_mp3_in_frames_of_aac_is_not_measured() -> None:
    mp3 = encode_audio("mp3", "libmp3lame", "s16p", 24_000)
    frames = frames_of(encoded())
    assert duration(b"".join(frames[:20]) + mp3[mp3.index(b"\xff\xf3") :]) is None


def test_a_quiet_beginning_counts_as_players_estimate_it() -> None:
    quiet = frames_of(encoded())[5]
    loud = with_size(quiet[:7], len(quiet) + 100) + quiet[7:] + bytes(100)
    content = quiet * 100 + loud * 400
    played = played_seconds(content)

    assert played > 50
    assert duration(content) == pytest.approx(played, rel=0.02)
    assert duration(loud * 400 + quiet * 100) == pytest.approx(500 * 1024 / 48_000)


def test_frames_behind_a_tag_that_hides_them_from_players_are_not_measured() -> None:
    """Behind so long a tag, players take the file for MP3."""
    content = encode_audio("adts", "aac", "fltp")
    for size, expected in ((900_000, pytest.approx(SECONDS, abs=0.1)), (1_100_000, None)):
        tag = b"ID3\3\0\0" + bytes(size >> shift & 127 for shift in (21, 14, 7, 0)) + bytes(size)
        assert duration(tag + content) == expected
