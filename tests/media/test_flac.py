"""A FLAC file is measured by its frames, wherever they are."""

import struct
from collections.abc import Callable

import pytest

from genlock.media.budget import TooComplex
from genlock.media.duration import duration
from tests.media.forgeries import played_seconds
from tests.media.samples import SECONDS, encode_audio

#: where the sampling rate and the number of samples are stated
_INFO = 18


def encoded(rate: int = 48_000) -> bytes:
    return encode_audio("flac", "flac", "s16", rate)


def with_info(content: bytes, rate: int, samples: int) -> bytes:
    [bits] = struct.unpack_from(">Q", content, _INFO)
    bits = rate << 44 | bits & 0xFF << 36 | samples
    return content[:_INFO] + struct.pack(">Q", bits) + content[_INFO + 8 :]


@pytest.mark.parametrize("rate", [8000, 11_025, 16_000, 22_050, 37_800, 44_100, 48_000, 96_000, 192_000])
def test_the_duration_is_that_of_all_frames(rate: int) -> None:
    content = encoded(rate)
    assert duration(content) == pytest.approx(SECONDS, abs=0.1)
    assert duration(with_info(content, rate, 0)) == pytest.approx(SECONDS, abs=0.1)


def test_a_header_that_states_more_or_a_slower_rate_counts() -> None:
    content = encoded()
    for forged, expected in (
        (with_info(content, 48_000, 48_000), SECONDS),
        (with_info(content, 48_000, 48_000 * 60), 60),
        (with_info(content, 500_000, 48_000), SECONDS),
        (with_info(content, 24_000, 48_000), 2 * SECONDS),
        (content + content, 2 * SECONDS),
        (content + bytes(1000) + content[content.index(b"\xff\xf8") :], 2 * SECONDS),
    ):
        assert duration(forged) == pytest.approx(expected, abs=0.1)
        assert played_seconds(forged) <= expected + 0.1


def test_a_header_that_is_not_understood_is_not_measured() -> None:
    content = encoded()
    start = content.index(b"\xff\xf8")
    for forged in (
        content[:30],
        content[:start],
        content[:start] + b"\0" + content[start:],
        with_info(content, 0, 0),
        b"fLaC" + content[42:],
        content[:4] + content[4:42] + content[4:],
    ):
        assert duration(forged) is None


def test_marks_of_frames_without_a_check_sum_do_not_count_and_very_many_are_given_up() -> None:
    content = encoded()
    assert duration(content + b"\xff\xf8\x1a\x00" * 1000) == duration(content)
    with pytest.raises(TooComplex):
        duration(content + b"\xff\xf8\x1a\x00" * 600_000)


def numbered(content: bytes, number_of: Callable[[int], int]) -> bytes:
    """Return the same silence with other numbers of frames."""
    head, *frames = content.split(b"\xff\xf8")
    return head + b"".join(_numbered(b"\xff\xf8" + frame, number_of(at)) for at, frame in enumerate(frames))


def _numbered(frame: bytes, number: int) -> bytes:
    """Return a frame with a number of five bytes, and with the check sums of its header and of the whole."""
    old = max(1, 8 - (frame[4] ^ 0xFF).bit_length())
    rest = frame[4 + old :]
    more = {6: 1, 7: 2}.get(frame[2] >> 4, 0)
    digits = [number >> 24, *(0x80 | number >> shift & 0x3F for shift in (18, 12, 6, 0))]
    head = frame[:4] + bytes([0xF8 | digits[0], *digits[1:]]) + rest[:more]
    body = head + bytes([_remainder(head, 8, 0x107)]) + rest[more + 1 : -2]
    return body + struct.pack(">H", _remainder(body, 16, 0x18005))


def _remainder(content: bytes, bits: int, polynomial: int) -> int:
    value = int.from_bytes(content) << bits
    while value.bit_length() > bits:
        value ^= polynomial << value.bit_length() - bits - 1
    return value


@pytest.mark.parametrize(
    "number_of", [lambda at: at * 100, lambda at: at + 10_000 * (at == 100)], ids=["all frames", "one frame"]
)
def test_a_file_whose_frames_say_that_they_are_shown_later_is_not_measured(number_of: Callable[[int], int]) -> None:
    content = encoded()
    assert duration(numbered(content, int)) == pytest.approx(SECONDS, abs=0.1)

    later = numbered(content, number_of)
    assert played_seconds(later) > 10 * SECONDS
    assert duration(later) is None
